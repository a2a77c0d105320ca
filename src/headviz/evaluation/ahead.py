"""The masks that a click may ask for next, evaluated before it comes.

Their results lie where the evaluator keeps all results: a click finds them, and so does a table of single heads.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..heads import HeadMask
from ..progress import Cancel, Progress, tracked
from ..storage.exchange import MaskLike

if TYPE_CHECKING:
    from .mask_evaluator import MaskEvaluator


def toggles(present: HeadMask, mask: HeadMask) -> list[HeadMask]:
    """The mask with each head of the model switched once, the cheapest first: those of the last layers."""
    return [mask.toggled([head]) for head in sorted(present.kept, reverse=True)]


def compute_ahead(
    evaluator: MaskEvaluator,
    mask: MaskLike | None = None,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> None:
    """Evaluate every toggle of a mask, as far as there is room for results.

    The first one keeps the states of the mask itself, from which the others and later clicks start.
    """
    present = evaluator.clf.present
    masks = toggles(present, evaluator.whole(mask))[: evaluator.room]
    for number, one in enumerate(tracked(masks, progress, cancel)):
        evaluator.predictions(one, keep=number == 0, cancel=cancel)


def give_way() -> None:
    """This thread alone computes on one core and lets all others go first, where the system has a way to say so.

    ``torch.set_num_threads`` would hold for every thread of the process.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    for library in (Path(torch.__file__).parent / "lib").glob("libgomp*"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(str(library)).omp_set_num_threads(1)

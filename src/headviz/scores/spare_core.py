"""Leave one core to the statistics: torch uses one thread fewer while they run.

With as many torch threads as cores, the statistics would take a core from one of them, and at the end of every small
matrix product all the others would wait for it. Of two or three cores a wide model's passes need all, and its
statistics wait: 4 % of the time on MPNet. On CUDA the device computes them itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from ..models.fast.transfers import runs_by_itself

if TYPE_CHECKING:
    from ..models.classifier import Classifier

FEW = range(2, 4)  # threads of which none can be spared
WIDE = 256  # entries of a layer's heads from which on the passes take most of the time
_lock = threading.Lock()
_users = 0
_before = 1


def can_spare_core(clf: Classifier) -> bool:
    """Whether the model's passes lose less by one thread fewer than by waiting for the statistics."""
    if runs_by_itself(clf.device):
        return False
    narrow = clf.num_heads * clf.head_size < WIDE
    return narrow or clf.device.type != "cpu" or torch.get_num_threads() not in FEW


@contextmanager
def room_for_statistics() -> Iterator[None]:
    """Nests and may be entered by several threads; the last one out restores the number of threads."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = torch.get_num_threads()
            torch.set_num_threads(max(1, _before - 1))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                torch.set_num_threads(_before)

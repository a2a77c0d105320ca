"""What a sweep is given, and how it is declared: the examples of one chunk, and one line of the table of sweeps."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers.answer import Target
from ..heads import HeadMask
from ..progress import Cancel

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset

Tables = dict[str, np.ndarray]
FILLED = 1  # raise it when a model with something in its heads' place would have other values by gates


def filled_part(clf: TransformerModel) -> dict[str, int]:
    """What cache keys of values by gates hold besides, for such a model."""
    return {} if clf.fill is None else {"filled": FILLED}


def reference_part(clf: TransformerModel, data: Dataset, encoding: Any, i: int) -> str:
    """What stands behind a sentence's digest where it is translated and its reference read as text.

    Several texts may have the tokens of one, and a model may have generation settings of its own. It stands at the end,
    so that examples stand in the order of their tokens.
    """
    if encoding.target is None:
        return ""
    text = data.references[i] + clf.generation
    return f":{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


@dataclass(frozen=True)
class Chunk:
    """Examples to measure, of similar length, with all that a sweep may want to know."""

    clf: Classifier
    mask: HeadMask  # what is off: masked or removed
    encodings: Sequence[Encoding]
    targets: Sequence[Target]  # what is explained; None = the predicted
    gold: np.ndarray | None  # class numbers of the model, or values
    data: Dataset
    options: Any
    budget: int
    cancel: Cancel | None = None
    label_order: Sequence[str] | str | None = None
    rows: tuple[str, ...] = ()  # the tables that somebody will read; none = all, as they are where it costs little

    def part(self, which: slice) -> Chunk:
        index = range(len(self.encodings))[which]
        gold = None if self.gold is None else self.gold[which]
        return replace(
            self, encodings=self.encodings[which], targets=self.targets[which], gold=gold, data=self.data.subset(index)
        )

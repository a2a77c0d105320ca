"""The examples that a sweep measures together, and parts of the cache keys of what it measures."""

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
FILLED = 1  # raise it when derivatives by gates change for models in which something stands in the heads' place


def filled_part(clf: TransformerModel) -> dict[str, int]:
    """The part of a cache key of derivatives by gates for a model in which something stands in the heads' place."""
    return {} if clf.fill is None else {"filled": FILLED}


def reference_part(clf: TransformerModel, data: Dataset, encoding: Any, i: int) -> str:
    """The part of a cache key for a sentence that is translated and whose reference is read as text; else empty.

    Several references may have the same tokens, and a model may have generation settings of its own. It stands at the
    end of the key, so that examples are sorted by their tokens.
    """
    if encoding.target is None:
        return ""
    text = data.references[i] + clf.generation
    return f":{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


@dataclass(frozen=True)
class Chunk:
    """Examples to measure, of similar length, and what a sweep may need for that."""

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
    rows: tuple[str, ...] = ()  # the tables that will be read; empty = all. A sweep may make more

    def subset(self, index: Sequence[int]) -> Chunk:
        """The same for these of its examples."""
        return replace(
            self,
            encodings=[self.encodings[i] for i in index],
            targets=[self.targets[i] for i in index],
            gold=None if self.gold is None else self.gold[list(index)],
            data=self.data.subset(index),
        )

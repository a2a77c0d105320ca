"""The texts of a training and their order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from ...evaluation.plain import encode_data
from ..options import FinetuneOptions

if TYPE_CHECKING:
    import numpy as np

    from ...models.classifier import Classifier
    from ...tasks import Dataset


class Rows(torch.utils.data.Dataset):
    """Token ids and labels of a data set, in its order."""

    def __init__(self, clf: Classifier, data: Dataset, gold: np.ndarray | None) -> None:
        self.encodings = encode_data(clf, data)
        self.gold = gold

    def __len__(self) -> int:
        return len(self.encodings)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.encodings[i], None if self.gold is None else self.gold[i].tolist()

    def order(self, options: FinetuneOptions, seed: int) -> Order:
        lengths = [len(e) for e in self.encodings]
        return Order(lengths, options.batch * options.accumulation, seed, options.group_lengths)


class Order(torch.utils.data.Sampler):
    """The order of one epoch. It depends on seed and epoch only, so a resumed epoch has the same order.

    With ``group``, texts of similar length share a batch: within every 50 batches drawn at random the texts are
    sorted by length, and then the batches are shuffled.
    """

    def __init__(self, lengths: list[int], batch: int, seed: int, group: bool) -> None:
        self.lengths, self.batch, self.seed, self.group = lengths, batch, seed, group
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        draw = random.Random(f"headviz-order-{self.seed}-{self.epoch}")
        order = list(range(len(self.lengths)))
        draw.shuffle(order)
        if not self.group:
            return iter(order)
        size = 50 * self.batch
        batches: list[list[int]] = []
        for at in range(0, len(order), size):
            part = sorted(order[at : at + size], key=lambda i: self.lengths[i])
            batches += [part[i : i + self.batch] for i in range(0, len(part), self.batch)]
        # a shorter batch must be the last one, or it would shift the borders of those after it
        rest = [b for b in batches if len(b) < self.batch]
        whole = [b for b in batches if len(b) == self.batch]
        draw.shuffle(whole)
        return iter([i for b in (*whole, *rest) for i in b])

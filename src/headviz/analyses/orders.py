"""How good an order of heads is: what is left when heads are removed in it, and how far two orders agree."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import TaskError
from ..heads import HeadId, HeadMask
from ..progress import Cancel, stop_if
from ..ties import draws, grid_values, in_lowest, ordered

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

SHARES = tuple(k / 10 for k in range(1, 10))
FIFTH = 0.2
DRAWS = 2000
LEAST_KNOWN = 1e-9  # above one class for all; less is rounding


def halves_of(data: Dataset) -> tuple[Dataset, Dataset]:
    """Every other example of the data in the order of kind, label and length, so that both halves are alike."""
    gold = np.zeros(len(data)) if data.labels is None else data.labels
    gold = gold if gold.ndim == 1 else data.answer.groups(data)[0]
    kinds = np.unique(data.slices, return_inverse=True)[1] if data.slices else np.zeros(len(data), dtype=int)
    order = np.lexsort((np.arange(len(data)), np.array([len(t) for t in data.texts]), gold, kinds))
    return data.subset(order[0::2].tolist()), data.subset(order[1::2].tolist())


class Half:
    """One half: predictions under masks, resampled with the same draws for all scores, and with others in each half."""

    def __init__(
        self, clf: Classifier, data: Dataset, label_order: Sequence[str] | str | None = None, number: int = 0
    ) -> None:
        from ..evaluation.dispatch import evaluator_of

        self.data, self.label_order = data, label_order
        self.evaluator = evaluator_of(clf, data, label_order=label_order)
        self.gold = np.asarray(self.evaluator.data.gold)
        rng = np.random.default_rng([0, number])
        self.weights = rng.multinomial(len(data), np.full(len(data), 1 / len(data)), DRAWS)
        self.weights = np.concatenate([np.ones((1, len(data)), dtype=self.weights.dtype), self.weights])
        self.measure = clf.answer.drawn(self.gold, self.weights)
        self.constant = self.measure.constant
        self.full = self._metric(self.evaluator.predictions(clf.full_mask))
        self._none: float | None = None  # with every head off
        if not self.full[0] > self.constant[0] + LEAST_KNOWN:
            lacking = self.measure.lacking.format(self.full[0], self.constant[0])
            raise TaskError(
                f"On one half of the examples, {len(data)}, '{clf.name}' {lacking}, so no order can be graded. "
                "More examples may do."
            )

    def _metric(self, predictions: NDArray) -> NDArray[np.float64]:
        """[1 + draws] of the measure; the first is that of the half itself."""
        return self.measure.of(predictions)

    def curves(self, present: HeadMask, values: NDArray, cancel: Cancel | None) -> list[NDArray[np.float64]]:
        """[shares, 1 + draws]: the metric with ever more heads off, the lowest values first.

        One for each of ten orders of the heads that tie, or for the one where none does. A mask is evaluated once.
        """
        heads = present.kept
        known: dict[HeadMask, NDArray[np.float64]] = {}

        def metric(mask: HeadMask) -> NDArray[np.float64]:
            if mask not in known:
                stop_if(cancel)
                known[mask] = self._metric(self.evaluator.predictions(mask, keep=False))
            return known[mask]

        orders = [ordered(values, heads, seed) for seed in draws(grid_values(values, heads))]
        counts = [round(share * len(heads)) for share in SHARES]
        return [np.array([metric(present.without(order[:count])) for count in counts]) for order in orders]

    def left(self, curve: NDArray) -> NDArray[np.float64]:
        """[shares, 1 + draws]: the share that is left of what the full model has above one class for all.

        NaN for a draw in which it has nothing, as one of a single class.
        """
        known = self.full - self.constant
        with np.errstate(divide="ignore", invalid="ignore"):
            left: NDArray[np.float64] = np.where(known > LEAST_KNOWN, (curve - self.constant) / known, np.nan)
        return left

    def benchmark(self, present: HeadMask, curve: NDArray) -> tuple[float, float]:
        """CPR and CMD: the areas of f and of |1 − f| over the share of heads kept, f from 0 at none to 1 at all."""
        if self._none is None:
            self._none = float(self._metric(self.evaluator.predictions(present.without(present.kept)))[0])
        none, full = self._none, float(self.full[0])
        if full == none:
            return float("nan"), float("nan")
        heads = len(present.kept)
        kept = np.array([0.0, *(1 - round(share * heads) / heads for share in SHARES[::-1]), 1.0])
        f = (np.array([none, *curve[::-1, 0], full]) - none) / (full - none)
        return float(np.trapezoid(f, kept)), float(np.trapezoid(np.abs(1 - f), kept))


def auroc(values: NDArray, positives: Set[HeadId]) -> float:
    """The probability that a head of ``positives`` has a higher value than another; ties count half."""
    from scipy.stats import rankdata

    known = np.isfinite(values)
    wanted = np.zeros(values.shape, dtype=bool)
    for head in positives:
        wanted[head] = True
    ranks = rankdata(values[known])
    good = wanted[known]
    n, m = int(good.sum()), int((~good).sum())
    if not n or not m:
        return float("nan")
    return float((ranks[good].sum() - n * (n + 1) / 2) / (n * m))


def precision(values: NDArray, positives: Set[HeadId]) -> float:
    """The share of ``positives`` among as many heads of the highest values; expected, where heads tie."""
    known = [HeadId(int(i), int(j)) for i, j in np.argwhere(np.isfinite(values))]
    wanted = [h in positives for h in known]
    count = sum(wanted)
    return float(in_lowest(grid_values(-values, known), count)[wanted].sum()) / count if count else float("nan")


def spearman(a: NDArray, b: NDArray) -> float:
    from scipy.stats import spearmanr

    both = np.isfinite(a) & np.isfinite(b)
    if both.sum() < 3 or np.ptp(a[both]) == 0 or np.ptp(b[both]) == 0:
        return float("nan")
    return float(spearmanr(a[both], b[both]).statistic)


def overlap(a: NDArray, b: NDArray, present: HeadMask) -> float:
    """Which share of the lowest fifth both tables name; expected, where heads tie."""
    count = max(1, round(FIFTH * len(present.kept)))
    first, second = (in_lowest(grid_values(values, present.kept), count) for values in (a, b))
    return float((first * second).sum()) / count


def planted_in(clf: Classifier) -> frozenset[HeadId] | None:
    """The heads that the demo's training gave a part to; None for any other weights."""
    from ..demo import planted_heads
    from ..models.loading import load

    shipped = load("demo", device="cpu").digest
    return frozenset(planted_heads()) if clf.digest == shipped else None

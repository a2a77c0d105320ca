"""One head off at a time: what does each head cost, and is it significant? [M §3.2, Fig. 1, Table 1]"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.comparison import measure
from ..evaluation.significance import benjamini_hochberg
from ..heads import HeadId, HeadMask
from ..progress import Cancel, Progress
from ..results import Result
from .common import SIGNIFICANT, Subject, empty_grid, subject, sweep

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator


@dataclass(frozen=True, eq=False)
class Ablation(Result):
    """Tables are L×H; NaN where a head is not there, or off in ``base``.

    ``values`` is a *cost*: metric of ``base`` minus metric without the head, so high means that the head matters.
    The interval is the cost's.
    """

    subject: Subject
    base: HeadMask
    baseline: float
    values: NDArray[np.float64]
    interval_low: NDArray[np.float64]
    interval_high: NDArray[np.float64]
    p_value: NDArray[np.float64]  # raw
    q_value: NDArray[np.float64]  # Benjamini-Hochberg over all heads tested
    seconds: float

    @property
    def delta(self) -> NDArray[np.float64]:
        """Masked - full, as published tables print it."""
        return -self.values

    def significant(self, level: float = SIGNIFICANT) -> NDArray[np.bool_]:
        """Where the cost differs from nothing after correction. Heads that were not tested are not."""
        return np.nan_to_num(self.q_value, nan=1.0) < level

    def harmful(self, level: float = SIGNIFICANT) -> list[HeadId]:
        """Heads whose removal improves the metric significantly, the most harmful first."""
        found = np.argwhere(self.significant(level) & (self.values < 0))
        return sorted((HeadId(int(i), int(j)) for i, j in found), key=lambda h: (self.values[h], h))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Ablation:
        """An ablation as ``to_dict`` wrote it; null is NaN again."""
        tables = {
            name: np.array(given[name], dtype=float)
            for name in ("values", "interval_low", "interval_high", "p_value", "q_value")
        }
        about = {**given["subject"], "rows": tuple(given["subject"].get("rows") or ())}
        base = HeadMask.from_hex(given["base"], *tables["values"].shape)
        return cls(Subject(**about), base, given["baseline"], **tables, seconds=given["seconds"])

    def extra(self) -> dict[str, Any]:
        return {
            "harmful": self.harmful(),
            "significant": int(self.significant().sum()),
            "tested": int(np.isfinite(self.p_value).sum()),
        }


def ablate(
    evaluator: Evaluator,
    *,
    base: HeadMask | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Ablation:
    """The table of all single-head ablations, on top of ``base`` (None = the full model)."""
    start = time.perf_counter()
    about = subject(evaluator, metric)
    whole = evaluator.clf.under(base)
    heads = whole.kept
    masks = [whole.without([h]) for h in heads]
    answers, found = sweep(evaluator, masks, about.metric, reference=whole, progress=progress, cancel=cancel)
    values, low, high, p = (empty_grid(whole) for _ in range(4))
    for head, delta in zip(heads, found, strict=True):
        values[head] = delta.full - delta.masked
        low[head], high[head] = 0.0 - delta.interval_high, 0.0 - delta.interval_low
        p[head] = delta.p_value

    baseline = measure(answers, answers.full, about.metric)
    seconds = time.perf_counter() - start
    return Ablation(about, whole, baseline, values, low, high, p, benjamini_hochberg(p), seconds)

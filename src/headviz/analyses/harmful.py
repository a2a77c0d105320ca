"""Heads that do harm: those whose removal improves the metric significantly."""

from __future__ import annotations

from dataclasses import dataclass

from ..heads import HeadId
from ..results import Result
from .ablation import Ablation
from .common import SIGNIFICANT, Subject


@dataclass(frozen=True)
class HarmfulHead(Result):
    """``delta`` is masked - full: what removing the head gains."""

    head: HeadId
    delta: float
    interval_low: float
    interval_high: float
    p_value: float
    q_value: float


@dataclass(frozen=True)
class Harmful(Result):
    """The most harmful first; an empty list is a finding too. ``level`` limits the q values."""

    subject: Subject
    baseline: float
    level: float
    tested: int
    heads: tuple[HarmfulHead, ...]


def harmful(ablation: Ablation, level: float = SIGNIFICANT) -> Harmful:
    """Read off an ablation table. The gains are chosen as the best of many, so expect less on new data."""
    rows = tuple(
        HarmfulHead(
            h,
            float(-ablation.values[h]),
            float(0.0 - ablation.interval_high[h]),
            float(0.0 - ablation.interval_low[h]),
            float(ablation.p_value[h]),
            float(ablation.q_value[h]),
        )
        for h in ablation.harmful(level)
    )
    tested = int((ablation.p_value == ablation.p_value).sum())
    return Harmful(ablation.subject, ablation.baseline, level, tested, rows)

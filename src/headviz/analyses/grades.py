"""What grading finds: a row for each score, and all of them from the best to the worst."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import overload

from ..results import Result

RANDOM = "random"


@dataclass(frozen=True)
class Grade(Result):
    """One score. Intervals: 95 %, over examples drawn again, the same draws for all scores."""

    score: str
    auroc: float | None  # against heads whose part is known; None where none is
    area: float  # lowest heads removed first: high is good
    area_low: float
    area_high: float
    area_top: float  # highest heads removed first: low is good
    cpr: float  # area of the share of the metric kept, lowest first, from no head to all: high is good
    cmd: float  # area of its distance from the full metric: low is good
    lead: float  # area minus that of random orders
    lead_low: float
    lead_high: float
    behind: float | None  # the best area minus this one; None for the best
    behind_low: float | None
    behind_high: float | None
    agreement: float  # Spearman with the exact cost of removing each head, on the other half
    shapley: float | None  # Spearman with Shapley values, on the other half; None where they are not graded
    precision: float | None  # share of known heads among as many of the highest; None where none is known
    stability: float | None  # share of the lowest fifth that both halves name; None for random orders: they see no data
    seconds: float  # of processor time per example: other work on the machine does not count
    curve: tuple[float, ...] = ()  # what is left at each of ``SHARES`` heads removed; empty in older records
    tied: tuple[int, ...] = ()  # heads that tie with another, in the table of each half; empty in older records
    ties_low: float | None = None  # where they do, the area is a mean over ten drawn orders, which go from here
    ties_high: float | None = None  # to here

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", tuple(self.curve))
        object.__setattr__(self, "tied", tuple(self.tied))

    @property
    def heads_tied(self) -> str | None:
        """How many heads tie in each half's table; None where it was not recorded."""
        return ", ".join(map(str, self.tied)) or None

    @property
    def over_ties(self) -> str | None:
        """From the lowest to the highest area over the orders of heads that tie; None where none does."""
        return None if self.ties_low is None else f"{self.ties_low:.3f} to {self.ties_high:.3f}".replace("-", "−")

    @property
    def behind_best(self) -> str | None:
        """How far behind the best, with the paired interval; None for the best."""
        if self.behind is None:
            return None
        return f"{self.behind:.3f} [{self.behind_low:.3f}, {self.behind_high:.3f}]".replace("-", "−")


@dataclass(frozen=True)
class Grades(Result):
    """``scores`` from the largest area to the smallest; the object counts and gives them as a list does."""

    scores: tuple[Grade, ...]
    best: str
    planted: int  # heads whose part is known
    n: int
    data: str

    def __iter__(self) -> Iterator[Grade]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, at: int) -> Grade: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Grade, ...]: ...
    def __getitem__(self, at: int | slice) -> Grade | tuple[Grade, ...]:
        return self.scores[at]

    @property
    def untold(self) -> tuple[str, ...]:
        """Scores that these examples do not show to be better than random orders; some may be worse."""
        return tuple(g.score for g in self.scores if g.score != RANDOM and g.lead_low <= 0)

    @property
    def equals(self) -> tuple[str, ...]:
        """Scores that these examples cannot tell from the best."""
        return tuple(g.score for g in self.scores if g.behind_low is not None and g.behind_low <= 0)

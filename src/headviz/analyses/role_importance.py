"""Do heads with a role matter more than others? One row for each role, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ..display.table import Column, Ends, Table
from ..heads import HeadId
from ..results import Result
from ..statistics.significance import benjamini_hochberg


@dataclass(frozen=True)
class RoleImportance(Result):
    """Heads whose first role this is, against all others, by importance.

    ``difference``: mean rank of their importance, in per cent of all heads (100 = the most important), minus that of
    the others, with Welch's 95 % interval over heads; NaN below two heads on either side.
    """

    role: str
    heads: tuple[HeadId, ...]
    difference: float
    low: float
    high: float
    q: float  # Benjamini-Hochberg over the roles


def by_importance(
    relations: Sequence[str], firsts: Mapping[HeadId, str], values: NDArray[np.float64]
) -> tuple[RoleImportance, ...]:
    """Every role that some head has as its first, against a score of the heads' importance [L, H]."""
    from scipy import stats

    known = np.isfinite(values)
    ranks = np.full(values.shape, np.nan)
    ranks[known] = 100 * stats.rankdata(values[known]) / known.sum()
    rows: list[tuple[str, tuple[HeadId, ...], float, float, float, float]] = []
    for name in relations:
        heads = tuple(head for head, role in firsts.items() if role == name and known[head])
        if not heads:
            continue
        mine = np.zeros(values.shape, dtype=bool)
        for head in heads:
            mine[head] = True
        inside, outside = ranks[mine], ranks[~mine & known]
        difference, low, high, p = (float("nan"),) * 4
        if min(len(inside), len(outside)) > 1:
            tested = stats.ttest_ind(inside, outside, equal_var=False)
            ends = tested.confidence_interval(0.95)
            difference, p = float(inside.mean() - outside.mean()), float(tested.pvalue)
            low, high = float(ends.low), float(ends.high)
        rows.append((name, heads, difference, low, high, p))
    q = benjamini_hochberg(np.array([row[-1] for row in rows]))
    return tuple(RoleImportance(*row[:-1], float(one)) for row, one in zip(rows, q, strict=True))


def importance_table(found: Sequence[RoleImportance], score: str) -> Table:
    """The comparison for readers."""

    def ends(one: RoleImportance) -> Ends:
        return max(one.low, -100.0), min(one.high, 100.0)  # no two ranks are further apart

    return Table.of(
        "roles_importance",
        (
            Column("role", value=attrgetter("role")),
            Column("heads", value=lambda one: len(one.heads)),
            Column("which", value=attrgetter("heads")),
            Column("rank against others", "%+.0f", attrgetter("difference"), ends=ends),
            Column("q", value=attrgetter("q")),
        ),
        found,
        caption=f"Do heads with a role matter more? Every head is ranked by {score}, from 0 (matters least) to 100 "
        "(most). The table has the mean rank of these heads minus that of all others; above 0 they matter more.",
    )

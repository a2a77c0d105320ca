"""Interactions of heads as values, and how they are shown: one sentence, the matrix, the exact pairs and the groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..display.numbers import number, signed
from ..display.table import Column, Table
from ..display.views import Picture, View
from ..heads import HeadId
from ..results import Result
from .common import SIGNIFICANT, Subject
from .orders import spearman

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Interaction(Result):
    """One pair, exactly: the mean over examples, its interval, and q over all pairs."""

    first: HeadId
    second: HeadId
    value: float  # below 0: one stands in for the other
    low: float
    high: float
    q: float
    estimate: float

    @property
    def clear(self) -> bool:
        return self.q <= SIGNIFICANT and (self.high < 0 or self.low > 0)


@dataclass(frozen=True, eq=False)
class Interactions(Result):
    """``matrix`` [H, H] over ``heads``: exact values of ``pairs``, estimates elsewhere, NaN on the diagonal."""

    subject: Subject
    loss: float  # of the whole model
    samples: int  # examples of the estimates
    heads: tuple[HeadId, ...]
    matrix: NDArray[np.float64]
    pairs: tuple[Interaction, ...]  # the strongest first
    seconds: float

    @cached_property
    def groups(self) -> tuple[tuple[HeadId, ...], ...]:
        """Heads that are joined by pairs that clearly stand in for each other, the largest group first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        place = {head: i for i, head in enumerate(self.heads)}
        joined = [(place[p.first], place[p.second]) for p in self.pairs if p.clear and p.value < 0]
        rows, columns = np.array(joined, int).reshape(-1, 2).T
        size = (len(self.heads), len(self.heads))
        _, of = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), shape=size), directed=False)
        found = [tuple(h for h, one in zip(self.heads, of, strict=True) if one == g) for g in range(max(of) + 1)]
        return tuple(sorted((g for g in found if len(g) > 1), key=lambda g: (-len(g), g)))

    def order(self) -> list[int]:
        """The heads so that those with like interactions stand side by side."""
        from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
        from scipy.spatial.distance import squareform

        near = np.maximum(0.0, -np.nan_to_num(self.matrix))
        if len(self.heads) < 3 or near.max() == 0:
            return list(range(len(self.heads)))
        far = near.max() - near
        np.fill_diagonal(far, 0.0)
        distances = squareform(far, checks=False)
        return [int(i) for i in leaves_list(optimal_leaf_ordering(linkage(distances, "average"), distances))]


def figure(found: Interactions) -> Figure:
    """The matrix, with heads that stand in for each other side by side."""
    from ..display.figures.heads import pair_map

    order = found.order()
    return pair_map(found.matrix[np.ix_(order, order)], [str(found.heads[i]) for i in order], "interaction, loss")


def finding(found: Interactions) -> str:
    """What the exact pairs show."""
    clear, heads = [p for p in found.pairs if p.clear], len(found.heads)
    said = f"Of the {len(found.pairs):,} pairs of heads computed exactly (of {heads * (heads - 1) // 2:,}), "
    if not clear:
        return f"{said}none clearly interacts."
    backs = sum(p.value < 0 for p in clear)
    stand, need = (
        f"{n or 'none'} clearly {verb}{'s' * (n < 2)}" for n, verb in ((backs, "stand"), (len(clear) - backs, "need"))
    )
    said += f"{stand} in for each other, {need} each other."
    first = clear[0]
    much = f"{number(abs(first.value))} of loss {'less' if first.value > 0 else 'more'}"
    return f"{said} Strongest: {first.first} and {first.second} cost {much} together than the sum of each alone."


def view(found: Interactions) -> View:
    agree, every = "", len(found.heads) * (len(found.heads) - 1) // 2
    known = "All values are exact." if len(found.pairs) == every else "Most values are estimates."
    if len(found.pairs) > 2:
        pairs = np.array([(p.estimate, p.value) for p in found.pairs]).T
        rank = signed(spearman(*pairs), 2)
        agree = f" In the table below, the rank correlation of estimates and exact values is {rank}."
    groups = [[", ".join(map(str, group)), len(group)] for group in found.groups]
    four = "%+.4f"
    parts: list[Picture | Table] = [
        Picture(
            "interactions_matrix",
            lambda: figure(found),
            "Orange: one stands in for the other, so both together cost more than the sum. Blue: they need each other, "
            f"so the second costs less once the first is gone. {known}{agree}",
            r"-[\ell(\emptyset) - \ell(i) - \ell(j) + \ell(i, j)]",
            f"Estimates on {found.samples} examples; the strongest pairs exactly, on {found.subject.n:,}.",
            wide="48",
        ),
        Table.of(
            "interactions_pairs",
            (
                Column("pair", value=lambda p: (p.first, p.second)),
                Column("interaction", four, attrgetter("value"), ends=lambda p: (p.low, p.high)),
                Column("q", value=attrgetter("q")),
                Column("estimate", four, attrgetter("estimate")),
            ),
            found.pairs,
            caption="The pairs computed exactly, in loss; q: Benjamini-Hochberg over all pairs, those not computed "
            "included.",
            shortened=12,
            height=320,
        ),
    ]
    if groups:
        parts.append(
            Table(
                "interactions_groups",
                ("heads", "how many"),
                groups,
                "Heads joined by pairs that stand in for each other.",
            )
        )
    return View(
        finding(found),
        tuple(parts),
        about=(*found.subject.about(found.loss)[:2], ("loss", f"{found.loss:.4f}")),
        rows=found.subject.rows,
        note="In loss; Backup pairs asks the same of the metric. A pair may be clear in one only.",
    )

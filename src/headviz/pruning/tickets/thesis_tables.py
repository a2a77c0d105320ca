"""Result tables in the layouts of the thesis, its figures in columns of their own.

Table 6.2  highest winning sparsity and its metric, per algorithm and task
Table 6.3  metric of the fine-tuned model at 70 % of heads pruned, no retraining, per score and task
Table 6.4  metric at 80 % of heads pruned, retrained, per algorithm and task

Figures are in the unit in which the thesis prints the table, and each title says it: percent in 6.2, shares of 1 in
6.3 and 6.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...reference import find
from ...results import Result
from ...tasks import points_in
from ..algorithms import ALGORITHMS
from ..state import State
from .margin import MARGIN, caveat, margin_words
from .winning import comparable, kind, mean_and_sd, score_of, ticket_rows

# task -> column of the published table
COLUMNS_63 = ("mnli", "qnli", "qqp", "sst2", "mrpc", "cola")
COLUMNS_64 = ("mnli", "qnli", "mrpc", "sst2", "cola")
# our score (6.3) or algorithm (6.4) -> its published row
ROWS_63 = {
    "taylor": "Michel (alpha 1.0)",
    "michel-2019": "Michel (alpha 1.0)",
    "conductance-spearman": "thesis metric",
    "thesis-2024": "thesis metric",
}
ROWS_64 = {"igspf": "IGSPF", "igspp": "IGSPP"}


@dataclass(frozen=True)
class Layout(Result):
    """A table for people: header and rows of texts and numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()  # sentences that belong below the table


def table_62(states: Sequence[State], margin: float = MARGIN) -> Layout:
    """Winning tickets by the thesis's criterion; beside it the highest sparsity within a margin (in points)."""
    header = _names(
        "task, algorithm, score, repair, kind, highest sparsity, "
        f"ticket, full model, seeds, false wins, within {margin:g} points, loss excluded there, "
        "published sparsity, published ticket, published full"
    )
    found = ticket_rows(states, margin)
    rows = []
    for r in found:
        rows.append(
            (
                r.task,
                r.algorithm,
                r.score,
                r.repair,
                r.kind,
                percent(r.sparsity),
                spread(r.mean, r.sd, r.metric),
                spread(r.full_mean, r.full_sd, r.metric),
                r.seeds,
                rate(r.false_win_rate),
                percent(r.within),
                "–" if r.excludes is None else f"{r.excludes:.1f}",
                percent(r.published_sparsity),
                r.published_ticket,
                r.published_full,
            )
        )
    notes = (*map(caveat, sorted({r.seeds for r in found})), margin_words(margin)) if found else ()
    title = "Winning tickets (layout of the thesis's Table 6.2), metrics in per cent"
    return Layout(title, header, tuple(rows), notes)


def table_63(states: Sequence[State], sparsity: float = 0.7) -> Layout:
    """No retraining, one row per score and algorithm."""
    return _at("No retraining (layout of Table 6.3)", states, sparsity, False, ROWS_63, COLUMNS_63, "pruned")


def table_64(states: Sequence[State], sparsity: float = 0.8) -> Layout:
    """Retrained, one row per algorithm and score."""
    return _at("Retrained (layout of Table 6.4)", states, sparsity, True, ROWS_64, COLUMNS_64, "lottery")


def at_sparsity(state: State, sparsity: float) -> tuple[float, list[float]] | None:
    """The exact sparsity of the first step that is not below this one (by half a head), and each seed's metric."""
    total = state.num_layers * state.num_heads
    for step, size in enumerate(state.sizes, 1):
        if size >= sparsity * total - 0.5:
            records = [state.record(seed, step) for seed in state.plan["seeds"]]
            values = [next(iter(r.metrics.values())) for r in records if r is not None and r.metrics]
            measured = [v for v in values if v is not None]
            return (size / total, measured) if measured and len(measured) == len(records) else None
    return None


def _at(
    title: str,
    states: Sequence[State],
    sparsity: float,
    retrained: bool,
    published_rows: dict[str, str],
    columns: tuple[str, ...],
    file: str,
) -> Layout:
    header = _names("task, algorithm, score, repair, sparsity, metric, full model, seeds, published")
    rows = []
    for state in states:
        plan = state.plan
        if ALGORITHMS[plan["algorithm"]].retrains is not retrained:
            continue
        found = at_sparsity(state, sparsity)
        if found is None:
            continue
        share, values = found
        key = plan["algorithm"] if retrained else plan["score"]
        metric = next(iter(state.reference.metrics))
        full = _full(state, metric, retrained)
        rows.append(
            (
                plan["task"],
                plan["algorithm"] + ("" if kind(state) == "winning" else " (random weights)"),
                score_of(state),
                plan["repair"],
                percent(share),
                fraction(*mean_and_sd(values), metric),
                fraction(*full, metric),
                len(values),
                _published(file, published_rows.get(key) if comparable(state) else None, columns, plan["task"]),
            )
        )
    return Layout(f"{title}, {sparsity:.0%} of heads pruned, metrics as shares of 1", header, tuple(rows))


def _names(line: str) -> tuple[str, ...]:
    return tuple(line.split(", "))


def _full(state: State, metric: str, retrained: bool) -> tuple[float | None, float | None]:
    """Mean and sd of the full models trained alike, where the run trained them; else θ*'s, which has no sd."""
    if not (retrained and state.plan["retrain_full"]):
        return state.reference.metrics[metric], None
    records = (state.record(seed, 0) for seed in state.plan["seeds"])
    values = [v for r in records if r is not None and (v := r.metrics[metric]) is not None]
    return mean_and_sd(values) if values else (None, None)


def _published(file: str, row: str | None, columns: tuple[str, ...], task: str) -> str:
    if row is None or task not in columns:
        return ""
    return find(file, row).rows[row][columns.index(task)]


def rate(share: float | None) -> str:
    """A share of cases in whole per cent; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.0f} %"


def percent(share: float | None) -> str:
    """A share as percent; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def spread(mean: float | None, sd: float | None, metric: str) -> str:
    """mean ± sd in points: percent, or BLEU's own; a dash where nothing was measured."""
    if mean is None:
        return "–"
    scale = points_in(metric)
    return f"{scale * mean:.1f}" + ("" if sd is None else f" ± {scale * sd:.1f}")


def fraction(mean: float | None, sd: float | None, metric: str) -> str:
    """mean ± sd as shares of 1; BLEU, which comes in points, as ``spread`` writes it."""
    if mean is None or points_in(metric) == 1:
        return spread(mean, sd, metric)
    return f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}")

"""``headviz tickets``: finished runs in the layouts of the thesis's tables, its published figures in separate columns.

Table 6.2  highest winning sparsity and its metric, per algorithm and task
Table 6.3  metric of the fine-tuned model at 70 % of heads pruned, no retraining, per score and task
Table 6.4  metric at 80 % of heads pruned, retrained, per algorithm and task

Each table has the thesis's unit, which its title says: percent in 6.2, shares of 1 in 6.3 and 6.4.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...commands.common import table, warn
from ...display import numbers
from ...errors import RunError
from ...evaluation.verdict import MARGIN, points_up
from ...options import Option, add_options
from ...pruning.algorithms import retrains
from ...pruning.state import State
from ...results import Result
from ...runs.queue import look
from ...runs.reading import state_of
from ...runs.record import PRUNE, SWEEP
from ...runs.registry import Registry
from ...statistics.intervals import mean_and_sd
from ...storage.paths import kind_at, outside_path
from ...tasks import points_in
from .published import ROWS, published
from .winning import (
    caveat,
    check_margin,
    comparable,
    kind,
    margin_words,
    one_class,
    records_at,
    score_of,
    ticket_rows,
    together,
    values_of,
)

# task -> column of the published table
COLUMNS_63: tuple[str, ...] = ("mnli", "qnli", "qqp", "sst2", "mrpc", "cola")
COLUMNS_64: tuple[str, ...] = ("mnli", "qnli", "mrpc", "sst2", "cola")
# our score -> its row in 6.3
ROWS_63 = {
    "taylor": "Michel (alpha 1.0)",
    "michel-2019": "Michel (alpha 1.0)",
    "conductance-spearman": "thesis metric",
    "thesis-2024": "thesis metric",
    "thesis-2024-code": "thesis metric",
}


@dataclass(frozen=True)
class Layout(Result):
    """A table for people: title, header, rows, and notes below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()  # sentences that belong below the table


def table_62(states: Sequence[State], margin: float = MARGIN) -> Layout:
    """Winning tickets by the thesis's criterion; next to it the highest sparsity within a margin (in points)."""
    header = _names(
        "task, algorithm, score, repair, kind, highest sparsity, "
        f"ticket, full model, seeds, false wins, within {margin:g} points, loss excluded there, answers, "
        "published sparsity, published ticket, published full"
    )
    by_ticket = ticket_rows(states, margin)
    rows = []
    for r in by_ticket:
        full, best, safe = r.lowest, r.best, r.safe
        excludes = safe.within.excludes if safe and safe.within else None
        rows.append(
            (
                *(r.task, r.algorithm, r.score, r.repair, r.kind),
                numbers.share(best.sparsity if best else None),
                spread(best.mean if best else None, best.sd if best else None, r.metric),
                spread(full.full_mean, full.full_sd, r.metric),
                full.seeds,
                "–" if full.false_win_rate is None else f"{100 * full.false_win_rate:.0f} %",
                numbers.share(safe.sparsity if safe else None),
                "–" if excludes is None else points_up(excludes),
                r.remark,
                numbers.share(r.published[0]),
                *r.published[1:],
            )
        )
    notes = (*map(caveat, sorted({r.lowest.seeds for r in by_ticket})), margin_words(margin)) if by_ticket else ()
    title = "Winning tickets (layout of the thesis's Table 6.2), metrics in percent"
    return Layout(title, header, tuple(rows), notes)


def table_63(states: Sequence[State], sparsity: float = 0.7) -> Layout:
    """No retraining, one row per score and algorithm."""
    return _at("No retraining (layout of Table 6.3)", states, sparsity, False)


def table_64(states: Sequence[State], sparsity: float = 0.8) -> Layout:
    """Retrained, one row per algorithm and score."""
    return _at("Retrained (layout of Table 6.4)", states, sparsity, True)


def _at(title: str, states: Sequence[State], sparsity: float, retrained: bool) -> Layout:
    """The first step at or above this sparsity (half a head below counts) of each state whose seeds have reached it."""
    header = _names("task, algorithm, score, repair, sparsity, metric, full model, seeds, answers, published")
    rows = []
    for state in states:
        plan, total = state.plan, state.num_layers * state.num_heads
        step = next((step for step, size in enumerate(state.sizes, 1) if size >= sparsity * total - 0.5), None)
        if step is None or retrains(plan["algorithm"]) != retrained:
            continue
        metric, records = next(iter(state.reference.metrics)), records_at(state, step)
        values = values_of(records, metric)
        if len(values) < len(records):
            continue
        rows.append(
            (
                plan["task"],
                plan["algorithm"] + ("" if kind(state) == "winning" else " (random weights)"),
                score_of(state),
                plan["repair"],
                numbers.share(state.sizes[step - 1] / total),
                spread(*mean_and_sd(values), metric, as_share=True),
                spread(*_full(state, metric, retrained), metric, as_share=True),
                len(values),
                one_class(records),
                _published(plan, retrained) if comparable(state) else "",
            )
        )
    return Layout(f"{title}, {sparsity:.0%} of heads pruned, metrics as shares of 1", header, tuple(rows))


def _names(line: str) -> tuple[str, ...]:
    return tuple(line.split(", "))


def _full(state: State, metric: str, retrained: bool) -> tuple[float | None, float | None]:
    """Mean and sd of the full models that the run trained; else θ*'s metric, which has no sd."""
    if not (retrained and state.plan["retrain_full"]):
        return state.reference.metrics[metric], None
    values = values_of(records_at(state, 0), metric)
    return mean_and_sd(values) if values else (None, None)


def _published(plan: Mapping[str, Any], retrained: bool) -> str:
    """The figure of Table 6.4 (retrained) or 6.3 for the same task and algorithm or score; "" if there is none."""
    if retrained:
        table, columns, row = published("lottery"), COLUMNS_64, ROWS.get(plan["algorithm"])
    else:
        table, columns, row = published("pruned"), COLUMNS_63, ROWS_63.get(plan["score"])
    if row is None or plan["task"] not in columns:
        return ""
    return table.rows[row][columns.index(plan["task"])]


def spread(mean: float | None, sd: float | None, metric: str, *, as_share: bool = False) -> str:
    """mean ± sd in points: percent, or BLEU's own, or ``as_share`` of 1; a dash where nothing was measured."""
    if mean is None:
        return "–"
    scale, places = points_in(metric), 1
    if as_share and scale != 1:  # BLEU has no share
        scale, places = 1, 3
    return f"{scale * mean:.{places}f}" + ("" if sd is None else f" ± {scale * sd:.{places}f}")


OPTIONS = (
    Option("pruned_at", 0.7, "sparsity of the table without retraining", least=0, above=True, most=1, metavar="S"),
    Option("retrained_at", 0.8, "sparsity of the table with retraining", least=0, above=True, most=1, metavar="S"),
    Option("margin", MARGIN, "loss that would matter, for the test", metavar="POINTS"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="ids of pruning runs or of sweeps, or folders with their states"
    )
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check_margin(args.margin)
    named = [(name, state) for name in args.runs for state in _states(name)]
    states = [state for _, state in named]
    retrained = [s for s in states if retrains(s.plan["algorithm"]) and s.plan["retrain_full"]]
    for name, state in named:
        if state not in retrained and retrains(state.plan["algorithm"]):
            warn(f"run {name} did not train the full model and has no tickets.")
    tables = (table_62(retrained, args.margin), table_63(states, args.pruned_at), table_64(states, args.retrained_at))
    return {"tables": [t.to_dict() for t in tables]}


def show(result: dict[str, Any]) -> str:
    parts = []
    for layout in result["tables"]:
        text = "none of these runs belongs in this table"
        if layout["rows"]:
            text = table([layout["header"], *layout["rows"]])
        parts.append("\n".join([layout["title"], text, *layout["notes"]]))
    return "\n\n".join(parts)


def _states(name: str) -> list[State]:
    """The state in a folder or of a run; for a sweep, the states of its runs, with the seeds put together."""
    if kind_at(outside_path(name, "the run")) == "folder":
        return [State.load(name)]
    registry = Registry()
    record = look(registry, name)
    runs = registry.records(parent=record.id) if record.kind == SWEEP else [record]
    if others := sorted({r.kind for r in runs} - {PRUNE}):
        verb = "is" if record.kind != SWEEP else "holds runs"
        raise RunError(
            f"Run {record.id} {verb} of kind {', '.join(map(repr, others))}: only pruning runs have tickets."
        )
    states = [s for r in runs if (s := state_of(r, registry.folder)) is not None]
    if not states:
        raise RunError(f"Run {record.id} has no step yet; it is {record.state}.")
    return together(states)

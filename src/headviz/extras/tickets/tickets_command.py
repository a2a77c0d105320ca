"""``headviz tickets``: finished runs in the layout of the thesis's tables, next to its published figures."""

from __future__ import annotations

import argparse
from typing import Any

from ...commands.common import table, warn
from ...errors import RunError
from ...evaluation.verdict import MARGIN
from ...options import Option, add_options
from ...pruning.algorithms import retrains
from ...pruning.state import State
from ...runs.queue import look
from ...runs.reading import state_of
from ...runs.record import SWEEP
from ...runs.registry import Registry
from ...storage.paths import kind_at, outside_path
from .thesis_tables import table_62, table_63, table_64
from .winning import check_margin, together

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
    for shown_table in result["tables"]:
        rows = [shown_table["header"], *shown_table["rows"]]
        shown = table(rows) if shown_table["rows"] else "no such run"
        parts.append("\n".join([shown_table["title"], shown, *shown_table["notes"]]))
    return "\n\n".join(parts)


def _states(name: str) -> list[State]:
    """The state in a folder or of a run; for a sweep, the states of its runs, with the seeds put together."""
    if kind_at(outside_path(name, "the run")) == "folder":
        return [State.load(name)]
    registry = Registry()
    record = look(registry, name)
    runs = registry.records(parent=record.id) if record.kind == SWEEP else [record]
    if any(r.kind != "prune" for r in runs):
        raise RunError(f"Run {record.id} is of kind '{record.kind}': only pruning runs have tickets.")
    states = [s for r in runs if (s := state_of(r, registry.folder)) is not None]
    if not states:
        raise RunError(f"Run {record.id} has no step yet; it is {record.state}.")
    return together(states)

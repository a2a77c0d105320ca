"""What a pruning run's summary and report say of winning tickets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...display import numbers
from ...evaluation.verdict import MARGIN, points_up
from ...pruning.algorithms import retrains
from ...pruning.state import State
from ...tasks import points_in
from .winning import caveat, highest, margin_words, tickets


def summary(state: State) -> dict[str, Any]:
    """Fields of the summary of a run that retrained the pruned and the full model."""
    if not (retrains(state.plan["algorithm"]) and state.plan["retrain_full"]):
        return {}
    won = tickets(state)
    best = highest(won)
    return {
        "tickets": [t.to_dict() for t in won],
        "highest_ticket": None if best is None else best.to_dict(),
        "ticket_notes": [caveat(len(state.plan["seeds"])), margin_words(MARGIN)],
    }


def report(summary: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]], str] | None:
    if not summary.get("tickets"):
        return None
    header, rows = table(summary["tickets"], next(iter(summary["reference"]["metrics"])))
    return header, rows, " ".join(summary["ticket_notes"])


def table(found: Sequence[Mapping[str, Any]], metric: str) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
    """The winning tickets of a run's summary; one seed has no spread, so it has none."""
    header: tuple[str, ...]
    header = ("heads removed", f"{metric}, mean", "sd", f"full model's {metric}, mean", "sd", "seeds", "wins")
    tests = [t["within"] for t in found if t["within"] is not None]
    header += ("loss excluded, points", f"within {tests[0]['margin']:g} points") if tests else ()
    flat = any(t.get("remark") for t in found)
    header += ("answers",) if flat else ()
    words = {True: "yes", False: "no", None: "not known: one seed"}
    failed = next((i for i, t in enumerate(found) if not (t["within"] or {}).get("within")), None)
    rows: list[Sequence[Any]] = [
        [
            f"{100 * t['sparsity']:.1f} %",
            *(value(t[k], metric) for k in ("mean", "sd", "full_mean", "full_sd")),
            t["seeds"],
            words[t["winning"]],
            *(() if not tests else ("–", "not tested") if failed is not None and i > failed else _margin(t["within"])),
            *((t.get("remark"),) if flat else ()),
        ]
        for i, t in enumerate(found)
    ]
    return header, rows


def _margin(test: Mapping[str, Any] | None) -> tuple[str, str]:
    """The loss that is excluded, and whether it is within the margin; a dash with too few seeds."""
    if test is None or test["within"] is None:
        return "–", "not known"
    return points_up(test["excludes"]), "yes" if test["within"] else "no"


def value(number: float | None, metric: str) -> str | None:
    """Three decimals of a share, two of points."""
    return None if number is None else numbers.metric(number, points_in(metric))

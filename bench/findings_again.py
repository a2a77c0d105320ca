"""The part of docs/study.md about cells that were computed twice, each from the training on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from findings_tables import table

Cells = dict[str, dict[str, Any]]


def again(found: Cells, twins: Cells) -> Iterator[str]:
    """Beside each pruned cell its twin: how many masks are equal, and how far the metric is apart."""
    pairs = [(found[t["cell"]], t) for t in twins.values() if "steps" in t and t["cell"] in found]
    if not pairs:
        return
    yield from [
        "## Done again",
        "",
        "These cells were computed twice, on other days and processors, each time from the fine-tuning on. Another "
        "processor rounds otherwise, and training can carry a difference in the last bits far: *all heads* says how "
        "far the two models are apart before a head goes. *Inside*: the second value lies in the first one's 95 % "
        "interval, which is over examples and does not cover another training.",
        "",
    ]
    rows, alike, others = [], 0, []
    for new, old in pairs:
        metric, steps = new["metric"], list(zip(new["steps"], old["steps"], strict=True))
        apart = [abs(a["metrics"][metric] - b["metrics"][metric]) for a, b in steps if _known(a, b, metric)]
        held = [_inside(a, b, metric) for a, b in steps if _known(a, b, metric)]
        if max(apart) > 0:
            others.append(held)
        else:
            alike += len(held)
        same = sum(a["mask"] == b["mask"] for a, b in steps)
        weights = "the same" if new["digest"] == old["digest"] else "other"
        name = f"`{new['cell']}`"
        moved = f"{100 * abs(new['full'][metric] - old['full'][metric]):.2f}"
        masks, within = f"{same} of {len(steps)}", f"{sum(held)} of {len(held)}"
        rows.append([name, weights, moved, masks, f"{100 * max(apart):.2f}", within])
    header = ["cell", "weights", "all heads, points", "same mask", "furthest apart, points", "inside"]
    yield from [*table(header, rows), ""]
    told = [f"Of {len(rows)} second computations, {len(rows) - len(others)} gave the same values ({alike})."]
    if others:
        told.append(f"Of the {sum(map(len, others))} values of the rest, {sum(map(sum, others))} lie inside.")
    yield from [" ".join(told), ""]


def _known(a: dict[str, Any], b: dict[str, Any], metric: str) -> bool:
    return a["metrics"][metric] is not None and b["metrics"][metric] is not None


def _inside(new: dict[str, Any], old: dict[str, Any], metric: str) -> bool:
    low, high = old["intervals"][metric]
    return bool(low <= new["metrics"][metric] <= high)

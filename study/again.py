"""The part of study/results.md about cells that were computed more than once, each from the training on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from study.tables import table, value_of

Cells = dict[str, dict[str, Any]]


def again(cells: Cells, twins: Cells) -> Iterator[str]:
    """Beside each pruned cell its twin: how many masks are equal, and how far the metric is apart."""
    pairs = [(name, cells[t["cell"]], t) for name, t in twins.items() if "steps" in t and t["cell"] in cells]
    if not pairs:
        return
    yield from [
        "## Done again",
        "",
        "These cells were computed more than once, on other days and processors, each time from the fine-tuning on; "
        "the names lead to the other computation. *Other* weights may differ in the last bits only, but training can "
        "carry such a difference far, and a GPU draws other dropout: *all heads* says how far the two models are "
        "apart before a head goes. *Inside*: the value in the cell lies in the other computation's 95 % interval, "
        "which is over examples and does not cover another training. Random orders are the same by their seeds; those "
        "with other seeds are not compared.",
        "",
    ]
    rows, alike, others = [], 0, []
    for twin, own, other in pairs:
        metric, there = own["metric"], {(s.get("seed"), s["sparsity"]): s for s in other["steps"]}
        steps = [(s, there[at]) for s in own["steps"] if (at := (s.get("seed"), s["sparsity"])) in there]
        apart = [abs(_value(a, metric) - _value(b, metric)) for a, b in steps]
        held = [_inside(a, b, metric) for a, b in steps if None not in b["intervals"][metric]]
        if max(apart, default=1.0) > 0:
            others.append(held)
        else:
            alike += len(apart)
        same = sum(a["mask"] == b["mask"] for a, b in steps)
        weights = "the same" if own["digest"] == other["digest"] else "other"
        name = f"[{own['cell']}](results/twins/{twin}.json)"
        moved = f"{100 * abs(own['full'][metric] - other['full'][metric]):.2f}"
        masks, within = f"{same} of {len(steps)}", f"{sum(held)} of {len(held)}"
        if own["score"] == "random":
            masks = "–"
        furthest = f"{100 * max(apart):.2f}" if apart else "other orders"
        rows.append([name, weights, moved, masks, furthest, within if apart else "–"])
    header = ["cell", "weights", "all heads, points", "same mask", "furthest apart, points", "inside"]
    yield from [*table(header, rows), ""]
    told = [f"Of {len(rows)} second computations, {len(rows) - len(others)} gave the same values ({alike})."]
    if others:
        told.append(f"Of the {sum(map(len, others))} values of the rest, {sum(map(sum, others))} lie inside.")
    yield from [" ".join(told), ""]


def _value(step: dict[str, Any], metric: str) -> float:
    result = value_of(step, metric)
    assert result is not None, f"{metric} has no value for one class"
    return result


def _inside(own: dict[str, Any], other: dict[str, Any], metric: str) -> bool:
    low, high = other["intervals"][metric]
    return bool(low <= _value(own, metric) <= high)

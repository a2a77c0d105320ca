"""What the steps of a pruning run allow to say, for the page, reports and the terminal.

Three things in this order: where (nearly) all answers are of one class, up to where every loss beyond a margin is
excluded, and from where on a loss is clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from ..answers.constant import going_on, remark
from ..display import numbers
from ..evaluation.verdict import MARGIN, TOO_FEW, clear_from, excluded, within
from ..tasks import points_in
from . import baselines

Step = Mapping[str, Any]


def can_go(steps: Sequence[Step], metric: str, margin: float = MARGIN) -> float | None:
    """The largest share up to which every step excludes a loss beyond the margin; None if the first does not."""
    free = None
    for share, low in _lows(_by_share(steps), metric).items():
        if not within(low, margin / points_in(metric)):
            break
        free = share
    return free


def _by_share(steps: Sequence[Step]) -> dict[float, list[Step]]:
    found: dict[float, list[Step]] = {}
    for s in steps:
        found.setdefault(round(s["sparsity"], 9), []).append(s)
    return found


def _lows(by_share: Mapping[float, Sequence[Step]], metric: str) -> dict[float, float | None]:
    """The lower end of the change at each share; None where it is not known for every seed."""
    lows: dict[float, float | None] = {}
    for share, group in sorted(by_share.items()):
        known = [(s.get("change", {}).get(metric) or {}).get("low") for s in group]
        found = [low for low in known if low is not None]
        lows[share] = min(found) if len(found) == len(known) else None
    return lows


def finding(steps: Sequence[Step], metric: str, margin: float = MARGIN) -> str:
    """The sentences of a run's steps; ``margin`` is in points."""
    by_share = _by_share(steps)
    last_share, last = max(by_share.items())
    first = one_class(steps)
    if any(s.get("against") == baselines.RETRAINED for s in last):
        return first + _retrained(last_share, last, metric)
    scale = points_in(metric)
    change = points_of(last, metric)
    end = f"{metric} is {_mean(last, metric)} at {100 * last_share:.0f} %{change and f' ({change} points)'}."
    changes = {k: [s.get("change", {}).get(metric) or {} for s in group] for k, group in sorted(by_share.items())}
    lost = clear_from([(k, [(c.get("low"), c.get("high")) for c in group]) for k, group in changes.items()])
    lows, free = _lows(by_share, metric), can_go(steps, metric, margin)
    if all(low is None for low in lows.values()):
        known_change = any((s.get("change", {}).get(metric) or {}).get("delta") is not None for s in steps)
        return first + end[:-1] + (f"; {TOO_FEW}." if known_change else ".")
    if free is None:
        share, low = next(iter(lows.items()))
        said = f"At the first step, {100 * share:.0f} %, {excluded(low, scale, margin)}"
    else:
        low = lows[free]
        said = f"Up to {100 * free:.0f} % of the heads can go: {excluded(low, scale, margin)} (margin {margin:g})"
    if lost is not None:
        said += (
            f". A loss is {lost[1]}{', at first within that margin' if free is not None and lost[0] <= free else ''}"
        )
    return f"{first}{said}. {end[0].upper()}{end[1:]}"


def one_class(steps: Sequence[Step]) -> str:
    """From which share of heads removed on (nearly) all answers are of one class; a sentence with its blank."""
    for s in sorted(steps, key=lambda s: s.get("sparsity") or 0.0):
        known = (s.get("constant") or {}).get("accuracy"), s.get("metrics", {}).get("accuracy")
        said = remark(s.get("predicted"), *known)
        if said:
            return f"With {100 * s['sparsity']:.0f} % of the heads removed, {going_on(said)} "
    return ""


def points_of(group: Sequence[Step], metric: str) -> str:
    """The mean change of some steps in points; empty where none is known."""
    known = [d for s in group if (d := (s.get("change", {}).get(metric) or {}).get("delta")) is not None]
    return numbers.points(mean(known), points_in(metric)) if known else ""


def _retrained(share: float, group: Sequence[Step], metric: str) -> str:
    """Networks trained anew against the full one trained alike, seed by seed; no interval is known for that."""
    said = f"With {100 * share:.0f} % of the heads removed and retrained, {metric} is {_mean(group, metric)}"
    scale = points_in(metric)
    pairs = [
        (s["metrics"][metric] - d, d) for s in group if (d := (s["change"].get(metric) or {}).get("delta")) is not None
    ]
    if not pairs:
        return f"{said}; the full θ0 retrained alike is not measured yet."
    changes = [d for _, d in pairs]
    full = numbers.metric(mean(f for f, _ in pairs), scale)
    change = numbers.points(mean(changes), scale)
    if len(changes) == 1:
        return f"{said}; the full θ0 retrained alike reaches {full} ({change} points, one seed)."
    spread = f"{change} ± {numbers.points(stdev(changes), scale).lstrip('+')} points over {len(changes)} seeds"
    return f"{said}; the full θ0 retrained alike reaches {full} ({spread})."


def _mean(group: Sequence[Step], metric: str) -> str:
    known = [s["metrics"][metric] for s in group if s["metrics"].get(metric) is not None]
    return numbers.metric(mean(known), points_in(metric)) if known else "undefined"

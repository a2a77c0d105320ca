"""Sentences about a change: what masking or pruning costs, whether it is significant, and which slices lose.

Terminal, page, report and notebook say them with the words of this file.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.comparison import Delta
from ..answers.metrics import constant_name, metric_title
from ..evaluation.verdict import MARGIN, TOO_FEW, clear, excluded, verdict
from ..heads import HeadId, head_name
from ..statistics.significance import LEVEL, holm
from ..tasks import points_in
from . import numbers

NAMED = 3  # heads or slices that a sentence names
FEW = 32  # examples below which no interval is given
SURE = 0.5  # probability from which an answer counts as sure
NEAR = 0.1  # distance from chance below which the model does not know
MUCH = 0.1  # change of a probability from which a sentence names it


def points_changed(delta: float | None, low: float | None, high: float | None, scale: float) -> str:
    """A change in points, with its interval where one is known: ``−2.2 points [−5.1, +0.6]``."""
    known = low is not None and high is not None and low == low and high == high
    return f"{numbers.points(delta, scale)} points" + (f" {numbers.interval(low, high, scale)}" if known else "")


def metric_change(metric: str, delta: float, low: float, high: float) -> str:
    """The sentence without its end: ``accuracy changes by −2.2 points [−5.1, +0.6]``."""
    return f"{metric_title(metric)} changes by {points_changed(delta, low, high, points_in(metric))}"


def change_of(d: Delta, margin: float = MARGIN) -> str:
    """The change and what its interval excludes: ``−2.2 points [−5.1, −0.6], p = 0.03: a clear loss``."""
    if d.undefined:
        return f"the change of {metric_title(d.metric)} is not defined: {d.undefined}"
    ends = d.interval_low, d.interval_high
    known = verdict(*ends)
    if known == "unknown":
        return f"{points_changed(d.delta, None, None, d.scale)}; {TOO_FEW}"
    firm = {"loss": "a clear loss", "gain": "a clear gain"}.get(known, excluded(d.interval_low, d.scale, margin))
    return f"{points_changed(d.delta, *ends, d.scale)}, {numbers.p_text(d.p_value)}: {firm}"


def metric_changes(d: Delta) -> str:
    """The whole sentence: ``accuracy changes by −2.2 points [−5.1, −0.6], p = 0.03: a clear loss.``"""
    change = change_of(d)
    return f"{change[0].upper()}{change[1:]}." if d.undefined else f"{metric_title(d.metric)} changes by {change}."


def mask_cost(primary: Delta, slices: Sequence[Delta], off: str, kind: str = "slice", margin: float = MARGIN) -> str:
    """What a mask costs: slices that change significantly come first. ``off`` names the heads that are off."""
    change = change_of(primary, margin) + no_better(primary.metric, primary.masked, primary.constant)
    if sure := clear_slices(slices, kind):
        return f"Without {off}: {sure}. All examples together: {change}."
    return f"Without {off}: {change}." + (f" No {kind} changes significantly (Holm)." if slices else "")


def no_better(metric: str, value: float, constant: float | None) -> str:
    """The warning behind a value that a constant answer reaches too; empty for a better one."""
    if constant is None or not value <= constant:
        return ""
    return f"; {constant_name(metric)} reaches {numbers.metric(constant, points_in(metric))}"


def clear_slices(slices: Sequence[Delta], kind: str) -> str:
    """The slices that change significantly, corrected for their number (Holm), the most first; empty without one."""
    low, high, p = ([getattr(d, name) for d in slices] for name in ("interval_low", "interval_high", "p_value"))
    significant = zip(slices, clear(low, high, holm(p), 1 - LEVEL), strict=True)
    sure = sorted((d for d, differs in significant if differs), key=lambda d: -abs(d.delta))
    if not sure:
        return ""
    named = ", ".join(
        f"{d.name} {numbers.metric(d.full, d.scale)} → {numbers.metric(d.masked, d.scale)}{_chance(d)}"
        for d in sure[:NAMED]
    )
    rest = len(sure) - NAMED
    more = f"{rest} more change{'s' if rest == 1 else ''} significantly"
    return f"{named}; {more if rest > 0 else f'no other {kind} changes significantly'} (Holm)"


def _chance(d: Delta) -> str:
    """What one class for all reaches on a slice."""
    return "" if d.constant is None else f" (chance {d.constant:.2f})"


def so_far(d: Delta, off: str, n: int, counted: str) -> str:
    """What the first ``n`` examples say, while more are being counted; ``counted`` says how many there are."""
    if n < FEW:
        change = points_changed(d.delta, None, None, d.scale)
        return f"Without {off}: {change} {counted}, too few to say what it costs."
    known = verdict(d.interval_low, d.interval_high) != "unknown"
    low, high = (d.interval_low, d.interval_high) if known else (None, None)
    return f"Without {off}: {points_changed(d.delta, low, high, d.scale)} {counted}."


def two_masks(d: Delta, a: str, b: str) -> str:
    """Which of two masks leaves more, as far as the data can tell: A is ``d.full``, B is ``d.masked``."""
    if d.undefined:
        return f"The change of {metric_title(d.metric)} from A ({a}) to B ({b}) is not defined: {d.undefined}."
    reached = [numbers.metric(value, d.scale) for value in (d.full, d.masked)]
    values = f"{metric_title(d.metric)} {reached[0]} under A ({a}), {reached[1]} under B ({b})"
    ends = d.interval_low, d.interval_high
    known = verdict(*ends)
    if known in ("loss", "gain"):
        better = "A" if known == "loss" else "B"
        return f"{better} leaves more: {values}; B − A is {points_changed(d.delta, *ends, d.scale)}."
    return f"The data cannot tell A from B: {values}; B − A is {points_changed(d.delta, None, None, d.scale)}."


def heads_named(off: Sequence[HeadId], rows: Sequence[str] | None = None) -> str:
    """A few heads by name, more by their number. ``rows`` are the names of the grid's rows."""
    if len(off) > NAMED:
        return f"{len(off)} heads"
    names = [head_name(h, rows) for h in off]
    return " and ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)


def answer_change(labels: Sequence[str], off: str, before: Sequence[float], after: Sequence[float]) -> str:
    """What switching heads off does to one answer; ``before`` and ``after`` are the probabilities of the classes."""
    was, now = (max(range(len(values)), key=values.__getitem__) for values in (before, after))
    first, last = f"{labels[was]} {before[was]:.2f}", f"{labels[now]} {after[now]:.2f}"
    chance = 1 / len(after)
    if no_longer_knows(before, after):
        lost = f"{first} goes to {last}"
        if was == now:
            lost = f"{labels[was]} falls from {before[was]:.2f} to {after[now]:.2f}"
        return f"Without {off} the model no longer knows: {lost}, near chance ({chance:.2f} each)."
    if was != now:
        return f"Without {off} the answer changes: {first} becomes {last}."
    if doubt(before) and max(before) < chance + NEAR:
        still = f"{labels[now]} {before[now]:.2f} → {after[now]:.2f}, near chance ({chance:.2f} each)"
        return f"The model does not know, with {off} and without: {still}."
    if abs(after[now] - before[now]) >= MUCH:
        way = "falls" if after[now] < before[now] else "rises"
        return f"Without {off} {labels[now]} {way} from {before[now]:.2f} to {after[now]:.2f}, and stays the answer."
    return f"Without {off} the answer stays {labels[now]} ({before[now]:.3f} → {after[now]:.3f})."


def from_to(labels: Sequence[str], before: Sequence[float], after: Sequence[float]) -> str:
    """An answer before and after in a few characters: ``contradiction .96 → .37``, or ``… → neutral .58``."""
    was, now = (max(range(len(values)), key=values.__getitem__) for values in (before, after))
    if no_longer_knows(before, after):
        return f"{labels[was]} {_short(before[was])} → not sure"
    return f"{labels[was]} {_short(before[was])} → {'' if was == now else f'{labels[now]} '}{_short(after[now])}"


def _short(probability: float) -> str:
    return f"{probability:.2f}".removeprefix("0")


def in_words(d: Delta, off: str, examples: str) -> str:
    """What a mask costs in one sentence without symbols; ``examples`` names them: ``dev examples``."""
    if d.undefined:
        return f"Without {off} {metric_title(d.metric)} is not defined on these {examples}."
    if d.metric == "accuracy":
        right = [round(value * d.n) for value in (d.masked, d.full)]
        sentence = f"Without {off}, {right[0]:,} of {d.n:,} {examples} are answered right; with all heads {right[1]:,}"
        return f"{sentence}{no_better(d.metric, d.masked, d.constant)}."
    reached = [numbers.metric(value, d.scale) for value in (d.masked, d.full)]
    sentence = (
        f"Without {off} {metric_title(d.metric)} is {reached[0]} on {d.n:,} {examples}; with all heads {reached[1]}"
    )
    return f"{sentence}{no_better(d.metric, d.masked, d.constant)}."


def no_longer_knows(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether a sure answer has come near chance."""
    return not doubt(before) and max(after) < 1 / len(after) + NEAR


def doubt(probabilities: Sequence[float], *, before: Sequence[float] | None = None) -> str:
    """The remark on an unsure answer; empty for a sure one. ``before`` are the unpruned model's probabilities."""
    best, chance = max(probabilities), 1 / len(probabilities)
    if best < chance + NEAR:
        again = "no longer knows" if before is not None and no_longer_knows(before, probabilities) else "does not know"
        return f"near chance ({chance:.2f} each): the model {again}"
    return "uncertain: no class reaches one half" if best < SURE else ""

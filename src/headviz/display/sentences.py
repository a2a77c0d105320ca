"""Sentences about a change: what masking or pruning costs, whether it is significant, and which slices lose.

Terminal, page, report and notebook say them with the words of this file.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.comparison import Delta
from ..answers.metrics import constant_name, metric_title
from ..evaluation.verdict import MARGIN, TOO_FEW, clear, excluded, verdict, within
from ..heads import HeadId, HeadMask, head_name
from ..statistics.significance import LEVEL, holm
from ..tasks import points_in
from . import numbers

NAMED = 3  # heads or slices that a sentence names
FEW = 32  # examples below which no interval is given
SURE = 0.5  # probability from which an answer counts as sure
NEAR = 0.1  # distance from chance below which the model does not know
MUCH = 0.1  # change of a probability from which a sentence names it


def points_changed(delta: float | None, low: float | None, high: float | None, scale: float) -> str:
    """A change in points, with its interval if there is one: ``−2.2 points [−5.1, +0.6]``."""
    bounded = verdict(low, high) != "unknown"
    return f"{numbers.points(delta, scale)} points" + (f" {numbers.interval(low, high, scale)}" if bounded else "")


def metric_change(metric: str, delta: float, low: float, high: float) -> str:
    """The sentence without its end: ``accuracy changes by −2.2 points [−5.1, +0.6]``."""
    return f"{metric_title(metric)} changes by {points_changed(delta, low, high, points_in(metric))}"


def change_of(d: Delta, margin: float = MARGIN) -> str:
    """The change and what its interval excludes: ``−2.2 points [−5.1, −0.6], p = 0.03: a clear loss``."""
    if d.undefined:
        return f"the change of {metric_title(d.metric)} is not defined: {d.undefined}"
    ends = d.interval_low, d.interval_high
    change, direction = points_changed(d.delta, *ends, d.scale), verdict(*ends)
    if direction == "unknown":
        return f"{change}; {TOO_FEW}"
    result = {"loss": "a clear loss", "gain": "a clear gain"}.get(direction, excluded(ends[0], d.scale, margin))
    if direction == "loss" and within(ends[0], margin / d.scale):
        result = f"{result}, but within the margin of {margin:g} points"
    return f"{change}, {numbers.p_text(d.p_value)}: {result}"


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
    """The warning after a value that a constant answer reaches too; empty for a better value."""
    if constant is None or not value <= constant:
        return ""
    return f"; {constant_name(metric)} reaches {numbers.metric(constant, points_in(metric))}"


def weak_model(d: Delta) -> str:
    """The sentence about a model that with all heads is no better than a constant answer; empty for a better one."""
    if d.undefined or d.constant is None or not d.full <= d.constant:
        return ""
    full, constant = (numbers.metric(value, d.scale) for value in (d.full, d.constant))
    reached = f"{metric_title(d.metric)} {full}, not above {constant}"
    return f"The model is no better than {constant_name(d.metric)}: {reached}. "


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
    others = len(sure) - NAMED
    ending = f"{others} more change{'s' if others == 1 else ''} significantly"
    return f"{named}; {ending if others > 0 else f'no other {kind} changes significantly'} (Holm)"


def _chance(d: Delta) -> str:
    """What the best constant answer reaches on a slice."""
    return "" if d.constant is None else f" (chance {d.constant:.2f})"


def so_far(d: Delta, off: str, n: int, counted: str) -> str:
    """What the first ``n`` examples say, while more are being counted; ``counted`` says how many there are."""
    if n < FEW:
        change = points_changed(d.delta, None, None, d.scale)
        return f"Without {off}: {change} {counted}, too few to say what it costs."
    return f"Without {off}: {points_changed(d.delta, d.interval_low, d.interval_high, d.scale)} {counted}."


def two_masks(d: Delta, a: str, b: str) -> str:
    """Which of two masks leaves more, as far as the data can tell: A is ``d.full``, B is ``d.masked``."""
    if d.undefined:
        return f"The change of {metric_title(d.metric)} from A ({a}) to B ({b}) is not defined: {d.undefined}."
    reached = [numbers.metric(value, d.scale) for value in (d.full, d.masked)]
    values = f"{metric_title(d.metric)} {reached[0]} under A ({a}), {reached[1]} under B ({b})"
    ends = d.interval_low, d.interval_high
    better = {"loss": "A", "gain": "B"}.get(verdict(*ends))
    if better:
        return f"{better} leaves more: {values}; B − A is {points_changed(d.delta, *ends, d.scale)}."
    return f"The data cannot tell A from B: {values}; B − A is {points_changed(d.delta, None, None, d.scale)}."


def heads_named(off: Sequence[HeadId], rows: Sequence[str] | None = None) -> str:
    """A few heads by name, more by their number. ``rows`` are the names of the grid's rows."""
    if len(off) > NAMED:
        return f"{len(off)} heads"
    names = [head_name(h, rows) for h in off]
    return " and ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)


def answer_change(labels: Sequence[str], where: str, before: Sequence[float], after: Sequence[float]) -> str:
    """What becomes of one answer. ``where`` begins the sentence: ``Without L4·H10``; ``before`` and ``after`` are the
    probabilities of the classes."""
    old, new = _answers(before, after)
    first, last = f"{labels[old]} {before[old]:.2f}", f"{labels[new]} {after[new]:.2f}"
    chance = 1 / len(after)
    if no_longer_knows(before, after):
        change = f"{first} goes to {last}"
        if old == new:
            change = f"{labels[old]} falls from {before[old]:.2f} to {after[new]:.2f}"
        return f"{where} the model no longer knows: {change}, near chance ({chance:.2f} each)."
    if max(*before, *after) < chance + NEAR:
        change = f"{first} → {last if old != new else f'{after[new]:.2f}'}, near chance ({chance:.2f} each)"
        return f"{where} the model does not know, as before: {change}."
    if old != new:
        return f"{where} the answer changes: {first} becomes {last}."
    if abs(after[new] - before[new]) >= MUCH:
        way = "falls" if after[new] < before[new] else "rises"
        unsure = f", near chance ({chance:.2f} each)" if max(after) < chance + NEAR else ""
        change = f"{labels[new]} {way} from {before[new]:.2f} to {after[new]:.2f}{unsure}"
        return f"{where} {change}, and stays the answer."
    return f"{where} the answer stays {labels[new]} ({before[new]:.3f} → {after[new]:.3f})."


def _answers(*probabilities: Sequence[float]) -> list[int]:
    """The most probable class of each."""
    return [max(range(len(values)), key=values.__getitem__) for values in probabilities]


def from_to(labels: Sequence[str], before: Sequence[float], after: Sequence[float]) -> str:
    """An answer before and after in a few characters: ``contradiction .96 → .37``, or ``… → neutral .58``."""
    old, new = _answers(before, after)
    if no_longer_knows(before, after):
        return f"{labels[old]} {_short(before[old])} → not sure"
    return f"{labels[old]} {_short(before[old])} → {'' if old == new else f'{labels[new]} '}{_short(after[new])}"


def _short(probability: float) -> str:
    return f"{probability:.2f}".removeprefix("0")


def whole(present: HeadMask) -> str:
    """What a model is called while none of its heads is off; one that was pruned is no full model."""
    return f"open model ({len(present.kept)} of {present.size} heads)" if present.off else "full model"


def all_heads(present: HeadMask) -> str:
    """The same in a sentence, behind "with"."""
    return f"all its {len(present.kept)} heads" if present.off else "all heads"


def in_words(d: Delta, off: str, examples: str, every: str = "all heads") -> str:
    """What a mask costs in one sentence without symbols; ``examples`` names them: ``dev examples``, ``every`` all
    heads."""
    if d.undefined:
        return f"Without {off} {metric_title(d.metric)} is not defined on these {examples}."
    if d.metric == "accuracy":
        masked, full = (f"{round(value * d.n):,}" for value in (d.masked, d.full))
        sentence = f"Without {off}, {masked} of {d.n:,} {examples} are answered right; with {every} {full}"
    else:
        masked, full = (numbers.metric(value, d.scale) for value in (d.masked, d.full))
        sentence = f"Without {off} {metric_title(d.metric)} is {masked} on {d.n:,} {examples}; with {every} {full}"
    return f"{sentence}{no_better(d.metric, d.masked, d.constant)}."


def no_longer_knows(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether a sure answer has come near chance."""
    return not doubt(before) and max(after) < 1 / len(after) + NEAR


def doubt(probabilities: Sequence[float], *, before: Sequence[float] | None = None) -> str:
    """The remark on an unsure answer; empty for a sure one. ``before`` are the unpruned model's probabilities."""
    best, chance = max(probabilities), 1 / len(probabilities)
    if best < chance + NEAR:
        lost = before is not None and no_longer_knows(before, probabilities)
        return f"near chance ({chance:.2f} each): the model {'no longer knows' if lost else 'does not know'}"
    return "uncertain: no class reaches one half" if best < SURE else ""

"""What a table of transfer allows to say. A mask's own target is the one that it was found on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...answers.constant import going_on
from ...evaluation.verdict import MARGIN, excluded, points_up, possible_loss, within
from .transfer_matrix import Entry, Matrix

NAMED = 3  # masks named in a sentence


def elsewhere(found: Matrix, own: Mapping[str, str] | None = None) -> list[Entry]:
    """The entries of masks on other targets than their own; without ``own`` the target of the same name."""
    return [e for e in found.entries if (own or {}).get(e.source, e.source) != e.target]


def finding(found: Matrix, own: Mapping[str, str] | None = None, margin: float = MARGIN) -> str:
    """The sentences of a table; ``margin`` is in points. What needs care is said first."""
    others = elsewhere(found, own)
    if not others:
        return "Every mask was found on this model and data: nothing is transferred."
    return _one_class(others) + _losses(others, margin, found.retrained) + _against_random(others)


def _one_class(others: Sequence[Entry]) -> str:
    told = [e for e in others if e.remark]
    if not told:
        return ""
    more = f" The like holds for {len(told) - 1} more." if len(told) > 1 else ""
    return f"{named(told[0])}: {going_on(told[0].remark)}{more} "


def _losses(others: Sequence[Entry], margin: float, retrained: bool) -> str:
    """Which masks lose at most the margin on other targets, and what that excludes."""
    tested = [e for e in others if e.low is not None]
    count = f"{len(others)} pair{'s' if len(others) > 1 else ''} of a mask and another model"
    if not tested:
        why = "no change has an interval"
        if retrained:
            one = all(e.count <= 1 for e in others)
            why = "one seed has no spread" if one else "the changes of all seeds are equal, so they have no spread"
        return f"Of {count}, none can be told to keep the metric: {why}. "
    kept = [e for e in tested if within(e.low, margin / e.scale)]
    if not kept:
        best = min(tested, key=lambda e: possible_loss(e.low or 0.0) * e.scale)
        return (
            f"Of {count}, none is shown to lose at most {margin:g} points; nearest is {named(best)}, where "
            f"{excluded(best.low, best.scale, margin)}. "
        )
    kept.sort(key=lambda e: possible_loss(e.low or 0.0) * e.scale)
    told = ", ".join(f"{named(e)} (at most {points_up(e.scale * possible_loss(e.low or 0.0))})" for e in kept[:NAMED])
    are = "is" if len(kept) == 1 else "are"
    return f"Of {count}, {len(kept)} {are} shown to lose at most {margin:g} points: {told}{_more(kept)}. "


def _against_random(others: Sequence[Entry]) -> str:
    """Which of them random masks do not explain."""
    tested = [e for e in others if e.random_q is not None]
    if not tested:
        return "" if all(e.random is None for e in others) else "The random masks have no spread to judge by."
    ahead = [e for e in tested if e.ahead]
    if not ahead:
        return "None is shown to be better than random masks of as many heads, so none is shown to have transferred."
    ahead.sort(key=lambda e: e.random_p or 0.0)
    told = ", ".join(named(e) for e in ahead[:NAMED])
    verb = "is" if len(ahead) == 1 else "are"
    return f"{len(ahead)} of {len(tested)} {verb} better than random masks of as many heads: {told}{_more(ahead)}."


def _more(entries: Sequence[Entry]) -> str:
    return f" and {len(entries) - NAMED} more" if len(entries) > NAMED else ""


def named(entry: Entry) -> str:
    return f"{entry.source} on {entry.target}"

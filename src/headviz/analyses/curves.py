"""Pruning curves as values: the masks they go through, points, curves, and the sentence that they allow to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from statistics import fmean
from typing import Any

from ..answers.constant import going_on
from ..display.numbers import points as points_text
from ..errors import OptionError
from ..evaluation.verdict import MARGIN, clear_from, excluded, verdict, within
from ..heads import LEAST_STEP, HeadId, HeadMask
from ..results import Result
from ..ties import DRAWS, Seed, draws, grid_values, lowest, tied, ties_told

ORACLE_NAME = "single ablations on the evaluation data"


@dataclass(frozen=True)
class CurvePoint(Result):
    """One sparsity on one curve; the interval and p value are of ``value - baseline``, paired.

    ``corrected`` is the value as a share of what the full model has above the best constant answer. ``remark`` says
    so where (nearly) all answers are of one class. ``over_random`` is the lower end of what it keeps more than the
    random order with as many heads off; NaN where that is not known.

    Where it is another mask in another order of the heads that tie, values are means over ten drawn orders, and the
    interval and p are those of ``over_draws``. ``mask`` is the first order's, ``masks`` counts the different ones, and
    the values go from ``ties_low`` to ``ties_high``.
    """

    sparsity: float
    mask: HeadMask
    value: float
    delta: float
    interval_low: float
    interval_high: float
    p_value: float
    corrected: float = float("nan")
    remark: str = ""
    over_random: float = float("nan")
    masks: int = 1
    ties_low: float = float("nan")
    ties_high: float = float("nan")


@dataclass(frozen=True)
class Curve(Result):
    """One order of heads. ``margin`` is the loss, in the metric's unit, that counts as none.

    Of its ``heads``, ``tied`` have the same value as another.
    """

    name: str
    points: tuple[CurvePoint, ...]
    margin: float = MARGIN / 100
    tied: int = 0
    heads: int = 0

    @property
    def kept(self) -> tuple[CurvePoint, ...]:
        """The points up to which every loss beyond the margin is excluded."""
        return tuple(takewhile(lambda p: within(p.interval_low, self.margin), self.points))

    @property
    def free(self) -> float:
        """The largest sparsity up to which no step leaves a loss beyond the margin possible."""
        return max((p.sparsity for p in self.kept[1:]), default=0.0)  # the first is the model itself

    @property
    def lost(self) -> CurvePoint | None:
        """The first clear loss: an interval below zero."""
        return next((p for p in self.points if verdict(p.interval_low, p.interval_high) == "loss"), None)

    def extra(self) -> dict[str, Any]:
        return {"free": self.free, "lost_from": None if self.lost is None else self.lost.sparsity}


@dataclass(frozen=True)
class Order:
    """The masks that an order of heads goes through: one plan, or several where heads tie, equally long."""

    plans: tuple[list[HeadMask], ...]
    tied: int
    heads: int


def ordered_by(
    present: HeadMask,
    values: Any,
    step: float,
    until: float = 1.0,
    keep_per_layer: int = 0,
    among: Sequence[HeadId] | None = None,
    seed: int = 0,
) -> Order:
    """The lowest values first, with ten draws of the order among equals."""
    heads = present.kept if among is None else among
    own = grid_values(values, heads)
    plans = (stepwise(present, values, step, until, keep_per_layer, among, seed=one) for one in draws(own, seed))
    return Order(tuple(plans), tied(own), len(heads))


def averaged(points: Sequence[CurvePoint]) -> CurvePoint:
    """One point of several orders of the heads that tie."""
    first, masks = points[0], len({p.mask for p in points})
    if masks == 1:
        return first
    from ..statistics.intervals import over_draws

    ends = over_draws(*([getattr(p, n) for p in points] for n in ("interval_low", "interval_high", "p_value")))
    low, high, p_value = map(float, ends)
    value, delta, left, over = (
        fmean(getattr(p, n) for p in points) for n in ("value", "delta", "corrected", "over_random")
    )
    values, said = [p.value for p in points], [p.remark for p in points if p.remark]
    remark = f"{said[0][:-1]}, in {len(said)} of {len(points)} orders." if said else ""
    return replace(
        first,
        value=value,
        delta=delta,
        corrected=left,
        over_random=over,
        interval_low=low,
        interval_high=high,
        p_value=p_value,
        remark=said[0] if len(said) == len(points) else remark,
        masks=masks,
        ties_low=min(values),
        ties_high=max(values),
    )


def ties_beside(curves: Sequence[Curve], word: str = "by") -> str:
    """How many heads tie in which order, and what that makes of the values; a sentence with its blank, or nothing."""
    told = [f"{ties_told(c.tied, c.heads)} {word} {c.name}" for c in curves if c.tied]
    return f" {', '.join(told)}: their values are means over {DRAWS} drawn orders of equals." if told else ""


def stepwise(
    present: HeadMask,
    values: Any,
    step: float,
    until: float = 1.0,
    keep_per_layer: int = 0,
    among: Sequence[HeadId] | None = None,
    *,
    seed: Seed,
) -> list[HeadMask]:
    """The full model, then round(k·step·N) heads off until the first share ≥ ``until``.

    N is all heads, those that were removed from the model too, or with ``among`` just these heads, which alone may go.
    """
    kappa = Fraction(repr(float(step)))  # 3 · 0.1 is 0.3 exactly
    among, size = (present.kept, present.size) if among is None else (among, len(among))
    removed = size - len(among)
    masks, k = [present], 0
    while (removed + len(masks[-1].off) - len(present.off)) / size < until - 1e-9:
        k += 1
        count = round(k * kappa * size) - removed
        if count <= 0:
            continue
        off = lowest(values, min(count, len(among)), among, keep_per_layer, seed=seed)
        mask = present.without(off)
        if mask == masks[-1]:
            if count > len(off):  # nothing more may go
                break
            continue
        masks.append(mask)
    return masks


def check_steps(step: float, until: float, keep_per_layer: int, heads: int) -> None:
    """Refuse what no curve can be made of, before anything is computed. ``heads`` are those of one layer."""
    if not (0 < step <= 1 and 0 < until <= 1):
        raise OptionError(f"step and until must lie above 0 and be at most 1, not {step:g} and {until:g}.")
    if step < LEAST_STEP:
        raise OptionError(f"A step is at least {LEAST_STEP:g} of the heads, not {step:g}: a smaller one removes none.")
    if not 0 <= keep_per_layer < heads:
        raise OptionError(
            f"A layer has {heads} heads, so from 0 to {heads - 1} of them can be kept, not {keep_per_layer}: "
            "otherwise none may go."
        )


def told(curves: Sequence[Curve], scale: float, margin: float) -> str:
    """First what hides a loss, then how far nothing beyond the margin can be lost, then where a loss is clear."""
    fair = [c for c in curves if c.name != ORACLE_NAME]  # which has seen the answers
    best = max(fair or curves, key=_goes)
    said = flat(best)
    if best.free > 0:
        last = best.kept[-1]
        said += (
            f"{100 * best.free:.0f} % of the heads can go in the order of {best.name}: "
            f"{excluded(last.interval_low, scale, margin)} (margin {margin:g})."
        )
        if even := [c.name for c in fair if c.free == best.free and c is not best]:
            said += f" As many can in the order of {' and of '.join(even)}."
        said += f" It is the best of {len(fair)} orders: expect a little less on new examples." if len(fair) > 1 else ""
    elif (first := _first(best)) is not None:
        most = " excludes most" if len(fair) > 1 and first.interval_low == first.interval_low else ""
        said += f"At the first step, {100 * first.sparsity:.0f} %, the order of {best.name}"
        said += f"{most}: {excluded(first.interval_low, scale, margin)}."
    said += "" if fair else " This order has seen the answers: fewer can go on new examples."
    if best.lost is not None:
        beside = f" ({points_text(best.lost.delta, scale)} points)"
        lost = clear_from([(p.sparsity, [(p.interval_low, p.interval_high)]) for p in best.points], beside)
        whose = f"In the order of {best.name} a" if len(fair) > 1 else "A"
        size = ", at first within that margin" if best.lost.sparsity <= best.free else ""
        said += "" if lost is None else f" {whose} loss is {lost[1]}{size}."
    return said + beats_random(curves)


def _goes(curve: Curve) -> tuple[float, float]:
    """How good an order is: how many heads can go, then how small the loss is that is still possible there."""
    last = curve.kept[-1] if curve.free > 0 else _first(curve)
    low = float("nan") if last is None else last.interval_low
    return curve.free, low if low == low else float("-inf")


def _first(curve: Curve) -> CurvePoint | None:
    """The first step with heads off whose change is known."""
    return next((p for p in curve.points if p.delta == p.delta and p.mask != curve.points[0].mask), None)


def beats_random(curves: Sequence[Curve]) -> str:
    """Which orders keep clearly more than a random one, and where; empty without a random order."""
    if not any(p.over_random == p.over_random for c in curves for p in c.points):
        return ""
    others = [c for c in curves if c.name != ORACLE_NAME and any(p.over_random == p.over_random for p in c.points)]
    better = [f"{c.name} {_where(c)}" for c in others if any(p.over_random > 0 for p in c.points)]
    worse = [c.name for c in others if not any(p.over_random > 0 for p in c.points)]
    if not better:
        return " No order is clearly better than the random one."
    said = f" Better than the random order, each share by itself: {', '.join(better)}."
    return said + (f" Nowhere: {', '.join(worse)}." if worse else "")


def _where(curve: Curve) -> str:
    """At which shares an order beats a random one."""
    known = [p for p in curve.points if p.over_random == p.over_random]
    at = [i for i, p in enumerate(known) if p.over_random > 0]
    first, last = (f"{100 * known[i].sparsity:.0f}" for i in (at[0], at[-1]))
    if len(at) == 1:
        return f"at {first} %"
    gaps = "" if at == list(range(at[0], at[-1] + 1)) else f" at {len(at)} shares"
    return f"{gaps.strip()}{' ' if gaps else ''}from {first} to {last} %"


def flat(curve: Curve) -> str:
    """From where on (nearly) all answers are of one class; a sentence with its blank, or nothing.

    Without any head it is no news.
    """
    first = next((p for p in curve.points if p.remark and p.mask.kept), None)
    if first is None:
        return ""
    if first is curve.points[0]:
        return f"The full model: {first.remark[0].lower()}{first.remark[1:]} "
    return f"With {100 * first.sparsity:.0f} % of the heads off by {curve.name}, {going_on(first.remark)} "

"""How many heads are off after each step, computed from the plan alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import count, takewhile

from ..errors import Note, OptionError

TARGET, FULL = "target", "full"  # where the last step ends: at the target, or a whole step on, not below it

# Fractions of the decimal text, not of the binary float: 3 · 0.1 of 10 heads must be exactly 3 heads.
Exact = Fraction


def cumulative(
    total: int, step: float, until: float, keep_per_layer: int = 0, layers: int = 1, last: str = FULL
) -> list[int]:
    """round(k·κ·N) heads off after step k, up to the target.

    Halves go to the even number, as in Python's ``round``. ``keep_per_layer`` caps the last size.
    """
    removable = _removable(total, until, keep_per_layer, layers)
    kappa, target = _exact(step), _exact(until) * total
    if kappa * total < 1:
        least = -(-100_000 // total) / 100_000
        raise OptionError(
            f"A step of {step:g} is less than one of {total} heads. Give at least {least:g}, one head a step."
        )
    return _up_to(target, last, (min(round(k * kappa * total), removable) for k in count(1)))


def remaining(
    total: int, step: float, until: float, keep_per_layer: int = 0, layers: int = 1, last: str = FULL
) -> list[int]:
    """max(1, round(κ·left)) heads more off in each round, up to the target."""
    removable = _removable(total, until, keep_per_layer, layers)
    kappa, target = _exact(step), _exact(until) * total

    def rounds() -> Iterator[int]:
        off = 0
        while True:
            off = min(off + max(1, round(kappa * (total - off))), removable)
            yield off

    return _up_to(target, last, rounds())


def _up_to(target: Fraction, last: str, sizes: Iterable[int]) -> list[int]:
    """The sizes below the target and one more: the target in whole heads, or the first size that is not below it."""
    if last == TARGET:
        end = max(1, round(target))
        return [*takewhile(lambda size: size < end, sizes), end]
    found = []
    for size in sizes:
        found.append(size)
        if size >= target:
            break
    return found


def listed(total: int, sparsities: tuple[float, ...], keep_per_layer: int = 0, layers: int = 1) -> list[int]:
    """round(s·N) heads off at each sparsity of a list."""
    removable = _removable(total, 0.0, keep_per_layer, layers)
    sizes = [round(_exact(s) * total) for s in sparsities]
    if sizes[-1] > removable:
        _removable(total, sparsities[-1], keep_per_layer, layers)
    if sizes[0] < 1 or len(set(sizes)) < len(sizes):
        raise OptionError(
            f"With {total} heads the sparsities {', '.join(f'{s:g}' for s in sparsities)} mean {sizes} heads off: "
            "each must remove at least one head more than the one before."
        )
    return sizes


def beyond(total: int, sizes: list[int], until: float) -> list[str]:
    """A note if a step ends at the target's whole heads, yet below its share, so that one more step follows."""
    if len(sizes) < 2 or sizes[-2] != round(_exact(until) * total):
        return []
    near, last = sizes[-2:]
    text = (
        f"{near} of {total} heads are {near / total:.2%}, a little below {{target}}, so one more step follows, to "
        f"{last} heads ({last / total:.0%})."
    )
    more = f" To end at {near} heads, choose last_step '{TARGET}'."
    return [Note(text.format(target=f"the target of {until:g}") + more, code="one-more-step", text=text, until=until)]


def _floor(size: int, total: int) -> float:
    """A share with three decimals that so many heads reach, for messages: rounded down, so that it is accepted."""
    return 1000 * size // total / 1000


def _exact(value: float) -> Fraction:
    return Exact(repr(float(value)))


def _removable(total: int, until: float, keep_per_layer: int, layers: int) -> int:
    per_layer = total // layers
    if keep_per_layer > per_layer:
        raise OptionError(
            f"keep_per_layer is {keep_per_layer}, but a layer has only {per_layer} heads.",
            code="more-than-a-layer",
            keep_per_layer=keep_per_layer,
            per_layer=per_layer,
        )
    removable = total - layers * keep_per_layer
    if _exact(until) * total > removable:
        most = _floor(removable, total)
        but = (
            f"removes {round(_exact(until) * total)} of {total} heads, but keeping {keep_per_layer} per layer allows "
            f"{removable}. Choose at most"
        )
        raise OptionError(
            f"A target sparsity of {until:g} {but} {most:g}, or keep fewer.",
            code="more-than-removable",
            until=until,
            most=most,
            but=but,
        )
    return removable

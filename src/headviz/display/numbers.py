"""How numbers are written for people. A dash stands for what was not measured."""

from __future__ import annotations

from ..evaluation.verdict import outward


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits with a true minus sign."""
    if value is None or value != value:
        return "–"
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e7:
        text = f"{value:.0f}"
    return text.replace("-", "−")


def fixed(value: float | None, places: int = 4) -> str:
    """A number with ``places`` decimals, as in a column."""
    return "–" if value is None or value != value else f"{value:.{places}f}".replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """``number`` with a plus sign."""
    text = number(value, digits)
    return f"+{text}" if value is not None and value == value and value > 0 else text


def points(value: float | None, scale: float = 1.0) -> str:
    """A difference in points; ``scale`` is the number of points in one unit of the metric (``points_in``)."""
    if value is None or value != value:
        return "–"
    return f"{scale * value:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0").replace("-", "−")


def change(delta: float | None, low: float | None, high: float | None, scale: float) -> str:
    """A difference in points, with its interval if there is one: ``−0.5 [−1.3, +0.2]``."""
    bounded = delta is not None and low is not None and high is not None
    return points(delta, scale) + (f" {interval(low, high, scale)}" if bounded else "")


def interval(low: float | None, high: float | None, scale: float) -> str:
    """The interval of a difference in points, rounded outward so that it still covers: ``[−1.3, +0.2]``."""
    return "–" if low is None or high is None else f"[{low_end(low, scale)}, {high_end(high, scale)}]"


def low_end(value: float | None, scale: float = 1.0) -> str:
    """The lower end of an interval in points, rounded down."""
    return points(value if value is None else outward(value, value, scale)[0], scale)


def high_end(value: float | None, scale: float = 1.0) -> str:
    """The upper end of an interval in points, rounded up."""
    return points(value if value is None else outward(value, value, scale)[1], scale)


def percent(share: float) -> str:
    """A share with its sign, in whole percent."""
    if share != share:
        return "–"
    whole = round(100 * share)
    return f"{whole:+d} %".replace("-", "−") if whole else "0 %"


def share(value: float | None) -> str:
    """A share in percent, with one decimal."""
    return "–" if value is None or value != value else f"{100 * value:.1f} %"


def span(seconds: float | None) -> str:
    """A length of time in seconds, minutes or hours."""
    if seconds is None or seconds != seconds:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def size(count: float) -> str:
    """Bytes in the largest unit that fits."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"


def less(after: int, before: int) -> str:
    """The change of a size in per cent."""
    return f"{100 * (after / before - 1):+.1f} %".replace("+0.0", "±0").replace("-0.0", "±0").replace("-", "−")


def metric(value: float, scale: float = 100) -> str:
    """A metric with a fixed width: three decimals of a share, two of points."""
    return "–" if value != value else f"{value:.{2 if scale == 1 else 3}f}".replace("-", "−")


def p_text(p: float | None) -> str:
    """A p value in a sentence: ``p = 0.03``."""
    cell = p_cell(p)
    return f"p {cell}" if cell[0] in "–<" else f"p = {cell}"


def p_cell(p: float | None) -> str:
    """A p value in a column that is titled p."""
    if p is None or p != p:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"

"""Colours, in one place for the head grid, the figures and the report.

Blue and orange differ for the common kinds of colour blindness. Lightness follows the size of the value, so a figure
also reads in grey. The middle of a diverging scale is the page's background: zero looks empty.
"""

from __future__ import annotations

from dataclasses import dataclass

Stops = tuple[str, ...]

DIVERGING_LIGHT: Stops = (
    "#7d3407",
    "#b9591a",
    "#dd8d4c",
    "#f2c59a",
    "#f0efeb",
    "#b4d0ec",
    "#6ba2d8",
    "#2c6fb7",
    "#113b76",
)
DIVERGING_DARK: Stops = (
    "#ffcf9e",
    "#f2a157",
    "#c06c2c",
    "#6f4426",
    "#2b3037",
    "#2a4768",
    "#2f6cad",
    "#5ea2ea",
    "#b3d6ff",
)
SEQUENTIAL_LIGHT: Stops = ("#eef3f4", "#c5e0e5", "#8cc3cd", "#4ba1b2", "#1c7a8f", "#0b576a", "#063846")
SEQUENTIAL_DARK: Stops = ("#252d33", "#1f4854", "#1f6a7c", "#2b90a6", "#5db8cc", "#a0dce9", "#e2f8fc")

BETTER, WORSE, NEUTRAL = "#2c6fb7", "#c4651f", "#8a8d91"
MODELS: Stops = ("#1c7a8f", "#7a5ea8", "#b8860b", "#4ba1b2", "#a98fd0")  # no blue and no orange: those judge
CLASSES: Stops = ("#1c7a8f", "#7a5ea8", "#6f8f2a", "#b0487f", "#b8860b")  # of lines; none of those that judge


@dataclass(frozen=True)
class Scale:
    """How values become colours: ``lo`` and ``hi`` are the ends of ``stops``.

    A diverging scale is symmetric about zero, so that equal strength means equal lightness.
    """

    lo: float
    hi: float
    diverging: bool
    loss: bool = False  # high values are losses, and so orange

    @property
    def light(self) -> Stops:
        return self._turned(DIVERGING_LIGHT if self.diverging else SEQUENTIAL_LIGHT)

    @property
    def dark(self) -> Stops:
        return self._turned(DIVERGING_DARK if self.diverging else SEQUENTIAL_DARK)

    def _turned(self, stops: Stops) -> Stops:
        return stops[::-1] if self.loss else stops


def scale_for(values: list[float], *, signed: bool | None = None) -> Scale:
    """The scale that fits these values; NaN is ignored. ``signed`` forces or forbids a diverging scale.

    To compare grids, make one scale from the values of all of them.
    """
    finite = [v for v in values if v == v and abs(v) != float("inf")]
    if not finite:
        return Scale(-1.0, 1.0, True) if signed else Scale(0.0, 1.0, False)
    low, high = min(finite), max(finite)
    if signed if signed is not None else low < 0:
        end = max(abs(low), abs(high)) or 1.0
        return Scale(-end, end, True)
    low = min(0.0, low)
    return Scale(low, high if high > low else low + 1.0, False)


def scale_of_losses(values: list[float]) -> Scale:
    """Orange where something is lost, blue where something is gained; NaN is ignored."""
    fitted = scale_for(values, signed=True)
    return Scale(fitted.lo, fitted.hi, True, loss=True)


def colour(scale: Scale, value: float, *, dark: bool = False) -> str:
    """The ``#rrggbb`` of a finite value; values beyond the ends take the end's colour."""
    stops = scale.dark if dark else scale.light
    place = (value - scale.lo) / (scale.hi - scale.lo) * (len(stops) - 1)
    place = min(max(place, 0.0), len(stops) - 1.0)
    left = min(int(place), len(stops) - 2)
    part = place - left
    a, b = (tuple(int(s[i : i + 2], 16) for i in (1, 3, 5)) for s in stops[left : left + 2])
    return "#" + "".join(f"{round(x + (y - x) * part):02x}" for x, y in zip(a, b, strict=True))


# for figures that do not know whether their page is light or dark: zero is transparent
_EITHER_DIVERGING: Stops = (WORSE, "rgba(140,146,152,0.12)", BETTER)
_EITHER_SEQUENTIAL: Stops = ("rgba(140,146,152,0.10)", "rgba(28,140,163,0.55)", "#178299")


def plotly_scale(stops: Stops) -> list[list[float | str]]:
    """The stops in plotly's form."""
    return [[i / (len(stops) - 1), stop] for i, stop in enumerate(stops)]


def either_scale(signed: bool) -> list[list[float | str]]:
    """Colours in plotly's form that read on a light and on a dark page."""
    return plotly_scale(_EITHER_DIVERGING if signed else _EITHER_SEQUENTIAL)


def root_scale(signed: bool) -> list[list[float | str]]:
    """The same, with colour by the square root of a value, so that a quarter of the largest has half of it."""
    ends = [(WORSE, -1), (BETTER, 1)] if signed else [("#178299", 1)]
    found: list[list[float | str]] = []
    for end, sign in ends:
        red, green, blue = (int(end[i : i + 2], 16) for i in (1, 3, 5))
        for step in range(11):
            part, size = (step / 10) ** 2, step / 10
            at = 0.5 + 0.5 * sign * part if signed else part
            found.append([at, f"rgba({red},{green},{blue},{0.06 + 0.94 * size:.3f})"])
    return sorted(found, key=lambda stop: float(stop[0]))

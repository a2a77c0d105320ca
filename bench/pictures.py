"""Curves as plain SVG that reads on a light page and on a dark one: what the documents' pictures are drawn with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

GREY = "#777"
WIDTH, HEIGHT = 264, 182  # of a plot, without what is around it
LEFT, TOP, BELOW, GAP = 44, 30, 26, 22
ROW = 18  # of the names of curves
# by name: colours that differ for people who see few, dashes that differ without colours
STROKES = {
    "random": ("#888888", "2 3"),
    "gates": ("#0d9488", ""),
    "taylor": ("#2563eb", "8 3"),
    "thesis": ("#d97706", "6 3 2 3"),
    "ablation": ("#a855f7", "3 3"),
    "shapley": ("#db2777", "10 2 2 2"),
    "copy": ("#c4651f", ""),
    "conditional": ("#0b7285", "8 3"),
    "variational": ("#7b4fa3", "6 3 2 3"),
    "kd": ("#3f7d3a", "3 3"),
}


@dataclass(frozen=True)
class Curve:
    """Places with values; a band where they have ends, a filled mark where ``sure`` says so."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    ends: Sequence[tuple[float, float]] = ()
    sure: Sequence[bool] = ()
    stroke: str = ""  # a name in STROKES; empty = its own


@dataclass(frozen=True)
class Panel:
    """One plot. ``levels`` are dashed lines with their words."""

    title: str
    curves: Sequence[Curve]
    ticks: Sequence[float]
    levels: Sequence[tuple[float, str]] = ()
    tell: Callable[[float], str] = "{:.0%}".format  # how a place is written
    holds: Sequence[float] = ()  # values inside the plot, besides those of its curves


def draw(panels: Sequence[Panel], said: str, columns: int = 1) -> str:
    """The panels side by side, with the names of their curves below; ``said`` is for those who do not see it."""
    strokes = {curve.name: curve.stroke or curve.name for panel in panels for curve in panel.curves}
    wide = (LEFT + WIDTH + GAP) * columns
    high = (TOP + HEIGHT + BELOW) * -(-len(panels) // columns)
    parts = []
    for i, panel in enumerate(panels):
        x, y = (LEFT + WIDTH + GAP) * (i % columns), (TOP + HEIGHT + BELOW) * (i // columns)
        parts += [f'<g transform="translate({x + LEFT} {y + TOP})">', *_plot(panel), "</g>"]
    names, rows = _names(strokes, wide)
    parts += [f'<g transform="translate({LEFT} {high + 8})">', *names, "</g>"]
    high += 4 + ROW * rows
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'font-family="sans-serif" font-size="12" fill="{GREY}" role="img"><title>{escape(said)}</title>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _plot(panel: Panel) -> list[str]:
    first, last = panel.ticks[0], panel.ticks[-1]
    values = [v for c in panel.curves for v in (*c.ys, *(end for ends in c.ends for end in ends))]

    steps = _steps([*values, *panel.holds, *(level for level, _ in panel.levels)])
    low, high = steps[0], steps[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        return (x - first) / (last - first) * WIDTH, (high - y) / (high - low) * HEIGHT

    out = [f'<text y="-12" font-weight="600">{escape(panel.title)}</text>']
    for value in steps:
        _, y = place(first, value)
        told = f"{value:.10g}".replace("-", "−")
        out.append(f'<line x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-opacity="0.27" />')
        out.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{told}</text>')
    for at in panel.ticks:
        x, _ = place(at, low)
        out.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{panel.tell(at)}</text>')
    for value, said in panel.levels:
        _, y = place(first, value)
        out.append(f'<line x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="5 2" />')
        out.append(f'<text x="4" y="{y + (13 if y < 10 else -4):.1f}" font-size="11">{escape(said)}</text>')
    for curve in panel.curves:
        out += _curve(curve, place)
    return out


def _curve(curve: Curve, place: Callable[[float, float], tuple[float, float]]) -> list[str]:
    colour, dashes = STROKES[curve.stroke or curve.name]
    out = []
    if curve.ends:
        band = [place(x, high) for x, (_, high) in zip(curve.xs, curve.ends, strict=True)]
        band += reversed([place(x, low) for x, (low, _) in zip(curve.xs, curve.ends, strict=True)])
        out.append(f'<polygon points="{_points(band)}" fill="{colour}" opacity="0.15" />')
    line = [place(x, y) for x, y in zip(curve.xs, curve.ys, strict=True)]
    out.append(f'<polyline points="{_points(line)}" fill="none" stroke="{colour}" stroke-width="2"{_dashed(dashes)} />')
    for (x, y), sure in zip(line, curve.sure, strict=bool(curve.sure)):
        if sure:
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" />')
    return out


def _names(strokes: dict[str, str], wide: float) -> tuple[list[str], int]:
    """Each name beside its line, in rows that fit; and how many rows."""
    out, x, row = [], 0.0, 0
    for name, stroke in strokes.items():
        colour, dashes = STROKES[stroke]
        look = f'stroke="{colour}" stroke-width="2"{_dashed(dashes)}'
        size = 42 + 6.5 * len(name)
        if x and LEFT + x + size > wide:
            x, row = 0.0, row + 1
        y = ROW * row
        out.append(f'<line x1="{x:.0f}" x2="{x + 28:.0f}" y1="{y}" y2="{y}" {look} />')
        out.append(f'<text x="{x + 34:.0f}" y="{y + 4}">{escape(name)}</text>')
        x += size
    return out, row + 1


def _steps(values: Sequence[float]) -> list[float]:
    """Round numbers that hold all values."""
    low, high = min(values), max(values)
    size = next(s * 10**e for e in range(-6, 9) for s in (1, 2, 2.5, 5) if (high - low) / (s * 10**e) <= 5)
    first, last = (int(low // size), -int(-high // size))
    return [round(size * at, 10) for at in range(first, max(last, first + 1) + 1)]


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _points(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)

"""Curves as plain SVG that reads on a light page and on a dark one: what the documents' pictures are drawn with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor

WIDTH, HEIGHT = 264, 182  # of a plot, without what is around it
LEFT, TOP, BELOW, GAP = 44, 30, 40, 22
ROW = 18  # of the names below
LEVEL = ("var(--level)", "5 2")
NEAR = 0.04  # of a step: what a curve may stick out
LEAST = 0.01  # between the lowest and the highest step
THESIS = ("#d97706", "6 3 2 3")
# colours of at least 3:1 on both pages, and dashes for those who see few colours
STROKES = {
    "random": ("#868686", "2 3"),
    "gates": ("#0d9488", ""),
    "taylor": ("#3b74e8", "8 3"),
    "thesis-2024": THESIS,
    "conductance-spearman": THESIS,
    "ablation": ("#a855f7", "3 3"),
    "shapley": ("#db2777", "10 2 2 2"),
    "copy": ("#c4651f", ""),
    "conditional": ("#0b84a0", "8 3"),
    "variational": ("#8b5fb8", "6 3 2 3"),
    "kd": ("#3f8d3a", "3 3"),
    "mrpc": ("#b45309", ""),
    "sst2": ("#7c6fe0", "8 3"),
    "cola": ("#c0406f", "6 3 2 3"),
}
STYLE = (
    "<style>svg{--text:#4a4a4a;--page:#fff;--line:#dcdcdc;--level:#6b6b6b}"
    "@media(prefers-color-scheme:dark){svg{--text:#cfd2d8;--page:#1e2129;--line:#3a3e48;--level:#9aa0aa}}</style>"
)


@dataclass(frozen=True)
class Curve:
    """Places with values; a band where they have ends, a dot where ``sure`` says so."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    ends: Sequence[tuple[float, float]] = ()
    sure: Sequence[bool] = ()
    stroke: str = ""  # a name in STROKES; empty = its own


@dataclass(frozen=True)
class Panel:
    """One plot. ``levels`` are dashed lines with their names."""

    title: str
    curves: Sequence[Curve]
    ticks: Sequence[float]
    across: str = ""  # what the ticks count
    levels: Sequence[tuple[float, str]] = ()
    tell: Callable[[float], str] = "{:.0%}".format  # how a tick is written
    holds: Sequence[float] = ()  # values inside the plot, besides those of its curves


def draw(panels: Sequence[Panel], said: str, columns: int = 1) -> str:
    """The panels side by side, with the names of their curves below; ``said`` is for those who do not see it."""
    strokes = {curve.name: STROKES[curve.stroke or curve.name] for panel in panels for curve in panel.curves}
    strokes |= {name: LEVEL for panel in panels for _, name in panel.levels}
    wide = (LEFT + WIDTH + GAP) * columns
    high = (TOP + HEIGHT + BELOW) * -(-len(panels) // columns)
    parts = []
    for i, panel in enumerate(panels):
        x, y = (LEFT + WIDTH + GAP) * (i % columns), (TOP + HEIGHT + BELOW) * (i // columns)
        parts += [f'<g transform="translate({x + LEFT} {y + TOP})">', *_plot(panel), "</g>"]
    names, rows = _names(strokes, wide)
    parts += [f'<g transform="translate({LEFT} {high + 8})">', *names, "</g>"]
    high += 4 + ROW * rows
    title = f"<title>{escape(said, quote=False)}</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'font-family="sans-serif" font-size="12" fill="var(--text)" role="img">{title}{STYLE}\n'
        f'<rect width="{wide}" height="{high}" fill="var(--page)" />\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _plot(panel: Panel) -> list[str]:
    first, last = panel.ticks[0], panel.ticks[-1]
    values = [v for c in panel.curves for v in (*c.ys, *(end for ends in c.ends for end in ends))]
    steps = steps_of([*values, *panel.holds, *(level for level, _ in panel.levels)])
    low, high = steps[0], steps[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        return (x - first) / (last - first) * WIDTH, (high - y) / (high - low) * HEIGHT

    out = [f'<text y="-12" font-weight="600">{escape(panel.title)}</text>']
    for value in steps:
        _, y = place(first, value)
        told = f"{value:.10g}".replace("-", "−")
        zero = value == 0 and low < 0
        out.append(f'<line x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--{"level" if zero else "line"})" />')
        out.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{told}</text>')
    for at in panel.ticks:
        x, _ = place(at, low)
        out.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{escape(panel.tell(at))}</text>')
    if panel.across:
        out.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT + 32}" text-anchor="middle">{escape(panel.across)}</text>')
    for value, _ in panel.levels:
        _, y = place(first, value)
        colour, dashes = LEVEL
        out.append(f'<line x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"{_dashed(dashes)} />')
    for curve in panel.curves:
        out += _line(curve, place)
    for i, curve in enumerate(panel.curves):
        out += _dots(curve, place, 5.5 - 3.5 * i / len(panel.curves))  # of dots in one place all can be seen
    return out


def _line(curve: Curve, place: Callable[[float, float], tuple[float, float]]) -> list[str]:
    colour, dashes = STROKES[curve.stroke or curve.name]
    out = []
    if curve.ends:
        band = [place(x, high) for x, (_, high) in zip(curve.xs, curve.ends, strict=True)]
        band += reversed([place(x, low) for x, (low, _) in zip(curve.xs, curve.ends, strict=True)])
        out.append(f'<polygon points="{_points(band)}" fill="{colour}" opacity="0.2" />')
    line = [place(x, y) for x, y in zip(curve.xs, curve.ys, strict=True)]
    out.append(f'<polyline points="{_points(line)}" fill="none" stroke="{colour}" stroke-width="2"{_dashed(dashes)} />')
    return out


def _dots(curve: Curve, place: Callable[[float, float], tuple[float, float]], radius: float) -> list[str]:
    colour, _ = STROKES[curve.stroke or curve.name]
    told = zip(curve.xs, curve.ys, curve.sure, strict=True) if curve.sure else ()
    spots = [place(x, y) for x, y, sure in told if sure]
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" />' for x, y in spots]


def _names(strokes: dict[str, tuple[str, str]], wide: float) -> tuple[list[str], int]:
    """Each name beside its line, in rows that fit; and how many rows."""
    out, x, row = [], 0.0, 0
    for name, (colour, dashes) in strokes.items():
        size = 34 + 7 * len(name)
        if x and LEFT + x + size > wide:
            x, row = 0.0, row + 1
        y = ROW * row
        look = f'stroke="{colour}" stroke-width="2"{_dashed(dashes)}'
        out.append(f'<line x1="{x:.0f}" x2="{x + 28:.0f}" y1="{y}" y2="{y}" {look} />')
        out.append(f'<text x="{x + 34:.0f}" y="{y + 4}">{escape(name)}</text>')
        x += size + 10
    return out, row + 1


def steps_of(values: Sequence[float]) -> list[float]:
    """Round numbers that hold all values, but for a hair."""
    low, high = min(values), max(values)
    span = max(high - low, LEAST)
    size = next(s * 10**e for e in range(-3, 9) for s in (1, 2, 2.5, 5) if span / (s * 10**e) <= 5)
    first, last = floor(low / size + NEAR), ceil(high / size - NEAR)
    return [round(size * at, 10) for at in range(first, max(last, first + 1) + 1)]


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _points(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)

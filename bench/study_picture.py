"""The pruning study's curves as a drawing that reads on a light page and on a dark one."""

from typing import Any

from headviz.pruning import ALGORITHMS
from study_plans import MASKED, RETRAINED, SCORES

COLOURS = {"taylor": "#2563eb", "conductance-spearman": "#d97706", "random": "#6b7280"}
DASHES = {"taylor": "", "conductance-spearman": "6 3", "random": "2 3"}


def draw_curves(cells: dict[Any, Any], reference: float, full: float | None) -> str:
    """Four small panels, one per algorithm: mean and interval against sparsity.

    A retrained network's yardstick is ``full``, all heads retrained alike; the fine-tuned model is the others'.
    """
    width, height, left, top = 300, 220, 44, 30
    out = []
    for i, algorithm in enumerate((*MASKED, *RETRAINED)):
        x0, y0 = left + (i % 2) * (width + 60), top + (i // 2) * (height + 60)

        def place(share: float, value: float, x0: int = x0, y0: int = y0) -> tuple[float, float]:
            return x0 + share * width, y0 + (1 - value) * height

        out.append(f'<text x="{x0}" y="{y0 - 10}" font-weight="600">{ALGORITHMS[algorithm].title}</text>')
        for value in (0, 0.25, 0.5, 0.75, 1):
            (_, y), (x, _) = place(0, value), place(value, 0)
            out.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y}" y2="{y}" stroke="#8884" />')
            out.append(f'<text x="{x0 - 6}" y="{y + 4}" text-anchor="end">{value:.2f}</text>')
            out.append(f'<text x="{x}" y="{y0 + height + 16}" text-anchor="middle">{value:.0%}</text>')
        level = full if ALGORITHMS[algorithm].retrains else reference
        if level is not None:
            y = place(0, level)[1]
            said = f"all heads{', retrained alike' if ALGORITHMS[algorithm].retrains else ''}: {level:.3f}"
            out.append(
                f'<line x1="{x0}" x2="{x0 + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="5 2" />'
                f'<text x="{x0 + 4}" y="{y + (-5 if level < 0.9 else 14):.1f}" font-size="11">{said}</text>'
            )
        for score in SCORES:
            points = [c for (a, s, _), c in sorted(cells.items()) if (a, s) == (algorithm, score)]
            if not points:
                continue
            band = [place(c["sparsity"], c["high"]) for c in points]
            band += [place(c["sparsity"], c["low"]) for c in reversed(points)]
            line = [place(c["sparsity"], c["mean"]) for c in points]
            colour = COLOURS[score]
            out.append(f'<polygon points="{_points(band)}" fill="{colour}" opacity="0.18" />')
            out.append(
                f'<polyline points="{_points(line)}" fill="none" stroke="{colour}" stroke-width="2" '
                f'stroke-dasharray="{DASHES[score]}" />'
            )
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" />' for x, y in line]
    x, y = left, top + 2 * (height + 60)
    for score in SCORES:
        out.append(
            f'<line x1="{x}" x2="{x + 28}" y1="{y}" y2="{y}" stroke="{COLOURS[score]}" stroke-width="2" '
            f'stroke-dasharray="{DASHES[score]}" /><text x="{x + 34}" y="{y + 4}">{score}</text>'
        )
        x += 200
    size = (left + 2 * (width + 60), y + 24)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif" '
        f'font-size="12" fill="#777" role="img"><title>Dev accuracy against the share of heads removed; bands are '
        f"95 % intervals, the dashed line is the model with all heads</title>\n" + "\n".join(out) + "\n</svg>\n"
    )


def _points(corners: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)

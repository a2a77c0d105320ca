"""The pruning study's curves: four small plots, one for each algorithm."""

from typing import Any

from headviz.pruning import ALGORITHMS
from study.demo_pruning.plans import MASKED, RETRAINED, SCORES
from study.plot import Curve, Panel, draw


def draw_curves(cells: dict[Any, Any], reference: float, full: float | None) -> str:
    """Mean and interval against sparsity. ``cells`` are by algorithm, score and place.

    A retrained network's yardstick is ``full``, all heads retrained alike; the fine-tuned model is the others'.
    """
    panels = []
    for algorithm in (*MASKED, *RETRAINED):
        known = ALGORITHMS[algorithm]
        curves = []
        for score in SCORES:
            of = [c for (a, s, _), c in sorted(cells.items()) if (a, s) == (algorithm, score)]
            if of:
                ends = [(c["low"], c["high"]) for c in of]
                values = [c["mean"] for c in of]
                curves.append(Curve(score, [c["sparsity"] for c in of], values, ends))
        level = full if known.retrains else reference
        told = "all heads, retrained alike" if known.retrains else "all heads"
        levels = [] if level is None else [(level, f"{told}: {level:.3f}")]
        if curves:
            panels.append(
                Panel(f"{known.title}: accuracy", curves, (0, 0.25, 0.5, 0.75, 1), "heads off", levels, holds=(0, 1))
            )
    return draw(panels, "Dev accuracy against the share of heads removed; bands are 95 % intervals", columns=2)

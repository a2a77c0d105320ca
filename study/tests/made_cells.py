"""Cells of the study as their files hold them, and the page that is made of them."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from headviz import HeadMask


def trained(seed: int) -> dict[str, Any]:
    return {
        "cell": f"train-minilm-mrpc-{seed}",
        "experiment": "training",
        "metrics": {"accuracy": 0.8},
        "examples": 3668,
        "n": 408,
    }


def pruned(score: str, seed: int, lead: float, width: float, predicted: int = 200) -> dict[str, Any]:
    """A cell of four steps; every order of it loses the same."""
    ahead = [
        {"sparsity": share, "mean": lead, "low": lead - width, "high": lead + width} for share in (0.3, 0.5, 0.7, 0.9)
    ]
    step = {
        "metrics": {"accuracy": 0.7 + lead},
        "predicted": {"equivalent": predicted, "not_equivalent": 408 - predicted},
        "constant": {"accuracy": 0.68},
    }
    return {
        "cell": f"prune-minilm-mrpc-{seed}-one-importance-{score}",
        "experiment": "E2",
        "algorithm": "one-importance",
        "score": score,
        "n": 408,
        "metric": "accuracy",
        "full": {"accuracy": 0.8},
        "steps": [{**step, **off(a["sparsity"])} for a in ahead],
        "ahead_in": "balanced accuracy",
        "ahead": ahead,
    }


def off(share: float) -> dict[str, Any]:
    """The first heads of 72."""
    count = round(72 * share)
    mask = HeadMask.full(6, 12).without(divmod(i, 12) for i in range(count))
    return {"sparsity": share, "heads_off": count, "mask": mask.hex}


def drawn(seed: int, *accuracies: float) -> dict[str, Any]:
    """The cell of the random orders of one model."""
    cell = pruned("random", seed, 0.0, 0.0)
    steps = [{**s, "metrics": {"accuracy": a}, "seed": i} for s in cell["steps"] for i, a in enumerate(accuracies)]
    return {**cell, "steps": steps}


def text(study: ModuleType, *result: dict[str, Any]) -> str:
    """The page, with the names of its links alone."""
    said = study.page({cell["cell"]: cell for cell in result}, study.cells())
    return re.sub(r"\[([^]]*)\]\(results/[^)]*\.json\)", r"\1", said)

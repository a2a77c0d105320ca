"""The page of findings as tests read it: its words and its tables, without the links to cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(study: ModuleType) -> str:
    text = (DOCS / "findings.md").read_text(encoding="utf-8")
    return re.sub(r" \(\[cell\]\(\.\./study/results/[^)]*\.json\)\)", "", text.replace("\n([cell]", " ([cell]"))


def findings(study: ModuleType) -> str:
    """The page as one line."""
    return " ".join(page(study).split())


def table(study: ModuleType, first: str) -> list[list[str]]:
    """The rows of the one table of the page whose header begins so."""
    (found,) = re.findall(rf"^\| {re.escape(first)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page(study), re.M)
    return [[part.strip() for part in line.strip("|").split("|")] for line in found.splitlines()]


def ends(mean: float, low: float, high: float, digits: int = 1) -> str:
    """A number and its interval, as the page writes them."""
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def signed(mean: float, low: float, high: float) -> str:
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def plain(value: float) -> str:
    """A share without its leading zero."""
    return f"{value:.3f}".removeprefix("0")


def mean_at(cells: list[dict], share: float, metric: str = "accuracy") -> float:
    """Over models and orders, with so many heads off."""
    near = [s["metrics"][metric] for c in cells for s in c["steps"] if abs(s["sparsity"] - share) < 0.01]
    return float(np.mean(near))


def range_leads(
    cells: list[dict], randoms: list[dict], value: Callable[[dict], float], level: float = 0.95
) -> tuple[tuple[float, float, float], list[float]]:
    """Ahead of random orders from 10 to 88 % of the heads off, in points: over the models, and of each."""
    from study.leads import lead_of_means

    means, orders = [], []
    for cell, random in zip(cells, randoms, strict=True):
        assert cell["digest"] == random["digest"]
        inner = [s for s in random["steps"] if 0.05 < s["sparsity"] < 0.9]
        seeds = sorted({s["seed"] for s in inner})
        orders.append([np.mean([value(s) for s in inner if s["seed"] == seed]) for seed in seeds])
        own = np.mean([value(s) for s in cell["steps"] if 0.05 < s["sparsity"] < 0.9])
        means.append(float(own - np.mean(orders[-1])))
    mean, low, high = lead_of_means(means, np.array(orders), cells[0]["n"], level)
    return (100 * mean, 100 * low, 100 * high), [100 * m for m in means]

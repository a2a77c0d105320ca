"""The page of findings as tests read it: its words and its tables, without the links to cells."""

from __future__ import annotations

import re
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

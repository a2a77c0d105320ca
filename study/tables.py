"""What the parts of study/results.md share: cells by model, tables in Markdown, numbers as they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

Cells = list[dict[str, Any]]


def where(cell: dict[str, Any]) -> tuple[str, str, int]:
    """Encoder, task and seed of a cell, from its name."""
    _, encoder, task, seed, *_ = cell["cell"].split("-")
    return encoder, task, int(seed)


def by_model(cells: Cells) -> Iterator[tuple[str, str, Cells]]:
    """Cells of one encoder and task, in order."""
    for (encoder, task), group in groupby(sorted(cells, key=where), lambda c: where(c)[:2]):
        yield encoder, task, list(group)


def whole(cell: dict[str, Any]) -> bool:
    """Whether a cell has all steps; one of a run that was broken off says how many are ``left``."""
    return not cell.get("left")


def link(cell: dict[str, Any], text: str = "The cell.") -> str:
    return f"[{text}](results/{cell['cell']}.json)"


def links(cells: Cells) -> str:
    """The cells themselves, each named by its seed."""
    return " ".join(link(cell, seed_of(cell)) for cell in cells)


def seed_of(cell: dict[str, Any]) -> str:
    """A model by its seed, with primes where its weights are not those of the table of models."""
    return f"{where(cell)[2]}{'′' * cell.get('primes', 0)}"


def weights_of(cell: dict[str, Any]) -> dict[tuple[str, str, int], str | None]:
    """The digests of the models that a cell is about."""
    encoder, own, seed = where(cell)
    return {(encoder, task, seed): d for task, d in (cell.get("digests") or {own: cell.get("digest")}).items()}


def trainings(cells: Cells) -> dict[tuple[str, str, int], list[str]]:
    """By model, the digests of its trainings, that of the table of models first."""
    known: dict[tuple[str, str, int], list[str]] = {}
    for cell in sorted(cells, key=lambda c: (c["experiment"] != "training", c["cell"])):
        for model, digest in weights_of(cell).items():
            if digest is not None and digest not in known.setdefault(model, []):
                known[model].append(digest)
    return known


# of cells that were computed when heads with the same score went by their place
BY_LAYER = "The figures of `ablation` do not hold: heads that cost the same were removed in the order of their layers."


def by_layer(cell: dict[str, Any]) -> bool:
    """Whether heads that tie went by their place in this cell of ``ablation``."""
    return cell["score"] == "ablation" and "tied" not in cell["steps"][0]


def primes(cell: dict[str, Any], known: dict[tuple[str, str, int], list[str]]) -> int:
    """How many trainings of a cell's model come before its own; ``known`` from ``trainings``."""
    return max((known[model].index(digest) for model, digest in weights_of(cell).items() if digest), default=0)


def value_of(step: dict[str, Any], metric: str) -> float | None:
    """A network's metric. Matthews is undefined where all answers are of one class: there it is that class's."""
    result = step["metrics"][metric]
    return result if result is not None or step["constant"] is None else step["constant"][metric]


def known(step: dict[str, Any], metric: str) -> float:
    """The same where it has to have a value."""
    result = value_of(step, metric)
    assert result is not None, f"{metric} has no value for one class"
    return result


def full_of(cell: dict[str, Any], metric: str) -> float:
    """The metric with all heads; that of one class for all answers where it is undefined, as in the pruned ones."""
    return known({"metrics": cell["full"], "constant": cell["steps"][0]["constant"]}, metric)


def floor_of(cell: dict[str, Any]) -> float | None:
    """The cell's metric with one class for all answers."""
    constant = cell["steps"][0]["constant"]
    return None if constant is None else constant[cell["metric"]]


def steps_at(cells: Cells, share: float) -> Cells:
    """The steps of these cells with so many heads off."""
    return [s for c in cells for s in c["steps"] if abs(s["sparsity"] - share) < 1e-9]


def by_order(cells: Cells, value: Callable[[dict[str, Any]], float]) -> dict[float, dict[int, list[float]]]:
    """By share off and by order, the first of each model together: the values of the steps, model by model."""
    out: dict[float, dict[int, list[float]]] = {}
    for share in sorted({s["sparsity"] for c in cells for s in c["steps"]}):
        for cell in cells:
            for at, step in enumerate(sorted(steps_at([cell], share), key=lambda s: s.get("seed", 0))):
                out.setdefault(share, {}).setdefault(at, []).append(value(step))
    return out


def told_apart(low: float | None, high: float | None) -> bool:
    """Whether an interval lies on one side of zero; one of no width does not tell."""
    return low is not None and high is not None and (low > 0 or high < 0)


def no_better(group: Cells) -> bool:
    """Whether no model with all heads is better than one class for all answers."""
    floor = floor_of(group[0])
    return floor is not None and all(full_of(c, c["metric"]) <= floor for c in group)


def table(header: list[str], rows: list[list[Any]]) -> list[str]:
    """A Markdown table, line by line."""
    return [f"| {' | '.join(map(str, row))} |" for row in (header, ["---"] * len(header), *rows)]


def joined(words: list[str], last: str = "and") -> str:
    return f" {last} ".join([part for part in (", ".join(words[:-1]), words[-1]) if part])


def three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def ends(mean: float, low: float, high: float) -> str:
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")


def points(change: float | None, low: float | None, high: float | None) -> str:
    """In points; without an interval, or with one of no width, the change alone."""
    if change is None:
        return "–"
    if low is None or high is None or low == high:
        return f"{100 * change:+.1f}".replace("-", "−")
    return f"{100 * change:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]".replace("-", "−")


def over_seeds(values: np.ndarray, level: float = 0.95) -> tuple[float, float | None, float | None]:
    """Mean over seeds and its t interval; no interval where the seeds do not differ."""
    from scipy import stats

    mean, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5
    if error < 1e-9:
        return mean, None, None
    low, high = stats.t.interval(level, len(values) - 1, mean, error)
    return mean, float(low), float(high)


def one_class(steps: Cells) -> str:
    """How many of these networks give one class as (nearly) every answer; empty for none."""
    flat = sum(max(s["predicted"].values()) >= 0.95 * sum(s["predicted"].values()) for s in steps if s["predicted"])
    return f" ({flat} of {len(steps)} one class)" if flat else ""

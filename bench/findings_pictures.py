"""The pictures of docs/study.md, from the cells alone: `bench/findings_page.py` writes them beside the cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from findings_orders import AGAINST
from findings_pruned_page import comparable, leads_of
from findings_retrained_page import ahead
from findings_tables import Cells, by_model, floor_of, full_of, no_better, over_seeds, value_of
from headviz.analyses.board import recorded
from pictures import Curve, Panel, draw

SHOWN = ("gates", "taylor", "ablation", "shapley", AGAINST, "random")
GRADED = ("gates", "taylor", "ablation", "conductance-spearman", "random")
THESIS = {AGAINST: "thesis", "conductance-spearman": "thesis"}  # strokes
TASKS = {"mrpc": "gates", "sst2": "taylor", "cola": "thesis"}  # strokes
SHARES = (0, 0.25, 0.5, 0.75, 1)
LEAD = "points ahead of random"
MARKED = "A dot: told apart from random orders at this step alone."
Pictures = Iterator[tuple[str, str]]


def pictures(experiment: str, found: Cells) -> Iterator[tuple[str, str, str]]:
    """The heading that a picture stands under, its name, and its drawing."""
    if experiment == "E1":
        for encoder in sorted({encoder for encoder, _, _ in by_model(found)}):
            yield from (("## E1", *picture) for picture in _agreement(encoder, found))
    elif experiment == "E2":
        for encoder, task, group in by_model(found):
            yield from ((f"### {encoder} on {task}", *picture) for picture in _pruned(encoder, task, group))
    elif experiment == "E3":
        for encoder, task, group in by_model(found):
            yield from ((f"### {encoder} on {task}", *picture) for picture in _retrained(encoder, task, group))
    elif experiment == "B" and found:
        yield from (("### Over all boards", *picture) for picture in _boards(found))


def with_pictures(lines: list[str], drawn: list[tuple[str, str, str]]) -> list[str]:
    """The lines of a section; under each heading its pictures, side by side where there is room."""
    out = []
    for line in lines:
        out.append(line)
        names = [name for heading, name, _ in drawn if line.startswith(heading)]
        if names:
            out += ["", " ".join(f"![{name.replace('-', ' ')}](study/{name}.svg)" for name in names)]
    return out


def _pruned(encoder: str, task: str, group: Cells) -> Pictures:
    """What is kept, and how far that is ahead of random orders; heads scored once."""
    kept, leads = [], []
    metric = group[0]["metric"]
    for score in SHOWN:
        own = [c for c in group if (c["algorithm"], c["score"]) == ("one-importance", score)]
        if not own:
            continue
        shares = sorted({s["sparsity"] for s in own[0]["steps"]})
        ends = [_over_orders(own, share, metric) for share in shares] if score == "random" else []
        full = float(np.mean([full_of(c, metric) for c in own]))
        values = [_mean(own, share, metric) for share in shares]
        band = [(full, full), *ends] if ends else []
        kept.append(Curve(score, [0, *shares], [full, *values], band, stroke=THESIS.get(score, "")))
        beside = [c for c in own if score != "random" and comparable(c)]
        if beside:
            found = leads_of(beside, task, range(len(beside[0]["ahead"])))
            sure = [low > 0 or high < 0 for _, low, high in found]
            points = [100 * mean for mean, _, _ in found]
            places = [a["sparsity"] for a in beside[0]["ahead"]]
            leads.append(Curve(score, places, points, sure=sure, stroke=THESIS.get(score, "")))
    where = f"{encoder} on {task}, nothing retrained"
    if kept:
        panel = Panel(f"{encoder} on {task}, scored once: {metric}", kept, SHARES, _floor(group))
        yield (
            f"prune-{encoder}-{task}",
            draw([panel], f"{where}: {metric} by the share of heads off. Band: all orders."),
        )
    if leads and not no_better(group):
        panel = Panel(LEAD, leads, SHARES)
        yield (
            f"prune-{encoder}-{task}-lead",
            draw([panel], f"{where}: {LEAD}, balanced accuracy by the share of heads off. {MARKED}"),
        )


def _retrained(encoder: str, task: str, group: Cells) -> Pictures:
    """What one-shot pruning keeps after training, by the score."""
    kept, leads = [], []
    metric = group[0]["metric"]
    ways = {s: [c for c in group if (c["algorithm"], c["score"]) == ("one-shot-isp", s)] for s in SHOWN}
    for score, own in ways.items():
        if len(own) < 2:
            continue
        shares = [s["sparsity"] for s in own[0]["steps"]]
        values = np.array([[value_of(s, metric) for s in c["steps"]] for c in own], float)
        middle, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        band = [*zip(middle - spread, middle + spread, strict=True)]
        kept.append(Curve(score, shares, [*middle], band, stroke=THESIS.get(score, "")))
        if score != "random":
            told = [over_seeds(at) for at in np.array([ahead(c) for c in own]).T]
            sure = [low is not None and high is not None and (low > 0 or high < 0) for _, low, high in told]
            leads.append(
                Curve(score, shares, [100 * mean for mean, _, _ in told], sure=sure, stroke=THESIS.get(score, ""))
            )
    if not kept:
        return
    full = [full_of(c, metric) for c in {c["seed"]: c for own in ways.values() for c in own}.values()]
    levels = [(float(np.mean(full)), "all heads"), *_floor(group)]
    where = f"{encoder} on {task}, trained again"
    panel = Panel(f"{where}: {metric}", kept, SHARES, levels)
    yield f"retrain-{encoder}-{task}", draw([panel], f"{panel.title} by the share of heads off. Bands: one sd.")
    if leads and not no_better(group):
        panel = Panel(LEAD, leads, SHARES)
        yield (
            f"retrain-{encoder}-{task}-lead",
            draw([panel], f"{where}: {LEAD}, balanced accuracy by the share of heads off. {MARKED}"),
        )


def _lead(where: str, leads: list[Curve]) -> str:
    said = f"{where}: {LEAD}, in balanced accuracy, by the share of heads off. {MARKED}"
    return draw([Panel(f"{where.split(',')[0]}: {LEAD}", leads, SHARES)], said)


def _agreement(encoder: str, found: Cells) -> Pictures:
    """From before to after fine-tuning, a line for each seed."""
    for kind in ("signed", "absolute"):
        curves = [
            Curve(task, [0, 1], [cell[side][kind] for side in ("before", "after")], stroke=TASKS[task])
            for own, task, group in by_model(found)
            for cell in group
            if own == encoder
        ]
        title = f"{encoder}: mean correlation, {kind}"
        panel = Panel(title, curves, (0, 1), tell=lambda at: "after" if at else "before")
        said = f"{title}, before and after fine-tuning. One line for each seed."
        yield f"agree-{encoder}-{kind}", draw([panel], said)


def _boards(found: Cells) -> Pictures:
    shipped = recorded()
    assert shipped is not None, "the package came without its board"
    yield "board-demo", _board("the demo", shipped.grades.to_dict()["scores"])
    for cell in found:
        _, encoder, task, _ = cell["cell"].split("-")
        yield f"board-{encoder}-{task}", _board(f"{encoder} on {task}", cell["grades"]["scores"])


def _board(title: str, grades: list[dict[str, Any]]) -> str:
    curves = [
        Curve(g["score"], [0, *(at / 10 for at in range(1, 10))], [1, *g["curve"]], stroke=THESIS.get(g["score"], ""))
        for score in GRADED
        for g in grades
        if g["score"] == score and g.get("curve")
    ]
    panel = Panel(f"{title}: of what it knows, kept", curves, SHARES, [(0, "chance")])
    return draw([panel], f"{title}: what is kept above chance, by the share of heads off, for five of the scores.")


def _mean(own: Cells, share: float, metric: str) -> float:
    """Over models and, for random, over orders."""
    return float(np.mean([value_of(s, metric) for c in own for s in c["steps"] if abs(s["sparsity"] - share) < 1e-9]))


def _over_orders(own: Cells, share: float, metric: str) -> tuple[float, float]:
    """The lowest and the highest of the random orders, each of them a mean over models."""
    by_order: dict[int, list[float]] = {}
    for step in (s for c in own for s in c["steps"] if abs(s["sparsity"] - share) < 1e-9):
        value = value_of(step, metric)
        assert value is not None
        by_order.setdefault(step["seed"], []).append(value)
    means = [float(np.mean(values)) for values in by_order.values()]
    return min(means), max(means)


def _floor(group: Cells) -> list[tuple[float, str]]:
    floor = floor_of(group[0])
    return [] if floor is None else [(floor, "one class for all")]

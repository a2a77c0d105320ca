"""The pictures of study/results.md, from the cells alone: `python -m study.page` writes them beside the cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from headviz.analyses.grades import recorded
from study.orders import AGAINST
from study.page_pruned import comparable, leads_of, reached
from study.page_retrained import ahead, full_by_model
from study.plot import Curve, Panel, draw
from study.tables import (
    Cells,
    by_layer,
    by_model,
    by_order,
    floor_of,
    full_of,
    known,
    no_better,
    over_seeds,
    told_apart,
)

SHOWN = ("gates", "taylor", "ablation", "shapley", AGAINST, "random")
GRADED = ("gates", "taylor", "ablation", "conductance-spearman", "random")
OFF = ((0, 0.25, 0.5, 0.75, 1), "heads off")
LEAD = "points ahead of random"
Drawn = tuple[str, str, str]  # the picture's name, what it says, the drawing


def pictures(experiment: str, cells: Cells) -> dict[str, list[Drawn]]:
    """The pictures of an experiment, by the heading that they stand under."""
    if not cells:
        return {}
    if experiment == "B":
        return {"### Over all boards": [*_boards(cells)]}
    models = [*by_model(cells)]
    if experiment == "E1":
        encoders = dict.fromkeys(encoder for encoder, _, _ in models)
        return {"## E1": [picture for encoder in encoders for picture in _agreement(encoder, models)]}
    draws: dict[str, Callable[[str, Cells], Iterator[Drawn]]] = {"E2": _pruned, "E3": _retrained}
    if experiment not in draws:
        return {}
    return {
        f"### {encoder} on {task}": [*draws[experiment](f"{encoder} on {task}", of)] for encoder, task, of in models
    }


def with_pictures(lines: list[str], drawn: dict[str, list[Drawn]]) -> list[str]:
    """The lines of a section; under each heading its pictures, side by side where there is room."""
    out = []
    for line in lines:
        out.append(line)
        shown = [picture for heading, of in drawn.items() if line.startswith(heading) for picture in of]
        if shown:
            out += ["", *(f"![{said}](results/{name}.svg)" for name, said, _ in shown)]
    return out


def _picture(name: str, panel: Panel, more: str = "") -> Drawn:
    said = f"{panel.title}, by {panel.across}." if panel.across else f"{panel.title}."
    said = f"{said} {more}".strip()
    return name.replace(" on ", "-"), said, draw([panel], said)


def _pruned(where: str, group: Cells) -> Iterator[Drawn]:
    """What is kept, and how far that is ahead of random orders; heads scored once."""
    kept, leads = [], []
    metric, task = group[0]["metric"], where.split()[-1]
    for score in SHOWN:
        own = [c for c in group if (c["algorithm"], c["score"]) == ("one-importance", score)]
        if not own or any(map(by_layer, own)):
            continue
        full = float(np.mean([full_of(c, metric) for c in own]))
        orders = by_order(own, lambda step: known(step, metric))  # of a score that is not random, one for each seed
        shares = [0.0, *orders]
        means = [full, *(float(np.mean([v for of in at.values() for v in of])) for at in orders.values())]
        each = [[float(np.mean(of)) for of in at.values()] for at in orders.values()]
        band = [(full, full), *((min(of), max(of)) for of in each)] if score == "random" else []
        kept.append(Curve(score, shares, means, band))
        beside = [c for c in own if score != "random" and comparable(c)]
        if beside:
            told = leads_of(beside, task, reached(beside))
            places = [beside[0]["ahead"][at]["sparsity"] for at in reached(beside)]
            sure = [told_apart(low, high) for _, low, high in told]
            leads.append(Curve(score, places, [100 * mean for mean, _, _ in told], sure=sure))
    if kept:
        panel = Panel(f"{where}: {metric}", kept, *OFF, _floor(group))
        yield _picture(f"prune-{where}", panel, "Heads scored once, nothing retrained.")
    if leads and not no_better(group):
        panel = Panel(f"{where}: {LEAD}", leads, *OFF)
        yield _picture(f"prune-{where}-lead", panel, "Balanced accuracy. A dot: significant at this step alone.")


def _retrained(where: str, group: Cells) -> Iterator[Drawn]:
    """What one-shot pruning keeps after training, by the score."""
    kept, leads = [], []
    metric = group[0]["metric"]
    for score in SHOWN:
        own = [c for c in group if (c["algorithm"], c["score"]) == ("one-shot-isp", score)]
        if len(own) < 2:
            continue
        shares = [s["sparsity"] for s in own[0]["steps"]]
        values = np.array([[known(s, metric) for s in c["steps"]] for c in own])
        middle, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
        kept.append(Curve(score, shares, [*middle], [*zip(middle - spread, middle + spread, strict=True)]))
        if score != "random":
            told = [over_seeds(at) for at in np.array([ahead(c) for c in own]).T]
            sure = [told_apart(low, high) for _, low, high in told]
            leads.append(Curve(score, shares, [100 * mean for mean, _, _ in told], sure=sure))
    if not leads:  # random orders alone show nothing
        return
    drawn = [c for c in group if c["algorithm"] == "one-shot-isp"]
    full = float(np.mean([*full_by_model(drawn).values()]))
    panel = Panel(f"{where}, retrained: {metric}", kept, *OFF, [(full, "all heads"), *_floor(group)])
    yield _picture(f"retrain-{where}", panel, "One-shot ISP; bands: one sd.")
    if not no_better(group):
        panel = Panel(f"{where}, retrained: points ahead", leads, *OFF)
        yield _picture(
            f"retrain-{where}-lead",
            panel,
            "Balanced accuracy, of the seed's random order. A dot: significant at this size alone.",
        )


def _agreement(encoder: str, models: list[tuple[str, str, Cells]]) -> Iterator[Drawn]:
    """From before to after fine-tuning, a line for each seed."""
    for kind, what in (("signed", "mean correlation"), ("absolute", "mean |correlation|")):
        curves = [
            Curve(task, [0, 1], [cell[side][kind] for side in ("before", "after")])
            for own, task, group in models
            for cell in group
            if own == encoder
        ]
        every = [cell[side][kind] for _, _, of in models for cell in of for side in ("before", "after")]
        panel = Panel(
            f"{encoder}: {what}", curves, (0, 1), tell=lambda at: "after" if at else "before", holds=[*every, 0.0]
        )
        yield _picture(f"agree-{encoder}-{kind}", panel, "Before and after fine-tuning, one line for each seed.")


def _boards(cells: Cells) -> Iterator[Drawn]:
    shipped = recorded()
    assert shipped is not None, "the package came without its board"
    boards = {"demo": ("the demo", shipped.grades.to_dict()["scores"])}
    for cell in cells:
        _, encoder, task, _ = cell["cell"].split("-")
        boards[f"{encoder} on {task}"] = (f"{encoder} on {task}", cell["grades"]["scores"])
    every = [
        value for _, grades in boards.values() for g in grades if g["score"] in GRADED for value in g.get("curve", ())
    ]
    for name, (title, grades) in boards.items():
        curves = [
            Curve(score, [0, *(at / 10 for at in range(1, 10))], [1, *g["curve"]])
            for score in GRADED
            for g in grades
            if g["score"] == score and g.get("curve") and (score != "ablation" or "tied" in g)
        ]
        panel = Panel(f"{title}: knowledge kept", curves, *OFF, holds=[0, 1, *every])
        yield _picture(f"board-{name}", panel, "Some scores and random orders; 0: one class for all.")


def _floor(group: Cells) -> list[tuple[float, str]]:
    floor = floor_of(group[0])
    return [] if floor is None else [(floor, "one class for all")]

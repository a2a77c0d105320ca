"""Part of study/results.md: what models of different seeds have in common: agreement, heads removed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from headviz import HeadMask
from headviz.statistics.resampling import spearman
from study.orders import PRICES
from study.tables import BY_LAYER, Cells, by_layer, by_model, seed_of, table

HEADS = 12  # of a layer, in both encoders
FEW = 3  # models below which nothing is said of seeds
FIFTH = 0.2  # the share of lowest heads that two models are compared in
MIDDLE = 0.58
SHARES = (0.3, MIDDLE, 0.78)  # of the heads off, for masks of two seeds


def same_agreement(found: Cells) -> Iterator[str]:
    """Whether the grids of agreement of two seeds, or of two tasks, rank the heads alike."""
    cells = [c for c in found if "grids" in c]
    grids: dict[tuple[str, str], dict[str, list[np.ndarray]]] = {}
    for encoder, task, group in by_model(cells):
        if len(group) >= FEW:
            grids[encoder, task] = {side: [np.ravel(c["grids"][side]) for c in group] for side in ("before", "after")}
    if not grids:
        return
    rows = []
    for (encoder, task), sides in grids.items():
        pairs = {side: list(combinations(maps, 2)) for side, maps in sides.items()}
        others = [maps["after"] for (e, t), maps in grids.items() if e == encoder and t != task]
        across = [spearman(one, two) for maps in others for one, two in product(sides["after"], maps)]
        rows.append(
            [
                encoder,
                task,
                *(_spread([spearman(one, two) for one, two in of]) for of in pairs.values()),
                _spread(across) if across else "–",
                f"{np.mean([_lowest(one, two) for one, two in pairs['after']]):.0%}".replace("%", " %"),
            ]
        )
    header = ["encoder", "task", "two seeds, before", "two seeds, after", "another task, after", "lowest fifth shared"]
    yield from [
        "Do two models rank their heads alike by agreement? The mean rank correlation over all pairs of seeds, with "
        "the lowest and the highest. *Lowest fifth*: of the heads with the lowest agreement, those that both have; "
        f"chance is {100 * FIFTH:.0f} %.",
        "",
        *table(header, rows),
        "",
    ]


def same_heads(cells: Cells) -> Iterator[str]:
    """The share of removed heads that two seeds have in common, by score."""
    tables = {}
    for encoder, task, group in by_model([c for c in cells if c["algorithm"] == "one-importance"]):
        rows = []
        for score in PRICES:
            own = [c for c in group if c["score"] == score and score != "random"]
            if len(own) >= FEW:
                shared = [_shared(own, share) for share in SHARES]
                rows.append([f"`{score}`", " ".join(map(seed_of, own)), *shared])
        if rows:
            tables[encoder, task] = rows
    if not tables:
        return
    yield from [
        "### Do seeds remove the same heads?",
        "",
        "The share of the removed heads that two models have in common, the mean over pairs of seeds; heads scored "
        "once. Chance is the share that is off.",
        "",
    ]
    for (encoder, task), rows in tables.items():
        yield from [f"{encoder} on {task}:", ""]
        yield from [*table(["score", "models", *(f"{share:.0%} off" for share in SHARES)], rows), ""]
    yield from _warned(cells)


def _warned(cells: Cells) -> Iterator[str]:
    """What is said where some masks by ``ablation`` are of an order by layer."""
    if any(by_layer(c) for c in cells if c["algorithm"] == "one-importance"):
        yield from [BY_LAYER, ""]


def same_over_scores(found: Cells) -> Iterator[str]:
    """The share of removed heads that two scores have in common on one model, and one score on two tasks."""
    masks: dict[str, dict[tuple[str, str], dict[str, HeadMask]]] = {}  # of each encoder, task and seed
    for encoder, task, group in by_model([c for c in found if c["algorithm"] == "one-importance"]):
        for cell in group:
            if cell["score"] in PRICES and cell["score"] != "random":
                (mask,) = masks_at([cell], MIDDLE)
                masks.setdefault(encoder, {}).setdefault((task, seed_of(cell)), {})[cell["score"]] = mask
    for encoder, models in masks.items():
        names = [name for name in PRICES if sum(name in of for of in models.values()) >= FEW]
        if len(names) < FEW:
            continue
        rows = []
        for at, name in enumerate(names):
            others = [[of for of in models.values() if {name, other} <= of.keys()] for other in names[:at]]
            cells = [
                _mean([shared_heads(of[name], of[other]) for of in pair])
                for other, pair in zip(names, others, strict=False)
            ]
            apart = [
                shared_heads(mine[name], theirs[name])
                for (one, mine), (two, theirs) in combinations(models.items(), 2)
                if one[0] != two[0] and name in mine and name in theirs
            ]
            rows.append([f"`{name}`", *cells, *["–"] * (len(names) - 1 - at), _mean(apart)])
        yield from [
            f"### Do scores and tasks remove the same heads of {encoder}?",
            "",
            f"The share of the removed heads that two scores have in common on one model, the mean over {len(models)} "
            f"models, and one score on models of two tasks; {MIDDLE:.0%} off, which is chance.".replace("%", " %"),
            "",
            *table(["score", *(f"`{name}`" for name in names[:-1]), "another task"], rows),
            "",
            *_warned([c for c in found if c["cell"].split("-")[1] == encoder]),
        ]


def _mean(shares: list[float]) -> str:
    return f"{np.mean(shares):.0%}".replace("%", " %") if shares else "–"


def shared_heads(one: HeadMask, other: HeadMask) -> float:
    """Of the heads that the first has off, the share that is off in the other, too."""
    off = set(one.off)
    return len(off & set(other.off)) / len(off)


def masks_at(cells: Cells, share: float) -> list[HeadMask]:
    """The mask of each cell at the step nearest to ``share``."""
    steps = [min(c["steps"], key=lambda s: abs(s["sparsity"] - share)) for c in cells]
    layers = [round(step["heads_off"] / step["sparsity"] / HEADS) for step in steps]
    return [HeadMask.from_hex(step["mask"], n, HEADS) for step, n in zip(steps, layers, strict=True)]


def _shared(own: Cells, share: float) -> str:
    pairs = combinations(masks_at(own, share), 2)
    return f"{np.mean([shared_heads(one, other) for one, other in pairs]):.0%}".replace("%", " %")


def _lowest(one: np.ndarray, other: np.ndarray) -> float:
    count = round(FIFTH * len(one))
    return len({*np.argsort(one)[:count]} & {*np.argsort(other)[:count]}) / count


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})".replace("-", "−")

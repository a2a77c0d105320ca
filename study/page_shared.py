"""Parts of study/results.md: masks given to other tasks (E5), costs on two halves (X), the boards (B), gates (G)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headviz.analyses.grades import recorded
from headviz.extras.analyses.cross_dataset import rank_interval
from headviz.reference import find
from headviz.scores.catalogue import TO_PRUNE_BY
from headviz.statistics.resampling import pearson, spearman
from study.tables import BY_LAYER, Cells, ends, link, points, seed_of, table, three

COSTLIEST = (1, 4)  # heads that the correlation of costs is told without


def transferred(cells: Cells, trained: Cells) -> Iterator[str]:
    """What each task's model keeps under the masks of all, beside random masks."""
    for cell in cells:
        encoder = cell["cell"].split("-")[1]
        for at in cell["shares"]:
            rows = [e for e in at["entries"] if e["source"]]
            yield from [
                f"### {encoder}, {rows[0]['sparsity']:.0%} of the heads off",
                "",
                f"Masks of the `{cell['score']}` order of each task's model, nothing retrained. *Random*: the mean of "
                f"{cell['random']} random masks of the same size, and where a further one would lie (95 %). A mask has "
                "transferred where it lies above that, also among all entries of the table (q). "
                f"Models {seed_of(cell)}. {link(cell)}",
                "",
            ]
            header = ["mask of", "model of", "metric", "all heads", "one class", "change, points", "random", "q"]
            yield from [*table(header, [_entry(e) for e in rows]), "", _told(rows), ""]


def _entry(e: dict[str, Any]) -> list[str]:
    change = points(e["change"], e["low"], e["high"])
    numbers = [e["value"], e["full"], e["constant"]]
    told = f" ({e['remark']})" if e["remark"] else ""
    q = "–" if e["random_q"] is None else f"{e['random_q']:.2f}"
    between = "" if e["random_low"] is None else f" [{e['random_low']:.3f}, {e['random_high']:.3f}]"
    cells = [three(v) for v in numbers]
    return [e["source"], e["target"], cells[0] + told, *cells[1:], change, three(e["random"]) + between, q]


def _told(entries: Cells) -> str:
    """Which masks are better than random ones on another task's model, and where none could be."""
    given = [e for e in entries if e["source"] != e["target"] and e["full"] is not None]
    useless = {e["target"]: "is no better than one class" for e in given if _no_better(e)}
    same = {
        e["target"]: "would not differ significantly from random masks"
        for e in given
        if e["random_high"] is None or e["full"] <= e["random_high"]
    }
    closed = same | useless
    better = [f"{e['source']} → {e['target']}" for e in given if e["target"] not in closed and _better(e)]
    judged = sum(e["target"] not in closed for e in given)
    said = [
        f"With all its heads, the model of {task} {why}, so no transfer to it can be told."
        for task, why in sorted(closed.items())
    ]
    if judged:
        none = "none differs significantly from random masks"
        told = f"better than random masks: {', '.join(better)}" if better else none
        said.insert(0, f"Of {judged} masks given to another task, {told}.")
    return " ".join(said)


def _no_better(e: dict[str, Any]) -> bool:
    return e["constant"] is not None and bool(e["full"] <= e["constant"])


def _better(e: dict[str, Any]) -> bool:
    return e["random_q"] is not None and e["random_q"] < 0.05 and e["value"] > e["random"]


def crossed(cells: Cells, trained: Cells) -> Iterator[str]:
    """How well the costs of single heads agree between two halves of the same data."""
    yield from [
        "Every head off alone, on two halves of the dev split: do the same heads cost something on both? A second "
        "data set of this size can hardly agree better; with more examples the correlation is higher.",
        "",
    ]
    rows = []
    for cell in cells:
        _, encoder, task, _ = cell["cell"].split("-")
        full = " and ".join(three(v) for v in cell["full"])
        rows.append([encoder, link(cell, task), f"{cell['n'] // 2:,} each", full, cell["heads"], *agreement(cell)])
    header = ["encoder", "task", "examples", "all heads", "heads", "rank correlation of the costs", "Pearson's r"]
    header += [f"r without the {n} costliest" for n in COSTLIEST]
    yield from [*table(header, rows), ""]
    (printed,) = find("michel", "fig2_pearson").rows["fig2_pearson"]
    yield from [f"Published (Fig. 2, BERT-base, MNLI matched against mismatched): r = {printed}.", ""]


def agreement(cell: dict[str, Any]) -> list[str]:
    """The rank correlation of the costs with its interval, and Pearson's with and without the costliest heads."""
    one, other = (np.array(half, float).ravel() for half in cell["costs"])
    known = np.isfinite(one) & np.isfinite(other)
    order = np.argsort(-(one + other)[known], kind="stable")
    one, other = one[known][order], other[known][order]
    rank = f"{spearman(one, other):.2f} [{{:.2f}}, {{:.2f}}]".format(*rank_interval(one, other))
    return [
        value.replace("-", "−") for value in (rank, *(f"{pearson(one[n:], other[n:]):.2f}" for n in (0, *COSTLIEST)))
    ]


def boards(cells: Cells, trained: Cells) -> Iterator[str]:
    """Areas of every score, the best first."""
    for cell in cells:
        _, encoder, task, _ = cell["cell"].split("-")
        grades = cell["grades"]
        yield from [
            f"### {encoder} on {task}",
            "",
            f"`headviz grade` on {cell['n']} dev examples: scored on one half, removed on the other, and the reverse. "
            "*Area* is under the balanced accuracy while the lowest heads go first, corrected for chance; *lead* is "
            f"over random orders, *behind* the best score of the table. *Seconds* are of when a score was first "
            f"measured; the areas may be younger. Model {seed_of(cell)}. {link(cell)}",
            "",
        ]
        rows = [
            [
                f"`{g['score']}`",
                f"{g['area']:.3f} [{g['area_low']:.3f}, {g['area_high']:.3f}]".replace("-", "−"),
                "–" if g["score"] == "random" else ends(g["lead"], g["lead_low"], g["lead_high"]),
                _behind(g),
                f"{g['agreement']:+.2f}".replace("-", "−") if g["agreement"] is not None else "–",
                "–" if g["seconds"] is None else f"{g['seconds']:.3f}",
            ]
            for g in grades["scores"]
        ]
        header = ["score", "area", "lead", "behind", "agreement with single ablation", "seconds per example"]
        yield from [*table(header, rows), ""]
        yield from [_best(grades), *_by_layer(grades), ""]
    if cells:
        yield from _all_boards(cells)


def _by_layer(grades: dict[str, Any]) -> Iterator[str]:
    """What is said of a board whose ties were broken by layer."""
    if any(g["score"] == "ablation" and "tied" not in g for g in grades["scores"]):
        best = " It is the best here, so all distances are from it." if grades["best"] == "ablation" else ""
        yield from ["", BY_LAYER + best]


def _behind(grade: dict[str, Any]) -> str:
    """How far behind the best, with its ends."""
    if grade["behind"] is None:
        return "–"
    return f"{grade['behind']:.3f} [{grade['behind_low']:.3f}, {grade['behind_high']:.3f}]".replace("-", "−")


def behind(cells: Cells) -> dict[str, list[dict[str, Any]]]:
    """The grades that every board has, by score, the demo's board first; the smallest largest gap comes first."""
    shipped = recorded()
    assert shipped is not None, "the package came without its board"
    every = [shipped.grades.to_dict()["scores"], *(cell["grades"]["scores"] for cell in cells)]
    maps = [{g["score"]: g for g in grades} for grades in every]
    out = {score: [one[score] for one in maps] for score in maps[0] if all(score in one for one in maps)}
    return dict(sorted(out.items(), key=lambda item: most(item[1])))


def most(grades: Cells) -> float:
    """How far a score is behind the best where that is most."""
    return max(g["behind"] or 0.0 for g in grades)


def _all_boards(cells: Cells) -> Iterator[str]:
    """The scores that every board has, by how far they are behind where that is most."""
    of = behind(cells)
    worst = {score: max(grades, key=lambda g: g["behind"] or 0.0) for score, grades in of.items()}
    names = ["demo", *(" on ".join(cell["cell"].split("-")[1:3]) for cell in cells)]
    least, second, *_ = of
    yield from [
        "### Over all boards",
        "",
        "How far each score is behind the best of its board, with 95 % intervals; – : it is the best. One model each. "
        "The demo's intervals hold for all of its scores at once, over examples and five splits of them ([its own "
        "board](scores.md#on-the-demo)); the others are each by itself, over examples alone. Pictures: what some of "
        "the scores and random orders keep above one class for all; 1 is what the model has with all heads. None of "
        "these boards kept its draws (those to come do), so two scores that are not the best have no interval between "
        "them.",
        "",
        *table(["score", *names, "most"], [[f"`{s}`", *map(_behind, gs), f"{most(gs):.3f}"] for s, gs in of.items()]),
        "",
        *([f"{BY_LAYER} The demo's board is not.", ""] if any(any(_by_layer(c["grades"])) for c in cells) else []),
        f"At worst, `{least}` is {_behind(worst[least])} behind the best of a board; the next, `{second}`, "
        f"{_behind(worst[second])}. {_overlap(worst[least], worst[second])} Runs remove heads by `{TO_PRUNE_BY}` where "
        "no score is named: a convention. The best of each board was picked; intervals that hold for all scores at "
        "once [are to be computed](plan.md) for all boards but the demo's.",
        "",
    ]


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> str:
    apart = one["behind_high"] < other["behind_low"] or other["behind_high"] < one["behind_low"]
    return f"These intervals {'do not ' if apart else ''}overlap."


def _best(grades: dict[str, Any]) -> str:
    ranked = [g for g in grades["scores"] if g["score"] != "random"]
    best = grades["best"]
    equal = [f"`{g['score']}`" for g in ranked if g["behind_low"] is not None and g["behind_low"] <= 0]
    untold = [f"`{g['score']}`" for g in ranked if g["lead_low"] <= 0 <= g["lead_high"]]
    behind = [f"`{g['score']}`" for g in ranked if g["lead_high"] < 0]
    said = f"The largest area has `{best}`"
    said += f"; not significantly different, each by itself: {', '.join(equal)}." if equal else "."
    said += f" Not significantly different from random orders: {', '.join(untold)}." if untold else ""
    return said + (f" Worse than random orders: {', '.join(behind)}." if behind else "")


def gated(cells: Cells, trained: Cells) -> Iterator[str]:
    """How far gates are ahead of the iterative order, at every step."""
    for cell in cells:
        _, encoder, task, _ = cell["cell"].split("-")
        yield from [
            f"### {encoder} on {task}",
            "",
            f"Both learn from {cell['examples']:,} training examples; the same number of heads goes at each step, and "
            f"nothing is retrained. {cell['n']:,} dev examples. In points ahead of {cell['against']}, with 95 % "
            f"intervals over examples; *balanced* is the mean over the classes. {link(cell)}",
            "",
        ]
        metric = cell["metric"]
        for name, leads in cell["ahead"].items():
            rows = [
                [
                    f"{one['sparsity']:.0%}",
                    three(base["metrics"][metric]),
                    three(own["metrics"][metric]),
                    points(*(one[k] for k in ("mean", "low", "high"))),
                    points(*(one["accuracy"][k] for k in ("mean", "low", "high"))),
                ]
                for one, own, base in zip(leads, cell["orders"][name], cell["base"], strict=True)
            ]
            header = ["off", f"{cell['against']}, {metric}", f"`{name}`, {metric}", "balanced", "accuracy"]
            yield from [*table(header, rows), "", _ahead(name, cell["against"], leads), ""]


def _ahead(name: str, against: str, leads: list[dict[str, Any]]) -> str:
    """At how many steps one is ahead of the other, where the interval excludes zero."""
    ahead, behind = sum(one["low"] > 0 for one in leads), sum(one["high"] < 0 for one in leads)
    rest = len(leads) - ahead - behind
    return (
        f"In balanced accuracy `{name}` is ahead of {against} at {ahead} of {len(leads)} sparsities, behind at "
        f"{behind}; at {rest} the difference is not significant."
    )

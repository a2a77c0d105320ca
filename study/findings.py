"""docs/findings.md: what the study shows, on one page, with every figure from the cells.

python -m study.findings      # writes docs/findings.md
"""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import combinations
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from headviz.analyses.grades import RANDOM, recorded
from headviz.answers.metrics import metric_title
from headviz.extras.tickets.published import published
from headviz.statistics.resampling import spearman
from study import controls
from study.leads import AT_ONCE, DEV
from study.models import FOLDERS, RESULTS
from study.page import TWINS, beside, read, told
from study.page_pruned import range_lead, range_of
from study.page_retrained import ahead, tickets
from study.page_seeds import masks_at, shared_heads
from study.page_shared import agreement, behind
from study.tables import joined, over_seeds, points, table

TARGET = Path(__file__).resolve().parents[1] / "docs" / "findings.md"
TASKS = {"sst2": "SST-2", "mrpc": "MRPC", "cola": "CoLA"}
SEEDS = range(3)
OFF = 0.58  # of the heads: the step at which sets are compared
Cells = dict[str, dict[str, Any]]

PAGE = """\
# Findings

**Encoders: two sentence encoders, MiniLM (6×12 heads) and MPNet (12×12), trained by contrast for whole sentences and
fine-tuned here with a new pooler and classifier: not masked-language models like the papers' BERT. The tasks are
small.** Every figure comes from [the study](../study/results.md), which has the commands and all others.

Words: a *score* gives each head a number, and heads are removed in its *order*, lowest first. *Gates* learn a switch
for each head; *Taylor* is the gradient of the loss by such a switch (Michel et al. 2019); the *thesis's score* is the
rank correlation of attention and conductance, which is what an attention weight contributes to the answer (diploma
thesis, 2024). *Points* are of balanced accuracy: always answering one class scores 50 %. Brackets are 95 % intervals.

## 1. Without retraining, learned gates beat random orders on CoLA{gates_sst2}

Points ahead of random orders, the mean from 10 to 88 % of MiniLM's heads off, three models on each task:

{leads}

How sure: uncorrected, these beat random orders: {alone}. Corrected for the three tasks of a score (Bonferroni):
{at_once}. The three random orders are the same for all tasks. Gates beat Taylor on {gates_over_taylor}: over three
models, on these dev examples alone, and not at equal time: for 100 examples gates take {times} times as long. Over
gates, on the demo: Taylor {taylor_at_equal_time} points of area in
[as much time](../study/controls.md#as-much-time-as-gates-have), `gim` {gim_on_few} on 100 examples.
[Orders](../study/results.md#e2-heads-removed-without-retraining)

{picture_cola}

## 2. By the thesis's score two seeds share more removed heads than chance; without retraining no lead is shown

The share of the removed heads that two seeds have in common, with {off} of MiniLM's heads off (chance:
{off}):

{shared}

How sure: three models on each task, heads scored once. What two random sets share has a standard deviation of {sd}
points, so these means of three pairs are {above} standard deviations above chance. Taylor ({shared_taylor}) and gates
({shared_gates}) are as alike. For its lead see finding 1; retrained (finding 4), it has one. The thesis's BERT-base
with 70 % off (Table 6.3) is near one class for all: {published}.
[Seeds](../study/results.md#do-seeds-remove-the-same-heads)

## 3. After fine-tuning, seeds rank heads by agreement more alike; agreement is not larger in size

Agreement is the thesis's score: the rank correlation of where a head looks with what contributes. How alike two seeds
rank the heads by it (mean rank correlation over the pairs of five seeds), and the mean of its size over the heads:

{agreement}

How sure: five seeds of each. Counted with its sign, the mean rises by {signed}. *Before* has a fresh classifier, so it
explains an answer that means nothing yet. Two tasks of one encoder are less alike: {across}, by pair of tasks.
[Agreement](../study/results.md#e1-agreement-before-and-after-fine-tuning)

## 4. After retraining on MRPC, Taylor and the thesis's score beat random orders

Heads of MiniLM are removed before fine-tuning. Points ahead of random orders, the mean of six sizes:

{retrained}

How sure: each of three seeds has one random order and one training; gates have their own trainings. Intervals are over
these three, on these dev examples, uncorrected.
[Retrained](../study/results.md#minilm-on-mrpc-trained-again)

{picture_mrpc}

## 5. On WNLI the criterion of a winning ticket rewards forgetting the task

A setting (an order, also a random one, and a size; {networks} networks of MiniLM) passes where its mean plus one
standard deviation reaches the mean with all heads. Right answers:

{tickets}

How sure: as arithmetic, certain; WNLI may have tickets or not.
[WNLI](../study/results.md#minilm-on-wnli-trained-again)

## 6. Accuracy on some hundred examples ties nearly all heads, and shows few of them to be missed

Cost of a head: what the metric loses without it, on the whole dev split. *Missed*: significantly worse with that head
alone off (5 %, corrected for all heads by Holm's method), one number for each model:

{ties}

How sure: the counts are exact, of the model of seed 0. Small costs are not excluded. On two sets of 1,000 examples of
MNLI the costs of MiniLM's heads have a rank correlation of {halves}; Pearson's r is {pearson}, without the four
costliest heads {pearson_without}. [Single
heads](../study/results.md#m-michel-et-al-head-by-head)

## 7. On four models three different scores come first; that they differ is not shown

The first of {scores} scores, and how many others are not significantly worse, in five splits of the examples:

{boards}

How sure: one model each. The real encoders have one split, and no interval for all scores at once; scores of equal
worth would differ, too. `ablation` is left out for the real encoders, where heads that tie went layer by layer.
`headviz grade` compares scores on your model, for all at once.
[Boards](../study/results.md#over-all-boards), [the demo's](../study/scores.md)

## Elsewhere

[Distillation](../study/distillation.md) · [every algorithm on the demo](../study/demo_pruning.md) · [masks, maps and
controls on the demo](../study/controls.md) · [planted heads](../study/planted.md) · [patching](../study/causal.md)"""


def page(cells: Cells) -> str:
    once = {
        (score, task): [cells[f"prune-minilm-{task}-{seed}-one-importance-{score}"] for seed in SEEDS]
        for score in ("gates", "taylor", "thesis-2024")
        for task in TASKS
    }
    of_mrpc = {
        score: [cells[f"retrain-minilm-mrpc-{seed}-one-shot-isp-{score}"] for seed in SEEDS]
        for score in ("taylor", "thesis-2024", "gates")
    }
    return wrapped(
        PAGE.format(
            off=percent(OFF),
            picture_cola=picture("prune-minilm-cola-lead"),
            picture_mrpc=picture("retrain-minilm-mrpc-lead"),
            **_leads(once),
            **_equal_time(),
            **_thesis(once),
            **_agreement(cells),
            retrained="\n".join(
                table(["Taylor", "thesis's score", "gates"], [[_sizes(of) for of in of_mrpc.values()]])
            ),
            **_wnli(cells),
            **_single(cells),
            **_boards(cells),
        )
    )


def _leads(once: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, str]:
    names = {"gates": "gates", "taylor": "Taylor", "thesis-2024": "thesis's score"}
    single = {key: range_lead(own) for key, own in once.items()}
    together = {key: range_lead(own, AT_ONCE) for key, own in once.items()}
    means = {key: np.array([np.mean([a["mean"] for a in range_of(c)]) for c in own]) for key, own in once.items()}
    more = {task: over_seeds(means["gates", task] - means["taylor", task]) for task in TASKS}
    better = [f"{TASKS[task]} alone, by {points(*of)}" for task, of in more.items() if (of[1] or 0) > 0]
    return {
        "leads": "\n".join(
            table(
                ["order", *TASKS.values()],
                [[name, *(points(*single[score, task]) for task in TASKS)] for score, name in names.items()],
            )
        ),
        "alone": _beating(single, names),
        "at_once": _beating(together, names),
        "gates_sst2": "; on SST-2 only before correcting for three tasks"
        if single["gates", "sst2"][1] > 0 >= together["gates", "sst2"][1]
        else "",
        "gates_over_taylor": " and ".join(better) or "no task",
    }


def _equal_time() -> dict[str, str]:
    """Leads over gates on the demo: of Taylor on as many examples as their time pays for, of gim on as few as gates."""
    leads = json.loads(controls.FILE.read_text(encoding="utf-8"))["equal_time"]["leads"]
    told = {"taylor_at_equal_time": "taylor, equal time", "gim_on_few": "gim"}
    return {key: controls.told(leads[name]["gates"]) for key, name in told.items()}


def _beating(leads: dict[tuple[str, str], tuple[float, float, float]], names: dict[str, str]) -> str:
    parts = []
    for score, name in names.items():
        tasks = [TASKS[task] for task in TASKS if leads[score, task][1] > 0]
        parts.append(f"{name} on {joined(tasks) if tasks else 'none'}")
    return ", ".join(parts)


def _thesis(once: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, str]:
    alike = {
        score: [
            float(np.mean([shared_heads(a, b) for a, b in combinations(masks_at(once[score, task], OFF), 2)]))
            for task in TASKS
        ]
        for score in ("thesis-2024", "taylor", "gates")
    }
    printed = published("pruned")
    by_task = dict(zip(printed.rows["method"], printed.rows["thesis metric"], strict=True))
    masks = [mask for task in TASKS for mask in masks_at(once["thesis-2024", task], OFF)]
    (off,), (heads,) = ({len(of(mask)) for mask in masks} for of in (lambda m: m.off, lambda m: [*m.off, *m.kept]))
    sd = float(hypergeom(heads, off, off).std()) / off
    # what each two of three random sets share is uncorrelated
    above = [(share - off / heads) / (sd / 3**0.5) for share in alike["thesis-2024"]]
    return {
        "shared": "\n".join(table([*TASKS.values()], [[percent(share) for share in alike["thesis-2024"]]])),
        **{f"shared_{s}": f"{100 * min(alike[s]):.0f} to {percent(max(alike[s]))}" for s in ("taylor", "gates")},
        "sd": f"{100 * sd:.1f}",
        "above": f"{min(above):.1f} to {max(above):.1f}",
        "published": ", ".join(
            f"{by_task[task].removeprefix('0')} on {task} ({_constants(task)})" for task in ("MRPC", "QNLI", "MNLI")
        ),
    }


def _constants(task: str) -> str:
    """The accuracies that each class for all answers has on a task's dev split."""
    counts = sorted(DEV[task.lower()].values())
    return joined([f"{count / sum(counts):.3f}".removeprefix("0") for count in counts], "or")


def _agreement(cells: Cells) -> dict[str, str]:
    rows, across, after, rises = [], [], {}, []
    for encoder, name in (("minilm", "MiniLM"), ("mpnet", "MPNet")):
        for task, title in TASKS.items():
            own = [cells[f"agree-{encoder}-{task}-{seed}"] for seed in range(5)]
            grids = {side: [np.ravel(c["grids"][side]) for c in own] for side in ("before", "after")}
            after[encoder, task] = grids["after"]
            alike = [np.mean([spearman(a, b) for a, b in combinations(grids[side], 2)]) for side in grids]
            size = [np.mean([c[side]["absolute"] for c in own]) for side in grids]
            rises.append(np.mean([c["after"]["signed"] - c["before"]["signed"] for c in own]))
            rows.append([name, title, *(f"{v:.2f}".replace("-", "−") for v in alike), *(f"{v:.3f}" for v in size)])
    for (e, one), (f, other) in combinations(after, 2):
        if e == f:
            across.append(np.mean([spearman(a, b) for a in after[e, one] for b in after[f, other]]))
    header = ["encoder", "task", "two seeds, before", "two seeds, after", "mean size, before", "mean size, after"]
    return {
        "agreement": "\n".join(table(header, rows)),
        "signed": f"{min(rises):.3f} to {max(rises):.3f}",
        "across": f"{min(across):.2f} to {max(across):.2f}".replace("-", "−"),
    }


def _sizes(own: list[dict[str, Any]]) -> str:
    return points(*over_seeds(np.array([ahead(c).mean() for c in own])))


def _wnli(cells: Cells) -> dict[str, str]:
    own = [c for name, c in cells.items() if name.startswith("retrain-minilm-wnli")]
    won = tickets(own)
    assert all(won), "not every network is a ticket: the heading of finding 5 does not hold"
    full = [c["full"]["accuracy"] for c in own]
    printed = published("tickets")
    column = printed.rows["row"].index(FOLDERS["wnli"])
    values = {row[column] for name, row in printed.rows.items() if name.endswith(" ticket") and row[column]}
    here = [
        f"{min(full):.3f} to {max(full):.3f}".replace("0.", "."),
        f"{own[0]['steps'][0]['constant']['accuracy']:.3f}".removeprefix("0"),
        f"{sum(won)} of {len(won)}",
    ]
    theirs = [f"{value} %" for value in (printed.rows["full BERT-base"][column], joined(sorted(values)))]
    header = ["all heads", "one class for all", "settings that pass", "published: all heads", "published: tickets"]
    return {"networks": str(sum(len(c["steps"]) for c in own)), "tickets": "\n".join(table(header, [[*here, *theirs]]))}


def _single(cells: Cells) -> dict[str, str]:
    rows = []
    for encoder, name, seeds in (("minilm", "MiniLM", SEEDS), ("mpnet", "MPNet", [0])):
        for task, title in TASKS.items():
            own = [cells[key] for seed in seeds if (key := f"michel-{encoder}-{task}-{seed}") in cells]
            if own:
                values = np.round(np.ravel(own[0]["cost"]), 6)
                counts = np.unique(values, return_counts=True)[1]
                missed = ", ".join(str(told(cell)[1]) for cell in own)
                found = [str(n) for n in (len(values), len(counts), counts[counts > 1].sum())]
                rows.append([name, title, metric_title(own[0]["metric"]), f"{own[0]['n']:,}", *found, missed])
    cross = agreement(cells["cross-minilm-mnli-0"])
    header = ["encoder", "task", "metric", "examples", "heads", "different costs", "tie with another", "missed"]
    return {
        "ties": "\n".join(table(header, rows)),
        "halves": cross[0],
        "pearson": cross[1],
        "pearson_without": cross[-1],
    }


def _boards(cells: Cells) -> dict[str, str]:
    result = [cells[f"board-{name}-0"] for name in ("minilm-sst2", "minilm-mrpc", "mpnet-mrpc")]
    grades, shipped = behind(result), recorded()
    assert shipped is not None, "the package came without its board"
    assert shipped.grades.splits == 5
    own = [g for g in shipped.grades if g.score != RANDOM]
    names = ["the demo", "MiniLM on SST-2", "MiniLM on MRPC", "MPNet on MRPC"]
    level = f"{sum(g.behind is not None and g.behind_low <= 0 for g in own)} of {len(own) - 1}"
    rows = [
        ["first", *(f"`{_best(grades, at)}`" for at in range(len(names)))],
        ["not significantly worse", level, *["–"] * len(result)],
    ]
    times = [
        of["gates"]["seconds"] / of["taylor"]["seconds"]
        for of in ({g["score"]: g for g in cell["grades"]["scores"]} for cell in result)
    ]
    return {
        "scores": str(len(grades) - 1),
        "boards": "\n".join(table(["", *names], rows)),
        "times": f"{min(times):.0f} to {max(times):.0f}",
    }


def _best(grades: dict[str, list[dict[str, Any]]], at: int) -> str:
    """The best score of a board; of one whose ties went by layer without ``ablation``."""
    valid = [score for score, of in grades.items() if score != "ablation" or "tied" in of[at]]
    return min(valid, key=lambda score: grades[score][at]["behind"] or 0.0)


def picture(name: str) -> str:
    (title,) = re.findall(r"<title>(.*?)</title>", (RESULTS / f"{name}.svg").read_text(encoding="utf-8"))
    return f"![{unescape(title)}](../study/results/{name}.svg)"


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def wrapped(text: str) -> str:
    """Paragraphs of at most 120 characters a line; tables, pictures and headings as they are."""

    def lines(part: str) -> str:
        return part if part[:1] in "|#!" else fill(part, 120, break_long_words=False, break_on_hyphens=False)

    return "\n\n".join(map(lines, text.split("\n\n"))) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(beside(read(), read(TWINS))), encoding="utf-8")

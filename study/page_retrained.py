"""The part of study/results.md about networks that were pruned and then trained: E3, and E4, winning tickets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headviz.evaluation.verdict import MARGIN
from headviz.extras.tickets.published import published
from headviz.extras.tickets.winning import Ticket, false_win_rate, highest_within, ticket
from headviz.pruning import ALGORITHMS
from headviz.statistics.intervals import mean_and_sd
from study.models import FOLDERS
from study.orders import AGAINST
from study.tables import (
    Cells,
    by_model,
    floor_of,
    full_of,
    known,
    links,
    no_better,
    one_class,
    over_seeds,
    points,
    table,
    three,
)

THE_SAME = {"isp": "ISP, IGSPP"}  # at the sizes of ISP's rounds
INTRODUCTION = """\
The pre-trained encoder without some heads, fine-tuned like the whole one. Each seed, with primes or
without, has its own fine-tuned model to score, random order and trainings, and a sample of 300 examples; its model with
all heads is the same training without a head removed. On MiniLM the sparsities are those that ISP reaches by removing
30 % of the remaining heads at each round, and there IGSPP is ISP. Pictures are of one-shot ISP: means over the seeds,
with one sd above and below; a dot stands where the lead over the seed's random order is significantly different from
zero, at this size alone."""


CHANGE = """\
Change against all heads, in points: with one seed the paired 95 % interval over examples, with several the mean and its
t interval over seeds."""


def retrained(cells: Cells, trained: Cells) -> Iterator[str]:
    yield from [INTRODUCTION, ""]
    for encoder, task, group in by_model(cells):
        ways: dict[tuple[str, str], Cells] = {}
        for cell in sorted(group, key=lambda c: ([*ALGORITHMS].index(c["algorithm"]), c["score"])):
            ways.setdefault((cell["algorithm"], cell["score"]), []).append(cell)
        yield from _task(encoder, task, group, ways)


def _task(encoder: str, task: str, group: Cells, ways: dict[tuple[str, str], Cells]) -> Iterator[str]:
    metric, first = group[0]["metric"], group[0]["steps"]
    floor = floor_of(group[0])
    known = "" if floor is None else f" One class for all answers: {floor:.3f}."
    yield from [f"### {encoder} on {task}, trained again", ""]
    yield from [f"{metric} over {group[0]['n']:,} dev examples. With all heads: {_full(group)}.{known}", ""]
    shares = [f"{step['sparsity']:.0%} off" for step in first]
    rows, changes, leads, against = [], [], [], []
    for way, own in ways.items():
        tickets = [_ticket(own, at, metric) for at in range(len(first))]
        best = highest_within(tickets)
        safe = "–" if best is None else f"{best.sparsity:.0%}"
        values = [_value(own, at, metric, won) for at, won in enumerate(tickets)]
        rows.append([_name(*way), links(own), *values, safe])
        changes.append([_name(*way), len(own), *(_change(own, at, metric) for at in range(len(first)))])
        if way[1] != "random":
            leads.append([_name(*way), len(own), *_leads([ahead(c) for c in own], own)])
            base = {c["digest"]: c for c in ways.get((way[0], AGAINST), []) if way[1] != AGAINST}
            both = [c for c in own if c["digest"] in base]
            if both:
                than = [ahead(c) - ahead(base[c["digest"]]) for c in both]
                against.append([_name(*way), len(both), *_leads(than)])
    within = f"within {MARGIN:g} points"
    yield from [*table(["algorithm, score", "seeds", *shares, within], rows), ""]
    yield from _stars({len(own) for own in ways.values()})
    header = ["algorithm, score", "seeds", *shares]
    yield from [CHANGE, "", *table(header, changes), ""]
    if no_better(group):
        yield from [
            "No model with all heads is better than one class for all answers. So a network that has forgotten the "
            "task wins here, and no order of heads can be told from another.",
            "",
        ]
    elif leads:
        yield from [
            "Balanced accuracy ahead of the seed's one random order, in points, with intervals as above. Each is for "
            "one size; the last column is the mean of all sizes, one number for each seed.",
            "",
            *table([*header, "all sizes"], leads),
            "",
        ]
        if against:
            yield from [
                f"Ahead of the thesis's score (`{AGAINST}`) on the same models, by seed:",
                "",
                *table([*header, "all sizes"], against),
                "",
            ]
    yield from _published(task)


def _name(algorithm: str, score: str) -> str:
    return f"{THE_SAME.get(algorithm, ALGORITHMS[algorithm].title)}, `{score}`"


def full_by_model(group: Cells) -> dict[str, float]:
    """The metric of the models with all heads, those of one seed that were trained apart each."""
    return {c["digest"]: full_of(c, c["metric"]) for c in group}


def _ticket(own: Cells, at: int, metric: str) -> Ticket:
    full, pruned = [full_of(c, metric) for c in own], [known(c["steps"][at], metric) for c in own]
    return ticket(own[0]["steps"][at]["sparsity"], full, pruned, metric=metric)


def tickets(group: Cells) -> list[bool]:
    """Of every algorithm, score and size of these cells: whether the networks are winning tickets."""
    ways: dict[tuple[str, str], Cells] = {}
    for cell in group:
        ways.setdefault((cell["algorithm"], cell["score"]), []).append(cell)
    every = (_ticket(own, at, own[0]["metric"]) for own in ways.values() for at in range(len(own[0]["steps"])))
    return [one.winning for one in every]


def _value(own: Cells, at: int, metric: str, won: Ticket) -> str:
    steps = [c["steps"][at] for c in own]
    return _spread([known(s, metric) for s in steps]) + (" *" if won.winning else "") + one_class(steps)


def _change(own: Cells, at: int, metric: str) -> str:
    steps = [c["steps"][at] for c in own]
    if len(own) == 1:
        one = steps[0]["deltas"][metric]
        return points(*(one[k] for k in ("delta", "low", "high")))
    return points(
        *over_seeds(np.array([known(s, metric) - full_of(c, metric) for c, s in zip(own, steps, strict=True)]))
    )


def _full(group: Cells) -> str:
    """Over seeds; trainings of one seed are one model trained again, so their mean counts once."""
    seeds, trained = {c["digest"]: c["seed"] for c in group}, full_by_model(group)
    means = [np.mean([v for k, v in trained.items() if seeds[k] == seed]) for seed in sorted({*seeds.values()})]
    again = f", {len(trained)} trainings" if len(trained) > len(means) else ""
    return _spread([float(m) for m in means]) + (f" over {len(means)} seeds{again}" if len(trained) > 1 else "")


def _spread(values: list[float]) -> str:
    mean, sd = mean_and_sd(values)
    return three(mean) if sd is None else f"{mean:.3f} ± {sd:.3f}"


def _stars(seeds: set[int]) -> Iterator[str]:
    rates = {n: false_win_rate(n) for n in sorted(seeds)}
    told = [f"{rate:.0%} with {n} seeds" for n, rate in rates.items() if rate is not None]
    if told:
        yield from [
            "A star: a winning ticket by the thesis's criterion, the mean with all heads at most the pruned mean plus "
            f"one sd. It lets a true loss of one sd pass: {', '.join(told)}. *Within {MARGIN:g} points*: the highest "
            "share off up to which a larger loss is excluded (paired t test over seeds, one-sided at 5 %).",
            "",
        ]
    if 1 in seeds:
        yield from ["One seed has no sd, so it is no ticket.", ""]


def ahead(cell: dict[str, Any]) -> np.ndarray:
    return np.array([at["mean"] for at in cell["ahead"]])


def _leads(leads: list[np.ndarray], own: Cells | None = None) -> Iterator[str]:
    """By size, and of all sizes. With one seed the interval is over examples, where ``own`` has one."""
    for at in range(len(leads[0])):
        if len(leads) == 1:
            one = own[0]["ahead"][at] if own else {"mean": leads[0][at]}
            yield points(*(one.get(k) for k in ("mean", "low", "high")))
        else:
            yield points(*over_seeds(np.array([a[at] for a in leads])))
    means = np.array([a.mean() for a in leads])
    yield points(float(means[0]), None, None) if len(leads) == 1 else points(*over_seeds(means))


def _published(task: str) -> Iterator[str]:
    """The thesis's figures for BERT-base on this task."""
    tickets, lottery = published("tickets"), published("lottery")
    for what, rows, head in (
        ("6.2, winning tickets, %", tickets.rows, "row"),
        ("6.4, 80 % off", lottery.rows, "method"),
    ):
        if FOLDERS[task] in rows[head]:
            column = rows[head].index(FOLDERS[task])
            printed = {name: row[column] for name, row in rows.items() if name != head and row[column]}
            told = ", ".join(f"{name} {value}" for name, value in printed.items())
            yield from [f"Published for BERT-base (thesis, Table {what}): {told}.", ""]

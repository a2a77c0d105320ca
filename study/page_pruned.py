"""The part of study/results.md about heads removed without retraining: E2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from headviz.extras.tickets.published import published
from headviz.pruning import ALGORITHMS
from study.leads import LEVEL, balanced, lead, lead_over_range
from study.models import FOLDERS
from study.orders import AGAINST, AHEAD_IN, PRICES
from study.page_seeds import same_heads, same_over_scores
from study.tables import (
    by_layer,
    by_model,
    by_order,
    floor_of,
    full_of,
    links,
    no_better,
    one_class,
    over_seeds,
    points,
    seed_of,
    steps_at,
    table,
    told_apart,
    value_of,
    where,
    whole,
)

FEW = 3  # models below which the range is not told, nor what is ahead of the thesis's score
INNER = (0.05, 0.9)  # the steps of the range, 10 to 88 % off
SHARES = (0.3, 0.5, 0.7, 0.9)  # the columns of a table: the first step at least so far
BY_ORDERS = f"""\
Heads are scored on 300 training examples, and 7 of 72 (14 of 144) go at each step. Matthews of one class for all
answers counts as 0. Tables have four of the steps, the sentences below them all. Pictures are of heads scored once, the
mean over the models; the grey band goes from the lowest to the highest of the random orders, each the mean over the
models. A dot stands where the lead is significantly different from zero, at this step alone. A curve begins at its own
models with all heads; where these have other primes than those of the random orders, compare leads.

*Ahead* is in points of balanced accuracy, the mean over the classes: there one class for all is chance, and in plain
accuracy it would be ahead of a model that still tells some apart. Each 95 % interval is for one step, not for all of
them together.

- Ahead of random orders: the mean over models, with an interval over models, orders and examples
  ([how often it holds](../bench/coverage.md#leads-of-an-order-over-random-ones)); with one model it is about that
  model alone. The orders are the same for every score
  (in cells of before 30 November 2026 for every model and task, too). With three models the interval is wide: *not
  significant* does not mean equal.
- Ahead of the thesis's score (`{AGAINST}`), on the same models, scored once: no random order is in it. The t interval
  is over models, on these dev examples.
- Over the whole range: the mean of the steps from 10 to 88 % off, so nothing is chosen among steps. Its interval is
  over models, random orders and examples. Steps share their examples, and their errors are taken to go together
  wholly, which gives the widest interval. What rescoring adds is by seed, also where the primes differ: then it is
  of two trainings. Its t interval is over seeds, on these dev examples.

Each cell is compared with random orders on its own weights; where its seed has primes, these may be in `results/twins`.
Rows with other primes are of other trainings: compare their leads, not their values.

`ablation` gives many heads the same score. Scored once, it is the mean over ten drawn orders of heads that tie; in
brackets are the lowest and the highest, each the mean over the models. Masks, and what is scored again at each step,
are of one drawn order. *Ties by layer*: in these cells heads that tie went in the order of their layers, so the figures
do not hold. No sentence, no range and no picture has them."""


def pruned(cells: list[dict[str, Any]], trained: list[dict[str, Any]]) -> Iterator[str]:
    yield from [BY_ORDERS, ""]
    for encoder, task, group in by_model(cells):
        yield from _task(encoder, task, group)
    yield from same_heads(cells)
    yield from same_over_scores(cells)


def _task(encoder: str, task: str, group: list[dict[str, Any]]) -> Iterator[str]:
    first = max(group, key=lambda cell: len(cell["ahead"]))
    metric, places = first["metric"], [_place(first, share) for share in SHARES]
    yield from [f"### {encoder} on {task}", ""]
    full = {(where(c)[2], seed_of(c)): full_of(c, metric) for c in group}
    values = ", ".join(f"{value:.3f} ({seed})" for (_, seed), value in sorted(full.items()))
    floor = floor_of(first)
    known = "" if floor is None else f"; one class for all answers: {floor:.3f}"
    yield from [f"{metric} over {first['n']:,} dev examples. All heads, by seed: {values}{known}.", ""]
    if no_better(group):
        yield from ["No model is better than one class for all, so no order can be told from another here.", ""]
    steps = [f"{one['sparsity']:.0%}" for one in first["ahead"]]
    shares = [f"{steps[at]} off" for at in places]
    rows, leads, said = [], [], []
    for algorithm, choice, layered in product(("one-importance", "iterative"), PRICES, (False, True)):
        own = [c for c in group if (c["algorithm"], c["score"], by_layer(c)) == (algorithm, choice, layered)]
        if own:
            name = f"{ALGORITHMS[algorithm].title}, `{choice}`"
            if not all(map(whole, own)):
                name += f", stopped at {steps[reached(own)[-1]]} off"
            if layered:
                name += ", ties by layer"
            rows.append([name, links(own), *(_cell(own, at, metric) for at in places)])
            if choice != "random":
                beside = [c for c in own if comparable(c)]
                ahead = leads_of(beside, task, reached(beside))
                if ahead:
                    values = [points(*ahead[at]) if at < len(ahead) else "–" for at in places]
                    leads.append([name, _seeds(beside), *values])
                    if not layered:
                        said.append(f"{name}: {_verdict(ahead, steps[: len(ahead)], 'random')}")
    yield from [*table(["order", "models", *shares], rows), ""]
    thesis = published("pruned")
    if FOLDERS[task] in thesis.rows["method"]:
        column = thesis.rows["method"].index(FOLDERS[task])
        told = ", ".join(f"{name} {row[column]}" for name, row in thesis.rows.items() if name != "method")
        one = group[0]["steps"][0]["constant"].get(metric, 0.0)
        other = f", or {1 - one:.3f}" if metric == "accuracy" else ""  # of two classes, as all tasks that are in both
        constant = f"One class for all has {one:.3f} here{other}"
        yield from [f"Published, with 70 % of BERT-base's heads off (thesis, Table 6.3): {told}. {constant}.", ""]
    if leads and not no_better(group):
        count = next(_orders(c) for c in group if comparable(c))
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
    """One number for each model and order, and what rescoring at each step adds to it, by seed."""
    rows = []
    for choice in PRICES:
        of = [c for c in group if c["score"] == choice != "random" and comparable(c) and whole(c) and not by_layer(c)]
        once, anew = ([c for c in of if c["algorithm"] == way] for way in ("one-importance", "iterative"))
        before, after = (
            {where(c)[2]: float(np.mean([a["mean"] for a in range_of(c)])) for c in own} for own in (once, anew)
        )
        more = np.array([after[seed] - before[seed] for seed in sorted(before.keys() & after.keys())])
        if max(len(once), len(anew)) >= FEW:
            added = points(*over_seeds(more)) if len(more) >= FEW else "–"
            ahead = [points(*range_lead(own)) if len(own) >= FEW else "–" for own in (once, anew)]
            rows.append([f"`{choice}`", *ahead, added])
    if rows:
        header = ["score", "One importance", "Iterative", "what rescoring adds"]
        yield from ["Ahead of random orders over the whole range:", "", *table(header, rows), ""]


def range_of(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """The leads of the steps of the range."""
    low, high = INNER
    return [a for a in cell["ahead"] if low < a["sparsity"] < high]


def range_lead(own: list[dict[str, Any]], level: float = LEVEL) -> tuple[float, float, float]:
    """How far these cells are ahead of random orders over the range, in the mean over models."""
    (low, high), (_, task, _) = INNER, where(own[0])
    orders = []
    for cell in own:
        of = by_order([cell["of random"]], lambda step: balanced(step, task))
        orders.append([[value for (value,) in at.values()] for share, at in of.items() if low < share < high])
    return lead_over_range([range_of(c) for c in own], np.array(orders), own[0]["n"], level)


def _seeds(cells: list[dict[str, Any]]) -> str:
    return " ".join(seed_of(cell) for cell in cells)


def _beside(group: list[dict[str, Any]], task: str, places: list[int], steps: list[str]) -> Iterator[str]:
    """Every score against the thesis's, model by model."""
    rows, said = [], []
    for score in PRICES:
        own = [c for c in group if (c["algorithm"], c["score"]) == ("one-importance", score)]
        own = [c for c in own if c["of thesis"] and whole(c) and whole(c["of thesis"]) and not by_layer(c)]
        if len(own) < FEW or score in ("random", AGAINST):
            continue
        both = [[np.array([balanced(s, task) for s in of["steps"]]) for of in (c, c["of thesis"])] for c in own]
        ahead = [over_seeds(at) for at in np.array([one - base for one, base in both]).T]
        rows.append([f"`{score}`", _seeds(own), *(points(*ahead[at]) for at in places)])
        said.append(f"- `{score}`: {_verdict(ahead, steps, 'it')}")
    if rows:
        header = ["score", "models", *(f"{steps[at]} off" for at in places)]
        yield from ["Ahead of the thesis's score:", "", *table(header, rows), "", *said, ""]


def comparable(cell: dict[str, Any]) -> bool:
    """Whether the random orders that it was compared with are there, in the same measure."""
    return bool(cell["of random"] and cell.get("ahead_in") == AHEAD_IN)


def draws_of(cell: dict[str, Any]) -> frozenset[int]:
    """The seeds of the random orders that a cell was compared with."""
    return frozenset(cell.get("draws", range(_orders(cell))))


def reached(own: list[dict[str, Any]]) -> range:
    """The steps that all of these cells have, by place."""
    return range(min((len(cell["ahead"]) for cell in own), default=0))


def leads_of(own: list[dict[str, Any]], task: str, places: Sequence[int]) -> list[tuple[float, float, float]]:
    """By place: how far these cells are ahead of the random orders on the same models."""
    rows = []
    for at in places if own else ():
        share = own[0]["ahead"][at]["sparsity"]
        orders = [[balanced(s, task) for s in steps_at([c["of random"]], share)] for c in own]
        rows.append(lead([c["ahead"][at] for c in own], np.array(orders), own[0]["n"]))
    return rows


def _orders(cell: dict[str, Any]) -> int:
    """How many random orders its model had."""
    return int(cell.get("orders", 3))


def _verdict(ahead: Sequence[tuple[float, float | None, float | None]], steps: list[str], other: str) -> str:
    """At which steps the interval lies on one side of zero."""
    parts: dict[str, list[str]] = {f"ahead of {other}": [], f"behind {other}": []}
    for (mean, low, high), step in zip(ahead, steps, strict=True):
        if told_apart(low, high):
            parts[f"{'ahead of' if mean > 0 else 'behind'} {other}"].append(step)
    told = [f"{what} with {', '.join(where)} off" for what, where in parts.items() if where]
    if sum(map(len, parts.values())) < len(steps):
        told.append(f"not significantly different from {other} at {'the other steps' if told else 'any step'}")
    return "; ".join(told) + "."


def _place(cell: dict[str, Any], share: float) -> int:
    """The first step at which at least so many heads are off, by place."""
    reached = [i for i, one in enumerate(cell["ahead"]) if one["sparsity"] >= share - 1e-9]
    return reached[0] if reached else len(cell["ahead"]) - 1


def _cell(own: list[dict[str, Any]], at: int, metric: str) -> str:
    """Mean over models and, for random, over orders. A star where nearly all answers are one class."""
    steps = [s for c in own for s in steps_at([c], c["ahead"][at]["sparsity"])] if at in reached(own) else []
    values = [v for s in steps if (v := value_of(s, metric)) is not None]
    if not values:
        return "–"
    ranges = [(of["low"], of["high"]) for s in steps if (of := s.get("over_ties", {}).get(metric))]
    spread = " ({:.3f} to {:.3f})".format(*np.mean(ranges, axis=0)) if 0 < len(ranges) == len(values) else ""
    return f"{np.mean(values):.3f}{spread}{one_class(steps)}"

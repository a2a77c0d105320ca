"""Winning tickets: the pruned and retrained networks that are as good as the full one, over seeds.

winning    trained from the pre-trained weights θ0
matching   the same criterion for any other initialisation
universal  matching on several tasks with the same mask

Criterion: full-model mean ≤ subnetwork mean + subnetwork sd, over seeds, on the task's primary metric. The sd is the
sample's (n − 1); a single seed has none, so nothing follows. ``false_win_rate`` says how often the criterion is wrong;
``margin_test`` is a stricter test.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
import scipy

from ...answers.metrics import continued, remark
from ...display import numbers
from ...errors import OptionError
from ...evaluation.verdict import MARGIN, points_up
from ...pruning.algorithms import ALGORITHMS, retrains
from ...pruning.plan import PruningPlan
from ...pruning.state import State, StepRecord
from ...results import Result
from ...statistics.intervals import mean_and_sd
from ...statistics.significance import LEVEL
from ...tasks import points_in
from .published import ROWS, published

# the columns of the thesis's Table 6.2, in its order
PUBLISHED_TASKS = ("qnli", "qqp", "mrpc", "wnli", "rte", "sst2", "cola")


@dataclass(frozen=True)
class Ticket(Result):
    """One sparsity: the subnetworks of all seeds against the full models of all seeds."""

    sparsity: float
    mean: float
    sd: float | None
    full_mean: float
    full_sd: float | None
    seeds: int
    winning: bool | None  # None = one seed only
    false_win_rate: float | None = None  # how often the criterion passes a true loss of one sd, with so many seeds
    within: MarginTest | None = None  # the test with a margin; None where it cannot be made
    remark: str = ""  # where (nearly) all answers are of one class; a constant answer can win


def wins(full_mean: float, mean: float, sd: float) -> bool:
    """The criterion, on numbers that are not rounded."""
    return full_mean <= mean + sd


def ticket(
    sparsity: float, full: Sequence[float], pruned: Sequence[float], margin: float = MARGIN, metric: str = "accuracy"
) -> Ticket:
    """The criterion and the test with a margin (in points), on one metric of several seeds.

    ``full`` and ``pruned`` are of the same seeds in the same order.
    """
    full_mean, full_sd = mean_and_sd(full)
    mean, sd = mean_and_sd(pruned)
    verdict = None if sd is None else wins(full_mean, mean, sd)
    test = margin_test(full, pruned, margin, metric)
    return Ticket(sparsity, mean, sd, full_mean, full_sd, len(pruned), verdict, false_win_rate(len(pruned)), test)


def tickets(state: State, margin: float = MARGIN) -> list[Ticket]:
    """One ticket per sparsity that every seed has reached; an ``OptionError`` if the run did not retrain."""
    name = str(state.plan["algorithm"])
    if not retrains(name):
        retrain = ", ".join(a.name for a in ALGORITHMS.values() if a.retrains)
        raise OptionError(f"'{name}' does not retrain, so it has no winning tickets. Those that do: {retrain}.")
    if not state.plan["retrain_full"]:
        raise OptionError("This run did not train the full model (retrain_full), which tickets are compared with.")
    metric = next(iter(state.reference.metrics))
    full_records = records_at(state, 0)
    full = values_of(full_records, metric)
    if len(full) < len(full_records):
        return []
    full_remark = one_class(full_records)
    rows = []
    for step, size in enumerate(state.sizes, 1):
        records = records_at(state, step)
        pruned = values_of(records, metric)
        if len(pruned) == len(records):
            share = size / (state.num_layers * state.num_heads)
            remarks = filter(None, (one_class(records), full_remark and f"Full model: {continued(full_remark)}"))
            rows.append(replace(ticket(share, full, pruned, margin, metric), remark=" ".join(remarks)))
    return rows


def records_at(state: State, step: int) -> list[StepRecord | None]:
    """Each seed's record of a step; None for a seed that has not reached it."""
    return [state.record(seed, step) for seed in state.plan["seeds"]]


def values_of(records: Sequence[StepRecord | None], metric: str) -> list[float]:
    """The metric in the records where it is defined. Every record has it, undefined or not: else a ``KeyError``."""
    return [value for r in records if r is not None and (value := r.metrics[metric]) is not None]


def one_class(records: Sequence[StepRecord | None]) -> str:
    """The remark on seeds whose answers are (nearly) all of one class; empty without such a seed."""
    reached = [r for r in records if r is not None]
    remarks = [
        s for r in reached if (s := remark(r.predicted, (r.constant or {}).get("accuracy"), r.metrics.get("accuracy")))
    ]
    if len(reached) == 1:
        return "".join(remarks)
    return " ".join(f"{s.removesuffix('.')} in {n} of {len(reached)} seeds." for s, n in Counter(remarks).items())


def highest_within(rows: Sequence[Ticket]) -> Ticket | None:
    """The highest sparsity within the margin, tested from the lowest upwards until one fails; None without one.

    In this order no further correction is needed for testing several sparsities.
    """
    passed = takewhile(lambda t: t.within is not None and t.within.within, sorted(rows, key=lambda t: t.sparsity))
    return max(passed, key=lambda t: t.sparsity, default=None)


def highest(rows: Sequence[Ticket]) -> Ticket | None:
    """The winning ticket of highest sparsity; None without one."""
    return max((t for t in rows if t.winning), key=lambda t: t.sparsity, default=None)


@dataclass(frozen=True)
class TicketRow(Result):
    """One algorithm on one task, with the published figures (percent, as printed; NaN or empty = none printed)."""

    task: str
    algorithm: str
    score: str
    repair: str
    metric: str
    kind: str  # winning or matching
    lowest: Ticket  # of lowest sparsity: any ticket has the full model's figures
    best: Ticket | None  # of highest sparsity that wins by the criterion
    safe: Ticket | None  # of highest sparsity within the margin
    published: tuple[float, str, str]  # sparsity (a share), ticket, full model

    @property
    def remark(self) -> str:
        """The remark on the answers of the tickets that the row names."""
        named = [t.remark for t in (self.best, self.safe) if t is not None] or [self.lowest.remark]
        return " ".join(dict.fromkeys(filter(None, named)))


def ticket_rows(states: Sequence[State], margin: float = MARGIN) -> list[TicketRow]:
    """The thesis's Table 6.2 from finished runs: per task and algorithm the highest winning sparsity."""
    rows = []
    for state in states:
        by_sparsity = tickets(state, margin)
        if not by_sparsity:
            continue
        task, algorithm = str(state.plan["task"]), str(state.plan["algorithm"])
        rows.append(
            TicketRow(
                task,
                algorithm,
                score_of(state),
                str(state.plan["repair"]),
                next(iter(state.reference.metrics)),
                kind(state),
                by_sparsity[0],
                highest(by_sparsity),
                highest_within(by_sparsity),
                published_cells(task, algorithm) if comparable(state) else (math.nan, "", ""),
            )
        )
    return rows


def kind(state: State) -> str:
    """Winning from the pre-trained weights, matching from any others."""
    return "winning" if state.plan.get("initialisation", "pretrained") == "pretrained" else "matching"


def score_of(state: State) -> str:
    """The score's name, with the scored model if that is not the fine-tuned one."""
    source = state.plan.get("score_source", "fine-tuned")
    return str(state.plan["score"]) + ("" if source == "fine-tuned" else f" ({source})")


def comparable(state: State) -> bool:
    """Whether the run is like the published ones: scores of the fine-tuned model, pre-trained weights."""
    return kind(state) == "winning" and state.plan.get("score_source", "fine-tuned") == "fine-tuned"


def published_cells(task: str, algorithm: str) -> tuple[float, str, str]:
    """The thesis's sparsity (a share), ticket and full model for a cell of its Table 6.2; NaN and '' if not printed."""
    row = ROWS.get(algorithm)
    if row is None or task not in PUBLISHED_TASKS:
        return math.nan, "", ""
    column = PUBLISHED_TASKS.index(task)
    table = published("tickets")
    share = table.numbers(f"sparsity {row}")[column] / 100
    return share, table.rows[f"{row} ticket"][column], table.rows["full BERT-base"][column]


def together(states: Sequence[State]) -> list[State]:
    """One state for each group of states that differ in their seeds only, in the order of first appearance.

    Weights, data and steps must be equal, too. A seed that occurs twice counts once. The result is for reading: do
    not continue a run from it.
    """
    groups: dict[str, list[State]] = {}
    for state in states:
        plan = {k: v for k, v in state.plan.items() if k != "seeds"}
        identity = [plan, state.finetune, state.model_digest, state.data_digest, state.sizes]
        groups.setdefault(json.dumps(identity, sort_keys=True), []).append(state)
    return [_joined(group) for group in groups.values()]


def _joined(group: Sequence[State]) -> State:
    first = group[0]
    seeds = list(first.plan["seeds"])
    choices, records, logits = list(first.choices), list(first.records), dict(first.logits)
    for state in group[1:]:
        new = [s for s in state.plan["seeds"] if s not in seeds]
        seeds += new
        choices += [c for c in state.choices if c.seed in new]
        records += [r for r in state.records if r.seed in new]
        logits |= state.logits
    if len(seeds) == len(first.plan["seeds"]):
        return first
    plan = {**first.plan, "seeds": seeds}
    return dataclasses.replace(
        first,
        plan=plan,
        plan_digest=PruningPlan.from_dict(plan).digest,
        choices=tuple(choices),
        records=tuple(records),
        notes=tuple(dict.fromkeys(n for s in group for n in s.notes)),
        logits=logits,
    )


@dataclass(frozen=True)
class MarginTest(Result):
    """Subnetwork against full model, seed by seed, in points of the metric. None = the seeds cannot tell."""

    margin: float
    difference: float  # mean of subnetwork − full model
    excludes: float | None  # losses above this are excluded, one-sided at 95 %; at least 0
    p: float | None  # of the hypothesis that the subnetwork is worse by the margin or more
    within: bool | None  # worse by less than the margin, at the 5 % level


def false_win_rate(seeds: int, loss: float = 1.0) -> float | None:
    """How often the criterion passes a subnetwork whose true mean lies ``loss`` standard deviations below.

    For independent trainings with normal metrics and one spread: the difference of the two means, over the
    subnetwork's sample sd (n − 1), follows a noncentral t distribution. None for a single seed, which has no sd.
    """
    if seeds < 2:
        return None
    width = math.sqrt(seeds / 2)  # one sd, in standard errors of the difference
    return float(scipy.special.nctdtr(seeds - 1, loss * width, width))


def margin_test(full: Sequence[float], pruned: Sequence[float], margin: float, metric: str) -> MarginTest | None:
    """A paired t test of non-inferiority; both lists hold the metric of the same seeds in the same order.

    ``margin`` is in points. None with a single seed or with lists that do not pair. Seeds that all differ by the same
    number have no spread to judge by: then only the difference is given.
    """
    check_margin(margin)
    if len(full) != len(pruned) or len(full) < 2:
        return None
    change = points_in(metric) * (np.asarray(pruned, dtype=float) - np.asarray(full, dtype=float))
    n, mean, spread = len(change), float(change.mean()), float(change.std(ddof=1))
    if spread <= 1e-9:
        return MarginTest(margin, mean, None, None, None)
    error = spread / math.sqrt(n)
    low = mean - float(scipy.special.stdtrit(n - 1, LEVEL)) * error
    p = float(scipy.special.stdtr(n - 1, -(mean + margin) / error))
    return MarginTest(margin, mean, max(0.0, -low), p, low > -margin)


def check_margin(margin: float) -> None:
    if not (math.isfinite(margin) and margin > 0):
        raise OptionError(f"A margin is a number of points above 0, such as 2, not {margin:g}.")


def caveat(seeds: int) -> str:
    """The sentence that stands next to the criterion."""
    rate = false_win_rate(seeds)
    if rate is None:
        return "With one seed there is no spread, so the criterion says nothing. Train several seeds."
    return (
        f"With {seeds} seeds the thesis's criterion also passes {100 * rate:.0f} % of the networks that really lose "
        "one standard deviation of the seeds: a win is not proof that nothing is lost."
    )


def margin_words(margin: float) -> str:
    """What the column of the margin test means."""
    return (
        f"Within {margin:g} points: the sparsities up to the highest one at which a loss of {margin:g} points or more "
        "is excluded (paired t test over the seeds, one-sided at 5 %, tested from the lowest sparsity upwards until "
        "one fails)."
    )


# What a pruning run's summary and report say of winning tickets --------------------------------


def summary(state: State) -> dict[str, Any]:
    """Fields of the summary of a run that retrained the pruned and the full model."""
    if not (retrains(state.plan["algorithm"]) and state.plan["retrain_full"]):
        return {}
    by_sparsity = tickets(state)
    best = highest(by_sparsity)
    return {
        "tickets": [t.to_dict() for t in by_sparsity],
        "highest_ticket": None if best is None else best.to_dict(),
        "ticket_notes": [caveat(len(state.plan["seeds"])), margin_words(MARGIN)],
    }


def report(summary: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]], str] | None:
    if not summary.get("tickets"):
        return None
    header, rows = table(summary["tickets"], next(iter(summary["reference"]["metrics"])))
    return header, rows, " ".join(summary["ticket_notes"])


def table(tickets_shown: Sequence[Mapping[str, Any]], metric: str) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
    """The winning tickets of a run's summary; one seed has no spread, so it has none."""
    header: tuple[str, ...]
    header = ("heads removed", f"{metric}, mean", "sd", f"full model's {metric}, mean", "sd", "seeds", "wins")
    tests = [t["within"] for t in tickets_shown if t["within"] is not None]
    header += ("loss excluded, points", f"within {tests[0]['margin']:g} points") if tests else ()
    remarked = any(t.get("remark") for t in tickets_shown)
    header += ("answers",) if remarked else ()
    words = {True: "yes", False: "no", None: "not known: one seed"}
    scale = points_in(metric)
    failed = False  # sparsities above one that failed are not tested
    rows: list[Sequence[Any]] = []
    for t in tickets_shown:
        rows.append(
            [
                f"{100 * t['sparsity']:.1f} %",
                *(
                    None if t[k] is None else numbers.metric(t[k], scale)
                    for k in ("mean", "sd", "full_mean", "full_sd")
                ),
                t["seeds"],
                words[t["winning"]],
                *(() if not tests else ("–", "not tested") if failed else _margin(t["within"])),
                *((t.get("remark"),) if remarked else ()),
            ]
        )
        failed = failed or not (t["within"] or {}).get("within")
    return header, rows


def _margin(test: Mapping[str, Any] | None) -> tuple[str, str]:
    """The loss that is excluded, and whether it is within the margin; a dash with too few seeds."""
    if test is None or test["within"] is None:
        return "–", "not known"
    return points_up(test["excludes"]), "yes" if test["within"] else "no"

"""The table of a transfer's cells: what each mask keeps on each target, against every head on and against random masks.

kept    (metric − constant) / (full − constant): the share left of what the full model has above the best constant
        answer. A correlation or BLEU has no constant answer; there it is the share of the metric itself.
change  against every head on: without retraining paired over the examples, with it paired over the seeds (t).
random  masks of as many heads drawn at random, on the same target. ``random_low`` to ``random_high`` is where a
        further random mask would lie with 95 % (t, normal spread); a mask within it might as well have been drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from ...analyses.common import first_remark
from ...answers.metrics import corrected
from ...errors import whole_number
from ...evaluation.verdict import MARGIN, excluded, points_up, possible_loss, verdict, within
from ...heads import HeadMask
from ...results import Result, plain
from ...statistics.intervals import mean_and_sd
from ...statistics.significance import LEVEL, benjamini_hochberg
from ...tasks import points_in
from .winning import Ticket, ticket

FULL = ""  # the source of cells with every head on, and of random masks
DRAWS = 5  # random masks of each size without retraining; with it, one for each seed


@dataclass(frozen=True)
class Cell(Result):
    """One number of the matrix, of one seed if it was retrained."""

    source: str  # whose mask; empty = every head on, or a random mask
    target: str  # whose model and data
    seed: int | None  # None = not retrained
    metric: float | None
    sparsity: float = 0.0
    delta: float | None = None  # against the target's fine-tuned model with every head, paired
    low: float | None = None
    high: float | None = None
    mask: str = ""  # hexadecimal
    draw: int | None = None  # the number of a random mask; None = no random mask
    p: float | None = None  # of the delta
    name: str = ""  # the metric's
    constant: float | None = None  # what the best constant answer reaches
    undefined: str = ""  # why there is no metric, in words
    remark: str = ""  # where (nearly) all answers are of one class
    subject: str = ""  # identifies the model, the data and the training; version 0.1 does not say

    @property
    def key(self) -> tuple[str, str, int | None, int | None, float]:
        return self.source, self.target, self.seed, self.draw, self.sparsity


@dataclass(frozen=True)
class PlannedCell:
    """A cell before it is measured."""

    source: str
    target: str
    seed: int | None
    draw: int | None
    mask: HeadMask

    @property
    def key(self) -> tuple[str, str, int | None, int | None, float]:
        return self.source, self.target, self.seed, self.draw, self.mask.sparsity


def planned_cells(
    masks: Mapping[str, HeadMask],
    targets: Sequence[str],
    present: HeadMask,
    retrain: bool = False,
    seeds: Sequence[int] = (0,),
    random: int | None = None,
) -> list[PlannedCell]:
    """Every cell, target by target: every head on, the masks, then random masks of the same sizes.

    ``present`` are the heads that the targets' model has: the others are off in every mask, the random ones too.
    ``random`` says how many of each size (and of each seed, where it is retrained); 0 = none.
    """
    if random is not None:
        whole_number(random, "random", 0)
    masks = {source: mask | present for source, mask in masks.items()}
    draws = (1 if retrain else DRAWS) if random is None else random
    sizes = sorted({len(mask.off) for mask in masks.values()} - {len(present.off), present.size})
    trainings: Sequence[int | None] = seeds if retrain else (None,)
    cells = []
    for target in targets:
        for source, mask in {FULL: present, **masks}.items():
            cells += [PlannedCell(source, target, seed, None, mask) for seed in trainings]
        for size in sizes:
            count = size - len(present.off)
            for place, seed in enumerate(trainings):
                numbers = range(place * draws, (place + 1) * draws)
                cells += [PlannedCell(FULL, target, seed, n, present.without_random(count, n)) for n in numbers]
    return cells


NO_METRIC = "accuracy"  # of cells that were written before they named theirs
RANGES = {"accuracy": (0.0, 1.0), "f1": (0.0, 1.0)} | dict.fromkeys(("matthews", "pearson", "spearman"), (-1.0, 1.0))


@dataclass(frozen=True)
class Entry(Result):
    """One mask on one target; None = not measured, or undefined (``why``)."""

    source: str  # empty = the mean of random masks of this sparsity
    target: str
    sparsity: float
    metric: str
    value: float | None  # mean over the seeds
    sd: float | None  # over the seeds, or over random masks
    count: int  # seeds, or random masks
    full: float | None  # every head on
    constant: float | None
    kept: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None  # over all entries of the table
    random: float | None = None  # mean of the random masks
    random_low: float | None = None
    random_high: float | None = None
    random_p: float | None = None  # of the mask being one more random mask
    random_q: float | None = None
    random_count: int = 0
    why: str = ""  # why there is no share, in words
    remark: str = ""  # where (nearly) all answers are of one class

    @property
    def clear(self) -> bool:
        """Whether the change is significant, among all entries of the table."""
        return verdict(self.low, self.high) in ("loss", "gain") and self.q is not None and self.q < 1 - LEVEL

    @property
    def ahead(self) -> bool:
        """Whether the mask is better than random masks of its size, among all entries of the table."""
        if self.value is None or self.random is None or self.random_q is None:
            return False
        return self.value > self.random and self.random_q < 1 - LEVEL

    @property
    def scale(self) -> float:
        """Points in one unit of the metric."""
        return points_in(self.metric)


@dataclass(frozen=True, eq=False)
class Matrix(Result):
    """Rows = sources, columns = targets; NaN = not measured."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    full: np.ndarray  # of each target, every head on
    tickets: dict[str, dict[str, Ticket]]  # source -> target; retrained cells of several seeds only
    entries: tuple[Entry, ...] = ()  # of sources and targets, row by row
    random: tuple[Entry, ...] = ()  # of each sparsity and target
    retrained: bool = False

    def universal(self) -> dict[str, tuple[str, ...]]:
        """For each source the targets on which its mask matches. The mask is universal if there are several."""
        return {
            source: tuple(sorted(target for target, t in by_target.items() if t.winning))
            for source, by_target in self.tickets.items()
        }

    def entry(self, source: str, target: str) -> Entry | None:
        return next((e for e in self.entries if (e.source, e.target) == (source, target)), None)


def matrix(cells: Sequence[Cell], metrics: Mapping[str, str] | None = None) -> Matrix:
    """The table of some cells; with several seeds also the criterion of tickets and a test with a margin in points.

    ``metrics`` names the metric of each target for cells that do not, where one comes in points of its own (BLEU).
    """
    sources = tuple(dict.fromkeys(c.source for c in cells if c.source != FULL))
    targets = tuple(dict.fromkeys(c.target for c in cells))
    retrained = any(c.seed is not None for c in cells)
    mean = np.full((len(sources), len(targets)), np.nan)
    sd, full = mean.copy(), np.full(len(targets), np.nan)
    tickets: dict[str, dict[str, Ticket]] = {source: {} for source in sources}
    entries: dict[tuple[str, str], Entry] = {}
    random: list[Entry] = []
    for j, target in enumerate(targets):
        on_target = [c for c in cells if c.target == target]
        name = next((c.name for c in on_target if c.name), (metrics or {}).get(target, NO_METRIC))
        constant = next((c.constant for c in on_target if c.constant is not None), None)
        whole = _by_seed([c for c in on_target if c.source == FULL and c.draw is None])
        about = Entry(FULL, target, 0.0, name, None, None, 0, None, constant, None)
        if whole:
            full[j], _ = mean_and_sd(list(whole.values()))
            about = replace(about, full=float(full[j]))
        drawn = [c for c in on_target if c.draw is not None]
        by_size = {
            size: _entry(about, [c for c in drawn if c.sparsity == size], whole)
            for size in sorted({c.sparsity for c in drawn})
        }
        random += by_size.values()
        for i, source in enumerate(sources):
            of_mask = [c for c in on_target if c.source == source]
            if not of_mask:
                continue
            entry = _with_random(_entry(about, of_mask, whole), by_size.get(of_mask[0].sparsity))
            entries[source, target] = entry
            if entry.value is None:
                continue
            mean[i, j] = entry.value
            sd[i, j] = np.nan if entry.sd is None else entry.sd
            if retrained and whole:
                values = _by_seed(of_mask)
                won = ticket(entry.sparsity, list(whole.values()), list(values.values()), metric=name)
                tickets[source][target] = won if list(whole) == list(values) else replace(won, within=None)
    rows = _tested([entries[s, t] for s in sources for t in targets if (s, t) in entries])
    return Matrix(sources, targets, mean, sd, full, tickets, rows, tuple(random), retrained)


def _by_seed(cells: Sequence[Cell]) -> dict[int | None, float]:
    return {c.seed: c.metric for c in cells if c.metric is not None}


def _entry(about: Entry, cells: Sequence[Cell], whole: Mapping[int | None, float]) -> Entry:
    """One mask on one target, over its seeds or as it is; or the mean of the random masks of one size."""
    first = cells[0]
    if first.draw is None:
        measured = list(_by_seed(cells).items())
    else:
        measured = [(c.seed, c.metric) for c in cells if c.metric is not None]
    values = [value for _, value in measured]
    value, sd = mean_and_sd(values) if values else (None, None)
    entry = replace(about, source=first.source, sparsity=first.sparsity, value=value, sd=sd, count=len(values))
    kept, why = _kept(entry, next((c.undefined for c in cells if c.undefined), ""))
    entry = replace(entry, kept=kept, why=why)
    if first.draw is None:
        entry = replace(entry, remark=next((c.remark for c in cells if c.remark), ""))
        if first.seed is None:
            return replace(entry, change=first.delta, low=first.low, high=first.high, p=first.p)
    change, low, high, p = _over([value - whole[seed] for seed, value in measured if seed in whole])
    return replace(entry, change=change, low=low, high=high, p=p)


def _kept(entry: Entry, undefined: str) -> tuple[float | None, str]:
    """The share, or why there is none."""
    if entry.value is None:
        return None, undefined or "it is not measured"
    if entry.full is None:
        return None, "the model with every head on is not measured"
    floor = 0.0 if entry.constant is None else entry.constant
    share = corrected(entry.value, entry.full, floor)
    if share != share and entry.constant is None:
        return None, f"with every head on, {entry.metric} is {entry.full:.3g}"
    if share != share:
        return None, "with every head on, the model is no better than one answer for all"
    return share, ""


def _over(changes: Sequence[float]) -> tuple[float | None, float | None, float | None, float | None]:
    """Mean, interval and p of paired differences (t); only the mean where there is no spread to judge by."""
    if not changes:
        return None, None, None, None
    mean, spread = mean_and_sd(changes)
    n = len(changes)
    if spread is None or spread <= 1e-9:
        return mean, None, None, None
    error = spread / math.sqrt(n)
    half = float(scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2)) * error
    return mean, mean - half, mean + half, float(2 * scipy.special.stdtr(n - 1, -abs(mean) / error))


def _with_random(entry: Entry, random: Entry | None) -> Entry:
    """The entry with the random masks of its size next to it."""
    if random is None or random.value is None:
        return entry
    compared = replace(entry, random=random.value, random_count=random.count)
    if not random.sd or random.sd <= 1e-9:  # no spread to judge by
        return compared
    error, freedom = random.sd * math.sqrt(1 + 1 / random.count), random.count - 1
    half = float(scipy.special.stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = None
    if entry.value is not None:
        p = float(2 * scipy.special.stdtr(freedom, -abs(entry.value - random.value) / error))
    least, most = RANGES.get(entry.metric, (-math.inf, math.inf))
    low, high = max(least, random.value - half), min(most, random.value + half)
    return replace(compared, random_low=low, random_high=high, random_p=p)


def _tested(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries with their q values, over all entries of the table."""
    q = benjamini_hochberg(np.array([e.p for e in entries], dtype=float))
    random_q = benjamini_hochberg(np.array([e.random_p for e in entries], dtype=float))
    return tuple(replace(e, q=plain(a), random_q=plain(b)) for e, a, b in zip(entries, q, random_q, strict=True))


NAMED = 3  # masks named in a sentence


def finding(result: Matrix, own_targets: Mapping[str, str] | None = None, margin: float = MARGIN) -> str:
    """The sentences of a table; ``margin`` is in points. What needs care comes first.

    ``own_targets`` says which target each mask was found on; without it the target of the same name.
    """
    others = [e for e in result.entries if (own_targets or {}).get(e.source, e.source) != e.target]
    if not others:
        return "Every mask was found on this model and data: nothing is transferred."
    remarks = first_remark([(f"{_pair(e)}: ", e.remark) for e in others])
    return remarks + _losses(others, margin, result.retrained) + _against_random(others)


def _losses(others: Sequence[Entry], margin: float, retrained: bool) -> str:
    """Which masks lose at most the margin on other targets, and what that excludes."""
    tested = [e for e in others if e.low is not None]
    tested.sort(key=lambda e: possible_loss(e.low or 0.0) * e.scale)
    count = f"{len(others)} pair{'s' if len(others) > 1 else ''} of a mask and another model"
    if not tested:
        why = "no change has an interval"
        if retrained:
            why = "the changes of all seeds are equal, so they have no spread"
            if all(e.count <= 1 for e in others):
                why = "one seed has no spread"
        return f"Of {count}, none is shown to keep the metric: {why}. "
    kept = [e for e in tested if within(e.low, margin / e.scale)]
    if not kept:
        best = tested[0]
        return (
            f"Of {count}, none is shown to lose at most {margin:g} points; nearest is {_pair(best)}, where "
            f"{excluded(best.low, best.scale, margin)}. "
        )
    named_losses = ", ".join(
        f"{_pair(e)} (at most {points_up(e.scale * possible_loss(e.low or 0.0))})" for e in kept[:NAMED]
    )
    are = "is" if len(kept) == 1 else "are"
    return f"Of {count}, {len(kept)} {are} shown to lose at most {margin:g} points: {named_losses}{_more(kept)}. "


def _against_random(others: Sequence[Entry]) -> str:
    """Which of them random masks do not explain."""
    tested = [e for e in others if e.random_q is not None]
    if not tested:
        return "" if all(e.random is None for e in others) else "The random masks have no spread to judge by."
    ahead = [e for e in tested if e.ahead]
    if not ahead:
        return "None is shown to be better than random masks of as many heads, so none is shown to have transferred."
    ahead.sort(key=lambda e: e.random_p or 0.0)
    names = ", ".join(_pair(e) for e in ahead[:NAMED])
    verb = "is" if len(ahead) == 1 else "are"
    return f"{len(ahead)} of {len(tested)} {verb} better than random masks of as many heads: {names}{_more(ahead)}."


def _more(entries: Sequence[Entry]) -> str:
    return f" and {len(entries) - NAMED} more" if len(entries) > NAMED else ""


def _pair(entry: Entry) -> str:
    """The mask and the model of an entry."""
    return f"{entry.source} on {entry.target}"

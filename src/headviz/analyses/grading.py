"""Which head score is right? Every score graded on one model, by what pruning in its order keeps.

The data are cut into halves of the same make-up. A score is measured on one half, and heads are removed by it on the
other; then the halves change places. The data are cut in five ways, and learned scores have another seed in each: a
score that is good on one half by luck is not the best by it.

*Area*: the mean share of what the model knows above the best constant answer that is left at 10 to 90 % of the heads
removed, lowest first, in the metric that its job is ``graded_in``. 1 = everything, 0 = the constant answer. Where heads
tie, it is the mean over ten drawn orders of them.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import __version__, plugins
from ..answers.metrics import metric_title
from ..attribution import conductance
from ..demo import planted_heads
from ..display.recipes import Code, call
from ..errors import OptionError, TaskError, shown, whole_number
from ..evaluation.dispatch import evaluator_of
from ..evaluation.evaluator import EvaluatorOptions
from ..evaluation.plain import class_order, cut_off
from ..heads import DRAWS, HeadId, HeadMask, draws, grid_values, in_lowest, ordered, tied
from ..models.loading import load
from ..models.network import require_model
from ..options import declared
from ..progress import Cancel, Progress, stop_if, tracked
from ..results import Result
from ..scores import chunk, whole
from ..scores.catalogue import SCORES, score_named
from ..scores.score import SWEEPS
from ..scores.scoring import score_heads
from ..statistics.resampling import rank_correlation
from ..statistics.significance import differences
from ..storage.exchange import restored
from ..storage.store import Store, make_key, store_for
from ..tasks.dataset import require_dataset
from ..tasks.sampling import members_of
from .analysis import SPLITS, Request, arguments, explained
from .common import heads_where
from .grades import RANDOM, SHARES, Grade, Grades

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

FIFTH = 0.2
RESAMPLES = 2000  # of the examples of a half
LEAST_KNOWN = 1e-9  # above the best constant answer; less is rounding


def units_of(data: Dataset, split: int = 0) -> tuple[list[int], list[int]]:
    """Every other unit of the data in the order of kind, label and length, so that both halves are similar.

    In another split neighbours in that order change places at random.
    """
    gold = np.zeros(len(data)) if data.labels is None else data.labels
    gold = gold if gold.ndim == 1 else data.answer.groups(data)[0]
    kinds = np.unique(data.slices, return_inverse=True)[1] if data.slices else np.zeros(len(data), dtype=int)
    order = np.lexsort((np.arange(len(data)), np.array([len(t) for t in data.texts]), gold, kinds))
    units = list(dict.fromkeys(data.units[order].tolist()))
    first, second = units[0::2], units[1::2]
    for place in np.flatnonzero(np.random.default_rng(split).random(len(second)) < 0.5) if split else ():
        first[place], second[place] = second[place], first[place]
    return first, second


def halves_of(data: Dataset, split: int = 0) -> tuple[Dataset, Dataset]:
    """The examples of the two halves of ``units_of``."""
    members = members_of(data)
    first, second = ([int(i) for unit in units for i in members[unit]] for units in units_of(data, split))
    return data.subset(first), data.subset(second)


def drawn_units(n: int) -> NDArray[np.int64]:
    """[draws, n] how often each unit is drawn."""
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)


class Half:
    """One half: predictions under masks, resampled with the same draws for all scores and splits.

    ``weights`` [draws, units]: how often each unit of the half is drawn.
    """

    def __init__(
        self,
        clf: Classifier,
        data: Dataset,
        label_order: Sequence[str] | str | None = None,
        weights: NDArray | None = None,
    ) -> None:
        self.data, self.label_order = data, label_order
        exact = EvaluatorOptions(precision="float32")  # what grades are tested on
        self.evaluator = evaluator_of(clf, data, exact, label_order=label_order)
        self.gold, answer = np.asarray(self.evaluator.data.gold), self.evaluator.data.answer
        n = answer.answers(self.gold, self.gold, ()).units
        if weights is None or weights.shape[1] != n:  # some queries, without a relevant passage, are no units
            weights = drawn_units(n)
        self.weights = np.concatenate([np.ones((1, n), dtype=weights.dtype), weights])
        self.measure = answer.drawn(self.gold, self.weights)
        self.constant = self.measure.constant
        self.full = self.measure.of(self.evaluator.predictions(clf.full_mask))  # [1 + draws]; first the half itself
        self._none: float | None = None  # with every head off
        if not self.full[0] > self.constant[0] + LEAST_KNOWN:
            reached = f"{metric_title(answer.graded_in)} {self.full[0]:.3f} against {self.constant[0]:.3f}"
            cut = f"{self.evaluator.cut_off}. " if self.evaluator.cut_off else ""
            raise TaskError(
                f"On one half of the examples, {len(data)}, '{clf.name}' {self.measure.lacking} ({reached}), so no "
                f"order can be graded. {cut}{'Shorter texts' if cut else 'More examples'} may do."
            )

    def curves(self, present: HeadMask, values: NDArray, cancel: Cancel | None) -> list[NDArray[np.float64]]:
        """[shares, 1 + draws]: the metric with ever more heads off, the lowest values first.

        One for each of ten orders of the heads that tie, or for the one where none does. A mask is evaluated once.
        """
        heads = present.kept

        @functools.cache
        def metric(mask: HeadMask) -> NDArray[np.float64]:
            stop_if(cancel)
            return self.measure.of(self.evaluator.predictions(mask, keep=False))

        orders = [ordered(values, heads, seed) for seed in draws(grid_values(values, heads))]
        counts = [round(share * len(heads)) for share in SHARES]
        return [np.array([metric(present.without(order[:count])) for count in counts]) for order in orders]

    def left(self, curve: NDArray) -> NDArray[np.float64]:
        """[shares, 1 + draws]: the share that is left of what the full model has above the best constant answer.

        NaN for a draw in which it has nothing, as one of a single class.
        """
        above = self.full - self.constant
        with np.errstate(divide="ignore", invalid="ignore"):
            share: NDArray[np.float64] = np.where(above > LEAST_KNOWN, (curve - self.constant) / above, np.nan)
        return share

    def benchmark(self, present: HeadMask, curve: NDArray) -> tuple[float, float]:
        """CPR and CMD: the areas of f and of |1 − f| over the share of heads kept, f from 0 at none to 1 at all."""
        if self._none is None:
            self._none = float(self.measure.of(self.evaluator.predictions(present.without(present.kept)))[0])
        none, full = self._none, float(self.full[0])
        if full == none:
            return float("nan"), float("nan")
        heads = len(present.kept)
        kept = np.array([0.0, *(1 - round(share * heads) / heads for share in SHARES[::-1]), 1.0])
        f = (np.array([none, *curve[::-1, 0], full]) - none) / (full - none)
        return float(np.trapezoid(f, kept)), float(np.trapezoid(np.abs(1 - f), kept))


def auroc(values: NDArray, positives: Set[HeadId]) -> float:
    """The probability that a head of ``positives`` has a higher value than another; ties count half."""
    heads = heads_where(np.isfinite(values))
    positive = np.array([head in positives for head in heads], dtype=bool)
    ranks = scipy.stats.rankdata(grid_values(values, heads))
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return float("nan")
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def precision(values: NDArray, positives: Set[HeadId]) -> float:
    """The share of ``positives`` among as many heads with the highest values; the expected share where heads tie."""
    heads = heads_where(np.isfinite(values))
    positive = [head in positives for head in heads]
    count = sum(positive)
    return float(in_lowest(grid_values(-values, heads), count)[positive].sum()) / count if count else float("nan")


def overlap(a: NDArray, b: NDArray, present: HeadMask) -> float:
    """The share of the lowest fifth that both tables name; the expected share where heads tie."""
    count = max(1, round(FIFTH * len(present.kept)))
    first, second = (in_lowest(grid_values(values, present.kept), count) for values in (a, b))
    return float((first * second).sum()) / count


def planted_in(clf: Classifier) -> frozenset[HeadId] | None:
    """The heads to which the demo's training gave a known part; None for any other weights."""
    shipped = load("demo", device="cpu").digest
    return frozenset(planted_heads()) if clf.digest == shipped else None


SHAPLEY = "shapley"
SEEDS = 20  # orders that the random score is averaged over, in all splits together
LEAST = 40  # examples
VERSION, WORDS = 5, "measured"  # of what is kept in the cache
TIMED = 8  # examples that a score is timed on, with nothing from the cache


def grade(
    clf: Classifier,
    data: Dataset,
    scores: Sequence[str] | None = None,
    progress: Progress | None = None,
    *,
    label_order: Sequence[str] | str | None = None,
    splits: int = SPLITS,
    cancel: Cancel | None = None,
    cache: Store | bool = True,
) -> Grades:
    """Grade head scores on a classifier and labelled data. Without ``scores`` all that it has, but for the slow ones.

    Areas are of the metric that the job is ``graded_in``, of several classes balanced accuracy, over so many ``splits``
    of the data into halves. ``cache`` has what was measured before on the same model and data, and gets what is
    measured now: an interrupted call goes on. Raises ``UserError`` for a model that is no better than the best constant
    answer, fewer than 40 examples, or an unknown score.

    >>> import headviz
    >>> clf, data = headviz.load("demo"), headviz.load_task("demo", limit=48)
    >>> result = headviz.grade(clf, data, ["taylor", "magnitude"], splits=1)
    >>> result.scores[-1].score == result.best
    False
    """
    require_model(clf)
    require_dataset(data)
    if not explained(clf.answer):
        raise OptionError(
            f"Scores of {clf.kind} models such as '{clf.name}' are not graded: areas count right answers of each "
            "class, and translations have no classes."
        )
    usual = [name for name, score in SCORES.items() if score.fits(clf.answer) and not score.slow]
    if isinstance(scores, str) or not isinstance(scores, Sequence | None):
        raise OptionError(f"scores are a list of names, such as ['taylor', 'random'], not {shown(scores)}.")
    names = list(dict.fromkeys(score_named(name).name for name in (usual if scores is None else scores)))
    if not names:
        raise OptionError("Name at least one score to grade.")
    if len(data) < LEAST:
        raise OptionError(f"Grading needs at least {LEAST} examples, to measure on one half and remove on the other.")
    results = measure(clf, data, names, progress, label_order=label_order, splits=splits, cancel=cancel, cache=cache)
    grades = graded(results, names, planted_in(clf), len(data), data.task.title)
    return replace(grades, metric=data.answer.graded_in, cut_off=cut_off(clf, data))


def measure(
    clf: Classifier,
    data: Dataset,
    names: Sequence[str],
    progress: Progress | None = None,
    *,
    label_order: Sequence[str] | str | None = None,
    splits: int = SPLITS,
    cancel: Cancel | None = None,
    cache: Store | bool = True,
) -> dict[str, Measured]:
    """What was measured of each score, and of random orders."""
    whole_number(splits, "splits", 1)
    weights = drawn_units(int(data.units.max()) + 1)
    halves = [
        [
            Half(clf, half, label_order, weights[:, units])
            for half, units in zip(halves_of(data, split), units_of(data, split), strict=True)
        ]
        for split in range(splits)
    ]
    costs = [
        score_heads(clf, half.data, "ablation", label_order=label_order, cache=cache, cancel=cancel).values
        for half in halves[0]
    ]
    planted, stored, results = planted_in(clf), Stored(cache, clf, data, label_order, splits), {}
    for name in tracked(dict.fromkeys([*names, RANDOM]), progress, cancel):
        result = stored.get(name)
        if result is None:
            result = _measured(clf, halves, costs, planted, name, cache, cancel)
            stored.put(name, result)
        results[name] = result
    return results


def graded(
    results: Mapping[str, Measured], names: Sequence[str], planted: frozenset[HeadId] | None, n: int, title: str
) -> Grades:
    """The grades that follow from what was measured. The best is picked among all scores but random orders."""
    best = max((name for name in names if name != RANDOM), key=lambda name: results[name].area, default=RANDOM)
    order = [*(name for name in results if name != RANDOM), RANDOM]
    draws, by_half = (np.array([getattr(results[name], field) for name in order]) for field in ("areas", "halves"))
    picked = differences(draws[:-1, 1:], by_half[:-1]).all if len(order) > 2 else float("nan")
    # the last one has no area at all: what an area by itself is compared with
    areas, halves = (np.concatenate([table, np.zeros_like(table[:1])]) for table in (draws[:, 1:], by_half))
    of_pairs = differences(areas, halves)
    grades = []
    for name in names:
        errors = of_pairs.errors[order.index(name)]
        of_area, of_lead = (float(of_pairs.single * error) for error in errors[[-1, -2]])
        of_behind = None if name == best else picked * float(errors[order.index(best)])
        grades.append(_graded(name, results, best, of_area, of_lead, of_behind))
    grades.sort(key=lambda g: -g.area)
    return Grades(tuple(grades), best, len(planted or ()), n, title, by_half.shape[1])


@dataclass(frozen=True)
class Measured(Result):
    """What the intervals of one score are made of; arrays are [1 + draws]."""

    areas: NDArray[np.float64]
    top: float
    cpr: float
    cmd: float
    auroc: float | None
    precision: float | None
    agreement: float
    stability: float
    seconds: float
    curve: tuple[float, ...] = ()  # what is left at each share; empty in older files, as are the tables
    tables: tuple[tuple[NDArray[np.float64], ...], ...] = ()  # [half][order]: several orders of the random score
    tied: tuple[int, ...] = ()  # heads that tie, in the table of each half
    by_ties: tuple[float, ...] = ()  # the area in each order of the heads that tie
    halves: tuple[tuple[float, ...], ...] = ()  # the area on each half of each split

    @property
    def area(self) -> float:
        return float(self.areas[0])

    def agrees(self, other: Measured) -> float | None:
        """Spearman with the tables of another score, each on the half that this one has not seen."""
        if not self.tables or not other.tables:
            return None
        pairs = ((table, other.tables[1 - half][0]) for half in (0, 1) for table in self.tables[half])
        return float(np.mean([rank_correlation(*pair) for pair in pairs]))


class Stored:
    """What was measured of each score on one model and data, in the cache: a grading that was stopped goes on there."""

    def __init__(
        self, store: Store | bool, clf: Classifier, data: Dataset, label_order: Sequence[str] | str | None, splits: int
    ) -> None:
        self.store = store_for(store)
        self.about = {
            "version": [VERSION, conductance.VERSION, whole.VERSION, __version__],
            "sweeps": {name: sweep.version for name, sweep in SWEEPS.items()},
            "weights": clf.digest,
            "tokenizer": clf.tokenizer_digest,
            "dtype": str(clf.dtype),
            "data": data.digest,
            "task": data.task.name,
            "classes": class_order(clf, data, label_order).tolist(),
            "orders": SEEDS,
            "splits": splits,
            **clf.reads_with,
            **chunk.filled_part(clf),
        }

    def get(self, name: str) -> Measured | None:
        entry = None if self.store is None else self.store.get(self._key(name))
        if entry is None:
            return None
        measured: Measured = restored(Measured, json.loads(entry.words[WORDS]), (0, 0))  # passes over other fields
        return measured

    def put(self, name: str, measured: Measured) -> None:
        if self.store is not None:
            self.store.put(self._key(name), {}, {WORDS: measured.to_json()})

    def _key(self, name: str) -> str:
        return make_key("grade", score=name, **self.about, **plugins.key_part("score", name))


def _measured(
    clf: Classifier,
    halves: Sequence[Sequence[Half]],
    costs: Sequence[NDArray],
    planted: frozenset[HeadId] | None,
    name: str,
    cache: Store | bool,
    cancel: Cancel | None,
) -> Measured:
    """Of one score. ``costs`` are the exact costs on both halves, ``planted`` the heads whose part is known."""
    per_split, seconds = _tables(clf, halves, name, cache, cancel)
    present = clf.full_mask
    curves, tops, bench, agreements, rocs, precise, orders = [], [], [], [], [], [], []
    for split, (parts, per_half) in enumerate(zip(halves, per_split, strict=True)):
        for measured, other in ((0, 1), (1, 0)):
            half, of_half = parts[other], []
            for values in per_half[measured]:
                drawn = half.curves(present, values, cancel)
                left = [half.left(curve) for curve in drawn]
                of_half.append(np.mean(left, axis=0))
                orders.append([left[draw % len(left)][:, 0].mean() for draw in range(DRAWS)])
                if split:  # what follows describes a score, and the first split does
                    continue
                bench.append(np.mean([half.benchmark(present, curve) for curve in drawn], axis=0))
                # a random order from its other end is another random order
                again = drawn if name == RANDOM else half.curves(present, -values, cancel)
                tops.append(np.mean([half.left(curve)[:, 0].mean() for curve in again]))
                agreements.append(rank_correlation(values, costs[other]))
                if planted is not None:
                    rocs.append(auroc(values, planted))
                    precise.append(precision(values, planted))
            curves.append(np.mean(of_half, axis=0))
    stable = [overlap(a, b, present) for per_half in per_split for a, b in zip(*per_half, strict=True)]
    cpr, cmd = np.mean(bench, axis=0)
    mean = np.mean(curves, axis=0)
    return Measured(
        mean.mean(axis=0),
        float(np.mean(tops)),
        float(cpr),
        float(cmd),
        float(np.mean(rocs)) if rocs else None,
        float(np.mean(precise)) if precise else None,
        float(np.mean(agreements)),
        float(np.mean(stable)),
        seconds,
        tuple(mean[:, 0].tolist()),
        tuple(tuple(tables) for tables in per_split[0]),
        tuple(tied(grid_values(tables[0], present.kept)) for tables in per_split[0]),
        tuple(np.mean(orders, axis=0).tolist()),
        tuple(map(tuple, np.reshape([curve[:, 0].mean() for curve in curves], (-1, 2)).tolist())),
    )


def _tables(
    clf: Classifier, halves: Sequence[Sequence[Half]], name: str, cache: Store | bool, cancel: Cancel | None
) -> tuple[list[list[list[NDArray]]], float]:
    """The score's tables on each half of each split, and its processor seconds per example, none from the cache."""
    first, score = halves[0][0], SCORES[name]
    settings: dict[str, Any] = {"label_order": first.label_order, "cancel": cancel}
    start = time.process_time()
    if not score.needs_sample:
        score_heads(clf, first.data.subset(range(TIMED)), name, cache=False, **settings)
        seconds = (time.process_time() - start) / TIMED
    settings["cache"] = cache and not score.needs_sample
    seeded, per_split = score.options is not None and "seed" in declared(score.options), []
    for split, pair in enumerate(halves):
        seeds = [*range(split, SEEDS, len(halves))] if name == RANDOM else []
        options: list[dict[str, Any]] = [{"seed": seed} if seeded and seed else {} for seed in seeds or [split]]
        tables = [[score_heads(clf, half.data, name, **settings, **o).values for o in options] for half in pair]
        per_split.append(tables)
    if score.needs_sample:  # its time does not grow with the examples
        seconds = (time.process_time() - start) / sum(len(half.data) for pair in halves for half in pair)
    return per_split, seconds


def _graded(
    name: str, results: Mapping[str, Measured], best: str, of_area: float, of_lead: float, of_behind: float | None
) -> Grade:
    """One row; the last three are half the widths of its intervals."""
    result, shapley = results[name], results.get(SHAPLEY)
    lead, behind = result.area - results[RANDOM].area, results[best].area - result.area
    return Grade(
        name,
        result.auroc,
        result.area,
        result.area - of_area,
        result.area + of_area,
        result.top,
        result.cpr,
        result.cmd,
        lead,
        lead - of_lead,
        lead + of_lead,
        None if of_behind is None else behind,
        None if of_behind is None else behind - of_behind,
        None if of_behind is None else behind + of_behind,
        result.agreement,
        None if shapley is None else result.agrees(shapley),
        result.precision,
        None if name == RANDOM else result.stability,
        result.seconds,
        result.curve,
        result.tied,
        *((min(result.by_ties), max(result.by_ties)) if any(result.tied) else ()),
    )


def run(request: Request) -> Grades:
    scores = request.option("scores")
    names = None if scores is None else [name.strip() for name in scores.split(",") if name.strip()]
    order = request.label_order
    return grade(request.clf, request.data, names, label_order=order, **arguments(request, "splits"))


def recipe(options: Mapping[str, Any]) -> str:
    scores = options.get("scores")
    names = [[name.strip() for name in scores.split(",")]] if scores else []
    return f"result = {call('headviz.grade', Code('clf'), Code('data'), *names)}"

"""A relevance for a query and a passage, which orders the passages of each query: the job ``rank``.

Passages of equal relevance to the model stand in every order equally often: a metric is the mean over these orders
(McSherry and Najork, ECIR 2008). So the metric of one answer for all is that of a random order.

Shapes: n pairs of a query and a passage, Q queries with a relevant passage, R resamples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import TaskError
from .answer import JOB, Changed
from .comparison import Drawn, SumAnswers, mean_of_units, read_row
from .metrics import Metric
from .number import Number
from .one_class import WIDTHS

if TYPE_CHECKING:
    from torch import Tensor

DEPTH = 10  # places that nDCG@10 and MRR@10 look at
RANDOM = "a random order"
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ordered:
    """The pairs by query and falling score; tied pairs of a query share a block of places."""

    gain: Floats  # [n] relevance, in this order
    query: NDArray[np.int64]  # [n]
    place: NDArray[np.int64]  # [n] from 1
    block: NDArray[np.int64]  # [n]
    start: NDArray[np.int64]  # [n] the first place of the block
    size: NDArray[np.int64]  # [n] of the block

    @classmethod
    def by(cls, scores: NDArray, relevance: Floats, queries: NDArray[np.int64]) -> Ordered:
        order = np.lexsort((-scores, queries))
        query, score = queries[order], scores[order]
        new_query = _begins(query)
        new_block = new_query | _begins(score)
        block = np.cumsum(new_block) - 1
        place = np.arange(len(order)) - np.flatnonzero(new_query)[np.cumsum(new_query) - 1] + 1
        return cls(relevance[order], query, place, block, place[new_block][block], np.bincount(block)[block])

    def in_block(self, values: NDArray) -> Floats:
        """[n] the sum over each pair's block."""
        return np.bincount(self.block, values)[self.block].astype(float)

    def per_query(self, values: NDArray) -> Floats:
        return np.bincount(self.query, values).astype(float)


def ndcg(ordered: Ordered) -> Floats:
    """nDCG@10 of each query: gains are the relevances themselves, as in trec_eval and scikit-learn."""
    discount = np.where(ordered.place <= DEPTH, 1 / np.log2(ordered.place + 1), 0.0)
    gained = ordered.per_query(ordered.gain * ordered.in_block(discount) / ordered.size)
    best = Ordered.by(ordered.gain, ordered.gain, ordered.query)
    return gained / best.per_query(best.gain * discount)  # places are those of the sorted pairs, in both orders


def mrr(ordered: Ordered) -> Floats:
    """MRR@10 of each query: one over the place of the first relevant passage, 0 from place 11 on."""
    relevant = ordered.gain > 0
    g, r = ordered.size, ordered.in_block(relevant)
    starts = np.flatnonzero(_begins(ordered.query))
    first = np.minimum.reduceat(np.where(r > 0, ordered.block, len(ordered.block)), starts)
    counts = ordered.block == first[ordered.query]  # the block that holds the first relevant passage
    offset = ordered.place - ordered.start
    # of r relevant passages among g places the first stands at the k-th with probability C(g - k, r - 1) / C(g, r)
    ways = scipy.special.binom(g - offset - 1, r - 1) / scipy.special.binom(g, np.maximum(r, 1))
    return ordered.per_query(np.where(counts & (ordered.place <= DEPTH), ways / ordered.place, 0.0))


def average_precision(ordered: Ordered) -> Floats:
    """Average precision of each query; relevant is what has a relevance above 0."""
    relevant = (ordered.gain > 0).astype(float)
    r, g = ordered.in_block(relevant), ordered.size
    before = np.cumsum(relevant) - np.r_[0, np.cumsum(ordered.per_query(relevant))[:-1]][ordered.query]
    above = (before - relevant)[_begins(ordered.block)][ordered.block]  # relevant passages above the block
    others = (ordered.place - ordered.start) * np.divide(r - 1, g - 1, out=np.zeros(len(g)), where=g > 1)
    hits = r / g * (above + others + 1) / ordered.place
    return ordered.per_query(np.where(r > 0, hits, 0.0)) / ordered.per_query(relevant)


def _begins(values: NDArray) -> NDArray[np.bool_]:
    """[n] whether a value differs from the one before."""
    return np.r_[True, values[1:] != values[:-1]]


OF_QUERY: Mapping[str, Callable[[Ordered], Floats]] = {"ndcg@10": ndcg, "mrr@10": mrr, "map": average_precision}


@dataclass(frozen=True, eq=False)
class RankAnswers(SumAnswers):
    """Scores of pairs; ``gold`` is [n, 2] with relevances and the numbers of queries. The unit is the query.

    A query without a relevant passage is no unit: no order of its passages is better than another.
    """

    metrics: ClassVar[Mapping[str, Callable[[NDArray], NDArray]]] = dict.fromkeys(OF_QUERY, mean_of_units)

    @cached_property
    def judged(self) -> NDArray[np.int64]:
        """Pairs of the queries that have a relevant passage."""
        queries, where = np.unique(self.gold[:, 1], return_inverse=True)
        best = np.full(len(queries), -np.inf)
        np.maximum.at(best, where, self.gold[:, 0])
        return np.flatnonzero(best[where] > 0)

    @cached_property
    def queries(self) -> NDArray[np.int64]:
        """Of each judged pair the place of its query among the units."""
        return np.unique(self.gold[self.judged, 1], return_inverse=True)[1].astype(np.int64)

    @property
    def units(self) -> int:
        return int(self.queries.max(initial=-1)) + 1

    def as_rows(self, predicted: NDArray) -> tuple[Floats, Floats]:
        """[Q, passages of the longest query] relevances and scores, NaN behind a query's last passage."""
        order = np.argsort(self.queries, kind="stable")
        rows, sizes = self.queries[order], np.bincount(self.queries)
        places = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        tables = np.full((2, self.units, int(sizes.max(initial=0))), np.nan)
        tables[:, rows, places] = self.gold[self.judged[order], 0], np.asarray(predicted)[self.judged[order]]
        return tables[0], tables[1]

    def each(self, predicted: NDArray, metric: str) -> Floats:
        self._of(metric)
        if not self.units:
            return np.zeros(0)
        scores = np.asarray(predicted, dtype=float)[self.judged]
        values = OF_QUERY[metric](Ordered.by(scores, self.gold[self.judged, 0], self.queries))
        without_score = np.bincount(self.queries, ~np.isfinite(scores)) > 0
        return np.where(without_score, np.nan, values)

    def measure(self, predicted: NDArray, metric: str) -> float:
        return super().measure(predicted, metric) if self.units else float("nan")

    def quality(self, predicted: NDArray) -> Floats:
        """nDCG@10 of each query."""
        return np.round(self.each(predicted, "ndcg@10"), 9)

    def agreement(self, predicted: NDArray) -> float | None:
        """The mean over queries of Kendall's tau-b with the full model's order; None where neither has one."""
        members = _members(self.gold[:, 1])
        taus = [scipy.stats.kendalltau(self.full[at], predicted[at]).statistic for at in members]
        finite = np.array(taus)[np.isfinite(taus)]
        return float(finite.mean()) if len(finite) else None


def _members(query: NDArray) -> list[NDArray]:
    """For each query the positions of its passages."""
    order = np.argsort(query, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(query[order])) + 1)


class Rank(Number):
    """A passage's score is the logit, which is F as well. Learned by binary cross-entropy, as cross-encoders are."""

    job, usual, columns, instead = "rank", tuple(OF_QUERY), "relevance", "number"
    graded_in, agrees = "ndcg@10", "τ with its order"
    does = "reads a query and a passage and says how well the passage answers the query"
    costs = "log-probability of the right relevance, lost without the head"
    text_columns, label_column = ("query", "passage"), "relevance"
    grouped = True
    gold_name, unit, text_names = "relevances", ("query", "queries"), ("Query", "Passage")
    least_lead, named = 0.5, ("relevance", "passages")

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        return ranks and outputs == 1 and problem != "regression"

    def claim(self, config: Any) -> None:
        config.problem_type = None

    def choice(self, settings: Mapping[str, Any]) -> str:
        if settings.get(JOB) is not None:
            return ""
        return "sentence-transformers wrote it, so its one output orders passages; --job number reads it as a number."

    # judging -----------------------------------------------------------------------------------------------

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> RankAnswers:
        return RankAnswers(gold, full)

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[RankAnswers, NDArray]:
        table = np.asarray(gold)
        if groups is not None:
            queries = np.unique(np.asarray(groups), return_inverse=True)[1]
            if len(queries) == len(table):
                table = np.stack([read_row(gold, "gold").astype(float), queries], axis=1)
        if table.ndim != 2 or table.shape[1] != 2:
            raise TaskError(
                "For a ranking, gold is a relevance for each passage; the query of each (groups=) is equally long."
            )
        before, after = read_row(before, "before").astype(float), read_row(after, "after").astype(float)
        if len({len(table), len(before), len(after)}) > 1:
            raise TaskError(
                f"{len(table)} relevances, {len(before)} scores before and {len(after)} after: give one each."
            )
        answers = RankAnswers(table.astype(float), before)
        if not answers.units:
            raise TaskError(
                "No query has a relevant passage (a relevance above 0), so no order is better than another."
            )
        return answers, after

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """nDCG@10, against a random order."""
        same_for_all = RankAnswers(gold, np.zeros(len(gold)))
        return same_for_all.drawn(weights, self.graded_in, "orders passages no better than chance")

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        """Relevant passages that changed their place; a mean where passages tie."""
        gold, rows = data.gold, []
        before, after = np.empty((2, len(gold)))
        for at in _members(data.units):
            before[at], after[at] = places(full[at]), places(masked[at])
        for i in map(int, np.flatnonzero((gold[:, 0] > 0) & (before != after))):
            e = data[i]
            how = "down" if after[i] > before[i] else "up"
            rows.append([e.text, e.pair, e.label, f"{before[i]:g}", f"{after[i]:g}", how, e.slice, i])
        kinds = [row[5] for row in rows]
        return Changed(
            f"Relevant passages that moved: {kinds.count('down')} down, {kinds.count('up')} up",
            "No relevant passage changed its place.",
            "The places of relevant passages that moved under the mask; 1 is the first of its query.",
            ("query", "passage", "relevance", "full model", "masked", "change", data.slice_name or "slice", "example"),
            sorted(rows, key=lambda row: float(row[3]) - float(row[4])),
            WIDTHS | {"query": WIDTHS["text"], "passage": WIDTHS["text"]},
        )

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        labels = super().checked(labels, names)
        if (labels < 0).any():
            raise TaskError(
                "A relevance is negative. Give 0 for a passage that is not relevant, and more for the others."
            )
        return labels

    def gold(self, data: Any) -> NDArray:
        """[n, 2] the relevance, and a number that stands for the query's text."""
        numbers = {text: _number_of(text) for text in dict.fromkeys(data.texts)}
        return np.stack([super().gold(data), [numbers[text] for text in data.texts]], axis=1)

    def units(self, data: Any) -> NDArray[np.int64]:
        """Pairs with the same query text."""
        where = {text: i for i, text in enumerate(dict.fromkeys(data.texts))}
        return np.array([where[text] for text in data.texts], dtype=np.int64)

    def groups(self, data: Any) -> tuple[NDArray[np.int64], list[str]]:
        return np.zeros(len(data), dtype=np.int64), [self.unit[1]]

    def doubts(self, data: Any) -> list[str]:
        """Queries that no metric counts, and those that any order suits."""
        if data.labels is None:
            return []
        best, worst = (np.full(int(data.units.max(initial=-1)) + 1, end) for end in (-np.inf, np.inf))
        np.maximum.at(best, data.units, data.labels)
        np.minimum.at(worst, data.units, data.labels)
        doubts = []
        if lost := int((best <= 0).sum()):
            doubts.append(f"{lost:,} of {len(best):,} queries have no relevant passage: no metric counts them")
        if same := int(((best > 0) & (best == worst)).sum()):
            doubts.append(f"{same:,} of {len(best):,} queries have passages of one relevance only: any order is right")
        return doubts

    def slices(self, data: Any) -> tuple[str, list[str]] | None:
        """By the length of the query, in thirds."""
        words = np.array([len(text.split()) for text in data.texts])
        each = words[np.unique(data.units, return_index=True)[1]]
        short, long = (int(q) for q in np.quantile(each, [1 / 3, 2 / 3], method="lower"))
        if short == int(each.max()):
            return None
        long = max(long, short + 1)
        names = [f"up to {short} words", f"{short + 1} to {long} words" if long > short + 1 else f"{long} words",
                 f"more than {long} words"]  # fmt: skip
        return "query length", [names[int(n > short) + int(n > long)] for n in words]

    # the output --------------------------------------------------------------------------------------------

    def described(self, names: Sequence[str]) -> str:
        return "the relevance of a passage for a query (ranking)"

    def explained_name(self, target: Any, names: Sequence[str]) -> str:
        return self.named[0]

    def target_name(self, name: str) -> str:
        return "the relevance"

    # learning ------------------------------------------------------------------------------------------------

    def learned(self, gold: Any) -> NDArray:
        """Relevances; of grades above 1 the loss takes 1."""
        return np.asarray(gold)[:, 0]

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Binary cross-entropy: whether the passage is relevant."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        scores = logits[:, 0]
        return binary_cross_entropy_with_logits(scores, labels.to(scores.dtype).clamp(max=1), reduction=reduction)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        scores = logits[..., 0]
        return np.asarray(np.logaddexp(0, scores) - scores * np.minimum(gold[..., 0], 1))


def _number_of(query: str) -> float:
    """The same for the same text, whatever else the data hold; whole, and small enough for a float to hold."""
    raw = hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(raw, "little") >> 12)


def places(scores: NDArray) -> Floats:
    """The place of each passage of one query, from 1; tied ones have the mean of theirs."""
    return np.asarray(scipy.stats.rankdata(-np.asarray(scores, dtype=float)), dtype=float)


def _metric(name: str) -> Metric:
    measure = RankAnswers.measured_by(name)

    def undefined(predictions: NDArray, gold: NDArray) -> str | None:
        if not RankAnswers(gold, predictions).units:
            return "no query has a relevant passage"
        return None if np.isfinite(predictions).all() else "a score is not a finite number"

    def random(gold: NDArray) -> float | None:
        return measure(np.zeros(len(gold)), gold) if len(gold) and RankAnswers(gold, gold[:, 0]).units else None

    return Metric(measure, undefined, random, RANDOM, dims=(1, 2))


Rank.metrics = {name: _metric(name) for name in OF_QUERY}
RANK = Rank()

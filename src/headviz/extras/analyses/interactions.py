"""Interactions of heads: how the cost of one changes when another is off.

interaction(i, j) = −[loss(neither) − loss(without i) − loss(without j) + loss(all)]; below 0, one stands in for the
other. All pairs are estimated first: the logits without i and j are those without i, minus their slope by the gate of
j. The pairs of the largest estimates are then computed exactly, until the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from ...analyses.analysis import arguments
from ...analyses.common import SIGNIFICANT, Subject, first_draw, require_classes, require_seconds, subject_of
from ...attention import HeadCall, gate_of
from ...display.figures.heads import pair_map
from ...display.numbers import number, signed
from ...display.recipes import Code, call
from ...display.table import Column, Picture, Table, View
from ...errors import OptionError, TaskError
from ...evaluation.plain import gold_for
from ...heads import HeadId, in_order
from ...models.fast.linear import gpu_products
from ...models.places import fitted
from ...progress import Cancel, Progress, after, stop_if, tracked
from ...results import Result
from ...scores.statistics import mean
from ...statistics.resampling import rank_correlation
from ...statistics.significance import benjamini_hochberg
from ...tasks import Dataset
from ...tasks.sampling import limited, require_size

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ...analyses.analysis import Request
    from ...evaluation.evaluator import Evaluator
    from ...models.classifier import Encoding


@dataclass(frozen=True)
class Interaction(Result):
    """One pair, exactly: the mean over examples, its interval over units, and q over all pairs."""

    first: HeadId
    second: HeadId
    value: float  # below 0: one stands in for the other
    low: float
    high: float
    q: float
    estimate: float

    @property
    def clear(self) -> bool:
        return self.q <= SIGNIFICANT and (self.high < 0 or self.low > 0)


@dataclass(frozen=True, eq=False)
class Interactions(Result):
    """``matrix`` [H, H] over ``heads``: exact values of ``pairs``, estimates elsewhere, NaN on the diagonal."""

    subject: Subject
    loss: float  # of the whole model
    samples: int  # examples of the estimates
    heads: tuple[HeadId, ...]
    matrix: NDArray[np.float64]
    pairs: tuple[Interaction, ...]  # the strongest first
    seconds: float

    @cached_property
    def groups(self) -> tuple[tuple[HeadId, ...], ...]:
        """Heads that are joined by pairs that clearly stand in for each other, the largest group first."""
        place = {head: i for i, head in enumerate(self.heads)}
        joined = [(place[p.first], place[p.second]) for p in self.pairs if p.clear and p.value < 0]
        rows, columns = np.array(joined, int).reshape(-1, 2).T
        size = (len(self.heads), len(self.heads))
        _, labels = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), shape=size), directed=False)
        groups = [
            tuple(h for h, label in zip(self.heads, labels, strict=True) if label == number)
            for number in range(max(labels) + 1)
        ]
        return tuple(sorted((g for g in groups if len(g) > 1), key=lambda g: (-len(g), g)))

    def order(self) -> list[int]:
        """The order of heads in which those with similar interactions are neighbours."""
        near = np.maximum(0.0, -np.nan_to_num(self.matrix))
        if len(self.heads) < 3 or near.max() == 0:
            return list(range(len(self.heads)))
        far = near.max() - near
        np.fill_diagonal(far, 0.0)
        distances = squareform(far, checks=False)
        return [int(i) for i in leaves_list(optimal_leaf_ordering(linkage(distances, "average"), distances))]


def figure(result: Interactions) -> Figure:
    """The matrix, with heads that stand in for each other side by side."""
    order = result.order()
    return pair_map(result.matrix[np.ix_(order, order)], [str(result.heads[i]) for i in order], "interaction, loss")


def finding(result: Interactions) -> str:
    """What the exact pairs show."""
    clear, heads = [p for p in result.pairs if p.clear], len(result.heads)
    sentence = f"Of the {len(result.pairs):,} pairs of heads computed exactly (of {heads * (heads - 1) // 2:,}), "
    if not clear:
        return f"{sentence}none costs significantly more or less together than one by one."
    backs = sum(p.value < 0 for p in clear)
    sentence += (
        f"{backs or 'none'} cost{'s' * (backs < 2)} significantly more loss together than one by one (backups), "
        f"{len(clear) - backs or 'none'} significantly less (they need each other)."
    )
    first = clear[0]
    much = f"{number(abs(first.value))} of loss {'less' if first.value > 0 else 'more'}"
    return f"{sentence} Strongest: {first.first} and {first.second} cost {much} together than the sum of each alone."


def view(result: Interactions) -> View:
    agree, every = "", len(result.heads) * (len(result.heads) - 1) // 2
    exactness = "All values are exact." if len(result.pairs) == every else "Most values are estimates."
    if len(result.pairs) > 2:
        pairs = np.array([(p.estimate, p.value) for p in result.pairs]).T
        rank = signed(rank_correlation(*pairs), 2)
        agree = f" In the table below, the rank correlation of estimates and exact values is {rank}."
    form = "%+.4f"
    parts: list[Picture | Table] = [
        Picture(
            "interactions_matrix",
            lambda: figure(result),
            "Orange: one stands in for the other, so both together cost more than the sum. Blue: they need each other, "
            f"so the second costs less once the first is gone. {exactness}{agree}",
            r"-[\ell(\emptyset) - \ell(i) - \ell(j) + \ell(i, j)]",
            f"Estimates on {result.samples} examples; the strongest pairs exactly, on {result.subject.n:,}.",
        ),
        Table.of(
            "interactions_pairs",
            (
                Column("pair", value=lambda p: (p.first, p.second)),
                Column("interaction", form, attrgetter("value"), ends=lambda p: (p.low, p.high)),
                Column("q", value=attrgetter("q")),
                Column("estimate", form, attrgetter("estimate")),
            ),
            result.pairs,
            caption="The pairs computed exactly, in loss; q: Benjamini-Hochberg over all pairs, those not computed "
            "included.",
            shortened=12,
            height=320,
        ),
    ]
    if result.groups:
        groups = [[", ".join(map(str, group)), len(group)] for group in result.groups]
        caption = "Heads joined by pairs that stand in for each other."
        parts.append(Table("interactions_groups", ("heads", "how many"), groups, caption))
    lines = result.subject.lines(result.loss)
    return View(
        finding(result),
        tuple(parts),
        about=(*lines[:2], ("loss", f"{result.loss:.4f}"), *lines[3:]),
        rows=result.subject.rows,
        note="In loss; Backup pairs asks the same of the metric. A pair may be clear in one only.",
    )


NAMES = ("samples", "seconds", "seed")  # of the options
SAMPLES, SECONDS, BATCH = 64, 60.0, 16
ROUNDING = 1e-6  # of a loss computed in float32: pairs that change no example's by more do not interact


def interactions(
    evaluator: Evaluator,
    *,
    samples: int = SAMPLES,
    seconds: float = SECONDS,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Interactions:
    """The matrix of all pairs, estimated on ``samples`` examples, and exact pairs on all of them within ``seconds``.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(12, 12, ["0.0", "0.1", "11.0"]))
    >>> len(headviz.interactions(headviz.Evaluator(small, data), samples=10, seconds=5).pairs)
    3
    """
    require_classes(evaluator)
    evaluator = first_draw(evaluator)
    subject = subject_of(evaluator)
    if evaluator.gold is None:
        raise TaskError("Interactions are of the loss, and these data have no gold labels.")
    require_seconds(seconds)
    require_size(samples)
    heads = tuple(evaluator.clf.present.kept)
    if len(heads) < 2:
        raise OptionError("Interactions need at least two heads.")
    drawn = evaluator.data.subset(limited(evaluator.data, samples, seed))
    matrix = _estimated(evaluator, drawn, heads, after(progress, 0, 2 * len(heads)), cancel)
    start, whole = time.perf_counter(), _losses(evaluator, ())
    alone: dict[int, NDArray] = {}
    exact: dict[tuple[int, int], NDArray] = {}
    upper = np.triu_indices(len(heads), 1)
    every = list(zip(*(indices.tolist() for indices in upper), strict=True))
    for i, j in in_order(every, -np.abs(matrix[upper]), seed):
        spent = (time.perf_counter() - start) / seconds
        if exact and spent > 1:
            break
        stop_if(cancel)
        for place in (i, j):
            if place not in alone:
                alone[place] = _losses(evaluator, (heads[place],))
        each = alone[i] + alone[j] - whole - _losses(evaluator, (heads[i], heads[j]))
        exact[i, j] = each if np.abs(each).max() > ROUNDING else 0 * each
        if progress is not None:
            share = max(len(exact) / len(every), min(1.0, spent))
            progress(len(heads) + int(share * len(heads)), 2 * len(heads))
    rows = _rows(heads, matrix, exact, evaluator.data.units)
    for (i, j), each in exact.items():
        matrix[i, j] = matrix[j, i] = each.mean()
    if progress is not None:
        progress(2 * len(heads), 2 * len(heads))
    spent = time.perf_counter() - start
    return Interactions(subject, float(whole.mean()), len(drawn), heads, matrix, rows, spent)


def _estimated(
    evaluator: Evaluator, data: Dataset, heads: tuple[HeadId, ...], progress: Progress | None, cancel: Cancel | None
) -> NDArray[np.float64]:
    """[H, H]: the interactions with first-order logits: those without i, minus their slope by the gate of j.

    Each pair is the mean of both ways round.
    """
    clf = evaluator.clf
    gold = gold_for(data, evaluator.order)
    assert gold is not None
    encodings = clf.encode(data.texts, data.pairs)
    rows, columns = np.array(heads).T
    whole = clf.answer.losses(_sloped(evaluator, encodings, None)[0], gold)
    alone, both = [], []
    for head in tracked(heads, progress, cancel):
        logits, slopes = _sloped(evaluator, encodings, head)
        alone.append(clf.answer.losses(logits, gold))
        both.append(clf.answer.losses(logits[:, None] - slopes[:, rows, columns], gold[:, None]).mean(axis=0))
    single = np.mean(alone, axis=1)
    estimate = single[:, None] + single[None] - whole.mean() - np.array(both)
    estimate = (estimate + estimate.T) / 2
    np.fill_diagonal(estimate, np.nan)
    return np.asarray(estimate)


def _sloped(evaluator: Evaluator, encodings: Sequence[Encoding], off: HeadId | None) -> tuple[NDArray, NDArray]:
    """Logits [N, C] or [N, W, C] without a head, and their derivatives [N, L, H, C] by every head's gate."""
    clf, logits, slopes = evaluator.clf, [], []
    shape = clf.answer.shape(encodings, clf.num_labels)
    for begin in range(0, len(encodings), BATCH):
        texts = encodings[begin : begin + BATCH]
        batch, stand_ins, size = clf.collate(texts), evaluator.stand_in_values(texts), len(texts)
        gates = [torch.ones(size, h, 1, 1).to(clf.device, clf.dtype).requires_grad_() for h in clf.heads_per_layer]
        passed: list[torch.Tensor] = list(gates)
        if off is not None:
            kept = torch.ones_like(gates[off.layer])
            kept[:, clf.present.kept_in(off.layer).index(off.head)] = 0
            passed[off.layer] = gates[off.layer] * kept
        with torch.enable_grad(), gpu_products(clf.device):
            out = clf.forward(batch, HeadCall(tuple(map(gate_of, passed, stand_ins)), order=clf.order))
            out = fitted(out, shape)
            flat = out.flatten(1)
            each = [torch.autograd.grad(flat[:, c].sum(), gates, retain_graph=True) for c in range(flat.shape[1])]
        slopes_of_classes = np.zeros((size, clf.num_layers, clf.num_heads, flat.shape[1]))
        for c, grads in enumerate(each):
            for layer, grad in enumerate(grads):
                slopes_of_classes[:, layer, clf.present.kept_in(layer), c] = grad[:, :, 0, 0].double().cpu().numpy()
        logits.append(out.detach().double().cpu().numpy())
        slopes.append(slopes_of_classes.reshape(*slopes_of_classes.shape[:3], *shape))
    return np.concatenate(logits), np.concatenate(slopes)


def _losses(evaluator: Evaluator, off: tuple[HeadId, ...]) -> NDArray[np.float64]:
    """The loss of every example with these heads off."""
    logits = evaluator.evaluate(evaluator.clf.present.without(off), keep=False).logits.astype(np.float64)
    assert evaluator.gold is not None
    return evaluator.clf.answer.losses(logits, evaluator.gold)


def _rows(
    heads: tuple[HeadId, ...], estimates: NDArray, exact: Mapping[tuple[int, int], NDArray], units: NDArray
) -> tuple[Interaction, ...]:
    """The exact pairs, strongest first, tested over units."""
    summary = mean(np.stack(list(exact.values()), axis=1), units)
    means, errors = summary.values, summary.stderr
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * scipy.stats.t.sf(np.abs(means) / errors, summary.rows - 1)
    p = np.where(errors > 0, p, np.where(means == 0, 1.0, np.nan))
    # chosen by estimates on these examples, so those not computed count as tested, too
    others = np.ones(len(heads) * (len(heads) - 1) // 2 - len(p))
    q_values = benjamini_hochberg([*p, *others])[: len(p)].tolist()
    columns = (values.tolist() for values in (means, summary.low, summary.high))
    rows = [
        Interaction(heads[i], heads[j], value, low, high, q, float(estimates[i, j]))
        for (i, j), value, low, high, q in zip(exact, *columns, q_values, strict=True)
    ]
    return tuple(in_order(rows, [-abs(r.value) for r in rows], seed=0))


def run(request: Request) -> Interactions:
    return interactions(request.evaluator, **arguments(request, *NAMES))


def recipe(options: Mapping[str, Any]) -> str:
    code = call("headviz.interactions", Code("evaluator"), **{name: options[name] for name in NAMES})
    return f"result = {code}"

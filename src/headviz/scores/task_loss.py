"""What a task's metric loses without each head, with its uncertainty over examples.

Shapes: n examples, L layers, H heads, R resamples, C classes of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import plugins
from ..errors import OptionError, is_one_of, unknown_choice
from ..evaluation.evaluator import Evaluator, EvaluatorOptions
from ..evaluation.stand_ins import standing_in
from ..progress import Cancel
from .chunk import Chunk, Tables
from .options import LOSS, AblationOptions, StandInOptions
from .statistics import Counts, Summary, draw, exact, mean

if TYPE_CHECKING:
    from ..tasks import Dataset

_RESAMPLES = 1000


def ablation(chunk: Chunk) -> list[Callable[[], Tables]]:
    """The sweep of ablations: logits of each example with all heads, and without each of them."""
    if (custom := chunk.data.answer.own.get("ablation")) is not None:
        tables: list[Callable[[], Tables]] = plugins.function(custom)(chunk)
        return tables
    clf, mask = chunk.clf, chunk.mask
    model = Evaluator(
        clf, chunk.data, EvaluatorOptions(budget=chunk.budget, precision="float32"), label_order=chunk.label_order
    )
    full = model.evaluate(mask, cancel=chunk.cancel).logits
    without = np.full((len(full), clf.num_layers, clf.num_heads, *full.shape[1:]), np.nan, np.float32)
    for head in mask.kept:
        without[:, head.layer, head.head] = model.evaluate(mask.without([head]), keep=False, cancel=chunk.cancel).logits
    return [lambda i=i: {"full": full[i], "without": without[i]} for i in range(len(full))]  # type: ignore[misc]


def all_at_once(chunk: Chunk) -> Iterator[slice]:
    yield slice(0, len(chunk.encodings))


def check_metric(data: Dataset, metric: str | None) -> str:
    """The name of the metric, by default the task's first; an ``OptionError`` if the task does not have it."""
    name = data.task.primary_metric if metric is None else metric
    if not is_one_of(name, data.task.metrics):
        raise OptionError(unknown_choice(f"metric of '{data.task.name}'", name, data.task.metrics))
    if name in data.answer.unscored:
        raise OptionError(
            f"The ablation score of '{data.task.name}' is not measured in '{name}'. Choose another metric."
        )
    return name


def scored_model(
    clf: Any, options: Any, data: Dataset, label_order: Sequence[str] | str | None, cancel: Cancel | None
) -> Any:
    """The model that is scored: with what stands in a head's place, if the options say so. Checks the metric first."""
    if isinstance(options, AblationOptions):
        check_metric(data, options.metric)
        if options.ties == LOSS and "ablation" in data.answer.own:
            raise OptionError(f"A loss of '{data.task.name}' is not measured. Choose random ties (ties='random').")
    if not isinstance(options, StandInOptions):
        return clf
    return standing_in(clf, options.ablation, data, label_order=label_order, cancel=cancel)


def cost_of_ablation(rows: Tables, data: Dataset, order: NDArray | None, metric: str | None) -> Summary:
    """metric(full) − metric(full without the head): positive = the head helps.

    The intervals are those of every other comparison on the same examples (``answers.comparison``); draws of the
    examples give the standard errors, and how stable the ranking is.
    """
    name = check_metric(data, metric)
    if (custom := data.answer.own.get("ablation cost")) is not None:
        cost: Summary = plugins.function(custom)(rows, data)
        return cost
    assert order is not None
    full, without = rows["full"], rows["without"]  # [n, C], [n, L, H, C]; [n, L, H, W, C] of answers word by word
    measured = ~np.isnan(without).all(axis=tuple(range(3, without.ndim))).any(axis=0)
    all_heads = data.answer.predicted(full, order)
    shape = measured.shape
    answers = {
        (layer, head): data.answer.predicted(without[:, layer, head], order) for layer, head in np.argwhere(measured)
    }
    compared = data.answer.answers(data.gold, all_heads, data.label_names)
    deltas = compared.deltas(list(answers.values()), name, tested=not compared.slow_test)
    values, low, high = (np.full(shape, np.nan) for _ in range(3))
    for head, delta in zip(answers, deltas, strict=True):
        values[head] = delta.full - delta.masked
        low[head], high[head] = 0.0 - delta.interval_high, 0.0 - delta.interval_low
    n = compared.units
    quality = compared.each(all_heads, name) if compared.function(name) is None else None
    if quality is not None:  # the metric is a mean over the units
        per = np.full((n, *shape), np.nan)
        for head, masked in answers.items():
            per[:, *head] = quality - np.asarray(compared.each(masked, name))
        return replace(mean(per), low=low, high=high)

    def resample(counts: Counts) -> NDArray:
        out = np.full((len(counts), *shape), np.nan)
        base = compared.resampled(counts, all_heads, name)
        for head, masked in answers.items():
            out[:, *head] = base - compared.resampled(counts, masked, name)
        return out

    if n < 2:
        return replace(exact(values), low=low, high=high)
    drawn = resample(draw(n, resamples=_RESAMPLES // 5 if compared.slow_test else _RESAMPLES))
    defined = measured & np.isfinite(values)  # F1 without any of class 1, say, is undefined
    stderr = np.full(shape, np.nan)
    stderr[defined] = np.nanstd(drawn[:, defined], axis=0, ddof=1)
    return Summary(values, stderr, low, high, np.zeros(shape, np.int64), n, resample)


def cost_in_loss(rows: Tables, data: Dataset, order: NDArray) -> NDArray:
    """[n, L, H] loss without the head − loss with all: cross-entropy of the gold class, or the squared error.

    NaN where an answer is not finite.
    """
    without = rows["without"].astype(np.float64)  # [n, L, H, C]
    full = rows["full"].astype(np.float64)[:, None, None]  # [n, 1, 1, C]

    gold = data.answer.in_model(data.gold, order)[:, None, None]
    with np.errstate(invalid="ignore"):
        gained: NDArray = data.answer.losses(without, gold) - data.answer.losses(full, gold)
    return np.where(np.isfinite(gained), gained, np.nan)

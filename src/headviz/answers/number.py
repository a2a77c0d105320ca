"""A number for a text (a regression): the job ``number``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, TaskError, is_one_of, shown, unknown_choice
from ..heads import CLASSIFICATION
from ..statistics.intervals import correlation_interval
from ..statistics.resampling import REGRESSION_METRICS, follows, pearson, regression_swap_p
from .answer import FIRST, GOLD, JOB, PREDICTED, Answer, Lead, Target, one_for_each
from .comparison import RESAMPLES, Answers, Drawn, Ends, percentiles, read_rows
from .metrics import ANY_ANSWER, Metric, unrelated

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-5  # of the largest number, or of 1: spread of the answers that says nothing


@dataclass(frozen=True, eq=False)
class NumberAnswers(Answers):
    """Numbers, judged by their correlation with the gold ones. The unit is the example."""

    slow_test = True

    def measure(self, predicted: NDArray, metric: str) -> float:
        if (function := self.function(metric)) is not None:
            return function.measure(predicted)
        if not is_one_of(metric, REGRESSION_METRICS):
            raise TaskError(unknown_choice("regression metric", metric, REGRESSION_METRICS))
        return float(follows(self.gold.astype(float), predicted.astype(float), metric))

    def interval(self, predicted: NDArray, metric: str, seed: int = 0) -> Ends:
        """Bootstrap percentiles."""
        if (function := self.function(metric)) is not None:
            return function.interval(predicted, seed)
        n = len(self.gold)
        rows = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))
        gold, predicted = self.gold.astype(float), predicted.astype(float)
        return percentiles(np.array([follows(gold[i], predicted[i], metric) for i in rows]))

    def resampled(self, counts: NDArray, predicted: NDArray, metric: str) -> NDArray[np.float64]:
        if (function := self.function(metric)) is not None:
            return function.resampled(counts, predicted)
        index = np.array([np.repeat(np.arange(len(self.gold)), drawn.astype(int)) for drawn in counts])  # [R, n]
        return follows(self.gold[index].astype(float), predicted[index].astype(float), metric)

    def uncertainty(self, masked: NDArray, metric: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        if (function := self.function(metric)) is not None:
            return function.uncertainty(masked, seed, level)
        ends = correlation_interval(self.gold, self.full, masked, level, ranked=metric == "spearman")
        return *ends, float("nan") if seed is None else regression_swap_p(self.gold, self.full, masked, metric, seed)

    def quality(self, predicted: NDArray) -> NDArray:
        """The answers themselves: what is counted is how many fell, and how many rose."""
        return predicted

    def agreement(self, predicted: NDArray) -> float | None:
        """Pearson's r with the full model's; None if one is constant."""
        r = pearson(self.full, predicted)
        return r if np.isfinite(r) else None


class Number(Answer):
    """The only logit is the answer, and F."""

    job, kind = "number", CLASSIFICATION
    does = "reads {texts} and gives a number"
    costs = "squared error, added without the head"
    named: tuple[str, str] = ("number", "examples")
    architectures: tuple[str, ...] = ("ForSequenceClassification",)
    auto_class = "AutoModelForSequenceClassification"
    trained, read_at = "classification head", FIRST
    decoder: bool | None = None
    usual: tuple[str, ...] = ("pearson", "spearman")
    graded_in, agrees = "pearson", "r with its answers"
    paired, columns, instead, functions = True, "number", "rank", True
    label_type = "float32"
    least_lead = 0.05  # between two texts, for patching

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        return outputs == 1 and problem != "multi_label_classification"

    def choice(self, settings: Mapping[str, Any]) -> str:
        """Of one output the configuration does not say whether it is a number or orders passages."""
        if settings.get("problem_type") == "regression" or settings.get(JOB) is not None:
            return ""
        return "It has one output, read as a number; --job rank (job='rank') reads it as what orders passages."

    def possible(self, outputs: int) -> bool:
        return outputs == 1

    def claim(self, config: Any) -> None:
        config.problem_type = "regression"

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> Answers:
        return NumberAnswers(gold, full)

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[Answers, NDArray]:
        rows = (row.astype(float) for row in read_rows(gold, before, after))
        # times a power of two, which leaves correlations unchanged: no square is too large or too small for a number
        gold, before, after = (np.ldexp(row, -np.frexp(np.abs(row).max())[1]) for row in rows)
        return NumberAnswers(gold, before), after

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """Pearson's r; 0 where one is constant, because one answer for all follows nothing."""
        n, y = weights.sum(axis=1), gold - gold.mean()

        def follows(predictions: NDArray) -> NDArray[np.float64]:
            x = predictions.astype(float) - predictions.astype(float).mean()
            ex, ey = weights @ x / n, weights @ y / n
            spread = (weights @ (x * x) / n - ex**2).clip(0) * (weights @ (y * y) / n - ey**2).clip(0)
            with np.errstate(divide="ignore", invalid="ignore"):
                r: NDArray[np.float64] = (weights @ (x * y) / n - ex * ey) / np.sqrt(spread)
            return np.where(spread > 1e-18, r, 0.0)

        return Drawn(follows, np.zeros(len(weights)), "does not follow the gold values")

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        labels = np.array(one_for_each(labels), dtype=np.float64)
        if not np.isfinite(labels).all():
            raise TaskError("A label is not a finite number; remove or correct that row.")
        return labels

    def label(self, value: Any, names: Sequence[str]) -> float:
        return float(value)

    def groups(self, data: Any) -> tuple[NDArray[np.int64], list[str]]:
        """Fifths by value, lowest first."""
        fifths = quintiles(data.gold)
        members = [data.gold[fifths == k] for k in range(int(fifths.max(initial=-1)) + 1)]
        for digits in range(4, 18):  # with 17 no two numbers look the same
            names = [f"{m.min():.{digits}g} to {m.max():.{digits}g}" for m in members]
            if len(set(names)) == len(names):
                break
        return fifths, names

    def order(self, clf: Any, data: Any, label_order: Sequence[str] | str | None) -> NDArray[np.int64]:
        if len(clf.labels) != 1:
            raise TaskError(
                f"Task '{data.task.name}' is a regression: it needs a model with one output, "
                f"and this one has {len(clf.labels)} ({', '.join(clf.labels)})."
            )
        if self.job not in clf.answer.reads:
            raise TaskError(
                f"'{clf.name}' answers with {clf.answers}, but '{data.task.name}' asks for "
                f"{self.described(())}. Load the model with the job of the data (--job {self.job}, job='{self.job}')."
            )
        return np.zeros(1, dtype=np.int64)

    # the output --------------------------------------------------------------------------------------------

    def described(self, names: Sequence[str]) -> str:
        return "a number (regression)"

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        """Numbers that differ by rounding alone are one number: with all heads off, its last bits follow the batch."""
        predicted: NDArray = np.asarray(logits)[:, 0].astype(np.float64)
        same = len(predicted) > 0 and np.ptp(predicted) <= ROUNDING * max(1.0, float(np.abs(predicted).max()))
        return np.full_like(predicted, predicted[0]) if same else predicted

    def plain(self, logits: NDArray) -> NDArray:
        return logits[:, 0]

    # the scalar to explain -----------------------------------------------------------------------------------

    def target(self, clf: Any, target: str | int, label: Any = None) -> int:
        if target not in (PREDICTED, GOLD, 0):
            raise OptionError(f"'{clf.name}' predicts a number; its target is 'predicted', not {shown(target)}.")
        return 0

    def target_name(self, name: str) -> str:
        return "the number"

    def lead(self, text: NDArray, donor: NDArray, target: Target, names: Sequence[str]) -> Lead:
        """The number itself."""

        def of(logits: NDArray) -> NDArray:
            value: NDArray = logits[..., 0].astype(np.float64)
            return value

        return Lead(of, self.target_name(""), f"{text[0]:.3f}", f"{donor[0]:.3f}", least=self.least_lead)

    # learning ------------------------------------------------------------------------------------------------

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """The squared error."""
        import torch

        precise = torch.promote_types(logits.dtype, torch.float32)
        return torch.nn.functional.mse_loss(logits[:, 0], labels.to(precise), reduction=reduction)

    def imitated(self, logits: Tensor, theirs: Tensor, temperature: float) -> Tensor:
        """The squared error."""
        from torch.nn.functional import mse_loss

        return mse_loss(logits, theirs)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        return np.asarray(np.square(logits[..., 0] - gold))


def quintiles(values: NDArray) -> NDArray[np.int64]:
    """Fifths by value. Equal values stay together, so many ties give fewer and larger groups."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    edges = np.unique(np.quantile(values, [0.2, 0.4, 0.6, 0.8]))
    return np.unique(np.searchsorted(edges, values, side="left"), return_inverse=True)[1].astype(np.int64)


# metrics ---------------------------------------------------------------------------------------------------


def _correlation(name: str) -> Metric:
    def value(predictions: NDArray, gold: NDArray) -> float:
        return float(follows(gold.astype(float), predictions.astype(float), name))

    return Metric(value, unrelated, lambda gold: 0.0, constant_name=ANY_ANSWER)


Number.metrics = {name: _correlation(name) for name in REGRESSION_METRICS}
NUMBER = Number()

"""Yes or no to each of several labels of a text: the job ``labels``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import OptionError, TaskError
from ..heads import CLASSIFICATION
from .answer import FIRST, GOLD, PREDICTED, WORSE_FIRST, Answer, Changed, change_of
from .class_names import order_of_occurring
from .comparison import Drawn, SumAnswers, f1, mean_of_units, read_rows
from .metrics import Metric
from .one_class import OTHER, WIDTHS, output_named

if TYPE_CHECKING:
    from torch import Tensor

NONE = "none of them"
SAME = "the same labels for all"
MOST_FREQUENT = "the most frequent labels for all"


@dataclass(frozen=True, eq=False)
class LabelAnswers(SumAnswers):
    """Tables [n, C] of 0 and 1 in the task's order; a row of -1 is an answer that is not finite. The unit is the
    example."""

    names: tuple[str, ...] = ()  # of the labels

    metrics: ClassVar[Mapping[str, Callable[[NDArray], NDArray]]] = {
        "micro_f1": lambda total: f1(*np.moveaxis(total, -1, 0)),
        "macro_f1": lambda total: _macro(total),
        "exact_match": mean_of_units,
        "label_accuracy": mean_of_units,
    }

    def parts(self, predicted: NDArray, metric: str) -> NDArray:
        """Hits, gold and predicted labels, of each label for the macro mean."""
        if metric in ("exact_match", "label_accuracy"):
            return super().parts(predicted, metric)
        counts = np.stack([(predicted == 1) & (self.gold == 1), self.gold == 1, predicted == 1], axis=1)  # [n, 3, C]
        return counts.reshape(len(counts), -1).astype(np.int64) if metric == "macro_f1" else counts.sum(axis=2)

    def each(self, predicted: NDArray, metric: str) -> NDArray[np.float64] | None:
        """An example's share of right labels, or whether all are right. Of a slice, which has one label, both are its
        accuracy."""
        right = predicted == self.gold
        if metric == "label_accuracy":
            return right.mean(axis=1)
        return right.all(axis=1).astype(float) if metric == "exact_match" else None

    def quality(self, predicted: NDArray) -> NDArray[np.int64]:
        """How many of an example's labels are right."""
        return (predicted == self.gold).sum(axis=1)

    def agreement(self, predicted: NDArray) -> float:
        return float((predicted == self.full).all(axis=1).mean())

    def sliced(self, masked: NDArray, slices: Sequence[str] | None) -> Iterator[tuple[str, LabelAnswers, NDArray]]:
        """By the data's slices, else by label: the same examples, with that label alone."""
        if slices is not None:
            yield from super().sliced(masked, slices)
            return
        for number, name in enumerate(self.names):
            gold, full, predicted = (table[:, number : number + 1] for table in (self.gold, self.full, masked))
            if gold.any():
                yield name, replace(self, gold=gold, full=full, names=()), predicted


def _macro(total: NDArray) -> NDArray[np.float64]:
    """The mean over the labels that occur or are predicted."""
    each = f1(*np.moveaxis(total.reshape(*total.shape[:-1], 3, -1), -2, 0))
    finite = np.isfinite(each)
    count = finite.sum(axis=-1)
    summed = np.where(finite, each, 0.0).sum(axis=-1)
    return np.divide(summed, count, out=np.full(count.shape, np.nan), where=count > 0)


class Labels(Answer):
    """A label is predicted where its probability is above its threshold. F is the logit of one label, by default the
    most probable."""

    def __init__(self, thresholds: Sequence[float] = ()) -> None:
        self.thresholds = tuple(thresholds)  # one for each label; empty = .5

    job, kind = "labels", CLASSIFICATION
    does = "reads {texts} and says which of {n} labels hold"
    costs = "log-probability of the right labels, lost without the head"
    architectures, auto_class = ("ForSequenceClassification",), "AutoModelForSequenceClassification"
    trained, read_at, decoder = "classification head", FIRST, None
    usual, graded_in = ("micro_f1", "macro_f1", "exact_match", "label_accuracy"), "micro_f1"
    paired, label_needed = True, False
    columns, several_columns, named = "labels", True, ("label", "examples")
    functions, flips, label_type = True, True, "float32"

    @property
    def formula(self) -> str:  # type: ignore[override]
        return r"p_c = 1 / (1 + e^{-z_c}),\ \text{predicted where } p_c > " + ("t_c" if self.thresholds else ".5")

    def at(self, thresholds: Sequence[float], names: Sequence[str]) -> Labels:
        if len(thresholds) != len(names) or not all(0 < threshold < 1 for threshold in thresholds):
            raise TaskError(
                f"Thresholds are one number between 0 and 1, or one for each of the {len(names)} labels: "
                f"{', '.join(names)} (--thresholds, thresholds=)."
            )
        return Labels(thresholds)

    def in_outputs(self, order: NDArray) -> Labels:
        return Labels(self.in_model(np.array(self.thresholds), order).tolist()) if self.thresholds else self

    @property
    def least(self) -> NDArray[np.float64]:
        """Of each label, or of all, the logit that belongs to its threshold."""
        least: NDArray[np.float64] = scipy.special.logit(np.array(self.thresholds or (0.5,)))
        return least

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        return problem == "multi_label_classification"

    def claim(self, config: Any) -> None:
        config.problem_type = "multi_label_classification"

    # judging -----------------------------------------------------------------------------------------------

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> LabelAnswers:
        return LabelAnswers(gold, full, tuple(names))

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[LabelAnswers, NDArray]:
        gold, before, after = read_rows(gold, before, after, _table)
        if len({table.shape[1] for table in (gold, before, after)}) > 1:
            raise TaskError("gold, before and after must have equally many labels.")
        return LabelAnswers(gold, before), after

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """Micro F1, against the same labels for all."""
        answers = LabelAnswers(gold, _same_for_all(gold))

        def f1_of(predicted: NDArray) -> NDArray[np.float64]:
            return np.nan_to_num(answers.resampled(weights, predicted, self.graded_in))

        return Drawn(f1_of, f1_of(answers.full), f"is no better than {SAME}")

    def counts(self, predictions: NDArray, names: Sequence[str]) -> dict[str, int]:
        counts = dict(zip(names, (predictions == 1).sum(axis=0).tolist(), strict=True))
        return counts | {NONE: int((predictions != 1).all(axis=1).sum())}

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        answers, rows = LabelAnswers(data.gold, full), []
        before, after = answers.quality(full), answers.quality(masked)
        for i in map(int, np.flatnonzero((full != masked).any(axis=1))):
            e, named = data[i], (_named(labels[i], data.label_names) for labels in (full, masked))
            rows.append([e.text, e.pair, e.label, *named, change_of(before[i], after[i]), e.slice, i])
        kinds = [row[5] for row in rows]
        return Changed(
            f"Examples with changed labels: {kinds.count('worse')} now worse, {kinds.count('better')} now better"
            + (f", {kinds.count('other')} neither" if "other" in kinds else ""),
            "No label changed.",
            "Examples of which a label changes under the mask.",
            ("text", "pair", "gold", "full model", "masked", "change", data.slice_name or "slice", "example"),
            sorted(rows, key=lambda row: WORSE_FIRST.index(row[5])),
            WIDTHS,
        )

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        if labels.ndim != 2 or labels.shape[1] != len(names):
            raise TaskError(f"Several labels are a table of {len(names)} columns, one for each label.")
        if not np.isin(labels, (0, 1)).all():
            raise TaskError("A label is 0 or 1 for each example.")
        return np.array(labels, dtype=np.int64)

    def label(self, value: Any, names: Sequence[str]) -> str:
        return _named(value, names)

    def groups(self, data: Any) -> tuple[NDArray[np.int64], list[str]]:
        """By the rarest label that an example has; those that are no example's rarest have no group."""
        gold = data.gold
        counts = np.where(gold == 1, gold.sum(axis=0), np.iinfo(np.int64).max)
        rarest = np.where(gold.any(axis=1), counts.argmin(axis=1), gold.shape[1])
        labels, groups = np.unique(rarest, return_inverse=True)
        return groups.astype(np.int64), [[*data.label_names, NONE][i] for i in labels]

    def order(self, clf: Any, data: Any, label_order: Sequence[str] | str | None) -> NDArray[np.int64]:
        if clf.job != self.job:
            raise TaskError(
                f"'{clf.name}' gives a text one answer ({clf.answers}), but '{data.task.name}' has several labels. "
                "Choose a model of several labels, or load it as one (--job labels, job='labels')."
            )
        occurs = None if data.labels is None else data.labels.any(axis=0)
        order: NDArray[np.int64] = order_of_occurring(clf.labels, data, label_order, occurs)
        if (order >= 0).sum() != len(clf.labels):
            raise TaskError(
                f"'{clf.name}' has {len(clf.labels)} labels ({', '.join(clf.labels)}), and the task has "
                f"{(order >= 0).sum()} of them. Name a column for each."
            )
        return order

    def in_model(self, labels: NDArray, order: NDArray) -> NDArray:
        known = order >= 0
        reordered = np.empty_like(labels[..., known])
        reordered[..., order[known]] = labels[..., known]
        return reordered

    # the output --------------------------------------------------------------------------------------------

    def described(self, names: Sequence[str]) -> str:
        return f"yes or no to {', '.join(names)}"

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        """-1, which is never right, in a row that is not finite."""
        logits = np.asarray(logits)
        yes = ((order >= 0) & (logits[:, order] > self.least)).astype(np.int64)
        return np.where(np.isfinite(logits).all(axis=1)[:, None], yes, OTHER)

    def plain(self, logits: NDArray) -> NDArray:
        return (logits > self.least).astype(np.int64)

    def margin(self, logits: NDArray, kept: Any) -> float:
        """That of the label that is nearest to another decision."""
        return float((np.where(kept, 1, -1) * (logits - self.least)).min())

    def shares(self, values: NDArray, names: Sequence[str]) -> list[tuple[str, float]]:
        likely = values > scipy.special.expit(self.least)
        named = [(name, float(share)) for name, share, yes in zip(names, values, likely, strict=True) if yes]
        return named or [(NONE, float(1 - values.max()))]

    def values(self, logits: NDArray) -> NDArray:
        shares: NDArray = scipy.special.expit(logits)
        return shares

    # the scalar to explain -----------------------------------------------------------------------------------

    def probable(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def targets(self, names: Sequence[str], labelled: bool) -> list[str]:
        return [PREDICTED, *names]

    def target(self, clf: Any, target: str | int, label: Any = None) -> int | None:
        """The target "gold" is the first of an example's labels, in the model's order; without any the predicted one.

        ``label`` is a row of 0 and 1, or the name of one label.
        """
        if target != GOLD:
            return None if target == PREDICTED else output_named(clf, target)
        if label is None:
            raise OptionError("The target 'gold' needs one of the example's labels (--label, label=).")
        if not isinstance(label, list | np.ndarray):
            return output_named(clf, label)
        return int(np.argmax(label)) if np.any(label) else None

    # learning ------------------------------------------------------------------------------------------------

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Binary cross-entropy: the mean over the labels of an example."""
        from torch.nn.functional import binary_cross_entropy_with_logits

        each = binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").mean(dim=-1)
        return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()

    def imitated(self, logits: Tensor, theirs: Tensor, temperature: float) -> Tensor:
        """Binary cross-entropy with the teacher's softened probabilities."""
        return temperature**2 * self.loss(logits / temperature, (theirs / temperature).sigmoid())

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        losses: NDArray[np.float64] = (np.logaddexp(0, logits) - logits * gold).mean(axis=-1)
        return losses


def _named(row: NDArray, names: Sequence[str]) -> str:
    """The labels of one example, with commas; a dash for an answer that is not finite."""
    if (row < 0).any():
        return "–"
    return ", ".join(name for name, yes in zip(names, row, strict=True) if yes) or NONE


def _table(values: Any, name: str) -> NDArray[np.int64]:
    """A table of 0 and 1 that a user gave."""
    table = np.asarray(values)
    if table.ndim != 2 or table.dtype.kind not in "iufb" or not np.isin(table, (0, 1)).all():
        raise TaskError(f"{name} must be a table of 0 and 1: a row for each example, a column for each label.")
    return table.astype(np.int64)


def _same_for_all(gold: NDArray) -> NDArray[np.int64]:
    """The labels that give the best micro F1 if every example gets them."""
    counts = gold.sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    hits, n = np.cumsum(counts[order]), len(gold)
    best = int(np.argmax(2 * hits / (counts.sum() + n * np.arange(1, len(order) + 1)))) + 1
    row = np.zeros(gold.shape[1], dtype=np.int64)
    row[order[:best]] = 1
    return np.tile(row, (n, 1))


def _nothing(predictions: NDArray, gold: NDArray) -> str | None:
    return None if (predictions == 1).any() or (gold == 1).any() else "no example has, or is predicted to have, a label"


def _most_frequent(gold: NDArray) -> float | None:
    """The share of the most frequent set of labels."""
    return float(np.unique(gold, axis=0, return_counts=True)[1].max() / len(gold)) if len(gold) else None


def _each_most_frequent(gold: NDArray) -> float | None:
    """Each label for all or for none."""
    share = gold.mean(axis=0) if len(gold) else np.zeros(0)
    return float(np.maximum(share, 1 - share).mean()) if share.size else None


def _f1(metric: str, same: Callable[[NDArray], NDArray]) -> Metric:
    """A mean F1 and what it is where all examples get the ``same`` labels."""
    measure = LabelAnswers.measured_by(metric)

    def constant(gold: NDArray) -> float | None:
        return measure(same(gold), gold) if len(gold) else None

    return Metric(measure, _nothing, constant, dims=(2, 2), constant_name=SAME)


Labels.metrics = {
    "micro_f1": _f1("micro_f1", _same_for_all),
    "macro_f1": _f1("macro_f1", np.ones_like),
    "exact_match": Metric(
        LabelAnswers.measured_by("exact_match"), constant=_most_frequent, dims=(2, 2), constant_name=MOST_FREQUENT
    ),
    "label_accuracy": Metric(
        LabelAnswers.measured_by("label_accuracy"), constant=_each_most_frequent, dims=(2, 2), constant_name=SAME
    ),
}
LABELS = Labels()

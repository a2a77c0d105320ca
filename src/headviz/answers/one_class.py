"""One class of several for a text: the job ``class``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import OptionError, TaskError, shown, unknown_choice
from ..heads import CLASSIFICATION
from ..statistics import resampling
from ..statistics.intervals import accuracy_intervals, class_intervals
from ..statistics.significance import LEVEL, Flips, confusion, flips, mcnemar, wilson
from .answer import FIRST, GOLD, PREDICTED, Answer, Changed, one_for_each
from .class_names import order_of_occurring
from .comparison import RESAMPLES, Answers, Delta, Drawn, Ends, percentiles, read_row, read_rows
from .metrics import Metric, counts, remark_on

if TYPE_CHECKING:
    from torch import Tensor

MOST_CLASSES = 2000  # of a metric that is computed from a table of all classes
UNBALANCED = 0.8  # share of the commonest class from which on other metrics stand next to accuracy
OTHER = -1  # a predicted class that the task does not have
WIDTHS = {"text": 260, "pair": 210, "gold": 88, "full model": 88, "masked": 88, "change": 58}  # pixels


@dataclass(frozen=True, eq=False)
class ClassAnswers(Answers):
    """Class numbers of the task; -1 predicts none of the classes. The unit is the example."""

    classes: int

    def measure(self, predicted: NDArray, metric: str) -> float:
        return resampling.class_metric(self.gold, predicted, self.classes, metric)

    def interval(self, predicted: NDArray, metric: str, seed: int = 0) -> Ends:
        """Wilson's for accuracy, bootstrap percentiles for the others."""
        n = len(self.gold)
        if metric == "accuracy":
            return wilson(int(np.count_nonzero(self.gold == predicted)), n)
        table = confusion(self.gold, predicted, self.classes)
        # of predictions, confusion has a column for none of the classes; with such a row it is square
        table = np.pad(table, ((0, table.shape[1] - self.classes), (0, 0)))
        drawn = np.random.default_rng(seed).multinomial(n, table.ravel() / n, size=RESAMPLES)
        return percentiles(resampling.of_tables(metric, drawn.reshape(-1, *table.shape)))

    def each(self, predicted: NDArray, metric: str) -> NDArray[np.float64] | None:
        return (predicted == self.gold).astype(float) if metric == "accuracy" else None

    def resampled(self, counts: NDArray, predicted: NDArray, metric: str) -> NDArray[np.float64]:
        side = self.classes + 1  # an answer that is no class of the task gets a place of its own
        place = self.gold * side + np.where(predicted < 0, self.classes, predicted)
        table = counts @ np.eye(side * side)[place]  # [R, side²]
        return resampling.of_tables(metric, table.reshape(-1, side, side))

    def uncertainty(self, masked: NDArray, metric: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        joint = resampling.joint_counts(self.gold, self.full, masked, self.classes)
        low, high = class_intervals(joint, metric, level)
        return low, high, float("nan") if seed is None else resampling.class_swap_p(joint, metric, seed)

    def deltas(
        self,
        masked: Sequence[NDArray],
        metric: str,
        seed: int = 0,
        level: float = LEVEL,
        name: str = "",
        tested: bool = True,
    ) -> list[Delta]:
        """For accuracy the exact test and its interval, of all masks at once."""
        if metric != "accuracy" or not len(masked):
            return super().deltas(masked, metric, seed, level, name, tested)
        n, full, right = len(self.gold), self.measure(self.full, metric), self.full == self.gold
        worse = np.array([np.count_nonzero(right & (m != self.gold)) for m in masked], dtype=np.int64)
        better = np.array([np.count_nonzero(~right & (m == self.gold)) for m in masked], dtype=np.int64)
        ends, p_values = accuracy_intervals(worse, better, n, level), mcnemar(worse, better)
        return [
            Delta(metric, n, full, float(np.mean(m == self.gold)), float(low), float(high), float(p), name)
            for m, low, high, p in zip(masked, *ends, p_values, strict=True)
        ]

    def remark(self, predicted: NDArray, names: Sequence[str]) -> str:
        return remark_on(predicted, self.gold, names)

    def changes(self, masked: NDArray) -> tuple[Flips, NDArray[np.int64], NDArray[np.int64]]:
        tables = [confusion(self.gold, p, self.classes) for p in (self.full, masked)]
        width = max(t.shape[1] for t in tables)  # equally wide
        before, after = (np.pad(t, ((0, 0), (0, width - t.shape[1]))) for t in tables)
        return flips(self.gold, self.full, masked), before, after


class OneClass(Answer):
    """The largest logit decides. F is the logit of a class, by default of the predicted one."""

    job, kind = "class", CLASSIFICATION
    does = "reads {texts} and says which of {n} classes fits"
    costs = "log-probability of the right answer, lost without the head"
    architectures, auto_class = ("ForSequenceClassification",), "AutoModelForSequenceClassification"
    trained, read_at, decides, flips, decoder = "classification head", FIRST, True, True, None
    columns, others = "class", ("probabilities",)
    usual: tuple[str, ...] = ("accuracy", "matthews")
    graded_in = "balanced_accuracy"
    paired, label_type, formula = True, "long", r"p_c = e^{z_c} / \sum_k e^{z_k}"

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        return outputs > 1 and problem in (None, "single_label_classification")

    def possible(self, outputs: int) -> bool:
        return outputs > 1

    def claim(self, config: Any) -> None:
        config.problem_type = "single_label_classification"

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> ClassAnswers:
        return ClassAnswers(gold, full, len(names))

    def measures(self, metric: str) -> bool:
        return metric in self.metrics or resampling.class_in(metric) is not None

    def usual_for(self, names: Mapping[str, int]) -> tuple[str, ...]:
        """Where most examples are of one class, accuracy alone says little."""
        counts = list(names.values())
        if max(counts) < UNBALANCED * sum(counts):
            return self.usual
        return "accuracy", "balanced_accuracy", f"f1_{np.argmin(counts)}" if len(counts) == 2 else "f1_macro"

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[ClassAnswers, NDArray]:
        rows = read_rows(gold, before, after, _numbers)
        if (rows[0] < 0).any():
            raise TaskError("A gold label is negative. Give class numbers from 0.")
        # classes are renumbered without gaps, but for -1, 0 and those up to the class whose F1 is asked for
        kept = range(OTHER, max(1, resampling.class_in(metric) or 0) + 1)
        occurring, places = np.unique(np.concatenate([kept, *rows]), return_inverse=True)
        if metric != "accuracy" and len(occurring) - 1 > MOST_CLASSES:
            count = len(occurring) - 1
            raise TaskError(f"There are {count:,} classes; {metric} is compared over at most {MOST_CLASSES:,}.")
        gold, before, after = np.split(places[len(kept) :] - 1, 3)
        return ClassAnswers(gold, before, len(occurring) - 1), after

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """Balanced accuracy: the mean over the classes.

        In plain accuracy a model that answers the rarer class for all would count as worse than one that answers the
        commoner, though neither tells one example from another.
        """
        names, members = np.unique(gold, return_inverse=True)
        if len(names) < 2:
            raise TaskError(f"One half of the examples, {len(gold)}, has one class only, so no order can be graded.")
        of_class = np.eye(len(names), dtype=np.float32)[members]
        counts = weights.astype(np.float32)  # whole numbers, exact
        sizes = (counts @ of_class).astype(float)
        constant = 1 / (sizes > 0).sum(axis=1)  # one class for all, and the share of each class in the mean

        def balanced(predictions: NDArray) -> NDArray[np.float64]:
            right = (counts @ (of_class * (predictions == gold)[:, None])).astype(float)
            shares = np.divide(right, sizes, out=np.zeros(right.shape), where=sizes > 0)
            return np.asarray(shares.sum(axis=1) * constant)

        return Drawn(balanced, constant, "is no better than one class for all")

    def counts(self, predictions: NDArray, names: Sequence[str]) -> dict[str, int]:
        return counts(predictions, names)

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        changes, names = flips(data.gold, full, masked), data.label_names
        rows = []
        for how, index in zip(("worse", "better", "other"), changes, strict=True):
            for i in map(int, index):
                e = data[i]
                answers = class_name(names, full[i]), class_name(names, masked[i])
                rows.append([e.text, e.pair, e.label, *answers, how, e.slice, i])
        worse, better, other = map(len, changes)
        neither = f", {other} wrong before and after" if other else ""
        return Changed(
            f"Changed answers: {worse} now wrong, {better} now right{neither}",
            "No answer changed.",
            "Examples whose answer changes under the mask.",
            ("text", "pair", "gold", "full model", "masked", "change", data.slice_name or "slice", "example"),
            rows,
            WIDTHS,
        )

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        one_for_each(labels)
        if labels.size and not np.issubdtype(labels.dtype, np.integer):
            raise TaskError("Class labels must be integers that index the label names.")
        labels = np.array(labels, dtype=np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= len(names)):
            raise TaskError(
                f"Class labels must lie between 0 and {len(names) - 1}, as the indices of {', '.join(names)}."
            )
        return labels

    def label(self, value: Any, names: Sequence[str]) -> str:
        return names[int(value)]

    def groups(self, data: Any) -> tuple[NDArray[np.int64], list[str]]:
        return data.gold, list(data.label_names)

    def order(self, clf: Any, data: Any, label_order: Sequence[str] | str | None) -> NDArray[np.int64]:
        if not clf.answer.decides:
            raise TaskError(
                f"'{clf.name}' predicts {clf.answers}, but task '{data.task.name}' has classes, such as "
                f"'{data.label_names[-1]}'. Choose a model with a classification head. If the labels are numbers, say "
                "so (--regression, regression=True); a line without a number is then named."
            )
        occurs = None if data.labels is None else np.bincount(data.labels, minlength=len(data.label_names)) > 0
        return order_of_occurring(clf.labels, data, label_order, occurs)

    def in_model(self, labels: NDArray, order: NDArray) -> NDArray:
        in_order: NDArray = order[labels]
        return in_order

    # the output --------------------------------------------------------------------------------------------

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        """-1, which is never right, for a class that the task does not have and for a row that is not finite."""
        logits = np.asarray(logits)
        back = np.full(logits.shape[1], OTHER, dtype=np.int64)
        back[order[order >= 0]] = np.flatnonzero(order >= 0)
        classes = back[logits.argmax(axis=1)] if len(logits) else np.zeros(0, dtype=np.int64)
        return np.where(np.isfinite(logits).all(axis=1), classes, OTHER)

    def plain(self, logits: NDArray) -> NDArray:
        return logits.argmax(axis=1)

    def margin(self, logits: NDArray, kept: Any) -> float:
        return float(logits[kept] - np.delete(logits, kept).max())

    def shares(self, values: NDArray, names: Sequence[str]) -> list[tuple[str, float]]:
        best = int(values.argmax())
        return [(names[best], float(values[best]))]

    def values(self, logits: NDArray) -> NDArray:
        shares: NDArray = scipy.special.softmax(logits, axis=-1)
        return shares

    # the scalar to explain -----------------------------------------------------------------------------------

    def probable(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)

    def targets(self, names: Sequence[str], labelled: bool) -> list[str]:
        return [PREDICTED, *([GOLD] if labelled else []), *names]

    def target(self, clf: Any, target: str | int, label: Any = None) -> int | None:
        if target == PREDICTED:
            return None
        if target != GOLD:
            return output_named(clf, target)
        if label is None:
            raise OptionError("The target 'gold' needs the example's label, a class name or number (--label, label=).")
        return output_named(clf, label)

    # learning ------------------------------------------------------------------------------------------------

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Cross-entropy."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, labels, reduction=reduction)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        index = np.broadcast_to(gold, logits.shape[:-1])[..., None]
        return -np.take_along_axis(scipy.special.log_softmax(logits, axis=-1), index, axis=-1)[..., 0]


def _numbers(values: Any, name: str) -> NDArray[np.int64]:
    """Class numbers that a user gave."""
    numbers = read_row(values, name)
    if (numbers != np.floor(numbers)).any() or (numbers < OTHER).any() or (numbers > 100_000).any():
        raise TaskError(f"{name} must hold class numbers: whole numbers from 0, or -1 for none of the classes.")
    return numbers.astype(np.int64)


def class_name(names: Sequence[str], index: Any) -> str:
    """A class of the task by its number; a dash for an answer that is none of them."""
    return names[int(index)] if 0 <= index < len(names) else "–"


def output_named(clf: Any, name: str | int) -> int:
    names = clf.labels
    if isinstance(name, str) and name in names:
        return int(names.index(name))
    if isinstance(name, str) and name.strip().isdecimal() and len(name) < 10:
        name = int(name)
    # numpy's integers too, but not True
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(names):
        return int(name)
    if isinstance(name, str):
        raise OptionError(unknown_choice("class", name, [*names, PREDICTED, GOLD]))
    raise OptionError(f"There is no class {shown(name)}: '{clf.name}' has 0 to {len(names) - 1} ({', '.join(names)}).")


# metrics ---------------------------------------------------------------------------------------------------


def _accuracy(predictions: NDArray, gold: NDArray) -> float:
    return float(np.mean(predictions == gold))


def _f1(predictions: NDArray, gold: NDArray) -> float:
    # class 1 is the positive one in GLUE's F1 (duplicate, equivalent); labels= allows -1 (another class)
    return _mean_f1(predictions, gold, labels=[1])


def _f1_macro(predictions: NDArray, gold: NDArray) -> float:
    return _mean_f1(predictions, gold, labels=np.unique(gold), zero_division=0)


def _mean_f1(predictions: NDArray, gold: NDArray, **options: Any) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(gold, predictions, average="macro", **options))


def _balanced_accuracy(predictions: NDArray, gold: NDArray) -> float:
    return float(np.mean([(predictions[gold == number] == number).mean() for number in np.unique(gold)]))


def _best_constant(of: Callable[[NDArray, NDArray], float]) -> Callable[[NDArray], float | None]:
    """What the best of the answers with one class for all reaches."""

    def best(gold: NDArray) -> float | None:
        return max((of(np.full(len(gold), number), gold) for number in np.unique(gold)), default=None)

    return best


def _matthews(predictions: NDArray, gold: NDArray) -> float:
    """0 where all predictions are one class: a mask that makes them so has done the largest harm, and is tested."""
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(gold, predictions))


def _one_gold_label(predictions: NDArray, gold: NDArray) -> str | None:
    return "every gold label is the same" if (gold == gold[0]).all() else None


def _no_positive(predictions: NDArray, gold: NDArray) -> str | None:
    if (predictions == 1).any() or (gold == 1).any():
        return None
    return "no example is, or is predicted to be, of the positive class"


def _majority(gold: NDArray) -> float | None:
    return _accuracy(np.full(len(gold), np.bincount(gold.astype(np.int64)).argmax()), gold) if len(gold) else None


def _always_positive(gold: NDArray) -> float | None:
    return _f1(np.ones(len(gold)), gold) if len(gold) else None


OneClass.metrics = {
    "accuracy": Metric(_accuracy, constant=_majority),
    "balanced_accuracy": Metric(_balanced_accuracy, constant=_best_constant(_balanced_accuracy)),
    "f1": Metric(_f1, _no_positive, _always_positive),
    "f1_macro": Metric(_f1_macro, constant=_best_constant(_f1_macro)),
    "matthews": Metric(_matthews, _one_gold_label, lambda gold: 0.0),
}
ONE_CLASS = OneClass()

"""What was measured, and the comparison of many masks that most analyses are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import plugins
from ..answers.comparison import Answers, Delta
from ..answers.metrics import continued, metric_title
from ..errors import OptionError, is_one_of, require_kind, shown, unknown_choice
from ..heads import HeadId
from ..progress import Cancel, Progress, after, require_functions, tracked
from ..results import Result
from ..scores import SCORES
from ..tasks import constant, points_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..evaluation.mask_evaluator import MaskEvaluator
    from ..heads import HeadMask
    from ..models.base import Model
    from ..tasks import Dataset, Task

E = TypeVar("E", bound="MaskEvaluator")
SIGNIFICANT = 0.05  # of q values, in tables and pictures
ORACLE = "oracle"  # an order of pruning: single-head ablation on the reported data itself


def check_score(name: str) -> None:
    """Refuse an unknown order of pruning."""
    if name != ORACLE and not is_one_of(name, SCORES):
        raise OptionError(plugins.unknown("score", name, [*SCORES, ORACLE]))


def check_metric(task: Task, metric: str | None) -> None:
    """Refuse a metric that the task does not have; None is its primary one."""
    if callable(metric):
        raise OptionError(
            "A function of your own goes with the data: headviz.load_task takes it among the metrics. Name it here."
        )
    if metric is not None and not is_one_of(metric, task.metrics):
        raise OptionError(unknown_choice(f"metric of task '{task.name}'", metric, task.metrics))


@dataclass(frozen=True)
class Subject(Result):
    """What was measured, on what."""

    model: str
    digest: str
    task: str
    split: str
    data_digest: str
    n: int
    metric: str
    precision: str  # of the evaluations: float32, tf32 or bfloat16
    rows: tuple[str, ...] = ()  # names of the grid's rows where they are not simply layers: those of several stacks
    stand_in: str = ""  # what stands in the place of heads that are off; empty = nothing
    cut_off: str = ""  # how many texts are cut to the model's length, in words; empty where none is
    units: str = ""  # what is resampled and paired: "40 queries"; empty in older records

    @property
    def scale(self) -> float:
        """Points in one unit of the metric."""
        return points_in(self.metric)

    @property
    def called(self) -> str:
        """The metric's name for reading."""
        return metric_title(self.metric)

    @property
    def data(self) -> str:
        return f"{self.task} {self.split}"

    @property
    def counted(self) -> str:
        """How many units were measured, by their name."""
        return self.units or f"{self.n:,} examples"

    def lines(self, baseline: float) -> tuple[tuple[str, str], ...]:
        """What was measured, line by line."""
        return (
            ("model", self.model),
            ("data", f"{self.data}, {self.n:,} examples"),
            ("metric", f"{self.called} {'–' if baseline != baseline else format(baseline, '.4f')}"),
            *((("in a head's place", self.stand_in),) if self.stand_in else ()),
            *((("computed in", self.precision),) if self.precision != "float32" else ()),
        )


def require_evaluator(value: object) -> None:
    """Refuse anything but an evaluator, such as a model or a data set."""
    from ..evaluation.mask_evaluator import MaskEvaluator  # imports torch, which the first page must not wait for

    require_kind(value, MaskEvaluator, "evaluator = headviz.evaluator_of(clf, data)")


def evaluator_for(model: MaskEvaluator | Model, data: Dataset | None) -> MaskEvaluator:
    """The evaluator itself, or a new one of a model on data."""
    from ..evaluation import dispatch, mask_evaluator

    if isinstance(model, mask_evaluator.MaskEvaluator):
        if data is not None:
            raise OptionError("This evaluator has its data already. Give an evaluator alone, or a model and data.")
        return model
    if data is None:
        raise OptionError("Give a model and its data, or an evaluator = headviz.evaluator_of(clf, data).")
    return dispatch.evaluator_of(model, data)


def require_seconds(value: object) -> None:
    """Refuse anything but a number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0:
        raise OptionError(f"The time budget must be above 0 seconds, not {shown(value)}.")


def require_classes(evaluator: MaskEvaluator) -> None:
    """Refuse a model that answers with texts."""
    require_evaluator(evaluator)
    evaluator.clf.check_classes()


def first_draw(evaluator: E) -> E:
    """The evaluator with only the first draw of what replaces the heads, for analyses that do not average draws."""
    require_evaluator(evaluator)
    return next(evaluator.each_draw())


def subject_of(evaluator: MaskEvaluator, metric: str | None = None) -> Subject:
    """The subject of an analysis; ``metric`` is one of the task's, its primary one by default."""
    require_evaluator(evaluator)
    clf, data = evaluator.clf, evaluator.data
    check_metric(data.task, metric)
    return Subject(
        clf.name,
        clf.digest,
        data.task.name,
        data.split,
        data.digest,
        len(data),
        metric or data.task.primary_metric,
        evaluator.precision,
        clf.row_names,
        evaluator.stand_in,
        evaluator.cut_off,
        f"{len(np.unique(data.units)):,} {data.answer.unit[1]}",
    )


def cut_off_of(result: Any) -> str:
    """How many texts are cut to the model's length, in words; empty where none is, or a result does not say it."""
    return str(getattr(getattr(result, "subject", result), "cut_off", ""))


def predict_all(
    evaluator: MaskEvaluator,
    masks: Sequence[HeadMask],
    *,
    reference: HeadMask | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> tuple[Answers, list[NDArray]]:
    """The reference's answers (the full model's), and every mask's predictions. Progress counts masks."""
    total = len(masks) + 1
    require_functions(progress, cancel)
    tell = progress or (lambda done, total: None)
    tell(0, total)
    answers = evaluator.answers(reference, cancel=cancel)
    tell(1, total)
    predictions = [
        evaluator.predictions(mask, keep=False, cancel=cancel)
        for mask in tracked(masks, after(progress, 1, total), cancel)
    ]
    return answers, predictions


def sweep(
    evaluator: MaskEvaluator,
    masks: Sequence[HeadMask],
    metric: str,
    *,
    reference: HeadMask | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> tuple[Answers, list[Delta]]:
    """Every mask against the reference, on the same examples."""
    answers, predictions = predict_all(evaluator, masks, reference=reference, progress=progress, cancel=cancel)
    return answers, answers.deltas(predictions, metric)


def constant_of(evaluator: MaskEvaluator, metric: str) -> float | None:
    """What the best constant answer reaches on the evaluator's data; None where it has no value."""
    data = evaluator.data
    return None if data.labels is None else constant(metric, data.gold)


def first_remark(remarks: Sequence[tuple[str, str]], noun: str = "") -> str:
    """The first remark, behind what it is about, and how many more there are; with its blank, or nothing.

    An empty remark does not count. ``noun`` is what is counted.
    """
    remarked = [(about, remark) for about, remark in remarks if remark]
    if not remarked:
        return ""
    about, remark = remarked[0]
    others = len(remarked) - 1
    nouns = f" {noun}{'s' * (others > 1)}" if noun else ""
    return f"{about}{continued(remark)} {f'The like holds for {others} more{nouns}. ' if others else ''}"


def cost_tables(mask: HeadMask, heads: Sequence[HeadId], deltas: Sequence[Delta]) -> NDArray[np.float64]:
    """[4, L, H] what each head costs, both ends of its interval, and p; NaN for all other heads of the grid.

    A cost is minus the change, so the ends are swapped; 0.0 - x is never -0.0.
    """
    tables = np.full((4, mask.num_layers, mask.num_heads), np.nan)
    for head, d in zip(heads, deltas, strict=True):
        tables[:, *head] = d.full - d.masked, 0.0 - d.interval_high, 0.0 - d.interval_low, d.p_value
    return tables


def heads_where(marked: NDArray[np.bool_]) -> list[HeadId]:
    """The heads that are true in a table [L, H], row by row."""
    return [HeadId(int(layer), int(head)) for layer, head in np.argwhere(marked)]


def empty_grid(mask: HeadMask) -> NDArray[np.float64]:
    """An L×H table in which nothing is measured."""
    return np.full((mask.num_layers, mask.num_heads), np.nan)

"""The table of tasks: label names, metrics, and where the data are.

Label names are in the task's own order (that of the integers in GLUE's files on the hub). A model's outputs may have
another order: ``label_map`` translates by name. The first metric of a task is its primary one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .. import plugins
from ..answers.answer import Answer
from ..answers.catalogue import ANSWERS, answer_named
from ..answers.metrics import METRICS, OWN
from ..errors import TaskError, is_one_of, shown, unknown_choice

GLUE = "nyu-mll/glue"


@dataclass(frozen=True)
class Source:
    """Where a task's data are: files on the hub, and local files as the task's authors published them.

    ``splits`` maps a split to (stem of the parquet file on the hub, stem of the local file).
    ``headerless`` names the columns of a published file that comes without a header row.
    """

    repo: str | None = None
    hub_folder: str = ""
    hub_columns: tuple[str, ...] = ()
    local_folder: str = ""
    local_columns: tuple[str, ...] = ()
    local_label: str = "label"
    splits: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    headerless: tuple[str, ...] | None = None
    module: str | None = None  # a module of headviz with read_split(split), for data that are shipped
    own: bool = False  # the user's own files, of which there are none to be had

    def hub_file(self, split: str) -> str:
        """Path of one split inside the hub repository."""
        stem = self.splits[split][0]
        return f"{self.hub_folder}/{stem}.parquet" if self.hub_folder else f"{stem}.parquet"


@dataclass(frozen=True)
class Task:
    """One task. ``label_names`` is empty without classes, and for ``custom`` until its files are read."""

    name: str
    title: str
    label_names: tuple[str, ...]
    metrics: tuple[str, ...]
    source: Source
    slice_name: str | None = None
    job: str = "class"  # what a model answers to it, see ``answers``
    thresholds: tuple[float, ...] = ()  # of several labels; empty = the job's own
    by_user: bool = False  # the user named the metrics
    text_names: tuple[str, str] | None = None  # what the texts of an example are called; None = as the answer says

    @property
    def answer(self) -> Answer:
        answer = answer_named(self.job)
        return answer.at(self.thresholds, self.label_names) if self.thresholds else answer

    @property
    def kind(self) -> str:
        """The kind of model that does it."""
        return self.answer.kind

    @property
    def primary_metric(self) -> str:
        return self.metrics[0]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.source.splits)

    @property
    def num_texts(self) -> int | None:
        """1 for single texts, 2 for pairs, None if that depends on the user's columns."""
        return len(self.source.hub_columns or self.source.local_columns) or None


_ONE = "-00000-of-00001"
_PLAIN = {"train": (f"train{_ONE}", "train"), "dev": (f"validation{_ONE}", "dev")}
_MATCHED = {"train": (f"train{_ONE}", "train"), "dev": (f"validation_matched{_ONE}", "dev_matched")}
_MISMATCHED = {"train": (f"train{_ONE}", "train"), "dev": (f"validation_mismatched{_ONE}", "dev_mismatched")}
SHIPPED_SPLITS = {"train": ("", "train"), "dev": ("", "dev"), "unseen": ("", "unseen")}
OWN_SPLITS = {"train": ("", "train"), "dev": ("", "dev"), "test": ("", "test")}
_REVIEWS = {"train": ("train", "train"), "dev": ("validation", "dev"), "test": ("test", "test")}
# IMDB was published with a train and a test half only: its test half is what others report as dev.
_IMDB = {"train": (f"train{_ONE}", "train"), "dev": (f"test{_ONE}", "dev"), "test": (f"test{_ONE}", "test")}

_COLA_COLUMNS = ("source", "label", "annotation", "sentence")
_PREMISE = ("premise", "hypothesis")
_PAIR = ("sentence1", "sentence2")
_STRINGS = ("#1 String", "#2 String")
_QUESTIONS = ("question1", "question2")
_QA = ("question", "sentence")
_SENTENCE = ("sentence",)

_NLI_TEXTS = ("Premise", "Hypothesis")
_NLI = ("entailment", "neutral", "contradiction")
_ENTAILS = ("entailment", "not_entailment")
_SENTIMENT = ("negative", "positive")
_ACCURACY = ("accuracy",)


def _glue(
    config: str,
    hub_columns: tuple[str, ...],
    local_folder: str,
    local_columns: tuple[str, ...] | None = None,
    local_label: str = "label",
    splits: Mapping[str, tuple[str, str]] = _PLAIN,
    headerless: tuple[str, ...] | None = None,
) -> Source:
    columns = local_columns or hub_columns
    return Source(GLUE, config, hub_columns, local_folder, columns, local_label, splits, headerless)


_MNLI = _glue("mnli", _PREMISE, "MNLI", _PAIR, "gold_label", _MATCHED)
_MNLI_MM = _glue("mnli", _PREMISE, "MNLI", _PAIR, "gold_label", _MISMATCHED)
_QQP = _glue("qqp", _QUESTIONS, "QQP", local_label="is_duplicate")
_MRPC = _glue("mrpc", _PAIR, "MRPC", _STRINGS, "Quality")
_COLA = _glue("cola", _SENTENCE, "CoLA", headerless=_COLA_COLUMNS)
_STSB = _glue("stsb", _PAIR, "STS-B", local_label="score")
_ROTTEN = Source("cornell-movie-review-data/rotten_tomatoes", "", ("text",), "", ("text",), "label", _REVIEWS)
_LARGE_REVIEWS = Source("stanfordnlp/imdb", "plain_text", ("text",), "", ("text",), "label", _IMDB)
_SHIPPED = Source(local_columns=_PREMISE, splits=SHIPPED_SPLITS, module="headviz.demo")
_YOURS = Source(splits=OWN_SPLITS, own=True)


_TABLE = (
    Task("demo", "Demo", _NLI, _ACCURACY, _SHIPPED, slice_name="ability", text_names=_NLI_TEXTS),
    Task("mnli", "MNLI matched", _NLI, _ACCURACY, _MNLI, slice_name="genre", text_names=_NLI_TEXTS),
    Task("mnli-mm", "MNLI mismatched", _NLI, _ACCURACY, _MNLI_MM, slice_name="genre"),
    Task("qqp", "QQP", ("not_duplicate", "duplicate"), ("accuracy", "f1"), _QQP),
    Task("qnli", "QNLI", _ENTAILS, _ACCURACY, _glue("qnli", _QA, "QNLI")),
    Task("mrpc", "MRPC", ("not_equivalent", "equivalent"), ("accuracy", "f1"), _MRPC),
    Task("sst2", "SST-2", _SENTIMENT, _ACCURACY, _glue("sst2", _SENTENCE, "SST-2")),
    Task("cola", "CoLA", ("unacceptable", "acceptable"), ("matthews", "accuracy"), _COLA),
    Task("rte", "RTE", _ENTAILS, _ACCURACY, _glue("rte", _PAIR, "RTE")),
    Task("wnli", "WNLI", ("not_entailment", "entailment"), _ACCURACY, _glue("wnli", _PAIR, "WNLI")),
    Task("stsb", "STS-B", (), ("pearson", "spearman"), _STSB, job="number"),
    Task("rotten-tomatoes", "Rotten Tomatoes", _SENTIMENT, _ACCURACY, _ROTTEN),
    Task("imdb", "IMDB", _SENTIMENT, _ACCURACY, _LARGE_REVIEWS),
    Task("custom", "Your own task", (), ("accuracy", "matthews"), _YOURS),
)


def judged_by(task: Task, metrics: str | Sequence[str | Callable[..., float]] | Callable[..., float]) -> Task:
    """The task with these metrics in place of its own, the first one as its primary one.

    A function gets the gold answers and the predicted ones, in this order, as in scikit-learn; more is better. Both
    have a row for each unit: class numbers [n], numbers [n], for several labels 0 and 1 [n, C], for tags class numbers
    [n, W] with -100 behind a text's end, for spans the first and last unit, [n, answers, 2] and [n, 2] with -1 for no
    answer, for rankings the relevances and scores of each query's passages, [Q, passages] with NaN behind the last one.
    """
    if not isinstance(metrics, str | list | tuple) and not callable(metrics):
        raise TaskError(f"Metrics are names, functions or a list of them, not {shown(metrics)}.")
    chosen = metrics.split(",") if isinstance(metrics, str) else [metrics] if callable(metrics) else list(metrics)
    names: list[str] = []
    for metric in chosen:
        if callable(metric):
            name = getattr(metric, "__name__", type(metric).__name__)
            if name in METRICS and name not in OWN:
                raise TaskError(f"'{name}' is a metric of headviz. Give your function another name.")
            OWN[name] = metric
        else:
            name = (metric if isinstance(metric, str) else shown(metric)).strip()
        names.append(name)
    answers = [task.answer, *(ANSWERS[job] for job in task.answer.others if job in ANSWERS)]
    answers = [answer for answer in answers if answer.columns == task.answer.columns]
    valid = list(dict.fromkeys(name for answer in answers for name in answer.metrics))
    for name in names:
        if not any(answer.measures(name) for answer in answers):
            raise TaskError(unknown_choice(f"metric of task '{task.name}'", name, valid))
    answer = next(answer for answer in answers if all(map(answer.measures, names)))
    if not names or len(set(names)) < len(names):
        raise TaskError("Give at least one metric, and each once.")
    return replace(task, metrics=tuple(names), job=answer.job, by_user=True)


TASKS: Mapping[str, Task] = plugins.Entries("tasks", _TABLE)


def get_task(name: str) -> Task:
    """The task of this name; a ``TaskError`` with the valid names for an unknown one."""
    if not is_one_of(name, TASKS):
        raise TaskError(plugins.unknown("task", name, TASKS))
    return TASKS[name]


def check_split(task: Task, split: str) -> str:
    """The split; a ``TaskError`` if the task does not have it."""
    if not is_one_of(split, task.source.splits):
        unlabelled = split == "test" and task.source.repo == GLUE
        why = " GLUE keeps the labels of its test files to itself." if unlabelled else ""
        raise TaskError(
            unknown_choice(f"split of task '{task.name}'", split, task.splits) + why,
            code="no-split",
            split=split,
            place=None,
        )
    return split

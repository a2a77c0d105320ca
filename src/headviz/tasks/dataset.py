"""The examples of one split: texts, labels and slices, frozen, with a digest of their content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers.answer import Answer
from ..errors import OptionError, TaskError, is_one_of, shown, unknown_choice
from ..results import Shown
from .catalogue import Task, get_task
from .columns import Mapping, check_job, custom_task, take
from .readers import table_of

if TYPE_CHECKING:
    from pandas import DataFrame

KINDS = ("quantile", "std", "none")


@dataclass(frozen=True)
class LengthFilter:
    """Which lengths are usual. Both ends of the band are inside.

    ``quantile`` keeps the lengths from the ``low`` to the ``high`` quantile, ``std`` those within ``width``
    standard deviations of the mean, ``none`` all of them.
    """

    kind: str = "quantile"
    low: float = 0.25
    high: float = 0.75
    width: float = 1.0

    def __post_init__(self) -> None:
        if not is_one_of(self.kind, KINDS):
            raise OptionError(unknown_choice("length filter", self.kind, KINDS))
        if not 0 <= self.low < self.high <= 1:
            raise OptionError(f"Quantiles must satisfy 0 ≤ low < high ≤ 1, not {self.low} and {self.high}.")
        if not 0 < self.width < float("inf"):
            raise OptionError(f"The width is a positive number of standard deviations, not {self.width}.")

    def band(self, lengths: np.ndarray) -> tuple[float, float] | None:
        """Lowest and highest length kept; None = all."""
        if self.kind == "none":
            return None
        if self.kind == "quantile":
            low, high = np.quantile(lengths, [self.low, self.high])
        else:
            mean, spread = lengths.mean(), self.width * lengths.std()
            low, high = mean - spread, mean + spread
        return float(low), float(high)


@dataclass(frozen=True)
class SampleReport:
    """What was drawn. Keys are class names; for a regression fifths of the label, lowest first."""

    requested: int
    drawn: int
    total: int
    seed: int
    length_filter: LengthFilter
    unit: str  # what lengths are counted in: tokens or words
    band: tuple[float, float] | None
    too_short: int  # examples under the band
    too_long: int  # examples over it
    wanted: dict[str, int]
    available: dict[str, int]  # within the band
    per_class: dict[str, int]  # drawn

    @property
    def dropped(self) -> int:
        """Examples outside the band."""
        return self.too_short + self.too_long

    @property
    def short(self) -> dict[str, int]:
        """How many examples each class lacks; only classes that lack some."""
        return {k: self.wanted[k] - self.per_class[k] for k in self.wanted if self.per_class[k] < self.wanted[k]}

    def text(self) -> str:
        """One line for the user."""
        parts = [f"{self.drawn:,} of {self.total:,} examples drawn (seed {self.seed})"]
        if self.band is not None:
            low, high = self.band
            parts.append(
                f"lengths {low:.4g} to {high:.4g} {self.unit} kept; "
                f"{self.too_short:,} shorter and {self.too_long:,} longer dropped"
            )
        if len(self.per_class) > 1:
            parts.append("of each: " + ", ".join(f"{name} {count:,}" for name, count in self.per_class.items()))
        if self.short:
            parts.append("too few examples: " + ", ".join(f"{k} lacks {v:,}" for k, v in self.short.items()))
        return "; ".join(parts) + "."


class Example(NamedTuple):
    """One example for reading: ``label`` is the label as text, or a number."""

    text: str
    pair: str | None
    label: str | float | None
    slice: str | None


@dataclass(frozen=True, eq=False)
class Dataset(Shown):
    """Examples in file order. Two data sets are equal if their content is; ``digest`` identifies the content.

    ``labels`` are as the job keeps them (``Answer.checked``): class indices [n] into ``label_names`` (int64), numbers
    [n] (float64), or a table with a row for each text; None without gold labels. They are *not* the model's output
    indices (see ``label_map``). ``notes`` are sentences for the
    user about the reading: rows that were left out, how numeric labels were read.
    """

    task: Task
    split: str
    texts: tuple[str, ...]
    pairs: tuple[str, ...] | None = None
    labels: np.ndarray | None = field(default=None, repr=False)
    slices: tuple[str, ...] | None = None
    slice_name: str | None = None
    origin: str = ""
    notes: tuple[str, ...] = ()
    report: SampleReport | None = None

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        labels: Sequence[Any] | None = None,
        *,
        job: str | None = None,
    ) -> Dataset:
        """Texts in memory as task ``custom``. Labels are names or numbers of classes, or the numbers to be predicted.

        ``job`` as for ``load_task``, where it does not follow from the labels: "number" to predict whole numbers.

        >>> import headviz
        >>> data = headviz.Dataset.of(["good film", "bad film"], labels=["pos", "neg"])
        >>> len(data), data.label_names, data.labels.tolist()
        (2, ('neg', 'pos'), [1, 0])
        """
        task = get_task("custom")
        check_job(job)
        if isinstance(texts, str) or isinstance(pairs, str):
            raise TaskError("Texts and pairs are lists of texts, such as ['good film', 'bad film'], not one text.")
        if labels is None:
            return cls(task, "dev", tuple(texts), None if pairs is None else tuple(pairs), origin="texts in memory")
        cells = {"text": list(texts), "label": list(labels)} | ({} if pairs is None else {"pair": list(pairs)})
        table = table_of(cells, "texts in memory")
        mapping = Mapping(("text",) if pairs is None else ("text", "pair"), ("label",))
        task = custom_task(task, table.columns["label"], table.name, mapping, job)
        columns = take(table, mapping, task)
        return cls(task, "dev", columns.texts, columns.pairs, columns.labels, origin=table.name, notes=columns.notes)

    def __repr__(self) -> str:
        labels = f", labels {', '.join(self.label_names)}" if self.label_names else ""
        return f"<Dataset {self.task.name} {self.split}: {len(self):,} examples{labels}>"

    def __post_init__(self) -> None:
        for name in ("texts", "pairs", "slices"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
        if not isinstance(self.task, Task):
            raise TaskError(f"The task of a data set is one of headviz.tasks.get_task(name), not {shown(self.task)}.")
        for name in ("texts", "pairs"):
            if invalid := [v for v in getattr(self, name) or () if not isinstance(v, str)][:1]:
                raise TaskError(f"One of the {name} is {shown(invalid[0])}, which is no text.")
        n = len(self.texts)
        for name in ("pairs", "labels", "slices"):
            value = getattr(self, name)
            if value is not None and len(value) != n:
                raise TaskError(f"{len(value):,} {name} were given for {n:,} texts; give one for each.")
        if self.labels is not None:
            labels = self.answer.checked(np.asarray(self.labels), self.label_names)
            self.answer.check_texts(self.texts, labels)
            labels.setflags(write=False)
            object.__setattr__(self, "labels", labels)

    @property
    def label_names(self) -> tuple[str, ...]:
        return self.task.label_names

    @property
    def job(self) -> str:
        """The task's job, a name of ``answers.ANSWERS``."""
        return self.task.job

    @property
    def answer(self) -> Answer:
        return self.task.answer

    @property
    def references(self) -> tuple[str, ...]:
        """The reference translations of a translation task."""
        return self.answer.references(self)

    @cached_property
    def gold(self) -> np.ndarray:
        """The gold answers, labels as a rule; a ``TaskError`` without any."""
        return self.answer.gold(self)

    @cached_property
    def units(self) -> np.ndarray:
        """The number of each example's unit, from 0. Examples of one unit stay together, as the passages of a query."""
        return self.answer.units(self)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> Example:
        label: str | float | None = None
        if self.labels is not None:
            label = self.answer.label(self.labels[index], self.label_names)
        return Example(
            self.texts[index],
            self.pairs[index] if self.pairs is not None else None,
            label,
            self.slices[index] if self.slices is not None else None,
        )

    def __iter__(self) -> Iterator[Example]:
        return (self[i] for i in range(len(self)))

    def to_frame(self) -> DataFrame:
        """A pandas table of the examples: text, pair, label and slice, as far as the data have them."""
        import pandas

        frame = pandas.DataFrame(list(self), columns=list(Example._fields))
        lacking = {"pair": self.pairs, "label": self.labels, "slice": self.slices}
        return frame.drop(columns=[name for name, values in lacking.items() if values is None])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: texts, pairs, labels with names and thresholds, slices; not of where it came from."""
        digest = hashlib.sha256(b"headviz-dataset-1")
        for strings in (self.texts, self.pairs, self.label_names, self.slices):
            _add_strings(digest, strings)
        if self.labels is None:
            digest.update(b"unlabelled")
        else:
            digest.update(str(self.labels.dtype).encode())
            digest.update(np.ascontiguousarray(self.labels, dtype=self.labels.dtype.newbyteorder("<")).tobytes())
        if self.task.thresholds:
            digest.update(f"thresholds {self.task.thresholds}".encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        return (self.task.name, self.digest) == (other.task.name, other.digest)

    def __hash__(self) -> int:
        return hash((self.task.name, self.digest))

    def subset(self, indices: Iterable[int], report: SampleReport | None = None) -> Dataset:
        """The examples at these positions, in this order."""
        try:
            at = [index(i) for i in indices]
        except TypeError:
            raise TaskError(f"Examples are chosen by their whole numbers, not by {shown(indices)}.") from None
        outside = [i for i in at if not 0 <= i < len(self)]
        if outside:
            raise TaskError(f"There is no example {outside[0]}: the {self.split} split has 0 to {len(self) - 1}.")
        return replace(
            self,
            texts=_take(self.texts, at),
            pairs=None if self.pairs is None else _take(self.pairs, at),
            labels=None if self.labels is None else self.labels[at],
            slices=None if self.slices is None else _take(self.slices, at),
            report=report,
        )

    def only_slice(self, name: str) -> Dataset:
        """The examples of one slice."""
        if self.slices is None:
            raise TaskError(f"The {self.split} split of '{self.task.name}' has no slices. Name a slice column.")
        at = [i for i, value in enumerate(self.slices) if value == name]
        if not at:
            valid = ", ".join(sorted(set(self.slices)))
            raise TaskError(f"No example has {self.slice_name} '{name}'. Choose one of: {valid}.")
        return self.subset(at)

    def class_counts(self) -> dict[str, int]:
        """How many examples each class has, in the order of the label names; 0 for classes without any."""
        counts = self.answer.counts(self.gold, self.label_names)
        if counts is None:
            raise TaskError(f"Task '{self.task.name}' has no classes.")
        return counts

    def slice_counts(self) -> dict[str, int]:
        """How many examples each slice has, sorted by name; empty without slices."""
        return dict(sorted(Counter(self.slices or ()).items()))


def require_dataset(value: object) -> None:
    """A ``TaskError`` unless this is a data set: not a task's name, a list of texts or a table."""
    if not isinstance(value, Dataset):
        raise TaskError(
            f"Data from headviz.load_task are needed, not {type(value).__name__}: data = headviz.load_task('demo')."
        )


def _take(values: Sequence[str], at: list[int]) -> tuple[str, ...]:
    return tuple(values[i] for i in at)


def _add_strings(digest: Any, strings: Sequence[str] | None) -> None:
    # Lengths go in too, so that moving a character from one text to the next changes the digest.
    digest.update(b"none" if strings is None else len(strings).to_bytes(8, "little"))
    for text in strings or ():
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)


SHARED = 0.05  # of the dev examples; from this share on a message says that they are among the training examples


def trained_on(train: Dataset, dev: Dataset) -> str:
    """The message on examples in both splits where a model is trained and measured; empty where they are few."""
    return _overlap_message(train, dev, "so its figures look better than they are")


def chosen_on(train: Dataset, dev: Dataset) -> str:
    """The message on examples in both splits where heads are chosen and judged; empty where they are few."""
    return _overlap_message(
        train, dev, "so heads are chosen on what they are judged on: losses look smaller than they are"
    )


def _overlap_message(train: Dataset, dev: Dataset, consequence: str) -> str:
    train_texts = set(zip(train.texts, train.pairs or train.texts, strict=True))
    count = sum(texts in train_texts for texts in zip(dev.texts, dev.pairs or dev.texts, strict=True))
    if count < SHARED * len(dev):
        return ""
    return (
        f"{count:,} of {len(dev):,} dev examples are among the training examples, too, {consequence}. Give two files."
    )

"""The options of a fine-tuning, and how options are read from JSON and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import OptionError, shown, unknown_choice, whole_number
from ..results import plain
from ..tasks import load_task

if TYPE_CHECKING:
    from ..tasks import Dataset

PRECISIONS = ("float32", "bfloat16", "float16")
LARGEST_RATE = 1e37  # a larger one is no number in float32
SCHEDULES = ("linear", "cosine", "constant", "plateau")

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """The model and the data that a plan is about."""

    model: str
    task: str
    _: KW_ONLY
    revision: str | None = None
    device: str = "auto"
    data: str | None = None  # folder with local files
    text_columns: tuple[str, ...] | None = None
    label_column: str | None = None
    label_order: tuple[str, ...] | None = None
    job: str | None = None  # what the model answers with, where its folder or the file does not tell

    def __post_init__(self) -> None:
        tuples(self, "text_columns", "label_order")
        for name in ("model", "task"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise OptionError(f"The plan needs a {name}.")

    def dataset(self, split: str, limit: int | None = None) -> Dataset:
        """One split of the task."""
        columns = {"text_columns": self.text_columns, "label_column": self.label_column}
        if self.task == "custom":
            columns["job"] = self.job
        return load_task(self.task, split=split, data=self.data, limit=limit, **columns)  # type: ignore[arg-type]


@dataclass(frozen=True)
class FinetuneOptions:
    """One fine-tuning. The defaults are those of the 2024 thesis (its Table 6.1).

    A small model needs other options: ``recipe_of`` reads those of a model's folder. The seed is not here, because
    one plan trains with several.
    """

    epochs: float = 3.0
    batch: int = 32
    learning_rate: float = 2e-5
    epsilon: float = 1e-8
    beta2: float = 0.999
    weight_decay: float = 0.0
    warmup: float = 0.0  # share of all steps
    schedule: str = "linear"
    fall: float = 0.25  # share of all steps over which a plateau falls to zero, by half a cosine
    max_grad_norm: float = 1.0
    accumulation: int = 1  # batches per update
    precision: str = "float32"  # bfloat16 and float16 train with autocast; weights stay float32
    group_lengths: bool = True  # texts of similar length share a batch: less padding, same epoch
    early_stopping: int | None = None  # stop after so many epochs without a better dev metric, keep the best
    evaluate_epochs: bool = False  # dev metrics after every epoch, for the learning curve
    checkpoint_steps: int | None = None  # None = after every epoch

    def __post_init__(self) -> None:
        number(self.epochs, "epochs", 0, 10_000, above=True)
        whole_number(self.batch, "batch", 1)
        number(self.learning_rate, "learning_rate", 0, LARGEST_RATE, above=True)
        number(self.epsilon, "epsilon", 0, 1, above=True)
        share(self.warmup, "warmup")
        share(self.fall, "fall")
        if self.schedule == "plateau" and self.warmup + self.fall > 1:
            raise OptionError(f"A plateau has no room between a warmup of {self.warmup:g} and a fall of {self.fall:g}.")
        share(self.beta2, "beta2")
        whole_number(self.accumulation, "accumulation", 1)
        number(self.max_grad_norm, "max_grad_norm", 0, LARGEST_RATE, above=True)
        number(self.weight_decay, "weight_decay", 0, 1e6)
        choice(self.precision, "precision", PRECISIONS)
        choice(self.schedule, "schedule", SCHEDULES)
        if self.early_stopping is not None:
            whole_number(self.early_stopping, "early_stopping", 1)
        if self.checkpoint_steps is not None:
            whole_number(self.checkpoint_steps, "checkpoint_steps", 1)

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(dataclasses.asdict(self))
        return found

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> FinetuneOptions:
        return read_options(cls, given, "fine-tuning option")


def read_options(cls: type[T], given: Mapping[str, Any], kind: str) -> T:
    """A dataclass from JSON; an ``OptionError`` for a misspelt name, a missing one, or a value of the wrong type."""
    names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    if not isinstance(given, Mapping):
        raise OptionError(f"Options are given by name, as a JSON object, not as {given!r}.")
    for name in given:
        if name not in names:
            raise OptionError(unknown_choice(kind, name, names))
    required = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]  # type: ignore[arg-type]
    missing = [name for name in required if name not in given]
    if missing:
        raise OptionError(f"The {kind} '{missing[0]}' is missing.")
    try:
        return cls(**given)
    except (TypeError, ValueError, AttributeError) as error:  # a value that no check was ready for
        usual = {f.name: f.default for f in fields(cls)}  # type: ignore[arg-type]
        own = ", ".join(f"{name} = {shown(value)}" for name, value in given.items() if value != usual[name])
        raise OptionError(f"One of these is of the wrong type ({kind}): {own}. Python says: {error}.") from error


def tuples(options: object, *names: str) -> None:
    """Make tuples of lists that JSON has brought into a frozen dataclass."""
    for name in names:
        value = getattr(options, name)
        if isinstance(value, int | float):
            raise OptionError(f"{name} is a list, such as [{value}], not {value}.")
        if isinstance(value, Mapping):
            raise OptionError(f"{name} is a list, not {shown(value)}.")
        if isinstance(value, list):
            object.__setattr__(options, name, tuple(value))


def without_repeats(values: Sequence[object], what: str) -> None:
    """At least one value, and each once."""
    if not values:
        raise OptionError(f"Give at least one {what}.")
    if len(set(values)) < len(values):
        raise OptionError(f"Each {what} may be given once; {', '.join(map(str, values))} repeats one.")


def choice(value: object, name: str, valid: Any) -> None:
    if value not in valid:
        raise OptionError(unknown_choice(name, value, valid))


def number(value: object, name: str, least: float, most: float, above: bool = False) -> None:
    """A finite number from ``least`` (or ``above`` it) to ``most``."""
    if not (_is_number(value) and least <= value <= most and not (above and value == least)):  # type: ignore[operator]
        begin = f"above {least:g}" if above else f"from {least:g}"
        raise OptionError(f"{name} is a number {begin} to {most:g}, not {shown(value)}.")


def share(value: object, name: str) -> None:
    if not (_is_number(value) and 0 <= value <= 1):  # type: ignore[operator]
        raise OptionError(f"{name} is a share from 0 to 1, not {shown(value)}.")


def _is_number(value: object) -> bool:
    if isinstance(value, int):  # math.isfinite refuses whole numbers that no float can hold
        return not isinstance(value, bool) and abs(value) <= 2**53
    return isinstance(value, float) and math.isfinite(value)

"""Options of the head scores, declared where controls can be drawn from them.

Every field carries ``help`` in its metadata, and ``choices`` where only some values are valid.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..attribution.rules import (
    AUTO,
    DEFAULT_RULE,
    DEFAULT_STEPS,
    PRECISIONS,
    RULES,
    SCALING_RULES,
    AttAttrOptions,
    PathOptions,
)
from ..errors import OptionError, seed_number, shown, unknown_choice, whole_number
from ..models.stand_in import CONSTANT, MEAN, ZERO

ROWS = ("all", "influential")
OptionValue = str | int | float | bool | None  # what an option of a score may be
ABS_LEVELS = ("example", "token", "batch", "signed")


def option(default: Any, text: str, choices: tuple[Any, ...] | None = None) -> Any:
    return field(default=default, metadata={"help": text, "choices": choices})


def _check_choices(options: Any) -> None:
    for f in fields(options):
        choices = f.metadata.get("choices")
        value = getattr(options, f.name)
        if choices is not None and value not in choices:
            raise OptionError(unknown_choice(f.name.replace("_", " "), value, map(str, choices)))


@dataclass(frozen=True)
class NoOptions:
    """For scores that leave nothing to choose."""


@dataclass(frozen=True)
class ConductanceOptions(PathOptions):
    """How the attribution is integrated, of which class, and which rows are compared."""

    steps: int = option(DEFAULT_STEPS, "intervals of the integration path")
    rule: str = option(DEFAULT_RULE, "integration rule", tuple(RULES))
    precision: str = option(AUTO, "auto: float32, on a GPU TF32 where it agrees; bfloat16 is a preview", PRECISIONS)
    target: str | int = option("predicted", "class to explain: predicted, gold, or a class")
    rows: str = option("all", "'influential' leaves out query rows that cannot reach the prediction", ROWS)

    def __post_init__(self) -> None:
        _check_choices(self)
        super().__post_init__()


@dataclass(frozen=True)
class AttAttrScoreOptions(AttAttrOptions):
    """How AttAttr is integrated, and of which class."""

    steps: int = option(AttAttrOptions.steps, "intervals of the attention's scale")
    rule: str = option(AttAttrOptions.rule, "integration rule", tuple(SCALING_RULES))
    precision: str = option(AUTO, "auto: float32, on a GPU TF32 where it agrees; bfloat16 is a preview", PRECISIONS)
    target: str | int = option("gold", "class to explain: gold (as published), predicted, or a class")

    def __post_init__(self) -> None:
        _check_choices(self)
        super().__post_init__()


@dataclass(frozen=True)
class TaylorOptions:
    """Where the absolute value is taken, and whether layers are put on one scale."""

    abs_level: str = option("example", "the absolute value is taken per …; 'signed' takes none", ABS_LEVELS)
    layer_norm: bool = option(True, "divide each layer by its l2 norm")
    batch_size: int = option(32, "examples per batch, in the data's order, for the level 'batch' only")

    def __post_init__(self) -> None:
        _check_choices(self)
        whole_number(self.batch_size, "batch_size", 1)


@dataclass(frozen=True)
class BlendOptions:
    """How much each of two tables counts."""

    alpha: float = option(0.5, "weight of the importance; the rest is that of the attention's narrowness")

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise OptionError(f"alpha is a number from 0 to below 1, not {self.alpha}.")


@dataclass(frozen=True)
class ChangedOptions:
    """How the backward pass is changed."""

    temperature: float = option(2.0, "the scores of attention are divided by this in the backward pass")

    def __post_init__(self) -> None:
        if not 0 < self.temperature < 1e6:
            raise OptionError(f"temperature is a number above 0 and below a million, not {self.temperature}.")


@dataclass(frozen=True)
class RanksOptions:
    """Whose ranks are averaged."""

    members: str | None = option(
        None, "scores, separated by commas; none = gim, gnorm and magnitude, as far as the model has them"
    )

    @property
    def names(self) -> tuple[str, ...] | None:
        """The members that are asked for."""
        if self.members is None:
            return None
        return tuple(dict.fromkeys(name.strip() for name in self.members.split(",") if name.strip()))

    def __post_init__(self) -> None:
        if self.members is not None and not isinstance(self.members, str):
            raise OptionError(
                f"members are names separated by commas, such as 'taylor,magnitude', not {self.members!r}."
            )
        if self.names is not None and len(self.names) < 2:
            raise OptionError("Ranks are averaged over at least two scores: name two members or more.")


@dataclass(frozen=True)
class StandInOptions:
    """What is measured in place of the head that is switched off."""

    ablation: str = option(ZERO, "what stands in the head's place, measured on the sample", (ZERO, MEAN, CONSTANT))

    def __post_init__(self) -> None:
        _check_choices(self)


@dataclass(frozen=True)
class AblationOptions(StandInOptions):
    """Which measure of the task is lost."""

    metric: str | None = option(None, "a metric of the task; none = its first")


@dataclass(frozen=True)
class GateOptions:
    """How gates on all heads are learned."""

    steps: int = option(200, "updates of the gates")
    batch: int = option(32, "examples of an update")
    rate: float = option(0.125, "learning rate")
    seed: int = option(0, "seed of the draws")

    def __post_init__(self) -> None:
        _check_choices(self)
        for name in ("steps", "batch"):
            whole_number(getattr(self, name), name, 1)
        if not 0 < self.rate < 100:
            raise OptionError(f"rate is a number above 0 and below 100, not {self.rate}.")
        seed_number(self.seed)


@dataclass(frozen=True)
class HardOptions(GateOptions):
    """How gates are learned under a rising price."""

    price: float = option(4.0, "what all open gates cost together in the end, in units of the loss")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.price < 1e6:
            raise OptionError(f"price is a number above 0 and below a million, not {self.price}.")


@dataclass(frozen=True)
class PriceOptions(HardOptions):
    """The same, and of which kind."""

    noise: bool = option(False, "hard-concrete gates, drawn anew in every update: those of 'gates-hard'")


@dataclass(frozen=True)
class CausalOptions(HardOptions):
    """How hard gates are pressed to open and to close."""

    price: float = option(0.5, "pressure on the gates' logits, in units of the loss")


@dataclass(frozen=True)
class CountOptions(GateOptions):
    """How gates are learned while an exact number of heads is kept."""

    temperature: float = option(1.0, "size of the noise that the choice of heads begins with; it falls to 0")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.temperature < 100:
            raise OptionError(f"temperature is a number from 0 to 100, not {self.temperature}.")


@dataclass(frozen=True)
class ShapleyOptions:
    """Whose value is shared out, and over how many random orders."""

    metric: str | None = option(None, "a metric of the task; none = its first")
    permutations: int = option(20, "random orders of switching heads off; up to 10 heads all coalitions are taken")
    tolerance: float = option(0.01, "an order ends when the metric is this near to that without any head")
    seed: int = option(0, "seed of the orders")

    def __post_init__(self) -> None:
        whole_number(self.permutations, "permutations", 2)
        if not 0 <= self.tolerance < 1:
            raise OptionError(f"tolerance is a number from 0 to 1, not {self.tolerance}.")
        seed_number(self.seed)


@dataclass(frozen=True)
class RandomOptions:
    """Which table is drawn."""

    seed: int = option(0, "seed")

    def __post_init__(self) -> None:
        seed_number(self.seed)


def build(kind: type, score: str, given: dict[str, Any]) -> Any:
    """Options of a score from keywords; a misspelt one is answered with the valid ones."""
    names = [f.name for f in fields(kind)]
    for name in given:
        if name not in names:
            if not names:
                raise OptionError(f"The score '{score}' has no options, so '{name}' cannot be set.")
            raise OptionError(unknown_choice(f"option of '{score}'", name, names))
    taken = {k: v.item() if isinstance(v, np.generic) else v for k, v in given.items()}
    for f in fields(kind):
        value = taken.get(f.name)
        if f.name not in taken or f.name == "seed" or value is f.default:  # a seed is refused in words of its own
            continue
        valid, called = _PLAIN.get(getattr(f.type, "__name__", str(f.type)), (object, ""))
        if not isinstance(value, valid) or (isinstance(value, bool) and valid in (Integral, Real)):
            raise OptionError(f"{f.name} of '{score}' is {called}, not {shown(value)}.")
    return kind(**taken)


_PLAIN: dict[str, tuple[type, str]] = {  # by a field's annotation
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (bool, "true or false"),
    "str": (str, "a text"),
}


def default_of(f: Any) -> Any:
    """The default of a declared option."""
    return None if f.default is MISSING else f.default

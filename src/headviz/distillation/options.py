"""How a student is trained, and what its prior is made of: frozen, checked once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import OptionError, unknown_choice

SCHEDULES = ("linear", "constant")
COVARIANCES = ("low-rank", "diagonal")

T = TypeVar("T")


@dataclass(frozen=True)
class TrainingOptions:
    """One training. The seed is not here, because one plan trains with several."""

    steps: int = 300
    batch: int = 32
    learning_rate: float = 3e-4
    every: int = 50  # steps between two points of the learning curve
    warmup: float = 0.05  # share of the steps
    schedule: str = "linear"  # falls to zero; constant = stays
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    temperature: float = 2.0  # of the teacher's logits
    teacher_share: float = 0.5  # of the loss, against the gold labels
    kl_weight: float = 1.0  # 1 = the evidence lower bound
    anneal: float = 0.0  # share of the steps over which the KL's weight rises from zero

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "every"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"{name} is a whole number of at least 1, not {value!r}.")
        for name in ("learning_rate", "max_grad_norm", "temperature"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise OptionError(f"{name} is a number above 0, not {value!r}.")
        for name in ("warmup", "teacher_share", "anneal"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise OptionError(f"{name} is a share from 0 to 1, not {value!r}.")
        for name in ("weight_decay", "kl_weight"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise OptionError(f"{name} is a number from 0 up, not {value!r}.")
        if self.schedule not in SCHEDULES:
            raise OptionError(unknown_choice("schedule", self.schedule, SCHEDULES))

    def rate_at(self, step: int) -> float:
        """The learning rate of a step: a linear rise, then level or a linear fall to zero."""
        rise = max(1, round(self.warmup * self.steps))
        factor = min(1.0, (step + 1) / rise)
        if self.schedule == "linear":
            factor = min(factor, (self.steps - step) / max(1, self.steps - rise))
        return self.learning_rate * factor

    def kl_weight_at(self, step: int) -> float:
        """The weight of the KL term at a step."""
        rise = self.anneal * self.steps
        return self.kl_weight * (min(1.0, step / rise) if rise else 1.0)

    def is_point(self, step: int) -> bool:
        """Whether the curve has a point after so many steps."""
        return step % self.every == 0 or step == self.steps


@dataclass(frozen=True)
class PosteriorOptions:
    """The shape of the teacher's covariance. ``rank=None`` takes all directions that the iterates span."""

    covariance: str = "low-rank"
    rank: int | None = None
    shrinkage: float = 0.5  # share of the diagonal, see ``posterior``
    floor: float = 1e-6  # least variance, as a share of the mean variance
    scale: float = 1.0  # of the whole covariance

    def __post_init__(self) -> None:
        if self.covariance not in COVARIANCES:
            raise OptionError(unknown_choice("covariance", self.covariance, COVARIANCES))
        if self.rank is not None and (isinstance(self.rank, bool) or not isinstance(self.rank, int) or self.rank < 1):
            raise OptionError(f"The rank is a whole number of at least 1, not {self.rank!r}.")
        if self.rank is not None and self.covariance == "diagonal":
            raise OptionError("A diagonal covariance has no rank. Leave the rank out, or ask for a low-rank one.")
        if not 0 <= self.shrinkage <= 1:
            raise OptionError(f"The shrinkage is a share from 0 to 1, not {self.shrinkage!r}.")
        if not 0 < self.floor < 1:
            raise OptionError(f"The floor is a share between 0 and 1, not {self.floor!r}.")
        if not 0 < self.scale < float("inf"):
            raise OptionError(f"The scale of the covariance is a number above 0, not {self.scale!r}.")


@dataclass(frozen=True)
class IterateOptions:
    """How the teacher is trained on to collect iterates: at a constant rate, one every ``gap`` steps."""

    count: int = 10
    gap: int = 10
    batch: int = 32
    learning_rate: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("count", 2), ("gap", 1), ("batch", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"{name} of the iterates is a whole number of at least {least}, not {value!r}.")
        if not 0 < self.learning_rate < float("inf"):
            raise OptionError(f"The iterates' learning rate is a number above 0, not {self.learning_rate!r}.")


def read_options(cls: type[T], given: Mapping[str, Any] | T, kind: str) -> T:
    """A dataclass from JSON; a misspelt name is answered with the valid ones."""
    if isinstance(given, cls):
        return given
    assert isinstance(given, Mapping)
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in given:
        if name not in names:
            raise OptionError(unknown_choice(kind, name, names))
    return cls(**given)

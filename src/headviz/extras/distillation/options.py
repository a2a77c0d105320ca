"""Options: how a student is trained, how the teacher's covariance is made, how iterates are collected."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...errors import OptionError, whole_number
from ...pruning.options import LARGEST_RATE, choice, number

SCHEDULES = ("linear", "constant")
COVARIANCES = ("low-rank", "diagonal")
LATER = {"forcing": 1.0}  # training options that earlier versions do not have, as they had it


@dataclass(frozen=True)
class TrainingOptions:
    """One training. The seed is not here, because one plan trains with several.

    ``steps`` is 300 whatever the teacher had. The command and the page give students as many updates as the teacher
    had, where its folder tells; in Python, ask ``teacher_updates(model)`` and say so.
    """

    steps: int = 300
    batch: int = 32
    learning_rate: float = 3e-4
    every: int = 50  # steps between two points of the learning curve
    warmup: float = 0.05  # share of the steps
    schedule: str = "linear"  # linear = falls to zero; constant = stays
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    temperature: float = 2.0  # of the teacher's logits
    teacher_share: float = 0.5  # of the loss, against the gold labels
    kl_weight: float = 1.0  # 1 = the evidence lower bound
    anneal: float = 0.0  # share of the steps over which the KL's weight rises from zero
    forcing: float = 1.0  # share of target words that are the reference's, the rest the model's own; recurrent only

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "every"):
            whole_number(getattr(self, name), name, 1)
        for name, most in (("learning_rate", LARGEST_RATE), ("max_grad_norm", 1e9), ("temperature", 1000.0)):
            number(getattr(self, name), name, 0, most, above=True)
        for name in ("warmup", "teacher_share", "anneal", "forcing"):
            number(getattr(self, name), name, 0, 1)
        for name in ("weight_decay", "kl_weight"):
            number(getattr(self, name), name, 0, 1e6)
        choice(self.schedule, "schedule", SCHEDULES)

    @property
    def record(self) -> dict[str, Any]:
        """As it is written. Later fields at their defaults are left out, so that what older versions began goes on."""
        return {k: v for k, v in asdict(self).items() if k not in LATER or v != LATER[k]}

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
    """The shape of the teacher's covariance. ``rank=None`` takes all directions that the iterates span, and
    ``shrinkage=None`` what they support (``shrinkage``)."""

    covariance: str = "low-rank"
    rank: int | None = None
    shrinkage: float | None = None  # share of the diagonal, see ``posterior``
    floor: float = 1e-6  # least variance, as a share of the mean variance
    scale: float = 1.0  # of the whole covariance

    def __post_init__(self) -> None:
        choice(self.covariance, "covariance", COVARIANCES)
        if self.rank is not None:
            whole_number(self.rank, "The rank", 1)
            if self.covariance == "diagonal":
                raise OptionError("A diagonal covariance has no rank. Leave the rank out, or ask for a low-rank one.")
        if self.shrinkage is not None:
            number(self.shrinkage, "The shrinkage", 0, 1)
        number(self.floor, "The floor", 0, 1 - 1e-9, above=True)
        number(self.scale, "The scale of the covariance", 0, 1e6, above=True)


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
            whole_number(getattr(self, name), f"{name} of the iterates", least)
        number(self.learning_rate, "The iterates' learning rate", 0, LARGEST_RATE, above=True)


RANDOM, COPY, CONDITIONAL = "random", "copy", "conditional"
LIKELIHOOD, VARIATIONAL, TEACHER = "likelihood", "variational", "teacher"


@dataclass(frozen=True)
class Method:
    """``start`` and ``objective`` are one of the names above; ``teacher`` learns from the teacher's logits."""

    title: str
    start: str
    objective: str
    what: str = ""

    @property
    def needs_posterior(self) -> bool:
        return self.start == CONDITIONAL


METHODS: dict[str, Method] = {
    "random": Method("random weights", RANDOM, LIKELIHOOD, "a fresh network without the part, trained on the task"),
    "copy": Method("copied weights", COPY, LIKELIHOOD, "the teacher's weights without the part, trained further"),
    "conditional": Method(
        "conditional mean",
        CONDITIONAL,
        LIKELIHOOD,
        "the weights that the teacher would be expected to have if the removed ones were zero, trained further",
    ),
    "variational": Method(
        "variational inference",
        CONDITIONAL,
        VARIATIONAL,
        "a distribution of weights that starts at the conditional mean and is kept near it while it learns",
    ),
    "kd": Method(
        "random weights, teacher's logits", RANDOM, TEACHER, "a fresh network that learns the teacher's probabilities"
    ),
    "kd-copy": Method(
        "copied weights, teacher's logits",
        COPY,
        TEACHER,
        "the teacher's weights without the part, learning the teacher's probabilities",
    ),
}

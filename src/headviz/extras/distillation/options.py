"""Options: how a student is trained, how the teacher's covariance is made, how iterates are collected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import OptionError
from ...options import Options, option, seed_option


@dataclass(frozen=True)
class TrainingOptions(Options):
    """One training. The seed is not here, because one plan trains with several.

    ``steps`` is 300 whatever the teacher had. The command and the page give students as many updates as the teacher
    had, where its folder tells; in Python, ask ``teacher_updates(model)`` and say so.
    """

    called: ClassVar[str] = "training option"

    steps: int = option(
        300, "updates", least=1, most=10**7, usual="the teacher's own, else 300", title="Training steps", metavar="N"
    )
    batch: int = option(32, "examples per update", least=1, metavar="B")
    learning_rate: float = option(3e-4, "AdamW's peak rate", least=0, above=True, title="Learning rate", metavar="R")
    every: int = option(50, "updates between points of the curve", least=1, metavar="N")
    warmup: float = option(0.05, "share of the updates with a rising rate", least=0, most=1, metavar="W")
    schedule: str = option(
        "linear", "of the rate after that: it falls to zero, or stays", ("linear", "constant"), metavar="NAME"
    )
    weight_decay: float = option(0.0, "of AdamW", least=0, most=1e6, metavar="D")
    max_grad_norm: float = option(1.0, "larger gradients are scaled down to it", least=0, above=True, most=1e9, flag="")
    temperature: float = option(2.0, "of the teacher's logits, for kd", least=0, above=True, most=1000, metavar="T")
    teacher_share: float = option(
        0.5, "share of the loss against the teacher's logits, for kd", least=0, most=1, metavar="S"
    )
    kl_weight: float = option(
        1.0, "of the divergence, for variational; 1 is the evidence lower bound", least=0, most=1e6, metavar="W"
    )
    anneal: float = option(0.0, "share of the updates over which that weight rises", least=0, most=1, metavar="S")
    forcing: float = option(
        1.0,
        "recurrent: share of target words from the reference, the rest are the model's own",
        least=0,
        most=1,
        metavar="S",
        before=1.0,
    )

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
class PosteriorOptions(Options):
    """The shape of the teacher's covariance. ``rank=None`` takes all directions that the iterates span, and
    ``shrinkage=None`` what they support (``shrinkage``)."""

    called: ClassVar[str] = "posterior option"

    covariance: str = option("low-rank", "low-rank is low rank plus diagonal", ("low-rank", "diagonal"), metavar="C")
    rank: int | None = option(None, "at most one less than there are iterates", least=1, usual="all", metavar="R")
    shrinkage: float | None = option(
        None, "share of the diagonal", least=0, most=1, usual="what the iterates support", metavar="S"
    )
    floor: float = option(
        1e-6, "least variance, as a share of the mean variance", least=0, above=True, most=0.999999, flag=""
    )
    scale: float = option(1.0, "multiplies the covariance", least=0, above=True, most=1e6, metavar="S")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None and self.covariance == "diagonal":
            raise OptionError("A diagonal covariance has no rank. Leave the rank out, or ask for a low-rank one.")


@dataclass(frozen=True)
class IterateOptions(Options):
    """How the teacher is trained on to collect iterates: at a constant rate, one every ``gap`` steps."""

    called: ClassVar[str] = "iterates option"

    count: int = option(10, "iterates to collect", least=2, most=1000, flag="iterates", metavar="K")
    gap: int = option(10, "updates between two of them", least=1, metavar="N")
    batch: int = option(32, "examples per update", least=1, flag="")
    learning_rate: float = option(
        1e-4, "constant rate while collecting", least=0, above=True, flag="iterate-rate", metavar="R"
    )
    seed: int = seed_option(flag="")


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

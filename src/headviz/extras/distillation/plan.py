"""The plan of a distillation: one frozen, checked record that can be written as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar

from ...errors import LARGEST_SEED, OptionError
from ...models.source import Source
from ...options import Options, option, seed_option
from .removal import Removal

# -----------------------------------------------------------------------------------------------
# Options: how a student is trained, how the teacher's covariance is made, how iterates are collected.


@dataclass(frozen=True)
class TrainingOptions(Options):
    """One training. The seed is not here, because one plan trains with several.

    ``steps`` is 300 whatever the teacher had. The command and the page give students as many updates as the teacher
    had, where its folder tells; in Python, pass ``teacher_updates(model)`` as ``steps``.
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
        "linear", "rate after the warm-up: it falls to zero in a line, or stays", ("linear", "constant"), metavar="NAME"
    )
    weight_decay: float = option(0.0, "AdamW's weight decay", least=0, most=1e6, metavar="D")
    max_grad_norm: float = option(1.0, "larger gradients are scaled down to it", least=0, above=True, most=1e9, flag="")
    temperature: float = option(2.0, "softmax temperature for kd", least=0, above=True, most=1000, metavar="T")
    teacher_share: float = option(
        0.5, "share of the loss against the teacher's logits, for kd", least=0, most=1, metavar="S"
    )
    kl_weight: float = option(
        1.0, "weight of the KL divergence, for variational; 1 is the evidence bound", least=0, most=1e6, metavar="W"
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


def check_rank(rank: int | None, count: int, of: str = "iterates") -> None:
    """Refuse a covariance of so many iterates, or trainings, that they cannot have."""
    if count < 2:
        more = "Collect" if of == "iterates" else "Name"
        raise OptionError(f"A covariance needs at least 2 {of}, and there are {count}. {more} more.")
    if rank is not None and rank > count - 1:
        raise OptionError(
            f"A covariance of rank {rank} needs at least {rank + 1} {of}, and there are {count}. "
            f"Collect more, or ask for rank {count - 1} or less."
        )


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
LIKELIHOOD, VARIATIONAL, TEACHER = "likelihood", "variational", "teacher"  # TEACHER is also the first piece of work


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


# -----------------------------------------------------------------------------------------------


STUDENTS = "students"  # the folder below a distillation's own where each piece leaves its model
WORK = "training"  # the folder of the trainings' checkpoints
ITERATES = "iterates"  # the folder of the teacher's iterates


@dataclass(frozen=True)
class DistillationPlan(Source):
    """What is removed, how students are made and with which seeds. ``model`` is the teacher.

    The plan does not say where results go.

    >>> import headviz
    >>> headviz.DistillationPlan("demo", "demo", "layers:3,4", inits=("random", "copy")).inits
    ('random', 'copy')
    """

    called: ClassVar[str] = "option of a distillation"

    remove: str = option(
        help="heads:3.5,7.0 or layers:4 or ffn:2 (of a translator heads:cross.1.5, layers:decoder.2), or attention for "
        "a recurrent translator; parts are joined by +. heads-v, heads-qkv, heads-all, attention-keys, attention:2 and "
        "attention:4 remove the same by zeros in other weights",
        metavar="PART",
    )
    inits: tuple[str, ...] = option(
        ("random", "copy"),
        "how students start; kd and kd-copy also learn the teacher's logits",
        METHODS,
        each="initialisation",
        title="Students start from",
        flag="init",
        metavar="A[,B]",
    )
    seeds: tuple[int, ...] = option(
        (0,),
        "each student is trained once for every seed",
        most=LARGEST_SEED,
        each="seed",
        title="Seeds",
        metavar="0,1,2",
    )
    training: TrainingOptions = option(TrainingOptions, flag="")
    posterior: PosteriorOptions = option(PosteriorOptions, flag="")
    iterates: IterateOptions = option(IterateOptions, flag="")
    trainings: tuple[str, ...] | None = option(
        None, "folders of other trainings of the teacher, instead of iterates", metavar="DIR,DIR,…"
    )

    train_split: str = option("train", flag="")
    dev_split: str = option("dev", flag="")
    train_limit: int | None = option(
        None, "training examples", least=1, usual="all", title="Training examples", metavar="N"
    )
    dev_limit: int | None = option(None, "dev examples to measure on", least=1, usual="all", flag="limit", metavar="N")
    beams: int = option(
        1, "translation: measure by a search with so many beams", least=1, most=64, before=1, metavar="N"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "remove", Removal.parse(self.remove).text)
        super().__post_init__()
        if self.needs_posterior:
            if self.trainings is None:
                check_rank(self.posterior.rank, self.iterates.count)
            else:
                check_rank(self.posterior.rank, len(self.trainings), "trainings")

    @property
    def needs_posterior(self) -> bool:
        return any(METHODS[init].needs_posterior for init in self.inits)

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of the students' trainings, in the order one machine does them."""
        return tuple(f"{init}-s{seed}" for seed in self.seeds for init in self.inits)

    def piece(self, name: str) -> tuple[str, int]:
        """Initialisation and seed of a training."""
        init, _, seed = name.rpartition("-s")
        return init, int(seed)

    @property
    def digest(self) -> str:
        """Identifies the plan; a state belongs to one plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

"""How a student is made: one entry per method, with where its weights start and what it is trained for."""

from __future__ import annotations

from dataclasses import dataclass

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

"""How a student is made: one line per method, where its weights start and what it is trained for."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import OptionError, unknown_choice

RANDOM, COPY, CONDITIONAL = "random", "copy", "conditional"
LIKELIHOOD, VARIATIONAL, TEACHER = "likelihood", "variational", "teacher"


@dataclass(frozen=True)
class Method:
    """``start`` and ``objective`` are one of the names above; ``teacher`` learns from the teacher's logits."""

    title: str
    start: str
    objective: str

    @property
    def needs_posterior(self) -> bool:
        return self.start == CONDITIONAL


# fmt: off
METHODS: dict[str, Method] = {
    "random":      Method("random weights", RANDOM, LIKELIHOOD),
    "copy":        Method("copied weights", COPY, LIKELIHOOD),
    "conditional": Method("conditional mean", CONDITIONAL, LIKELIHOOD),
    "variational": Method("variational inference", CONDITIONAL, VARIATIONAL),
    "kd":          Method("random weights, teacher's logits", RANDOM, TEACHER),
    "kd-copy":     Method("copied weights, teacher's logits", COPY, TEACHER),
}
# fmt: on


def get_method(name: str) -> Method:
    if name not in METHODS:
        raise OptionError(unknown_choice("initialisation", name, METHODS))
    return METHODS[name]

"""The jobs that a model can have, in the order in which they are listed."""

from __future__ import annotations

from ..errors import ModelError
from .answer import Answer
from .labels import LABELS
from .metrics import METRICS
from .number import NUMBER
from .one_class import ONE_CLASS
from .sentence import SENTENCE
from .word import WORD

ANSWERS: dict[str, Answer] = {one.job: one for one in (ONE_CLASS, NUMBER, LABELS, SENTENCE, WORD)}
for one in ANSWERS.values():
    METRICS.update(one.metrics)


def kind_named(architecture: str, decoder: bool) -> str | None:
    """The kind of a class of transformers by its name; None for one that no job has."""
    for answer in ANSWERS.values():
        if answer.decoder in (None, decoder) and any(part in architecture for part in answer.architectures):
            return answer.kind
    return None


def answer_in(kind: str, problem: str | None, outputs: int, ranks: bool = False) -> Answer:
    """The answer of a model of this kind by its configuration: its problem_type, how many outputs it has, and whether
    sentence-transformers wrote it as a cross-encoder."""
    fitting = (answer for answer in ANSWERS.values() if answer.kind == kind and answer.fits(problem, outputs, ranks))
    found = next(fitting, None)
    if found is None:
        raise ModelError(f"No job has {outputs} outputs and the problem_type '{problem}'.")
    return found

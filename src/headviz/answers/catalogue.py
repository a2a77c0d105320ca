"""The jobs that a model can have, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from numpy.typing import NDArray

from .. import plugins
from ..errors import ModelError, TaskError, is_one_of
from ..heads import MASKED_LM
from .answer import JOB, Answer
from .labels import LABELS
from .number import NUMBER
from .one_class import ONE_CLASS
from .probabilities import PROBABILITIES
from .rank import RANK
from .span import SPAN
from .tokens import TOKENS
from .vector import VECTOR


class Word(Answer):
    """The word at a hidden place, which a pre-trained encoder answers. The job has no data of its own.

    Logits are [n, T, V]. Heads are scored on masked words; nothing is evaluated or explained.
    """

    job, kind = "word", MASKED_LM
    does = "reads {texts} and says which word is hidden"
    architectures, auto_class, trained = ("ForMaskedLM",), "AutoModelForMaskedLM", "masked-language head"
    explains = False

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> NoReturn:
        raise TaskError("A masked-language head is not evaluated on a task. Load a fine-tuned model.")


WORD = Word()


CROSS_ENCODER = "sentence_transformers"  # what sentence-transformers writes into the config.json of a cross-encoder

_ANSWERS: tuple[Answer, ...] = (
    # the first that fits a model's configuration is its answer
    ONE_CLASS,
    RANK,
    NUMBER,
    LABELS,
    TOKENS,
    SPAN,
    WORD,
    VECTOR,
    PROBABILITIES,
)
ANSWERS: Mapping[str, Answer] = plugins.Entries("answers", _ANSWERS)


def answer_named(job: object) -> Answer:
    """The answer of a job; a ``ModelError`` for one that there is not."""
    if not is_one_of(job, ANSWERS):
        raise ModelError(plugins.unknown("job", job, ANSWERS))
    return ANSWERS[str(job)]


def usual_job(numbers: bool) -> str:
    """The job of a label column, where the user names none: by whether its cells are numbers."""
    return (NUMBER if numbers else ONE_CLASS).job


def kind_named(architecture: str, decoder: bool) -> str | None:
    """The kind of a class of transformers by its name; None for one that no job has."""
    for answer in ANSWERS.values():
        if answer.decoder in (None, decoder) and any(part in architecture for part in answer.architectures):
            return answer.kind
    return None


def answer_in(kind: str, settings: Mapping[str, Any], outputs: int) -> Answer:
    """The answer of a model of this kind by its configuration: the job that a user named, else its problem_type, how
    many outputs it has, and whether sentence-transformers wrote it as a cross-encoder."""
    job, problem = settings.get(JOB), settings.get("problem_type")
    if is_one_of(job, ANSWERS) and ANSWERS[str(job)].kind == kind:
        return ANSWERS[str(job)]
    ranks = settings.get(CROSS_ENCODER) is not None
    for answer in ANSWERS.values():
        if answer.kind == kind and answer.fits(problem, outputs, ranks):
            return answer
    raise ModelError(f"No job has {outputs} outputs and the problem_type '{problem}'.")

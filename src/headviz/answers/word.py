"""The word at a hidden place: what a pre-trained encoder answers. The job ``word`` has no data of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from numpy.typing import NDArray

from ..errors import TaskError
from ..heads import MASKED_LM
from .answer import Answer


class Word(Answer):
    """Logits are [n, T, V]. Heads are scored on masked words; nothing is evaluated or explained."""

    job, kind = "word", MASKED_LM
    architectures, auto_class, trained = ("ForMaskedLM",), "AutoModelForMaskedLM", "masked-language head"
    explains = False

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> NoReturn:
        raise TaskError("A masked-language head is not evaluated on a task. Load a fine-tuned model.")


WORD = Word()

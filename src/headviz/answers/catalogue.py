"""The jobs that a model can have, in the order in which they are listed."""

from __future__ import annotations

from .answer import Answer
from .metrics import METRICS
from .number import NUMBER
from .one_class import ONE_CLASS
from .sentence import SENTENCE
from .word import WORD

ANSWERS: dict[str, Answer] = {one.job: one for one in (ONE_CLASS, NUMBER, SENTENCE, WORD)}
for one in ANSWERS.values():
    METRICS.update(one.metrics)

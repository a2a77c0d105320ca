"""Evaluate a translation model of a pruning run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...pruning.judging import Judge, Measured, measured
from .evaluation import require_translation, translate

if TYPE_CHECKING:
    from ...heads import HeadMask
    from ...models.classifier import Classifier
    from ...progress import Cancel, Progress

END = "\n"


class Sentences(Judge):
    """Translations, greedy: kept as UTF-8, one per line."""

    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        model = require_translation(clf, self.data)
        texts, _ = translate(model, self.data.texts, mask, progress=progress, cancel=cancel)
        return lines(texts)

    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        mine, theirs = (np.array(texts_of(one), dtype=object) for one in (answers, reference))
        return measured(self.data, mine, theirs)


def lines(texts: list[str]) -> np.ndarray:
    """Texts as one array of bytes, one per line. Line breaks within a text become spaces."""
    whole = END.join(" ".join(t.splitlines()) for t in texts)
    return np.frombuffer(whole.encode(), np.uint8).copy()


def texts_of(answers: np.ndarray) -> list[str]:
    """The inverse of ``lines``."""
    return answers.tobytes().decode().split(END)

"""Small models and data for the analyses: labels follow the model, so that heads matter."""

from __future__ import annotations

import random

import numpy as np

from headviz.evaluation.dispatch import evaluate
from headviz.evaluation.evaluator import Evaluator
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task

from .tiny import WORDS, tiny_classifier


def texts(n: int, seed: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rng = random.Random(seed)

    def one() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 9)))

    return tuple(one() for _ in range(n)), tuple(one() for _ in range(n))


def learnt(n: int = 120, seed: int = 0, task: str = "mnli", wrong: float = 0.1, **model: object) -> Evaluator:
    """Gold labels are the full model's own answers, but for a share that is wrong."""
    clf = tiny_classifier(**model)
    a, b = texts(n, seed)
    blank = Dataset(get_task(task), "dev", a, b, np.zeros(n, dtype=np.int64))
    said = evaluate(clf, blank).predictions
    rng = np.random.default_rng(seed)
    gold = np.where(rng.random(n) < wrong, (said + 1) % 3, said)
    return Evaluator(clf, Dataset(get_task(task), "dev", a, b, gold, origin=str(seed)))


def unlearnt(n: int = 200, seed: int = 0, **model: object) -> Evaluator:
    """Gold labels have nothing to do with the texts."""
    a, b = texts(n, seed)
    gold = np.random.default_rng(seed).integers(0, 3, n)
    return Evaluator(tiny_classifier(**model), Dataset(get_task("mnli"), "dev", a, b, gold))

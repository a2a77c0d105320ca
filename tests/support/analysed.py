"""Small models and data for the analyses: labels follow the model, so that heads matter."""

from __future__ import annotations

import random

import numpy as np
import torch

from headviz.evaluation.evaluator import Evaluator
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.plain import evaluate

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


def twins() -> Evaluator:
    """Heads (1, 0) and (1, 1) are copies and drown everything else; layer norm hides that one of them is gone."""
    clf = tiny_classifier(spread=0.2)
    with torch.no_grad():
        for layer in range(3):
            query, key, value, output = clf.projections(layer)
            output.weight *= 0.02
            if layer == 1:
                for matrix in (query, key, value):
                    matrix.weight[8:16] = matrix.weight[:8]
                    matrix.bias[8:16] = matrix.bias[:8]
                output.weight[:, :16] *= 20_000
                output.weight[:, 8:16] = output.weight[:, :8]
    blank = learnt(n=150).data
    clf.model.classifier.bias -= torch.tensor(evaluate(clf, blank).logits.mean(axis=0))  # all classes occur
    said = evaluate(clf, blank).predictions
    return Evaluator(clf, Dataset(blank.task, "dev", blank.texts, blank.pairs, said))

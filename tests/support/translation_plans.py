"""Small pruning runs of translation models."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from headviz import HeadMask
from headviz.pruning import ALGORITHMS, State
from headviz.pruning.context import Context
from headviz.pruning.job import run_plan
from headviz.pruning.plan import PruningPlan
from headviz.tasks import TASKS, Dataset

from .pruning_plans import QUICK
from .tiny_translation import HEADS, ROWS, SOURCES, TARGETS, tiny_translator


def pairs(n: int, split: str, seed: int = 0) -> Dataset:
    """Random words on both sides; short, so that translating is quick."""
    draw = random.Random(seed)
    words = " ".join((*SOURCES, *TARGETS)).replace(".", "").split()
    sides = [[" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(n)] for _ in range(2)]
    return Dataset(TASKS["custom-translation"], split, *map(tuple, sides))


def context(folder: Path, family: str = "marian", **options: Any) -> Context:
    settings: dict[str, Any] = {
        "clf": tiny_translator(family, seed=0),
        "train": pairs(16, "train"),
        "dev": pairs(8, "dev", seed=1),
        "load_base": lambda seed: tiny_translator(family, seed=5),
    }
    return Context(folder, **{**settings, **options})


def plan(algorithm: str = "one-importance", **options: Any) -> PruningPlan:
    settings: dict[str, Any] = {
        "model": "tiny",
        "base": "tiny-base",
        "task": "custom-translation",
        "step": 0.25,
        "until": 0.5,
        "samples": 12,
        "score": getattr(ALGORITHMS.get(algorithm), "only_score", None) or "taylor",
        "repair": "none",
        "length_filter": "none",
        "finetune": QUICK,
        "device": "cpu",
    }
    return PruningPlan(algorithm=algorithm, **{**settings, **options})


def done(c: Context, p: PruningPlan) -> State:
    *_, last = run_plan(p, c)
    return last


def mask_of(text: str) -> HeadMask:
    return HeadMask.from_hex(text, ROWS, HEADS)

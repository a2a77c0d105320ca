"""A tiny random model of each job, and made-up data with gold answers."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import headviz
from headviz.answers import ANSWERS
from headviz.tasks import Dataset, get_task

from .tiny import PAIRS, TEXTS, WORDS, tiny_embedder, tiny_model, tiny_tokenizer

CLASSES, TAGS = ("red", "cold", "wet"), ("O", "B-red", "I-red", "B-wet", "I-wet")
# of the outputs, by how gold answers are read
NAMES = {
    "class": CLASSES,
    "number": ("value",),
    "labels": CLASSES,
    "relevance": ("value",),
    "tokens": TAGS,
    "span": ("start", "end"),
}


def model_of(job: str, family: str = "bert") -> Any:
    if job == "vector":
        with tempfile.TemporaryDirectory() as place:
            return headviz.load(tiny_embedder(Path(place) / family, family), device="cpu")
    model = tiny_model(family, labels=NAMES[ANSWERS[job].columns], head=ANSWERS[job].auto_class)
    return headviz.wrap(model, tiny_tokenizer(int(model.config.pad_token_id or 0)), "tiny", job=job)


def data_of(job: str, repeat: int = 8, seed: int = 0) -> Dataset:
    """Made-up gold answers of a job."""
    rng, answer, n = np.random.default_rng(seed), ANSWERS[job], repeat * len(TEXTS)
    names = () if answer.columns in ("number", "relevance", "span") else NAMES[answer.columns]
    texts = [TEXTS[i // 4 % 4 if answer.unit[0] == "query" else i % 4] for i in range(n)]
    if answer.unit[0] == "query":  # each with four passages
        texts = [f"{text} {WORDS[i // 4]}" for i, text in enumerate(texts)]
    labels = {
        "class": lambda: rng.integers(0, 3, n),
        "number": lambda: rng.uniform(-1, 1, size=n),
        "labels": lambda: rng.integers(0, 2, (n, 3)),
        "relevance": lambda: np.tile([0, 2, 0, 1], repeat),
        "span": lambda: np.array([[(i % 3, i % 3 + i % 2)] if i % 5 else [(-1, -1)] for i in range(n)]),
        "tokens": lambda: tags_of(texts, rng),
    }[answer.columns]()
    task = replace(get_task("custom"), job=job, metrics=answer.usual, label_names=names)
    return Dataset(task, "dev", tuple(texts), None if answer.num_texts == 1 else tuple(PAIRS) * repeat, labels)


def tags_of(texts: list[str], rng: np.random.Generator) -> np.ndarray:
    words = np.array([len(text.split()) for text in texts])
    return np.where(np.arange(words.max()) < words[:, None], rng.integers(0, 5, (len(texts), words.max())), -100)

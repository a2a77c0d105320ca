"""A small task, tiny models and simple scores for the tests of pruning runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import headviz
from headviz.engine import Workplace
from headviz.pruning import ALGORITHMS, FinetuneOptions, PruningPlan, State
from headviz.pruning.context import Context
from headviz.pruning.job import PruningJob
from headviz.pruning.state import states_in
from headviz.tasks import Dataset, get_task

from .pieces import after
from .tiny import WORDS, tiny_classifier, tiny_folder

QUICK = FinetuneOptions(epochs=1, batch=8, learning_rate=1e-3)


def make_data(n: int, split: str = "train", seed: int = 0, task: str = "demo") -> Dataset:
    """Random word pairs; the class is told by a word of the first text, so that it can be learnt."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    rng.shuffle(labels)
    texts, pairs = [], []
    for label in labels:
        words = list(rng.choice(WORDS[:20], int(rng.integers(2, 9))))
        words.insert(int(rng.integers(0, len(words))), ("red", "blue", "big")[label])
        texts.append(" ".join(words))
        pairs.append(" ".join(rng.choice(WORDS[:20], int(rng.integers(2, 6)))))
    return Dataset(get_task(task), split, tuple(texts), tuple(pairs), labels)


class Table:
    """What a score function gives back."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


def by_hash(clf: Any, data: Dataset, score: str, *, mask: Any, seed: int, **_: Any) -> Table:
    """A table that depends on the weights, the mask, the data and the seed, and on nothing else."""
    kept = clf.present if mask is None else clf.present | mask
    rng = np.random.default_rng([int(clf.digest[:8], 16), int(kept.hex, 16), int(data.digest[:8], 16), seed])
    return Table(np.where(kept.array(), rng.random((clf.num_layers, clf.num_heads)), np.nan))


def context(folder: Path, layers: int = 3, heads: int = 4, score: Any = by_hash, **options: Any) -> Context:
    """A context over a tiny fine-tuned and a tiny pre-trained model of one shape."""
    base = folder / "base"
    if not base.exists():
        tiny_folder(base, layers=layers, heads=heads, seed=1)

    def load_base(seed: int) -> Any:
        return headviz.load(base, fresh_labels=clf.labels, seed=seed, device="cpu")

    clf = tiny_classifier(layers=layers, heads=heads)
    settings: dict[str, Any] = {
        "clf": clf,
        "train": make_data(48),
        "dev": make_data(40, "dev", seed=1),
        "load_base": load_base,
        "score": score,
    }
    return Context(folder / "run", **{**settings, **options})


def plan(algorithm: str = "one-importance", **options: Any) -> PruningPlan:
    settings: dict[str, Any] = {
        "model": "tiny",
        "base": "tiny-base",
        "task": "demo",
        "score": getattr(ALGORITHMS.get(algorithm), "only_score", None) or "random",
        "step": 0.25,
        "until": 0.75,
        "samples": 24,
        "repair_samples": 24,
        "length_filter": "none",
        "finetune": QUICK,
        "device": "cpu",
    }
    return PruningPlan(algorithm=algorithm, **{**settings, **options})


def without_times(state: State) -> dict[str, Any]:
    """A state without its seconds: equal for equal runs."""
    out = state.to_dict()
    for entry in (out["reference"], *out["choices"], *out["records"]):
        entry.pop("seconds")
    return out


def ready(plan: PruningPlan, state: State) -> list[str]:
    """The pieces that can be done now; none = the run is done."""
    return PruningJob(plan).ready(state)


def do(context: Context, plan: PruningPlan, state: State, piece: str, *tools: Any) -> State:
    """The state after one more piece."""
    job = PruningJob(plan)
    return after(job, state, piece, Workplace(job, context.folder, context), *tools)


def write(state: State, folder: Path) -> None:
    """Put a state where ``State.load`` finds it."""
    states_in(folder).save(state.to_bytes())

"""A tiny fine-tuned model, its base and a few examples on disk: real runs in seconds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from headviz.pruning.algorithms import ALGORITHMS

from .tiny import WORDS, tiny_folder

LABELS = ("entailment", "neutral", "contradiction")


def folders(place: Path, train: int = 48, dev: int = 30) -> dict[str, str]:
    """Model, base and data, as a plan names them."""
    place.mkdir(parents=True, exist_ok=True)
    tiny_folder(place / "model", layers=2, heads=4, seed=1)
    tiny_folder(place / "base", layers=2, heads=4, seed=2)
    data = place / "data"
    data.mkdir()
    draw = random.Random(0)
    for split, count in (("train", train), ("dev", dev)):
        lines = ["text\tpair\tlabel"]
        for i in range(count):
            text, pair = (" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(2))
            lines.append(f"{text}\t{pair}\t{LABELS[i % 3]}")
        (data / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return {"model": str(place / "model"), "base": str(place / "base"), "data": str(data)}


def options(place: dict[str, str], algorithm: str, **changes: Any) -> dict[str, Any]:
    """A plan as JSON: small, but of every phase."""
    known = ALGORITHMS.get(algorithm)  # None for one that a plugin brings
    made = {
        **place,
        "task": "custom",
        "algorithm": algorithm,
        "score": (known and known.only_score) or "taylor",
        "text_columns": ["text", "pair"],
        "label_column": "label",
        "samples": 24,
        "length_filter": "none",
        "step": 0.25,
        "until": 0.75,
        "finetune": {"epochs": 1.0, "batch": 8, "learning_rate": 1e-3, "checkpoint_steps": 2},
        "device": "cpu",
    }
    return {**made, **changes}

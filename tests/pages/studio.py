"""A small model and its data on disk, for pages and browser tests; made in seconds, no download."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from tiny import WORDS, tiny_model, tiny_tokenizer

LABELS = ("entailment", "neutral", "contradiction")
SLICES = ("negation", "number", "role swap")


def make_model(folder: Path, layers: int = 12, heads: int = 12, seed: int = 0) -> Path:
    """A random BERT whose three answers all occur and change with its heads."""
    import torch

    model = tiny_model("bert", layers=layers, heads=heads, hidden=4 * heads, seed=seed, spread=0.3)
    tokenizer = tiny_tokenizer()
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=8)) for _ in range(64)]
    with torch.inference_mode():
        logits = model(**tokenizer(texts, texts[::-1], padding=True, return_tensors="pt")).logits
        model.classifier.bias -= logits.mean(0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_data(folder: Path, rows: int = 60, seed: int = 0) -> Path:
    """Train and dev pairs with a slice column."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for split in ("train", "dev"):
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["premise", "hypothesis", "label", "phenomenon"])
            for i in range(rows):
                text = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(2)]
                out.writerow([*text, LABELS[i % 3], SLICES[i // 3 % 3]])
    return folder

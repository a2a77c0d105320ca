"""Files of one's own with random pairs of texts, and the flags that read them."""

from pathlib import Path

import numpy as np

from .tiny import WORDS

LABELS = ("entailment", "neutral", "contradiction")


def write_custom(folder: Path, seed: int = 0, **counts: int) -> Path:
    """A CSV file for each split with so many pairs: columns a, b, y, and sort, which is odd or even."""
    rng = np.random.default_rng(seed)
    folder.mkdir(exist_ok=True)
    for split, count in counts.items():
        rows = ["a,b,y,sort"]
        for i in range(count):
            a, b = (" ".join(rng.choice(WORDS[:-2], rng.integers(3, 8))) for _ in range(2))
            rows.append(f"{a},{b},{LABELS[i % 3]},{'even' if i % 2 else 'odd'}")
        (folder / f"{split}.csv").write_text("\n".join(rows) + "\n")
    return folder


def custom(folder: object) -> tuple[str, ...]:
    """The same as a task on the command line."""
    return ("--task", "custom", "--data", str(folder), "--text-columns", "a,b", "--label-column", "y")

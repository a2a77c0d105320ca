"""Small random data for tests of scores."""

import random

import numpy as np

from headviz.tasks import Dataset, get_task

from .tiny import WORDS


def made(n=12, seed=0, task="demo", split="train"):
    """n random pairs of unequal length with random labels."""
    rnd = random.Random(seed)

    def text():
        return " ".join(rnd.choice(WORDS) for _ in range(rnd.randint(2, 9)))

    entry = get_task(task)
    texts = [text() for _ in range(n)]
    pairs = [text() for _ in range(n)] if entry.num_texts == 2 else None
    if entry.job == "number":
        labels = np.array([rnd.uniform(0, 5) for _ in range(n)])
    else:
        labels = np.array([rnd.randrange(len(entry.label_names)) for _ in range(n)])
    return Dataset(entry, split, texts, pairs, labels)

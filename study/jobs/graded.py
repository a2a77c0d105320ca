"""Pairs of generated sentences whose similarity is known: the share of their parts that are the same."""

from __future__ import annotations

import numpy as np

import headviz

PARTS = (
    ("old young tall quiet famous angry tired rich".split()),
    ("teacher farmer doctor painter soldier lawyer pilot nurse".split()),
    ("cooked painted repaired bought carried sold washed lost".split()),
    ("bread chair bicycle letter coat piano basket lamp".split()),
    ("kitchen garden station forest harbour library market church".split()),
)
SENTENCE = "The {} {} {} the {} in the {}."


def pairs(count: int, seed: int) -> headviz.Dataset:
    """Equally many with each number of shared parts."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(count):
        first = [words[rng.integers(len(words))] for words in PARTS]
        second, kept = list(first), i % (len(PARTS) + 1)
        for place in rng.permutation(len(PARTS))[kept:]:
            second[place] = rng.choice([word for word in PARTS[place] if word != first[place]])
        texts = (SENTENCE.format(*first), SENTENCE.format(*second))
        rows.append({"a": texts[0], "b": texts[1], "similarity": kept / len(PARTS)})
    return headviz.load_task("custom", data=rows, text_columns="a,b", label_column="similarity", job="number")

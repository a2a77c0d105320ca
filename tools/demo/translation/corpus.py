"""The translation demo's corpus: English sentences with their translation into Veshan, generated.

    for pair in generate("train", 100_000, seed=0): ...

Constructions take turns, so that each has the same number of sentences to within one. Three splits never meet:

- ``unseen``: a fixed tenth of all (construction, verb or adjective) combinations, found in no other split;
- ``dev``: of the rest, a fixed twentieth of all sentences;
- ``train``: everything else, as many sentences as are asked for.

Which split a sentence belongs to follows from its text alone, so it stays the same for every seed and length.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from zlib import crc32

from headviz.extras.translation.tasks import SPLITS, Pair

from .drawing import CONSTRUCTIONS, draw, name_of
from .english import english
from .veshan import veshan

SHIPPED = {
    "train": 20_000,
    "dev": 1400,
    "unseen": 1400,
}  # sentences that the task reads; 1400: 100 of each construction


def split_of(construction: str, word: str, source: str) -> str:
    """The only split that may show this sentence."""
    if crc32(f"{construction}|{word}".encode()) % 10 == 0:
        return "unseen"
    if crc32(source.encode()) % 20 == 0:
        return "dev"
    return "train"


def generate(split: str, count: int, seed: int = 0) -> Iterator[Pair]:
    """``count`` sentences of one split; the same arguments give the same ones.

    ``dev`` and ``unseen`` never repeat a sentence.
    """
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}; there are {', '.join(SPLITS)}.")
    rng = Random(f"veshan {split} {seed}")
    turns = list(constructions_of(split))
    seen: set[str] = set()
    made = 0
    while made < count:
        rng.shuffle(turns)
        for construction in turns[: count - made]:
            while True:
                sentence, word = draw(construction, rng)
                source = english(sentence)
                if split_of(construction, word, source) == split and source not in seen:
                    break
            if split != "train":
                seen.add(source)
            yield Pair(source, veshan(sentence), construction)
            made += 1


def constructions_of(split: str) -> tuple[str, ...]:
    """The constructions that a split has; one without any held-out word is not among the unseen."""
    if split != "unseen":
        return tuple(CONSTRUCTIONS)
    return tuple(
        name
        for name, (_, words) in CONSTRUCTIONS.items()
        if any(split_of(name, name_of(w), "") == "unseen" for w in words)
    )

"""The demo corpus: labelled sentence pairs, generated.

    for example in generate("train", 100_000, seed=0): ...

Phenomena and labels take turns, so both are balanced to within one round. Three splits never meet:

- `unseen`: a fixed tenth of all (frame, content word) combinations, found in no other split;
- `dev`: of the rest, a fixed twentieth of all pairs;
- `train`: everything else, as many pairs as are asked for.

Which split a pair belongs to follows from its text alone, so it stays the same for every seed and length.
"""

from collections.abc import Iterator
from random import Random
from zlib import crc32

from .example import LABELS, Draft, Example
from .grammar import contracted
from .phenomena import PHENOMENA

CONTRACTED = 0.15  # share of sentences with contractions, where they have something to contract
SPLITS = ("train", "dev", "unseen")


def split_of(draft: Draft, phenomenon: str) -> str:
    """The only split that may show this pair."""
    if crc32(f"{phenomenon}|{draft.frame}|{draft.word}".encode()) % 10 == 0:
        return "unseen"
    if crc32(f"{draft.premise}|{draft.hypothesis}".encode()) % 20 == 0:
        return "dev"
    return "train"


def _contract(rng: Random, draft: Draft) -> Draft:
    """Each sentence on its own is now and then told with "didn't" instead of "did not"."""
    if rng.random() < CONTRACTED:
        draft = draft._replace(premise=contracted(draft.premise))
    if rng.random() < CONTRACTED:
        draft = draft._replace(hypothesis=contracted(draft.hypothesis))
    return draft


def generate(split: str, count: int, seed: int = 0) -> Iterator[Example]:
    """`count` pairs of one split; the same arguments give the same pairs. `dev` and `unseen` never repeat one."""
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}; there are {', '.join(SPLITS)}.")
    rng = Random(f"headviz {split} {seed}")
    turns = [(name, label) for name in PHENOMENA for label in LABELS]
    seen: set[tuple[str, str]] = set()
    made = 0
    while made < count:
        rng.shuffle(turns)
        for phenomenon, label in turns[: count - made]:
            while True:
                draft = _contract(rng, PHENOMENA[phenomenon](rng, label))
                pair = draft.premise, draft.hypothesis
                if split_of(draft, phenomenon) == split and pair[0] != pair[1] and pair not in seen:
                    break
            if split != "train":
                seen.add(pair)
            yield Example(*pair, label, phenomenon)
            made += 1

"""The demo corpus: labelled sentence pairs, generated.

    for example in generate("train", 100_000, seed=0, short=0.4): ...

Most pairs are of long sentences; the share `short` is of short plain ones. Phenomena and labels take turns, so both
are balanced to within one round. Three splits never meet:

- `unseen`: a fixed tenth of all (frame, content word) combinations, found in no other split;
- `dev`: of the rest, a fixed twentieth of all pairs;
- `train`: everything else, as many pairs as are asked for.

Which split a pair belongs to follows from its text alone, so it stays the same for every seed and length. The simple
pairs, written by hand, are in no split.
"""

from collections.abc import Iterator
from random import Random
from zlib import crc32

from .example import LABELS, Draft, Example
from .grammar import contracted
from .phenomena import PHENOMENA
from .phenomena.short import SHORT
from .simple import simple_texts

CONTRACTED = 0.15  # share of sentences with contractions, where they have something to contract
SPLITS = ("train", "dev", "unseen")
MANY = 20_000  # training pairs that are shipped


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


def _unnatural(draft: Draft) -> bool:
    """'Only eleven yachts, but no boats': the kind is denied whose members are there.

    Corpora without short pairs keep this form, since the first training stages were run on them.
    """
    return ", but no " in draft.premise


def generate(split: str, count: int, seed: int = 0, short: float = 0.0) -> Iterator[Example]:
    """`count` pairs of one split; the same arguments give the same pairs. `dev` and `unseen` never repeat one."""
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}; there are {', '.join(SPLITS)}.")
    rng = Random(f"headviz {split} {seed}")
    turns = [(name, label) for name in PHENOMENA for label in LABELS]
    seen: set[tuple[str, str]] = set()
    simple = simple_texts()
    made = 0
    while made < count:
        rng.shuffle(turns)
        for phenomenon, label in turns[: count - made]:
            while True:
                rules = SHORT if short and rng.random() < short else PHENOMENA
                draft = _contract(rng, rules[phenomenon](rng, label))
                pair = draft.premise, draft.hypothesis
                if split_of(draft, phenomenon) != split or pair[0] == pair[1]:
                    continue
                if pair not in seen and pair not in simple and not (short and _unnatural(draft)):
                    break
            if split != "train":
                seen.add(pair)
            yield Example(*pair, label, phenomenon)
            made += 1

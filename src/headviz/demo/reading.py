"""The demo's pairs of sentences, and which words of a sentence belong together.

The sentences come from a generator with a list of verbs in all forms, of nouns and of quantifiers. Only what is
certain is read: a noun with the verb behind it, a verb with the object behind it, a quantifier with its noun, a "not"
or "never" with its verb. The tests build sentences from the generator's parts and read them back.
"""

import gzip
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from ..errors import OptionError, UserError, is_one_of, shown, unknown_choice

# -----------------------------------------------------------------------------------------------
# The demo's pairs of sentences: their labels and kinds, minimal pairs, and how its shipped files are read.


ENTAILMENT, NEUTRAL, CONTRADICTION = LABELS = ("entailment", "neutral", "contradiction")

# the abilities: every pair is labelled with one
PHENOMENA = tuple(
    "synonym hypernym antonym negation veridical quantifier number role-swap conjunction relative-clause temporal "
    "spatial comparative".split()
)


class Example(NamedTuple):
    """A premise, a hypothesis, their label and the phenomenon that decides it."""

    premise: str
    hypothesis: str
    label: str
    phenomenon: str


DATA = Path(__file__).parent / "data"


def shipped(name: str) -> Path:
    """The path of a shipped file, which must be there."""
    path = DATA / name
    if not path.exists():
        raise UserError(f"The demo's data are missing ({path}). Reinstall headviz, or run python -m tools.demo.ship.")
    return path


def columns(name: str, names: Sequence[str]) -> list[list[str]]:
    """Columns of a shipped Parquet file."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(shipped(name), columns=list(names))
    return [table[column].to_pylist() for column in names]


COLUMNS = ("premise", "hypothesis", "label", "other_premise", "other_hypothesis", "other_label", "phenomenon")


def minimal_pairs(phenomenon: str, count: int, seed: int = 0) -> list[tuple[Example, Example]]:
    """``count`` minimal pairs of one phenomenon, of 200 that are shipped; fewer if ``count`` is larger.

    A minimal pair are two examples that differ in one stretch of words, and in their label; none was trained on. Seed 0
    gives them in the order of the file, another seed in a random order of its own.

    >>> import headviz
    >>> [(first, second)] = headviz.minimal_pairs("negation", 1)
    >>> first.label == second.label
    False
    """
    if not is_one_of(phenomenon, PHENOMENA):
        raise OptionError(unknown_choice("ability", phenomenon, PHENOMENA))
    for name, value in (("count", count), ("seed", seed)):
        if not isinstance(value, int) or value < 0:
            raise OptionError(f"{name} must be a whole number of at least 0, not {shown(value)}.")
    pairs = list(_minimal_pairs()[phenomenon])
    if seed:
        Random(f"headviz minimal {phenomenon} {seed}").shuffle(pairs)
    return pairs[:count]


@cache
def _minimal_pairs() -> dict[str, list[tuple[Example, Example]]]:
    pairs: dict[str, list[tuple[Example, Example]]] = {name: [] for name in PHENOMENA}
    for *texts, name in zip(*columns("minimal_pairs.parquet", COLUMNS), strict=True):
        premise, hypothesis, label, other_premise, other_hypothesis, other_label = texts
        other = Example(other_premise, other_hypothesis, other_label, name)
        pairs[name].append((Example(premise, hypothesis, label, name), other))
    return pairs


# -----------------------------------------------------------------------------------------------


RELATIONS = {
    "subject and verb": "a subject and its verb, either way",
    "verb and object": "a verb and its object, either way",
    "quantifier and noun": "a quantifier and its noun, either way",
    "negation and verb": "not or never, and the verb, either way",
}
SUBJECT, OBJECT, QUANTIFIER, NEGATION = RELATIONS

Link = tuple[str, int, int]  # relation, and where both words begin in the text

_NEGATIONS = frozenset(("not", "never"))
_BEFORE_VERBS = _NEGATIONS | frozenset("did do does will has have was were is are be been being".split())
_QUANTIFIERS = frozenset("every each all some no most few many several".split())
_ARTICLES = frozenset(("the", "a", "an"))
_BEFORE_NOUNS = _ARTICLES | _QUANTIFIERS | frozenset(("of",))
_OTHERS = (
    "and or but nor by to from that who whom than it on in at with after before because while beside behind near "
    "under above over then earlier later"
)
_CLOSED = _BEFORE_VERBS | _BEFORE_NOUNS | frozenset(_OTHERS.split())


@cache
def _forms(kind: str) -> frozenset[str]:
    """The forms of the verbs, or of the nouns, that the sentences are made of."""
    with gzip.open(shipped("forms.json.gz"), "rt", encoding="utf-8") as file:
        return frozenset(json.load(file)[kind])


def links(text: str) -> list[Link]:
    """The related words of one text. Contractions and everything that might be read in two ways are left out."""
    matches = list(re.finditer(r"[A-Za-z']+|[^\sA-Za-z']", text))
    words = [match.group().lower() for match in matches]
    kinds = [_kind(words, i) for i in range(len(words))]
    pairs: list[tuple[str, int, int | None]] = []
    for i, (word, kind) in enumerate(zip(words, kinds, strict=True)):
        if kind == "noun":
            pairs.append((SUBJECT, i, _verb_behind(words, kinds, i + 1)))
        if kind == "verb":
            pairs.append((OBJECT, i, _noun_behind(words, kinds, i + 1)))
        if word in _QUANTIFIERS:
            pairs.append((QUANTIFIER, i, _noun_behind(words, kinds, i + 1)))
        if word in _NEGATIONS:
            pairs.append((NEGATION, i, _verb_behind(words, kinds, i + 1)))
    return [(name, matches[i].start(), matches[j].start()) for name, i, j in pairs if j is not None]


def _kind(words: list[str], i: int) -> str:
    """What a word is here. One that can be both is a noun behind an article, a verb behind an auxiliary."""
    word, before = words[i], words[i - 1] if i else ""
    verb, noun = word in _forms("verbs"), word in _forms("nouns")
    if verb and noun:
        return "noun" if before in _BEFORE_NOUNS else "verb" if before in _BEFORE_VERBS else ""
    return "verb" if verb and before not in _ARTICLES else "noun" if noun else ""


def _next(words: list[str], start: int, skipped: frozenset[str]) -> int | None:
    """The first word from ``start`` that is not one of these."""
    return next((i for i in range(start, len(words)) if words[i] not in skipped), None)


def _verb_behind(words: list[str], kinds: list[str], start: int) -> int | None:
    """The verb of the phrase that begins here: auxiliaries and negations, the verb."""
    verb = _next(words, start, _BEFORE_VERBS)
    return verb if verb is not None and kinds[verb] == "verb" else None


def _noun_behind(words: list[str], kinds: list[str], start: int) -> int | None:
    """The noun of the phrase that begins here: articles, at most two adjectives, the noun."""
    first = _next(words, start, _BEFORE_NOUNS)
    if first is None:
        return None
    for i in range(first, min(first + 3, len(words))):
        if kinds[i] == "noun":
            return i
        if kinds[i] or words[i] in _CLOSED or not words[i].isalpha():
            return None
    return None

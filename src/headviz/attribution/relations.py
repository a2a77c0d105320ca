"""Relations between the tokens of one text or pair that an attention head may follow, and what chance would give.

T tokens. ``chance`` says what the share of attention on a relation is compared with:

- *place*: attention spread evenly over all tokens, for relations that the places alone decide;
- *words*: the same attention with the words of each text put into another order, for relations that hang on which
  word stands where. A head that looks at fixed places gains nothing by that.
- *grammar*: the larger of two, for relations whose words often stand in the same places: the same attention between
  other words of the text that are as far apart, and that of its other words on the same word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..tasks.tokenizing import alone_with

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding

Pairs = NDArray[np.bool_]  # [T, T]: query, key


@dataclass(frozen=True)
class Tokens:
    """What the relations are read from."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    special: NDArray[np.bool_]
    rare: NDArray[np.bool_]
    links: Mapping[str, Pairs] = field(default_factory=dict)  # relations of grammar that the text has

    @classmethod
    def of(cls, encoding: Encoding, rare: frozenset[int], links: Mapping[str, Pairs] | None = None) -> Tokens:
        special, types = np.array(encoding.special, dtype=bool), encoding.text_numbers
        ids = np.array(encoding.ids, dtype=np.int64)
        return cls(ids, types, special, np.isin(ids, list(rare)) & ~special, links or {})

    @property
    def words(self) -> NDArray[np.bool_]:
        return ~self.special


@dataclass(frozen=True)
class Relation:
    """One relation. Queries are words; keys are whatever the relation names."""

    name: str
    meaning: str
    pairs: Callable[[Tokens], Pairs]
    chance: Literal["place", "words", "grammar"] = "place"


def _place(shift: int) -> Callable[[Tokens], Pairs]:
    return lambda t: np.eye(len(t.ids), k=shift, dtype=bool)


def _keys(which: Callable[[Tokens], NDArray[np.bool_]]) -> Callable[[Tokens], Pairs]:
    return lambda t: np.broadcast_to(which(t)[None], (len(t.ids), len(t.ids))).copy()


def _first(t: Tokens) -> NDArray[np.bool_]:
    return np.arange(len(t.ids)) == 0


def _delimiters(t: Tokens) -> NDArray[np.bool_]:
    return t.special & ~_first(t)


def _same_text(t: Tokens) -> Pairs:
    return (t.types[:, None] == t.types[None]) & t.words[None] & ~np.eye(len(t.ids), dtype=bool)


def _other_text(t: Tokens) -> Pairs:
    return (t.types[:, None] != t.types[None]) & t.words[None]


def _edge(last: bool) -> Callable[[Tokens], Pairs]:
    """The first, or the last, word of the query's own text."""

    def pairs(t: Tokens) -> Pairs:
        edge = np.zeros(len(t.ids), dtype=bool)
        for text in np.unique(t.types):
            words = np.flatnonzero(t.words & (t.types == text))
            if len(words):
                edge[words[-1 if last else 0]] = True
        return edge[None] & (t.types[:, None] == t.types[None])

    return pairs


def _equal(t: Tokens) -> Pairs:
    return (t.ids[:, None] == t.ids[None]) & t.words[None]


RELATIONS = (
    Relation("previous", "the token before", _place(-1)),
    Relation("next", "the token after", _place(1)),
    Relation("itself", "the token itself", _place(0)),
    Relation("[CLS]", "the first token of the input", _keys(_first)),
    Relation("delimiter", "[SEP] and the like", _keys(_delimiters)),
    Relation("first word", "the first word of its own text", _edge(False)),
    Relation("last word", "the last word of its own text", _edge(True)),
    Relation("own text", "other words of its own text", _same_text),
    Relation("other text", "words of the other text", _other_text),
    Relation("same word", "the same word again in its own text", lambda t: _equal(t) & _same_text(t), "words"),
    Relation("same word across", "the same word in the other text", lambda t: _equal(t) & _other_text(t), "words"),
    Relation("rare word", "words that are rare in the data", _keys(lambda t: t.rare), "words"),
)


def grammar_relations(meanings: Mapping[str, str]) -> tuple[Relation, ...]:
    """Relations whose pairs of tokens each text brings along."""

    def linked(name: str) -> Callable[[Tokens], Pairs]:
        return lambda t: t.links.get(name, np.zeros((len(t.ids), len(t.ids)), dtype=bool))

    return tuple(Relation(name, meaning, linked(name), "grammar") for name, meaning in meanings.items())


def linked_tokens(
    clf: Classifier, length: int, texts: tuple[str, ...], reader: Callable[[str], list[tuple[str, int, int]]]
) -> dict[str, Pairs]:
    """The tokens of the words that a reader of texts relates, both ways; a word of several tokens has its first."""
    with alone_with(clf.tokenizer):
        where = clf.tokenizer(*texts)
    found: dict[str, Pairs] = {}
    for number, text in enumerate(texts):
        for name, one, other in reader(text):
            i, j = (where.char_to_token(0, begin, sequence_index=number) for begin in (one, other))
            if i is not None and j is not None and max(i, j) < length:
                pairs = found.setdefault(name, np.zeros((length, length), dtype=bool))
                pairs[i, j] = pairs[j, i] = True
    return found


def grammar_chances(pairs: Pairs, tokens: Tokens) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[T, T] twice: attention by these weights is that of other words as far apart, and of other words on the same."""
    same = (tokens.types[:, None] == tokens.types[None]) & tokens.words[:, None] & tokens.words[None] & ~pairs
    np.fill_diagonal(same, False)
    far = np.arange(len(tokens.ids))[None] - np.arange(len(tokens.ids))[:, None]
    apart, keys = np.zeros(pairs.shape), np.zeros(pairs.shape)
    for i, j in np.argwhere(pairs):
        for weights, others in ((apart, same & (far == j - i)), (keys, same & (np.arange(len(pairs))[None] == j))):
            if others.any():
                weights[others] += 1 / others.sum()
    return apart, keys


def chance_of(relation: Relation, pairs: Pairs, tokens: Tokens) -> NDArray[np.float64]:
    """[T, T] by which attention is weighted to give the relation's chance share.

    The mean of the relation over all orders: of the keys for *place*, of the words within each text for *words*.
    """
    weights = np.zeros(pairs.shape)
    if relation.chance == "place":
        weights[:] = pairs.mean(axis=1, keepdims=True)
        return weights
    groups = [np.flatnonzero(tokens.words & (tokens.types == text)) for text in np.unique(tokens.types)]
    for rows in groups:
        for columns in groups:
            block = pairs[np.ix_(rows, columns)]
            if rows is columns:
                diagonal = np.eye(len(rows), dtype=bool)
                off = block[~diagonal].mean() if len(rows) > 1 else 0.0
                weights[np.ix_(rows, columns)] = np.where(diagonal, np.diag(block).mean(), off)
            else:
                weights[np.ix_(rows, columns)] = block.mean() if block.size else 0.0
    return weights

"""Roles of heads: patterns made by hand are found, chance is what reordering gives, random attention has no role."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

import headviz
from headviz import HeadMask, UserError
from headviz.demo import reading
from headviz.errors import OptionError
from headviz.extras.analyses import roles as module
from headviz.extras.analyses.roles import (
    RELATIONS,
    Tokens,
    chance_of,
    grammar_chances,
    importance_by_role,
    linked_tokens,
    rare_tokens,
    roles,
)
from headviz.heads import HeadId
from headviz.models.classifier import Encoding
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.analysed import texts
from support.tiny import tiny_classifier

NAMES = [relation.name for relation in RELATIONS]
GRAMMAR = list(reading.RELATIONS)


def data(n: int = 60, seed: int = 0) -> Dataset:
    a, b = texts(n, seed)
    return Dataset(get_task("mnli"), "dev", a, b, np.zeros(n, dtype=np.int64))


def pair(first: list[int], second: list[int]) -> Tokens:
    """[CLS] first [SEP] second [SEP]; 9 is a rare word."""
    ids = [2, *first, 3, *second, 3]
    types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return Tokens.of(Encoding(ids, types, False, [i in (2, 3) for i in ids]), frozenset({9}))


def given(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    """Attention made by hand: ``make(encoding, generator)`` gives [L, H, T, T]."""
    rng = np.random.default_rng(1)
    monkeypatch.setattr(module, "_attention", lambda clf, members: [make(e, rng) for e in members])


def test_a_head_that_follows_one_relation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, sample = tiny_classifier(layers=4), data()
    rare = rare_tokens(clf.encode(sample.texts, sample.pairs))

    def make(e: Encoding, rng: Any) -> Any:
        size = len(e)
        maps = rng.dirichlet(np.ones(size), (4, 4, size))
        for r, relation in enumerate(RELATIONS):
            pairs = relation.pairs(Tokens.of(e, rare)).astype(float)
            rows, at = pairs.sum(axis=1) > 0, divmod(r, 4)
            maps[at][rows] = 0.7 * (pairs / pairs.sum(axis=1, keepdims=True).clip(1))[rows] + 0.3 * maps[at][rows]
        return maps

    given(monkeypatch, make)
    result = roles(clf, sample)
    for r, name in enumerate(NAMES):
        first = result.of(*divmod(r, 4))[0]
        assert first.name == name or (first.name, name) in {("own text", "first word"), ("own text", "last word")}
        (mine,) = [role for role in result.of(*divmod(r, 4)) if role.name == name]
        assert mine.share > 0.65
        assert mine.share > mine.baseline + 0.2


@pytest.mark.slow
def test_grammar_is_found_and_not_mistaken_for_places_or_for_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the demo: heads that follow a relation, one of next words, one that looks at every "not", the rest random."""
    clf, sample = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=80)
    encodings = clf.encode(sample.texts, sample.pairs)
    links = [
        linked_tokens(clf, len(e), (a, b), reading.links)
        for e, a, b in zip(encodings, sample.texts, sample.pairs or (), strict=True)
    ]
    turn, negation = iter(range(len(encodings))), clf.tokenizer.convert_tokens_to_ids("not")
    order = sorted(range(len(encodings)), key=lambda i: len(encodings[i]))

    def make(e: Encoding, rng: Any) -> Any:
        size, own = len(e), links[order[next(turn)]]
        maps = rng.dirichlet(np.ones(size), (12, 12, size))
        for r, name in enumerate(GRAMMAR):
            pairs = own.get(name, np.zeros((size, size), dtype=bool)).astype(float)
            rows = pairs.sum(axis=1) > 0
            maps[1, r, rows] = 0.7 * (pairs / pairs.sum(axis=1, keepdims=True).clip(1))[rows] + 0.3 * maps[1, r, rows]
        maps[2, 0] = 0.9 * np.eye(size, k=1) + 0.1 / size
        if (at := np.flatnonzero(np.array(e.ids) == negation)).size:
            maps[2, 1] = 0.1 / size
            maps[2, 1][:, at] += 0.9 / len(at)
        return maps

    given(monkeypatch, make)
    result = roles(clf, sample)
    assert result.relations == (*NAMES, *GRAMMAR)
    first = len(NAMES)
    for r, name in enumerate(GRAMMAR):
        (mine,) = [role for role in result.of(1, r) if role.name == name]
        assert mine.share > 0.65
        assert mine.share > mine.baseline + 0.2
    assert not (result.q[2, :2, first:] < 0.05).any()
    discovered = {(i, j, r) for i, j, r in np.argwhere(result.q[..., first:] < 0.05).tolist()}
    assert len(discovered - {(1, r, r) for r in range(len(GRAMMAR))}) <= 3


def test_chances_of_grammar_by_hand() -> None:
    tokens = pair([7, 8, 7], [8, 9, 7])
    pairs = np.zeros((9, 9), dtype=bool)
    pairs[1, 2] = True
    apart, keys = grammar_chances(pairs, tokens)
    assert {tuple(at) for at in np.argwhere(apart).tolist()} == {(2, 3), (5, 6), (6, 7)}
    assert {tuple(at) for at in np.argwhere(keys).tolist()} == {(3, 2)}
    assert apart.sum() == pytest.approx(1)
    assert keys.sum() == pytest.approx(1)


def test_roles_against_importance() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 4))
    firsts = {HeadId(0, 0): "next", HeadId(0, 1): "next", HeadId(2, 3): "[CLS]"}
    one, two = importance_by_role(("next", "delimiter", "[CLS]"), firsts, values)
    ranks = 100 * scipy.stats.rankdata(values).reshape(3, 4) / 12
    inside, outside = ranks[0, :2], np.r_[ranks[0, 2:], ranks[1:].ravel()]
    assert (one.role, one.heads, two.role) == ("next", (HeadId(0, 0), HeadId(0, 1)), "[CLS]")
    assert one.difference == pytest.approx(inside.mean() - outside.mean())
    tested = scipy.stats.ttest_ind(inside, outside, equal_var=False)
    assert (one.low, one.high) == pytest.approx(tuple(tested.confidence_interval()))
    assert np.isnan(two.difference)  # one head alone


def test_random_attention_has_a_role_no_more_often_than_the_level_says(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, lambda e, rng: rng.dirichlet(np.ones(len(e)), (12, 12, len(e))))
    result = roles(tiny_classifier(layers=12, heads=12, hidden=48), data(80))
    assert (result.q < 0.05).sum() <= 3  # of 1,728 tests; without correction some 86


def test_a_head_that_looks_at_fixed_places_has_no_role_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """It meets equal words as often as any order of the words would let it."""

    def make(e: Encoding, rng: Any) -> Any:
        maps = rng.dirichlet(np.ones(len(e)), (3, 4, len(e)))
        maps[0, 0] = 0.9 * np.eye(len(e), k=2) + 0.1 / len(e)
        return maps

    given(monkeypatch, make)
    result = roles(tiny_classifier(), data(200))
    assert not {role.name for role in result.of(0, 0)} & {"same word", "same word across", "rare word"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_chance_is_the_mean_over_reorderings(name: str) -> None:
    relation = RELATIONS[NAMES.index(name)]
    rng = np.random.default_rng(0)
    tokens = pair([7, 8, 7], [8, 9, 7])
    pairs = relation.pairs(tokens) & tokens.words[:, None]
    attention = rng.dirichlet(np.ones(9), 9)
    total, draws = 0.0, 2000
    for _ in range(draws):
        if relation.chance == "place":
            other = np.stack([row[rng.permutation(9)] for row in pairs])
        else:
            order = np.arange(9)
            for places in ([1, 2, 3], [5, 6, 7]):
                order[places] = rng.permutation(places)
            other = pairs[np.ix_(order, order)]
        total += float((attention * other).sum())
    assert total / draws == pytest.approx(float((attention * chance_of(relation, pairs, tokens)).sum()), rel=0.05)


def test_relations_by_hand() -> None:
    tokens = pair([7, 8, 7], [8, 9])
    result = {}
    for relation in RELATIONS:
        result[relation.name] = {
            tuple(at) for at in np.argwhere(relation.pairs(tokens) & tokens.words[:, None]).tolist()
        }
    assert result["same word"] == {(1, 3), (3, 1)}
    assert result["same word across"] == {(2, 5), (5, 2)}
    assert result["previous"] == {(i, i - 1) for i in (1, 2, 3, 5, 6)}
    assert result["delimiter"] == {(i, j) for i in (1, 2, 3, 5, 6) for j in (4, 7)}
    assert result["last word"] == {(1, 3), (2, 3), (3, 3), (5, 6), (6, 6)}
    assert result["rare word"] == {(i, 6) for i in (1, 2, 3, 5, 6)}


def test_families_without_token_types_have_two_texts_all_the_same() -> None:
    special = [True, False, False, True, True, False, True]
    tokens = Tokens.of(Encoding([0, 5, 6, 2, 2, 7, 2], [0] * 7, False, special), frozenset())
    assert tokens.types[[1, 2]].tolist() == [0, 0]
    assert tokens.types[5] == 1


def test_attention_is_the_models(tmp_path: Path) -> None:
    """Against the probabilities of the plain model, one text at a time."""
    clf = tiny_classifier()
    encodings = clf.encode(data(5).texts, data(5).pairs)
    together = module._attention(clf, encodings)
    for e, maps in zip(encodings, together, strict=True):
        call = clf.call(None, "eager", keep_probs=True)
        with torch.no_grad():
            clf.forward(clf.collate([e]), call)
        np.testing.assert_allclose(maps, torch.stack([p[0] for p in call.probs]).numpy(), atol=1e-5)


def test_removed_heads_and_too_little_data() -> None:
    clf = headviz.prune(tiny_classifier(), HeadMask.full(3, 4).without([(1, 2)]))
    result = roles(clf, data(20))
    assert np.isnan(result.share[1, 2]).all()
    assert result.of(1, 2) == ()
    with pytest.raises(UserError, match="at least 10"):
        roles(clf, data(9))
    singles = Dataset(get_task("sst2"), "dev", texts(12, 0)[0], None, np.zeros(12, dtype=np.int64))
    alone = roles(tiny_classifier(), singles)
    assert np.isnan(alone.share[..., NAMES.index("other text")]).all()


@pytest.mark.slow
def test_as_many_are_drawn_as_asked_for_with_labels_and_without() -> None:
    """It took labels to draw, and of rare classes and unusual lengths it drew fewer."""
    clf, some = tiny_classifier(), data(60)
    rare = dataclasses.replace(some, labels=np.array([0] * 57 + [1] * 3))
    for given in (dataclasses.replace(some, labels=None), rare):
        result = roles(clf, given, samples=40)
        assert result.n == 40
        np.testing.assert_array_equal(result.share, roles(clf, given, samples=40).share)
        assert roles(clf, given, samples=60).n == roles(clf, given, samples=99).n == 60
    with pytest.raises(OptionError, match="The sample size is a number of examples"):
        roles(clf, some, samples=0)


def test_a_model_whose_decoder_reads_one_token_later_is_refused() -> None:
    with pytest.raises(UserError, match="Maps of BART cannot be drawn"):
        roles(tiny_classifier("bart"), data())

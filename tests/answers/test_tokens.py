"""A class per token: spans as seqeval counts them, data files, words and pieces, what is explained, coverage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from headviz.answers.tokens import TOKENS, TokenAnswers, hits
from headviz.errors import NotFinite, OptionError, TaskError
from support.jobs import TAGS, data_of, model_of

CONLL = "-DOCSTART- -X- O\n\nAnna NNP B-PER\nSmith NNP I-PER\nsleeps VBZ O\n\nin IN O\nParis NNP B-LOC\n"


def slow_spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """Strict IOB2, as seqeval has it: a span begins with B-."""
    result, begin = set(), None
    for i, tag in enumerate([*tags, "O"]):
        if begin is not None and tag != f"I-{tags[begin][2:]}":
            result.add((begin, i, tags[begin][2:]))
            begin = None
        if tag.startswith("B-"):
            begin = i
    return result


def test_spans_are_those_of_iob2() -> None:
    rng = np.random.default_rng(0)
    gold, said = (rng.integers(0, 5, (400, 7)) for _ in range(2))
    said = np.where(rng.random(said.shape) < 0.6, gold, said)
    for row, a, b in zip(hits(gold, said), gold, said, strict=True):
        one, other = (slow_spans([TAGS[i] for i in tags]) for tags in (a, b))
        assert row.tolist() == [len(one & other), len(one), len(other)]


def test_words_behind_a_text_and_cut_off_are_not_predicted() -> None:
    gold = np.array([[1, 2, 0], [1, -100, -100]])
    answers = TokenAnswers(gold, gold)
    assert answers.measure(np.array([[1, 2, 1], [1, 1, 1]]), "span_f1") == pytest.approx(2 * 2 / 5)
    assert answers.measure(np.array([[1, 2, -1], [-1, -1, -1]]), "token_accuracy") == pytest.approx(2 / 4)


def write(place: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    return place


def test_columns_of_conll_and_lists_are_the_same_data(tmp_path: Path) -> None:
    lines = [
        {"tokens": ["Anna", "Smith", "sleeps"], "tags": ["B-PER", "I-PER", "O"]},
        {"tokens": ["in", "Paris"], "tags": ["O", "B-LOC"]},
    ]
    one = write(tmp_path, {"dev.txt": CONLL})
    (tmp_path / "lists").mkdir()
    other = write(tmp_path / "lists", {"dev.jsonl": "\n".join(map(json.dumps, lines))})
    data = headviz.load_task("custom", data=one)
    assert data == headviz.load_task("custom", data=other)
    assert data.job == "tokens"
    assert data.label_names == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert data.texts == ("Anna Smith sleeps", "in Paris")
    assert data.labels is not None
    assert data.labels.tolist() == [[3, 4, 0], [0, 1, -100]]
    parts = headviz.load_task("custom", data=one, job="tokens", label_column="2")
    assert parts.task.metrics == ("token_accuracy",)  # parts of speech mark no spans
    assert parts.label_names == ("IN", "NNP", "VBZ")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "dev.jsonl",
            '{"tokens": ["a", "b"], "tags": ["O"]}\n{"tokens": ["c"], "tags": ["B-X"]}',
            "line 1: 2 words, but 1 tags",
        ),
        ("dev.jsonl", '{"tokens": ["a b"], "tags": ["O"]}\n{"tokens": ["c"], "tags": ["B-X"]}', "is no word"),
        ("dev.jsonl", '{"tokens": "a b", "tags": ["O", "B-X"]}', "not a list of words"),
        ("dev.conll", "a O\nb\n", "line 2: 1 columns"),
        ("dev.conll", "a O\nb O\n", "only one value"),
    ],
)
def test_files_that_do_not_fit_name_the_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        headviz.load_task("custom", data=write(tmp_path, {name: text}))


def test_tags_of_one_split_alone_are_named(tmp_path: Path) -> None:
    place = write(tmp_path, {"dev.conll": "a O\nb I-X\n", "train.conll": "a O\nb B-Y\n"})
    data = headviz.load_task("custom", data=place)
    assert any("1 words have a tag I-…" in note for note in data.notes)
    assert "no word of dev.conll has the tag B-Y" in data.notes
    clf = model_of("tokens")
    with pytest.raises(TaskError, match=r"does not know the tags? I-X"):
        headviz.evaluate(clf, data)


def test_a_word_is_read_at_its_first_piece() -> None:
    clf: Any = model_of("tokens")
    (result,) = clf.encode(["a zebra runs"])  # z ##e ##b ##r ##a
    assert [clf.tokens(result)[i] for i in result.places] == ["a", "z", "runs"]
    (cut,) = model_of("tokens").encode([" ".join(["zebra"] * 20)])
    assert cut.truncated
    assert cut.places[-1] == -1
    assert len(cut.places) == 20


def test_a_text_whose_words_have_no_piece_counts_as_wrong_and_a_tag_that_is_no_number_is_refused() -> None:
    clf, data = model_of("tokens"), data_of("tokens", 2)
    gold = np.where(np.arange(data.gold.shape[1]) < 1, data.gold, -100)
    odd = replace(data, texts=("\u200b", *data.texts[1:]), labels=np.vstack([gold[:1], data.gold[1:]]))
    evaluator = headviz.Evaluator(clf, odd)
    np.testing.assert_array_equal(evaluator.predictions()[0], -1)
    np.testing.assert_array_equal(evaluator.predictions()[1:], headviz.Evaluator(clf, data).predictions()[1:])
    assert headviz.evaluate(clf, odd).metrics["token_accuracy"] == pytest.approx(
        (evaluator.predictions()[1:] == data.gold[1:]).sum() / (odd.gold != -100).sum()
    )
    with torch.no_grad():
        clf.model.classifier.bias[2] = torch.nan
    with pytest.raises(NotFinite):
        headviz.evaluate(clf, odd)


def test_one_word_is_explained() -> None:
    clf = model_of("tokens")
    every, one = (headviz.conductance(clf, "a dog sleeps", steps=2, cache=False, **o) for o in ({}, {"word": 1}))
    assert isinstance(every.target, tuple)
    assert every.target[1] == one.target[1]
    assert one.target[0] == -100
    named = headviz.conductance(clf, "a dog sleeps", steps=2, cache=False, word=1, target=clf.labels[one.target[1]])
    np.testing.assert_array_equal(named.attribution, one.attribution)
    words = [headviz.conductance(clf, "a dog sleeps", steps=2, cache=False, word=i).attribution for i in range(3)]
    np.testing.assert_allclose(np.mean(words, axis=0), every.attribution, atol=1e-6)
    with pytest.raises(OptionError, match="has 3 words"):
        headviz.conductance(clf, "a dog sleeps", word=3)
    with pytest.raises(OptionError, match="has none"):
        headviz.conductance(model_of("class"), "a dog", "a cat", word=0)


def test_types_of_spans_are_slices() -> None:
    clf, data = model_of("tokens"), data_of("tokens")
    result = headviz.evaluator_of(clf, data).compare(clf.full_mask.without([(0, 1), (1, 0)]))
    assert [part.name for part in result.slices] == ["red", "wet"]


def test_tags_that_mark_no_spans_are_slices_of_the_words_that_have_them() -> None:
    rng, names = np.random.default_rng(0), ("DET", "NOUN", "VERB", "X")
    gold, full, masked = rng.integers(0, 3, (3, 40, 5))  # no word is an X
    for table in (gold, full, masked):
        table[::2, 3:] = -100
    answers = TOKENS.answers(gold, full, names)
    slices = answers.compare(masked, ("token_accuracy",)).slices
    assert [part.name for part in slices] == ["DET", "NOUN", "VERB"]
    for tag, part in enumerate(slices):
        words = gold == tag
        assert (part.full, part.masked) == tuple((table[words] == tag).mean() for table in (full, masked))
        assert part.n == words.any(axis=1).sum()  # the unit is the text
    assert [d.name for d in answers.compare(masked, ("token_accuracy",), ["a", "b"] * 20).slices] == ["a", "b"]


def test_paired_takes_lists_of_tags() -> None:
    gold = [["B-A", "I-A", "O"], ["O", "B-B"]] * 10
    after = [["B-A", "O", "O"], ["O", "B-B"]] * 10
    result = headviz.paired(gold, gold, after, "span_f1")
    assert (result.worse, result.better) == (10, 0)
    assert result.difference == pytest.approx(-0.5)
    with pytest.raises(TaskError, match="a tag for each word"):
        headviz.paired(gold, gold, [*gold[:-1], ["O"]], "span_f1")


def test_equal_pieces_in_other_words_are_kept_apart(tmp_path: Path) -> None:
    """A word may be three words, of the same pieces: then another token's answer is explained."""
    clf = model_of("tokens")
    words = [["red-cold", "wet"], ["red", "-", "cold", "wet"]]
    rows = [{"tokens": one, "tags": ["O"] * (len(one) - 1) + ["B-red"]} for one in words]
    write(tmp_path, {"dev.jsonl": "\n".join(json.dumps(row) for row in rows)})
    data = headviz.load_task("custom", data=tmp_path)
    first, second = clf.encode(data.texts, data.pairs)
    assert first.ids == second.ids
    assert first.places != second.places
    for score in ("taylor", "conductance-spearman"):
        before, after = (headviz.score_heads(clf, data.subset([i]), score).values for i in (0, 1))
        assert not np.allclose(before, after, equal_nan=True)

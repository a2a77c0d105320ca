"""A span of a passage: SQuAD's measures, files, the best span, changed answers, errors."""

from __future__ import annotations

import html
import json
import re
import string
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from headviz.answers.span import SPAN, SpanAnswers, numbers_of, touched_units, units
from headviz.cli import main
from headviz.errors import OptionError, TaskError
from headviz.pruning.check import notes_of
from headviz.pruning.context import open_context
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.options import FinetuneOptions
from support.command import call
from support.jobs import data_of, model_of
from support.tiny import WORDS, tiny_folder

PASSAGE = "The cat, a small one, sleeps in the big garden of a red house."


def normalised(text: str) -> list[str]:
    """As SQuAD's script."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def test_exact_match_and_token_f1_are_squads() -> None:
    rng, where, words = np.random.default_rng(0), units(PASSAGE), numbers_of(PASSAGE)
    values = set()
    for _ in range(200):
        (a, b), (c, d) = (sorted(rng.integers(0, len(where), 2).tolist()) for _ in range(2))
        said, gold = (normalised(PASSAGE[where[i][0] : where[j][1]]) for i, j in ((a, b), (c, d)))
        common = sum((Counter(said) & Counter(gold)).values())
        f1 = float(said == gold) if not said or not gold else 2 * common / (len(said) + len(gold))
        table = np.array([words, [int(c <= i <= d) for i in range(len(words))]]).T[None]
        answers = SpanAnswers(table, np.array([[a, b]]))
        assert answers.measure(answers.full, "token_f1") == pytest.approx(f1)
        if said and gold:
            assert answers.measure(answers.full, "exact_match") == float(said == gold)
        values.add(round(f1, 3))
    assert len(values) > 5


def test_files_of_squad_and_lines_are_the_same_data(tmp_path: Path) -> None:
    asked = [("Who sleeps?", "The cat"), ("Where?", "the big garden"), ("Why?", "")]
    answers = [[{"text": t, "answer_start": PASSAGE.index(t)}] if t else [] for _, t in asked]
    pairs = list(zip((q for q, _ in asked), answers, strict=True))
    qas = [{"question": q, "id": q, "answers": own, "is_impossible": not own} for q, own in pairs]
    squad = {"version": "v2.0", "data": [{"title": "x", "paragraphs": [{"context": PASSAGE, "qas": qas}]}]}
    lines: list[Any] = [
        {
            "question": q,
            "context": PASSAGE,
            "answers": {key: [one[key] for one in own] for key in ("text", "answer_start")},
        }
        for q, own in pairs
    ]
    for name, text in (("a/dev.json", json.dumps(squad)), ("b/dev.jsonl", "\n".join(map(json.dumps, lines)))):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    one, other = (headviz.load_task("custom", data=tmp_path / place) for place in "ab")
    assert one == other
    assert (one.job, one.slices) == ("span", ("who", "where", "why"))
    assert one.labels is not None
    assert one.labels[:, 0].tolist() == [[0, 1], [9, 11], [-1, -1]]
    assert any("1 of 3 questions have no answer" in note for note in one.notes)


def test_an_answer_outside_its_passage_names_the_line(tmp_path: Path) -> None:
    row = {"question": "Who?", "context": PASSAGE, "answers": [{"text": "The cat", "answer_start": 3}]}
    (tmp_path / "dev.jsonl").write_text(json.dumps(row))
    with pytest.raises(TaskError, match="line 1: the answer 'The cat' does not stand at character 3"):
        headviz.load_task("custom", data=tmp_path)


@pytest.mark.parametrize("answers", [{"text": ["The", "cat"], "answer_start": [0]}, {"text": "a", "answer_start": [0]}])
def test_an_answer_without_its_place_is_not_dropped(tmp_path: Path, answers: dict[str, Any]) -> None:
    row = {"question": "Who?", "context": PASSAGE, "answers": answers}
    (tmp_path / "dev.jsonl").write_text(json.dumps(row))
    with pytest.raises(TaskError, match="line 1: in column 'answers' text and answer_start are not lists of one"):
        headviz.load_task("custom", data=tmp_path)


def test_the_best_span_is_that_of_all_pairs() -> None:
    evaluator = headviz.evaluator_of(model_of("span"), data_of("span", 2))
    logits, said = evaluator.evaluate().logits.astype(float), evaluator.predictions()
    for z, result in zip(logits, said.tolist(), strict=True):
        count = int(np.isfinite(z[1::2, 0]).sum())
        sums = {(i, j): z[1 + 2 * i, 0] + z[2 + 2 * j, 1] for i in range(count) for j in range(i, count)}
        best = max(sums, key=lambda k: sums[k])
        assert tuple(result) == (best if sums[best] > z[0].sum() else (-1, -1))


def test_a_span_touches_the_units_of_its_characters() -> None:
    assert touched_units(PASSAGE, 4, 7) == (1, 1)
    assert touched_units(PASSAGE, 5, 12) == (1, 4)
    assert touched_units(PASSAGE, 3, 4) == (-1, -1)


def test_what_is_learned_is_the_first_gold_answer() -> None:
    clf, data = model_of("span"), data_of("span")
    wanted = SPAN.tensor(data.gold)
    assert wanted.tolist() == [list(first) for first in data.labels[:, 0]]
    logits = headviz.evaluate(clf, data).logits
    each = SPAN.loss(torch.tensor(logits), wanted, reduction="none").numpy()
    np.testing.assert_allclose(SPAN.losses(logits, data.gold), each, atol=1e-5)
    assert each.min() > 0


def test_a_reader_learns_where_answers_stand() -> None:
    data = data_of("span", 8)
    second = replace(data, labels=np.tile([[[1, 1]]], (len(data), 1, 1)))
    options = FinetuneOptions(epochs=8, batch=8, learning_rate=3e-3)
    trained = fine_tune(model_of("span"), second, options).classifier
    assert headviz.evaluate(trained, second).metrics["exact_match"] > 0.9


def test_a_passage_that_is_cut_before_the_answer_is_counted_and_answered_wrong(tmp_path: Path) -> None:
    passage = "the red cat sees two birds in the garden and the dog sleeps"
    row = {"question": "who", "context": passage, "answers": [{"text": "dog", "answer_start": passage.index("dog")}]}
    (tmp_path / "dev.jsonl").write_text(json.dumps(row))
    data = headviz.load_task("custom", data=tmp_path)
    clf = replace(model_of("span"), cut_at=10)
    result = headviz.evaluate(clf, data)
    assert (result.truncated, result.unread, result.metrics["exact_match"]) == (1, 1, 0)
    scores = headviz.score_heads(clf, data, "taylor", cache=False)
    assert "cut to the model's 10 tokens: 1 text, 1 of them before the answer" in scores.notes
    (step,) = headviz.Evaluator(clf, data).growing()
    expected = "1 text cut to the model's length, 1 of them before the answer, which counts as wrong"
    assert step.cut_off == expected
    assert expected in html.unescape(result._repr_html_())
    row["answers"] = [{"text": "red cat", "answer_start": passage.index("red")}]
    (tmp_path / "dev.jsonl").write_text(json.dumps(row))
    result = headviz.evaluate(clf, headviz.load_task("custom", data=tmp_path))
    assert (result.truncated, result.unread) == (1, 0)
    tags = data_of("tokens", 2)
    short = headviz.evaluate(replace(model_of("tokens"), cut_at=4), tags)
    assert short.unread == short.truncated == sum(len(text.split()) > 2 for text in tags.texts)


def test_training_says_which_answers_it_does_not_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tiny_folder(
        tmp_path / "m", labels=("start", "end"), head="AutoModelForQuestionAnswering", max_position_embeddings=16
    )
    passage = "the red cat sees two birds in the garden and the dog sleeps in the house"
    rows = [
        {"question": "who", "context": passage, "answers": [{"text": word, "answer_start": passage.index(word)}]}
        for word in ("red", "house")
    ]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ["finetune", "--model", tmp_path / "m", "--task", "custom", "--data", tmp_path, "--out", tmp_path / "out"]
    assert main([*map(str, words), "--epochs", "1"]) == 0
    said = capsys.readouterr().err
    assert "2 texts cut to the model's length, 1 of them before the answer, which is not learned there" in said


CUT = "1 text cut to the model's length, 1 of them before the answer, which counts as wrong"


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 24 tokens, and 48 questions, of which one is cut before its answer."""
    folder = tmp_path_factory.mktemp("cut")
    tiny_folder(folder / "m", labels=("start", "end"), head="AutoModelForQuestionAnswering", max_position_embeddings=24)
    texts = [*(["the red cat sees two birds"] * 47), "the dog sleeps and " * 8 + "the red cat sees"]
    rows = [{"question": f"who {WORDS[i % 30]}", "context": t, "answers": answers_in(t)} for i, t in enumerate(texts)]
    for split in ("train", "dev"):
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def answers_in(text: str) -> list[dict[str, Any]]:
    return [{"text": "red cat", "answer_start": text.index("red cat")}]


@pytest.mark.slow
def test_every_command_says_that_texts_are_cut_before_the_answer(
    cut: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = ["--model", cut / "m", "--task", "custom", "--data", cut]
    ablated = call(capsys, "ablate", *source)
    assert (ablated["subject"]["cut_off"], ablated["subject"]["units"]) == (CUT, "48 questions")
    curves = ["analyse", "pruning-curves", "--scores", "taylor"]
    grade = ["grade", "--scores", "taylor", "--splits", "1"]
    for words in (["ablate"], curves, ["analyse", "interactions"], grade):
        assert main([*map(str, [*words, *source])]) == 0
        assert CUT in capsys.readouterr().err, words
    assert main([*map(str, ["roles", *source, "--importance", "none"])]) == 0
    assert "1 text cut to the model's length" in capsys.readouterr().err
    data = headviz.load_task("custom", data=cut)
    with pytest.raises(TaskError, match="24 texts cut to the model's length, 24 of them before the answer"):
        headviz.grade(headviz.load(cut / "m"), data.subset([47] * 48), ["taylor"], splits=1, cache=False)
    shape = ["--faster", "1.05", "--batch", "2", "--length", "16", "--samples", "8", "--out", tmp_path / "faster"]
    assert main([*map(str, ["prune", *source, *shape])]) == 0
    assert CUT in capsys.readouterr().err


def test_a_run_notes_that_texts_are_cut_before_the_answer(cut: Path, tmp_path: Path) -> None:
    plan = headviz.PruningPlan(str(cut / "m"), "custom", "one-importance", "taylor", data=str(cut), samples=8, step=0.5)
    context = open_context(plan, tmp_path)
    assert any(CUT in note for note in notes_of(context, plan))
    short = replace(context, dev=context.dev.subset(range(10)), memory={})
    assert not any("cut" in note for note in notes_of(short, plan))


def test_a_gold_span_is_a_row_of_the_data(tmp_path: Path) -> None:
    clf, data = model_of("span"), data_of("span")
    given: dict[str, Any] = {"pair": data[0].pair, "target": "gold", "steps": 2, "cache": False}
    with pytest.raises(OptionError, match=r"its row of data\.gold"):
        headviz.conductance(clf, data.texts[0], label="red", **given)
    maps = headviz.conductance(clf, data.texts[1], **(given | {"pair": data[1].pair}), label=[data.gold[1]])
    assert maps.target == tuple(data.labels[1, 0])

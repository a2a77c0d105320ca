"""The study of other jobs, on tiny random weights and made-up files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import headviz
from study.jobs import experiments, graded, matching, page, qnli, registry, silver, spans
from study.jobs.__main__ import compute
from study.jobs.experiments import Experiment, Places
from study.jobs.record import FOLDER, Record, read
from tests.support.tiny import WORDS, tiny_embedder


def glue(place: Path) -> Path:
    """Files with GLUE's names and columns, of made-up sentences."""
    rng = np.random.default_rng(0)
    for task, header in (
        ("QNLI", "index question sentence label"),
        ("MRPC", "Quality #1_ID #2_ID #1_String #2_String"),
    ):
        (place / task).mkdir(parents=True)
        for split in ("train", "dev"):
            with open(place / task / f"{split}.tsv", "w", newline="") as file:
                rows = csv.writer(file, delimiter="\t")
                rows.writerow(name.replace("_", " ") for name in header.split())
                for i in range(60):
                    first, second = (" ".join(rng.choice(WORDS[:-2], 5)) for _ in range(2))
                    label = ("entailment", "not_entailment")[i % 2]
                    rows.writerow(
                        [i, f"{first} q{i}", second, label] if task == "QNLI" else [i % 2, 1, 2, first, second]
                    )
    return place


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    folder = tiny_embedder(tmp_path / "tiny")
    monkeypatch.setattr(registry, "minilm", lambda _: folder)
    monkeypatch.setattr(experiments, "RECIPE", replace(experiments.RECIPE, epochs=1, batch=8, checkpoint_steps=None))
    monkeypatch.setattr(experiments, "SCORED", 4)
    monkeypatch.setattr(matching, "SETS", 2)

    def tagged(_: Path, texts: list[str]) -> list[dict[str, list[str]]]:
        return [{"tokens": text.split(), "tags": ["B-GPE", "I-GPE", "O", "O", "B-DATE"]} for text in texts]

    monkeypatch.setattr(silver, "tagged", tagged)
    monkeypatch.setattr(registry, "tagger", lambda place: place)
    return Places(glue(tmp_path / "glue"), tmp_path / "work")


def weights(_: Path) -> Path:
    return registry.minilm(_)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "job", "metric"),
    [
        (partial(experiments.pairs, weights, 30), "vector", "spearman"),
        (partial(experiments.reranker, 6, 12, 4), "rank", "ndcg@10"),
        (partial(experiments.tagger, 16, 12), "tokens", "span_f1"),
        (partial(experiments.reader, 16, 12), "span", "token_f1"),
    ],
)
def test_an_experiment_goes_on_where_it_was(places: Places, tmp_path: Path, make, job: str, metric: str) -> None:
    out = tmp_path / "out"
    compute(places, [Experiment("reranker", "", make)], out)
    result = read(out / "reranker.json")
    assert result["about"]["metric"] == metric
    assert make(places).clf.job == job
    heads = [name for name in result if name.startswith("head ")]
    assert len(heads) == 12
    assert result["masked"]["masked"] == pytest.approx(result["evaluated off"]["value"])
    assert result["evaluated pruned"]["value"] == pytest.approx(result["evaluated off"]["value"], abs=1e-5)
    assert result["evaluated pruned"]["parameters"] < result["evaluated full"]["parameters"]
    text = page.text(out)
    assert text.count("jobs/results/reranker.json") == 2
    assert ("## Heads that match words" in text) == (job == "rank")
    del result["done costs"], result["head 1.2"]
    (out / "reranker.json").write_text(json.dumps(result | {"masked": "kept"}))
    compute(places, [Experiment("reranker", "", make)], out)
    again = read(out / "reranker.json")
    assert again["masked"] == "kept"
    assert "head 1.2" in again


def test_heads_that_match_words_are_told_with_their_random_sets() -> None:
    roles = {"significant": 9, "first role": ["1.0"], "chosen": ["1.0", "2.3"], "share": [0.3, 0.2]}
    sets = {f"random {i}": {"delta": -i / 1000} for i in range(20)}
    own = {"delta": -0.015, "low": -0.03, "high": 0.0}
    text = page.matched({"roles": roles, "matching": own, **sets})
    assert "not significantly more than" in text
    assert "5 of the 20 sets cost as\nmuch (p = 0.286)" in text
    assert "cost more than" in page.matched({"roles": roles, "matching": own | {"delta": -0.02}, **sets})


def test_a_record_of_other_data_is_refused(tmp_path: Path) -> None:
    Record.open(tmp_path / "a.json", {"data": 1}).part("x", lambda: 2)
    assert Record.open(tmp_path / "a.json", {"data": 1}).part("x", lambda: 3) == 2
    with pytest.raises(SystemExit, match="other weights or data"):
        Record.open(tmp_path / "a.json", {"data": 2})


def test_no_topic_is_in_both_halves(tmp_path: Path) -> None:
    rows = [
        {"question": f"what {word} {i}", "sentence": f"{word} {word} {j}", "label": "entailment"}
        for word in WORDS[3:11]
        for i in range(2)
        for j in range(3)
    ]
    one, other = qnli.halves(rows, topics=4)
    assert len(one) + len(other) == len(rows)
    for column in ("question", "sentence"):
        assert not {row[column] for row in one} & {row[column] for row in other}


def test_a_ranking_always_holds_the_answer() -> None:
    rows = [{"question": f"q{i}", "sentence": f"{word} cat", "label": "entailment"} for i, word in enumerate(WORDS[:8])]
    data = qnli.ranking(rows, ["q1", "q5"], 3)
    assert len(data) == 6
    assert data.gold[:, 0].tolist() == [1, 0, 0, 1, 0, 0]


def test_generated_answers_are_where_they_are_said_to_be() -> None:
    known = {split: spans.examples(200, split) for split in ("train", "dev")}
    for rows in known.values():
        for row in rows:
            (answer,) = row["answers"]
            begin = answer["answer_start"]
            assert row["context"][begin : begin + len(answer["text"])] == answer["text"]
    words = [
        {row["answers"][0]["text"] for row in rows if not row["answers"][0]["text"].isdigit()}
        for rows in known.values()
    ]
    assert not words[0] & words[1]


def test_a_similarity_is_the_share_of_equal_parts() -> None:
    data = graded.pairs(60, seed=3)
    for text, other, gold in zip(data.texts, data.pairs, data.gold, strict=True):
        same = sum(a == b for a, b in zip(text.split(), other.split(), strict=True)) - 4  # The … the … in the
        assert gold == pytest.approx(same / len(graded.PARTS))


def test_random_sets_have_as_many_heads_in_each_layer() -> None:
    every = [headviz.HeadId(i, j) for i in range(3) for j in range(4)]
    chosen = [headviz.HeadId(0, 1), headviz.HeadId(2, 0), headviz.HeadId(2, 3)]
    for one in matching.random_sets(every, chosen, 5):
        assert [sum(head.layer == layer for head in one) for layer in range(3)] == [1, 0, 2]
        assert not set(one) & set(chosen)


def test_the_page_is_what_the_files_say() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(FOLDER)

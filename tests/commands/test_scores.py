"""Commands conductance, score and cache: JSON, files, exit codes, and nothing written after a mistake."""

import numpy as np
import pytest

import headviz
from headviz.cli import main
from support.command import call, mistake
from support.custom_files import custom, write_custom
from support.tiny import tiny_folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_custom(tmp_path_factory.mktemp("data"), train=60, dev=12)


def scored(data, *more):
    return (*custom(data), "--length-filter", "none", *more)


def test_conductance_writes_the_maps(capsys, model, tmp_path):
    out = tmp_path / "maps.npz"
    words = ("--model", model, "--text", "a dog sleeps", "--text-pair", "no dog runs", "--steps", 8, "--off", "0.1")
    told = call(capsys, "conductance", *words, "--target", "neutral", "--out", out)
    clf = headviz.load(model)
    mask = headviz.HeadMask.full(3, 4).without([(0, 1)])
    maps = headviz.conductance(clf, "a dog sleeps", "no dog runs", steps=8, mask=mask, target="neutral")
    with np.load(out, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["attention"], maps.attention)
        np.testing.assert_array_equal(file["attribution"], maps.attribution)
        assert tuple(file["tokens"]) == maps.tokens
        assert not file["mask"][0, 1]
    assert told["target_label"] == "neutral"
    assert told["mask"] == mask.hex
    assert told["tokens"] == list(maps.tokens)
    assert told["error"] == pytest.approx(maps.error)
    assert list(tmp_path.iterdir()) == [out]


def test_a_mistake_in_conductance_writes_nothing(capsys, model, tmp_path):
    pair = ["--text", "a dog", "--text-pair", "a cat"]
    for given in (
        ["--text", ""],
        ["--text", "a dog"],
        [*pair, "--steps", "0"],
        [*pair, "--target", "maybe"],
        [*pair, "--rule", "euler"],
        [*pair, "--off", "9.9"],
        ["--text", "☃", "--text-pair", "☃"],
    ):
        mistake(capsys, "conductance", "--model", model, "--out", tmp_path / "maps.npz", *given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_score_prints_the_contracts_fields(capsys, model, data):
    words = ("--score", "conductance-spearman", "--samples", 12, "--set", "steps=4", "--off", "1.2")
    told = call(capsys, "score", "--model", model, *scored(data), *words)
    assert told["score"] == "conductance-spearman"
    assert np.array(told["values"], dtype=float).shape == (3, 4)
    assert told["values"][1][2] is None
    assert told["stderr"][1][2] is None
    assert told["samples"] == 12
    assert told["undefined"] == 0
    assert told["split"] == "train"
    assert told["settings"]["steps"] == 4
    clf = headviz.load(model)
    whole = headviz.load_task("custom", split="train", data=str(data), text_columns=["a", "b"], label_column="y")
    some = headviz.sample(whole, 12, seed=0, length_filter=None)
    mask = headviz.HeadMask.full(3, 4).without([(1, 2)])
    result = headviz.score_heads(clf, some, steps=4, mask=mask)
    np.testing.assert_array_equal(np.array(told["values"], dtype=float), result.values)


def test_a_mistake_in_score(capsys, model, data):
    for given in (
        ["--score", "spearman"],
        ["--preset", "thesis"],
        ["--samples", "0"],
        ["--set", "rows"],
        ["--set", "steps=four"],
        ["--length-filter", "short"],
    ):
        mistake(capsys, "score", "--model", model, *custom(data), *given)


def test_a_cache_that_cannot_be_used_is_a_note_of_one_line(capsys, model, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path / "file" / "home"))
    out = tmp_path / "m.npz"
    words = ("--text", "a dog", "--text-pair", "a cat", "--steps", "2", "--out", str(out))
    assert main(["conductance", "--model", str(model), *words]) == 0
    assert out.exists()
    (line,) = (text for text in capsys.readouterr().err.splitlines() if "cache" in text)
    assert line.startswith("headviz: note: The cache in ")


def test_the_cache_is_shown_and_cleared(capsys, model, tmp_path):
    call(
        capsys, "conductance", "--model", model, "--text", "a dog", "--text-pair", "a cat", "--out", tmp_path / "m.npz"
    )
    shown = call(capsys, "cache", "show")
    assert shown["kinds"] == {"maps": 1}
    assert shown["bytes"] > 0
    assert call(capsys, "cache", "clear")["dropped"] == 1
    assert call(capsys, "cache", "show")["entries"] == 0
    mistake(capsys, "cache", "empty")

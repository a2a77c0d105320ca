"""``--ablation`` and ``--reference`` wherever a mask is taken."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz.cli import main
from support.command import call, mistake
from support.custom_files import custom, write_custom
from support.tiny import tiny_folder

OFF = ("--off", "0.1,1.2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("models") / "bert", layers=2, heads=3, hidden=24)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_custom(tmp_path_factory.mktemp("data"), train=40, dev=20)


@pytest.mark.slow
def test_the_three_commands_agree(capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path) -> None:
    given = ("--model", model, *custom(data))
    mean = call(capsys, "evaluate", *given, *OFF, "--ablation", "mean", "--reference", 12)
    assert (mean["ablation"], mean["reference"], mean["mask"]) == ("mean", 12, "2e")
    drawn = call(capsys, "evaluate", *given, *OFF, "--ablation", "resample", "--reference", 12)
    assert len(drawn["draws"]["accuracy"]["values"]) == 5
    plain = call(capsys, "evaluate", *given, *OFF)
    assert (plain["ablation"], plain["reference"]) == ("zero", None)
    small = call(capsys, "prune", *given, *OFF, "--ablation", "mean", "--reference", 12, "--out", tmp_path / "small")
    assert small["ablation"] == "mean"
    columns = {"text_columns": ["a", "b"], "label_column": "y"}
    loaded = headviz.load(tmp_path / "small", device="cpu")
    assert headviz.evaluate(loaded, headviz.load_task("custom", data=data, **columns)).metrics == mean["metrics"]
    table = call(capsys, "ablate", *given, "--ablation", "mean", "--reference", 12)
    assert table["subject"]["stand_in"] == "mean of 12 examples"
    one = call(capsys, "evaluate", *given, "--off", "1.2", "--ablation", "mean", "--reference", 12)
    assert table["values"][1][2] == pytest.approx(table["baseline"] - one["metrics"]["accuracy"])


def test_mistakes(capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path) -> None:
    given = ("--model", model, *custom(data))
    assert "Name them: --off" in mistake(capsys, "evaluate", *given, "--ablation", "mean")
    assert "--reference is the sample" in mistake(capsys, "evaluate", *given, *OFF, "--reference", 3)
    out = ("--out", tmp_path / "small")
    assert "Name their task" in mistake(capsys, "prune", "--model", model, *OFF, *out, "--ablation", "mean")
    assert "cannot be part of a model" in mistake(capsys, "prune", *given, *OFF, *out, "--ablation", "resample")
    assert not (tmp_path / "small").exists()
    assert "median" in mistake(capsys, "evaluate", *given, *OFF, "--ablation", "median")


A, B, DONOR = "a dog sleeps", "the red cat runs", "a dog eats"
ON_TEXTS = {
    "patch": ("--text", A, "--text-pair", B, "--donor", DONOR),
    "tokens": ("--text", A, "--text-pair", B, "--orders", 2),
    "conductance": ("--text", A, "--text-pair", B, "--steps", 4, "--no-cache"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ON_TEXTS)
def test_texts_are_explained_with_the_mean_in_a_heads_place(
    command: str, capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path
) -> None:
    given = ["--model", model, *OFF, *ON_TEXTS[command]]
    if command == "conductance":
        given += ["--out", tmp_path / "maps.npz"]
    mean = call(capsys, command, *given, *custom(data), "--ablation", "mean", "--reference", 12)
    assert (mean["ablation"], mean["reference"]) == ("mean", 12)
    zero = call(capsys, command, *given)
    assert zero["ablation"] == "zero"
    key = {"patch": "from_logits", "tokens": "values", "conductance": "probabilities"}[command]
    assert mean[key] != zero[key]
    assert "Name their task" in mistake(capsys, command, *given, "--ablation", "mean")
    assert "explanation" in mistake(capsys, command, *given, *custom(data), "--ablation", "resample")
    if command != "patch":
        return
    columns = {"text_columns": ["a", "b"], "label_column": "y"}
    train = headviz.load_task("custom", split="train", data=data, **columns)
    clf = headviz.load(model, device="cpu")
    filled = headviz.standing_in(clf, "mean", headviz.sample(train, 12, length_filter=None))
    result = headviz.patch(filled, (A, B), (DONOR, B), mask=clf.full_mask.without("0.1,1.2"))
    np.testing.assert_allclose(np.array(mean["effect"], dtype=float), result.effect, rtol=1e-4)


def test_a_masks_file_says_it_and_a_change_is_the_mean_over_draws(
    capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path
) -> None:
    given, mask = ("--model", model, *custom(data)), headviz.HeadMask.full(2, 3).without("0.1,1.2")
    kept = headviz.write_mask(mask, tmp_path / "kept.json", ablation="resample:12")
    result = call(capsys, "evaluate", *given, "--mask", kept, "--compare")
    assert (result["ablation"], result["reference"], result["heads_off"]) == ("resample", 12, ["0.1", "1.2"])
    (full,) = (d["full"] for d in result["comparison"]["deltas"] if d["metric"] == "accuracy")
    over = result["comparison"]["over_draws"]["accuracy"]
    assert over["mean"] == pytest.approx(np.mean(result["draws"]["accuracy"]["values"]) - full)
    assert over["low"] <= over["mean"] <= over["high"]
    assert call(capsys, "evaluate", *given, "--mask", kept, "--ablation", "zero")["ablation"] == "zero"
    assert main([*map(str, ("evaluate", *given, "--mask", kept, "--compare"))]) == 0
    out = capsys.readouterr().out
    assert "of the first draw" in out
    assert "Mean over the draws" in out


def test_an_alignment_and_the_cost_of_paths(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    given = ("--model", model, *ON_TEXTS["patch"], "--paths", "--alignment", "0:0,1:2", "--json")
    assert main([*map(str, ("patch", *given))]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["positions"] == [0, 1]
    assert "texts through the model; Ctrl+C stops them" in err
    wrong = {"0-1": "pairs of tokens", "0:" + "1" * 5000: "no text has so many", "0:0,0:1": "twice"}
    for alignment, says in wrong.items():
        assert says in mistake(capsys, "patch", "--model", model, *ON_TEXTS["patch"], "--alignment", alignment)
    for more, says in (
        (("--positions", "1" * 5000), "no text has so many"),
        (("--positions", "1,,2"), "empty place"),
        (("--paths", "--target", "0"), "Leave out --target"),
    ):
        assert says in mistake(capsys, "patch", "--model", model, *ON_TEXTS["patch"], *more)
    assert main([*map(str, ("patch", "--model", model, *ON_TEXTS["patch"], "--top", "3"))]) == 0
    assert len(re.findall(r"^\s*\d+\.\d+ ", capsys.readouterr().out, re.M)) == 3

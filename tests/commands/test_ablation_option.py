"""``--ablation`` and ``--reference`` of evaluate, ablate and prune."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.cli import main
from support.tiny import WORDS, tiny_folder

OFF = ("--off", "0.1,1.2")


def call(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    status = main([*map(str, words), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    return json.loads(out)


def mistake(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([*map(str, words)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def custom(data: Path) -> tuple[object, ...]:
    return ("--task", "custom", "--data", data, "--text-columns", "a,b", "--label-column", "y")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("models") / "bert", layers=2, heads=3, hidden=24)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for split, n in (("train", 40), ("dev", 20)):
        rows = ["a,b,y"]
        for i in range(n):
            a, b = (" ".join(rng.choice(WORDS[:-2], 6)) for _ in range(2))
            rows.append(f"{a},{b},{('entailment', 'neutral', 'contradiction')[i % 3]}")
        (folder / f"{split}.csv").write_text("\n".join(rows) + "\n")
    return folder


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

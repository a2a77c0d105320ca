"""Figures of docs/faster.md are those of the recorded runs; held-out texts are in no training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from study.faster import held

HERE = Path(held.__file__).parent
PAGE = (HERE.parents[1] / "docs" / "faster.md").read_text(encoding="utf-8")
RUNS = {
    name: json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("all-of-train", "24000", "untrained", "mpnet-untrained", "mpnet-trained", "demo")
}
SPEED = ("speedup", "speedup_low", "speedup_high")
ROWS = {
    "2×": ("all-of-train", 2.0),
    "2.4×": ("all-of-train", 2.4),
    "1.5×, of 24,000": ("24000", 1.5),
    "2×, of 24,000": ("24000", 2.0),
    "3×, of 24,000": ("24000", 3.0),
    "4×, of 24,000": ("24000", 4.0),
}


def points_of(change: dict[str, float]) -> str:
    return "{} ({} to {})".format(
        *(f"{100 * change[key]:+.1f}".replace("-", "−") for key in ("difference", "low", "high"))
    )


@pytest.mark.parametrize("name", ROWS)
def test_the_first_table_is_of_the_recorded_runs(name: str) -> None:
    run, target = ROWS[name]
    (result,) = (t for t in RUNS[run]["targets"] if t["target"] == target)
    (row,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", PAGE, re.M)
    speed, accuracy, change = (cell.strip() for cell in row.split("|")[:3])
    assert speed == "{:.2f} ({:.2f} to {:.2f})".format(*(result[key] for key in SPEED))
    assert accuracy == f"{result['metrics']['accuracy']:.4f}".lstrip("0")
    assert change == points_of(result["change"])
    assert result["change"]["n"] == held.COUNT


def test_the_table_without_training_is_of_the_recorded_runs() -> None:
    for run in RUNS["untrained"]["targets"]:
        name = f"{run['target']:g}, {run['batch']} × {run['length']}"
        speed = "{:.2f}× ({:.2f} to {:.2f})".format(*(run[key] for key in SPEED))
        accuracy = f"{run['metrics']['accuracy']:.4f}".lstrip("0")
        assert f"| {name} | {speed} | {accuracy} | {points_of(run['change'])} |" in PAGE
        assert run["change"]["low"] > -0.01  # a loss of more than one point is excluded


def test_the_demos_table_is_of_the_recorded_runs() -> None:
    for run in RUNS["demo"]["targets"]:
        removed = "heads only" if run["heads_only"] else "heads and neurons"
        speed = "{:.2f}× ({:.2f} to {:.2f})".format(*(run[key] for key in SPEED))
        accuracy = f"{run['metrics']['accuracy']:.4f}".lstrip("0")
        cells = (f"{removed}, {run['batch']} × {run['length']}", speed, accuracy, points_of(run["change"]))
        assert f"| {' | '.join(cells)} |" in PAGE
    table = RUNS["demo"]["targets"][0]["table"]
    assert f"of the {1000 * table['whole']:.1f} ms" in PAGE
    assert f"{1000 * table['base']:.1f} ms ({table['base'] / table['whole']:.0%})".replace("%", " %") in PAGE
    assert sum(RUNS["demo"]["targets"][0]["heads_per_layer"]) == 1


def test_what_is_held_out_is_in_no_training(tmp_path: Path) -> None:
    rows = [f"text {i % 6000}\t{i % 2}" for i in range(7000)]
    (tmp_path / "train.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n", encoding="utf-8")
    before, left = held.held_out(tmp_path / "train.tsv", tmp_path / "held")
    dev, train = (
        [held.text_of(row) for row in (tmp_path / "held" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]]
        for name in ("dev", "train")
    )
    assert (before, left, len(dev)) == (7000, len(train), held.COUNT)
    assert left < before - held.COUNT
    assert not set(dev) & set(train)


def test_what_tuning_does_is_of_the_recorded_run() -> None:
    (run,) = (t for t in RUNS["untrained"]["targets"] if t["target"] == 1.65)
    for of in run["tried"]:
        values = (f"{of[way]['distance']:.4f}, {100 * of[way]['agreement']:.1f} %" for way in ("none", "bias", "refit"))
        chosen = ", chosen" if of["importance"] == run["importance"] else ""
        assert f"| `{of['importance']}`{chosen} | {' | '.join(v.removeprefix('0') for v in values)} |" in PAGE
        assert (of["bias"]["distance"] < of["none"]["distance"]) == of["importance"].endswith("-mean")
        assert of["refit"]["distance"] < min(of["bias"]["distance"], of["none"]["distance"])


def test_what_limits_the_speed_is_of_the_recorded_run() -> None:
    table = RUNS["all-of-train"]["targets"][0]["table"]
    heads, neurons = (dict(zip(table[f"{kind}_sizes"], table[f"{kind}s"], strict=True)) for kind in ("head", "neuron"))
    assert f"Of the {1000 * table['whole']:.1f} ms" in PAGE
    assert f"{1000 * table['base']:.1f} ms ({table['base'] / table['whole']:.0%})".replace("%", " %") in PAGE
    assert f"more than {table['whole'] / table['base']:.1f} times" in PAGE
    assert f"{heads[2] / heads[12]:.0%}".replace("%", " %") in PAGE
    assert f"{neurons[192] / neurons[1536]:.0%}".replace("%", " %") in PAGE


@pytest.mark.parametrize("name", ["mpnet-trained", "mpnet-untrained"])
def test_mpnet_is_of_the_recorded_runs(name: str) -> None:
    (run,), page = RUNS[name]["targets"], " ".join(PAGE.split())
    assert "{:.2f} times as fast ({:.2f} to {:.2f}".format(*(run[key] for key in SPEED)) in page
    assert f"keeps {run['metrics']['accuracy']:.4f}".replace(" 0.", " .") in page
    assert points_of(run["change"]).replace(" (", " points (") in page
    assert f"accuracy {run['baseline']['accuracy']:.4f}".replace(" 0.", " .") in page


def test_held_out_texts_are_a_part_of_longer_ones(tmp_path: Path) -> None:
    files = HERE.parents[2] / "shared" / "data" / "glue" / "SST-2"
    if not files.is_dir():
        pytest.skip("the task files are not here")
    held.held_out(files / "train.tsv", tmp_path)
    shares, words = [], []
    for table in (tmp_path / "dev.tsv", files / "dev.tsv"):
        train, texts = (
            [held.text_of(row) for row in path.read_text(encoding="utf-8").splitlines()[1:]]
            for path in (tmp_path / "train.tsv", table)
        )
        padded = "\n".join(f" {text} " for text in train)
        shares.append(np.mean([f" {text} " in padded for text in texts]))
        words.append(np.median([len(text.split()) for text in texts]))
    assert f"{shares[0]:.0%} of the held-out".replace("%", " %") in PAGE
    assert f"(dev: {shares[1]:.1%}, and {words[1]:.0f} words)".replace("%", " %") in PAGE
    assert f"at most {words[0]:.0f} words" in PAGE

"""Accuracies and changes of docs/faster.md are those of the recorded runs; held-out texts are in no training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from study.faster import held

HERE = Path(held.__file__).parent
PAGE = (HERE.parents[1] / "docs" / "faster.md").read_text(encoding="utf-8")
RUNS = {
    name: json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("all-of-train", "24000", "untrained")
}
ROWS = {
    "1.5×": ("24000", 1.5),
    "2×, all of train": ("all-of-train", 2.0),
    "2.4×, all of train": ("all-of-train", 2.4),
    "2×": ("24000", 2.0),
    "3×": ("24000", 3.0),
    "4×": ("24000", 4.0),
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
    accuracy, change = (cell.strip() for cell in row.split("|")[-2:])
    assert accuracy == f"{result['metrics']['accuracy']:.4f}".lstrip("0")
    assert change == points_of(result["change"])
    assert result["change"]["n"] == held.COUNT


def test_the_table_without_training_is_of_the_recorded_runs() -> None:
    for run in RUNS["untrained"]["targets"]:
        name = f"{run['target']:g}, {run['batch']} × {run['length']}"
        speed = "{:.2f}× ({:.2f} to {:.2f})".format(*(run[key] for key in ("speedup", "speedup_low", "speedup_high")))
        accuracy = f"{run['metrics']['accuracy']:.4f}".lstrip("0")
        assert f"| {name} | {speed} | {accuracy} | {points_of(run['change'])} |" in PAGE
        assert run["change"]["low"] > -0.01  # a loss of more than one point is excluded


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

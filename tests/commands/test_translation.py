"""Translation models on the command line."""

import json
from pathlib import Path

import pytest

from headviz.cli import main
from support.tiny import tiny_folder
from support.tiny_translation import SOURCES, TARGETS, tiny_translator_folder


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("cli")
    tiny_translator_folder(root / "marian")
    tiny_folder(root / "bert")
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True))
    (root / "dev.tsv").write_text("source\ttarget\n" + rows)
    return {"model": str(root / "marian"), "bert": str(root / "bert"), "data": str(root)}


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict, str]:
    code = main([*args, "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.strip() else {}, err


def test_info(places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, result, _ = call(capsys, "info", "--model", places["model"])
    assert code == 0
    assert result["kind"] == "translation"
    assert result["stacks"] == {"encoder": [0, 2], "cross": [2, 5], "decoder": [5, 8]}
    assert (result["layers"], result["heads"], result["labels"]) == (8, 4, [])
    assert main(["info", "--model", places["model"]]) == 0
    assert "encoder 0–1, cross 2–4, decoder 5–7" in capsys.readouterr().out


@pytest.mark.slow
def test_evaluate(places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    task = ["--task", "custom-translation", "--data", places["data"], "--device", "cpu"]
    code, result, _ = call(capsys, "evaluate", "--model", places["model"], *task, "--off", "cross.0.1,7.3")
    assert code == 0
    assert result["heads_off"] == ["2.1", "7.3"]
    assert set(result["metrics"]) == {"bleu", "chrf", "bleu-tokenised"}
    assert "tok:13a" in result["signatures"]["bleu"]
    _, beamed, _ = call(capsys, "evaluate", "--model", places["model"], *task, "--beams", "2")
    assert beamed["beams"] == 2
    assert main(["evaluate", "--model", places["model"], *task]) == 0
    shown = capsys.readouterr().out
    assert "bleu" in shown
    assert "version:" in shown


@pytest.mark.slow
def test_prune_and_evaluate_again(places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = ["--task", "custom-translation", "--data", places["data"], "--device", "cpu"]
    off = ["--off", "cross.0.1,decoder.2.3,encoder.0.0"]
    _, masked, _ = call(capsys, "evaluate", "--model", places["model"], *task, *off)
    code, _, _ = call(capsys, "prune", "--model", places["model"], *off, "--out", str(tmp_path / "small"))
    assert code == 0
    _, pruned, _ = call(capsys, "evaluate", "--model", str(tmp_path / "small"), *task)
    assert pruned["metrics"] == pytest.approx(masked["metrics"])
    assert pruned["mask"] == masked["mask"]

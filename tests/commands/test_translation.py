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
    assert masked["heads_off"] == ["0.0", "2.1", "7.3"]
    _, beamed, _ = call(capsys, "evaluate", "--model", places["model"], *task, "--beams", "2")
    assert beamed["beams"] == 2

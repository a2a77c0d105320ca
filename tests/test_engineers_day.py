"""A day of an engineer, on a tiny model: from the output of a Trainer to a pruned model in a service of their own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import Trainer, TrainingArguments

import headviz
from headviz.answers import comparison
from headviz.cli import main
from support.tiny import tiny_model, tiny_tokenizer

EXAMPLE = Path(__file__).parents[1] / "examples" / "engineers_day.py"
TEXTS = ("the dog runs", "a small cat sleeps", "the bird sings", "no dog sleeps here")


def trained(place: Path) -> tuple[Path, pd.DataFrame]:
    """What a Trainer leaves behind, and the data that it was trained on."""
    rows = pd.DataFrame({"text": TEXTS * 6, "label": [0, 1, 1, 0] * 6})
    model, tokenizer = tiny_model(labels=("0", "1")), tiny_tokenizer()
    encoded = tokenizer(list(rows["text"]))
    examples: Any = [
        {"input_ids": ids, "labels": y} for ids, y in zip(encoded["input_ids"], rows["label"], strict=True)
    ]
    arguments = TrainingArguments(str(place / "run"), max_steps=2, report_to=[], use_cpu=True, disable_tqdm=True)
    trainer = Trainer(model, arguments, train_dataset=examples, processing_class=tokenizer)
    trainer.train()
    trainer.save_model(str(place / "trained"))
    return place / "trained", rows


@pytest.mark.slow
def test_the_day(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "FUNCTION_SWAPS", 49)  # of a metric of one's own
    monkeypatch.setattr(comparison, "RESAMPLES", 100)
    model, rows = trained(tmp_path)
    spec = importlib.util.spec_from_file_location("engineers_day", EXAMPLE)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    day = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(day)
    day.main(str(model), rows, str(tmp_path / "small"))
    out = capsys.readouterr().out
    assert "roc_auc" in out and "kappa" in out  # noqa: PT018
    small = headviz.load(tmp_path / "small")
    assert sum(small.heads_per_layer) < 12
    about = json.loads((tmp_path / "small" / "headviz.json").read_text())
    assert about["heads_per_layer"] == small.heads_per_layer

    # the same at a terminal, from a file as another program wrote it
    (tmp_path / "data").mkdir()
    rows.to_csv(tmp_path / "data" / "validation.csv", sep=";", index=False)
    line = f"evaluate --model {tmp_path / 'small'} --task custom --data {tmp_path / 'data'} --metrics f1_1 --json"
    assert main(line.split()) == 0
    told = capsys.readouterr()
    assert "separated by semicolons" in told.err
    data = headviz.load_task("custom", data=rows, metrics="f1_1")
    assert json.loads(told.out)["metrics"] == headviz.evaluate(small, data).to_dict()["metrics"]
    line = f"prune --model {model} --off 0.1 --out {tmp_path / 'again'}"
    assert main(line.split()) == 0
    again = json.loads((tmp_path / "again" / "headviz.json").read_text())
    assert again["measured"]["command"] == f"headviz {line}"
    with torch.no_grad():
        assert small.model(**small.collate(small.encode(list(TEXTS), None))).logits.shape[0] == len(TEXTS)

"""A pruned model's folder is opened by plain transformers once headviz is imported, with equal logits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

import headviz
from headviz.models.feed_forward import neurons, smaller
from support.scored_data import made
from support.tiny import PAIRS, TEXTS, tiny_classifier

OFF = [(0, 1), (2, 0), (2, 3)]


def small(family: str = "bert", **options: Any) -> Any:
    """A pruned classifier; one of its layers has no heads where the family allows that."""
    clf = tiny_classifier(family, **options)
    empty = [] if clf.family.why_not_empty else [(1, head) for head in range(clf.num_heads)]
    return headviz.prune(clf, clf.full_mask.without([*OFF, *empty]))


def batch_of(clf: Any) -> Any:
    return clf.collate(clf.encode(TEXTS, PAIRS))


def logits(model: Any, batch: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(**batch).logits
    return result


def opened(folder: Path, **options: Any) -> Any:
    return AutoModelForSequenceClassification.from_pretrained(folder, **options).eval()


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2", "gpt2", "t5", "mobilebert"])
def test_logits_are_equal_and_what_transformers_saves_again_is_the_same_model(family: str, tmp_path: Path) -> None:
    clf = small(family)
    batch = batch_of(clf)
    model = opened(clf.save(tmp_path / "small"))
    if family == "mobilebert":  # joins each token with its neighbours, and headviz keeps it from reading padding
        torch.testing.assert_close(logits(model, batch), clf.logits(batch), atol=5e-3, rtol=0)
    else:
        assert torch.equal(logits(model, batch), clf.logits(batch))
    model.save_pretrained(tmp_path / "again")
    clf.tokenizer.save_pretrained(tmp_path / "again")
    again = headviz.load(tmp_path / "again", device="cpu")
    assert (again.present, again.digest) == (clf.present, clf.digest)
    assert torch.equal(again.logits(batch), clf.logits(batch))
    assert torch.equal(logits(opened(tmp_path / "again"), batch), logits(model, batch))


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2"])
def test_what_stands_in_the_place_of_heads_is_opened_too(family: str, tmp_path: Path) -> None:
    """Families without a bias behind W_O get one."""
    clf, data = tiny_classifier(family), made(6)
    gone = headviz.prune(clf, clf.full_mask.without(OFF), ablation="mean", reference=data)
    batch = batch_of(gone)
    want = gone.logits(batch)
    assert not torch.allclose(want, headviz.prune(clf, clf.full_mask.without(OFF)).logits(batch), atol=1e-4)
    model = opened(gone.save(tmp_path / "m"))
    torch.testing.assert_close(logits(model, batch), want, atol=0, rtol=0)
    model.save_pretrained(tmp_path / "again")
    assert torch.equal(logits(opened(tmp_path / "again"), batch), logits(model, batch))


def test_neurons_are_gone_as_well(tmp_path: Path) -> None:
    clf = tiny_classifier()
    kept = [range(0, 64, 3), range(64), ()]
    narrow = smaller(clf, clf.full_mask.without(OFF), kept)
    model = opened(narrow.save(tmp_path / "m"))
    assert torch.equal(logits(model, batch_of(narrow)), narrow.logits(batch_of(narrow)))
    assert neurons(headviz.wrap(model, narrow.tokenizer)) == [22, 64, 0]


def test_half_precision(tmp_path: Path) -> None:
    clf, dtype = small(), torch.bfloat16
    folder = clf.save(tmp_path / "m")
    half = headviz.load(folder, device="cpu", dtype=dtype)
    for model in (opened(folder, dtype=dtype), opened(folder).to(dtype)):
        assert model.dtype == dtype
        assert torch.equal(logits(model, batch_of(half)).float(), half.logits(batch_of(half)))


def test_files_in_parts_and_a_device_map(tmp_path: Path) -> None:
    clf = small()
    model = opened(clf.save(tmp_path / "m"))
    model.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    clf.tokenizer.save_pretrained(tmp_path / "parts")
    assert len(list((tmp_path / "parts").glob("model-*.safetensors"))) > 1
    for options in ({}, {"device_map": {"": "cpu"}}):
        assert torch.equal(logits(opened(tmp_path / "parts", **options), batch_of(clf)), clf.logits(batch_of(clf)))
    assert headviz.load(tmp_path / "parts", device="cpu").digest == clf.digest


def test_training_goes_on(tmp_path: Path) -> None:
    clf = small()
    model = opened(clf.save(tmp_path / "m"))
    pairs = zip(TEXTS, PAIRS, strict=True)
    rows = [{**dict(clf.tokenizer(text, pair)), "labels": i % 3} for i, (text, pair) in enumerate(pairs)]
    arguments = TrainingArguments(
        str(tmp_path / "run"), max_steps=3, learning_rate=0.01, report_to=[], save_steps=3, use_cpu=True
    )
    Trainer(model, arguments, train_dataset=rows, processing_class=clf.tokenizer).train()
    trained = headviz.load(tmp_path / "run" / "checkpoint-3", device="cpu")
    assert trained.present == clf.present
    assert torch.equal(trained.logits(batch_of(clf)), logits(model.eval(), batch_of(clf)))
    assert not torch.allclose(trained.logits(batch_of(clf)), clf.logits(batch_of(clf)), atol=1e-3)


def test_a_model_pruned_in_place_is_opened_again(tmp_path: Path) -> None:
    """What ``model.prune_heads`` and ``from_pretrained`` did in transformers 4."""
    clf = tiny_classifier()
    clf.save(tmp_path / "whole")
    model = opened(tmp_path / "whole")
    headviz.prune_heads(model, {0: [1], 2: [0, 3]})
    headviz.prune_heads(model, {1: [2]})
    model.save_pretrained(tmp_path / "m")
    again = opened(tmp_path / "m")
    assert torch.equal(logits(again, batch_of(clf)), logits(model, batch_of(clf)))
    want = clf.logits(batch_of(clf), clf.full_mask.without([*OFF, (1, 2)]))
    torch.testing.assert_close(logits(again, batch_of(clf)), want, atol=1e-5, rtol=0)
    with torch.no_grad(), headviz.masked(again, {0: [0]}):
        again(**batch_of(clf))


IMPORTED_LATER = """
import sys
from transformers import AutoModelForSequenceClassification
try:
    AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
except RuntimeError as error:
    print(error)
import headviz
AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
print("opened")
"""


@pytest.mark.slow
def test_transformers_opens_it_once_headviz_is_imported_and_says_before_what_is_wrong(tmp_path: Path) -> None:
    folder = small().save(tmp_path / "m")
    ended = subprocess.run([sys.executable, "-c", IMPORTED_LATER, str(folder)], capture_output=True, text=True)
    assert ended.stdout.strip().endswith("opened"), ended.stderr
    assert "Unknown quantization type, got headviz" in ended.stderr
    assert "ize mismatch" in ended.stdout + ended.stderr
    config = json.loads((folder / "config.json").read_text())
    for text in (config["how_to_load"], (folder / "README.md").read_text()):
        assert "import headviz" in text


WITHOUT_HEADVIZ = """
import json, sys, torch
sys.modules["headviz"] = None  # as if it was not installed
from transformers import AutoModel, AutoModelForSequenceClassification
for folder, batch in json.load(sys.stdin):
    batch = {name: torch.tensor(rows) for name, rows in batch.items()}
    model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True).eval()
    AutoModel.from_pretrained(folder, trust_remote_code=True)
    with torch.no_grad():
        found = model(**batch).logits.tolist()
    model.save_pretrained(folder + "-again")
    again = AutoModelForSequenceClassification.from_pretrained(folder + "-again", trust_remote_code=True).eval()
    with torch.no_grad():
        print(json.dumps([found, again(**batch).logits.tolist()]))
"""


def portable(clf: Any) -> Any:
    """A pruned model whose layers differ as much as transformers' own code allows."""
    rows = range(clf.num_layers) if clf.group_size > 1 or clf.family.model_type == "t5" else (0, 2)
    gone = 2 if clf.family.model_type.startswith("deberta") else clf.num_heads
    empty = [] if clf.family.why_not_empty or len(rows) > 2 else [(1, head) for head in range(gone)]
    return headviz.prune(clf, clf.full_mask.without([*((row, head) for row in rows for head in (0, 1)), *empty]))


CODES = ("bert", "distilbert", "modernbert", "mpnet", "deberta-v2", "gpt2", "llama", "gpt_neox", "t5", "mobilebert")


@pytest.mark.slow
def test_a_portable_folder_opens_without_headviz(tmp_path: Path) -> None:
    """Many in one process, so that it is quick. headviz opens the same folders."""
    models = {family: portable(tiny_classifier(family)) for family in CODES}
    models["filled"] = headviz.prune(
        tiny_classifier("modernbert"), {0: [1], 1: [0, 2]}, ablation="mean", reference=made(6)
    )
    models["narrow"] = smaller(tiny_classifier(), models["bert"].present, [range(0, 64, 3), range(64), ()])
    batches = {name: clf.collate(clf.encode(TEXTS[:1], PAIRS[:1])) for name, clf in models.items()}
    given = []
    for name, clf in models.items():
        folder = clf.save(tmp_path / name, portable=True)
        assert headviz.load(folder, device="cpu").digest == clf.digest
        given.append([str(folder), {key: rows.tolist() for key, rows in batches[name].items()}])
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_HEADVIZ],
        input=json.dumps(given),
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    for line, (name, clf) in zip(ended.stdout.splitlines(), models.items(), strict=True):
        for result in json.loads(line):
            np.testing.assert_allclose(result, clf.logits(batches[name]).numpy(), atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_transformers_with_headviz_takes_the_code_of_a_portable_folder_or_its_own(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    clf = portable(tiny_classifier())
    folder = clf.save(tmp_path / "m", portable=True)
    for options in ({"trust_remote_code": True}, {"trust_remote_code": False}):
        model = opened(folder, **options)
        assert torch.equal(logits(model, batch_of(clf)), clf.logits(batch_of(clf)))
        wrapped = headviz.wrap(model, clf.tokenizer)
        assert (wrapped.present, wrapped.digest) == (clf.present, clf.digest)
        fewer = headviz.prune(wrapped, wrapped.present.without([(0, 2)]))
        fewer.save(tmp_path / str(options["trust_remote_code"]), portable=True)
        assert headviz.load(tmp_path / str(options["trust_remote_code"]), device="cpu").digest == fewer.digest


def test_what_transformers_own_code_cannot_run_is_not_portable(tmp_path: Path) -> None:
    uneven, groups, empty = ("t5", {0: [1]}), ("llama", {0: [1]}), ("deberta-v2", {1: [0, 1, 2, 3]})
    fixed = "phi3", {0: [0, 1]}  # cut by the configuration's number of heads
    for family, off in (uneven, groups, empty, fixed):
        gone = headviz.prune(tiny_classifier(family), off)
        with pytest.raises(headviz.UserError):
            gone.save(tmp_path / "m", portable=True)
        assert not (tmp_path / "m").exists()

"""Folders as they lie about: pickled weights, adapters, half precision, several files, a run's checkpoint."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

import headviz
from headviz.errors import UserError
from support.tiny import PAIRS, TEXTS, tiny_classifier, tiny_folder, tiny_model, tiny_tokenizer

RECORDED = Path(__file__).parents[1] / "recorded" / "headviz_1"


def logits(clf: Any) -> torch.Tensor:
    result: torch.Tensor = clf.logits(clf.collate(clf.encode(TEXTS, PAIRS)))
    return result


def loaded(folder: Path, **options: Any) -> Any:
    return headviz.load(folder, device="cpu", **options)


def pickled(folder: Path, shards: int = 1, **options: Any) -> dict[str, torch.Tensor]:
    """Put the weights of a folder into pickle files, as transformers 4 wrote them."""
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if shards == 1:
        torch.save(state, folder / "pytorch_model.bin", **options)
        return state
    names = {key: f"pytorch_model-{i % shards + 1:05}-of-{shards:05}.bin" for i, key in enumerate(state)}
    for file in set(names.values()):
        torch.save({key: w for key, w in state.items() if names[key] == file}, folder / file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": names}))
    return state


@pytest.mark.parametrize(
    ("family", "shards", "options"),
    [("bert", 1, {}), ("t5", 3, {}), ("bert", 1, {"_use_new_zipfile_serialization": False})],
    ids=["one", "3", "old"],
)
def test_pickled_weights_become_safetensors(family: str, shards: int, options: Any, tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m", family)
    expected = logits(loaded(folder))
    pickled(folder, shards, **options)
    with pytest.raises(UserError, match="headviz convert"):
        loaded(folder)
    with pytest.raises(UserError, match="no folder"):
        headviz.convert(tmp_path / "none", tmp_path / "new")
    result = headviz.convert(folder, tmp_path / "new")
    assert torch.equal(logits(loaded(result)), expected)
    assert not list(result.rglob("*.bin"))
    with pytest.raises(UserError, match="nothing to convert"):
        headviz.convert(result, tmp_path / "newer")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder(tmp_path / "m")
    pickled(folder)
    monkeypatch.setattr("headviz.models.convert.LARGEST_PICKLE", 1000)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(UserError, match="larger than 1,000 bytes"):
        headviz.convert(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_half_precision_stays_that(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    save_file({name: rows.half() for name, rows in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    pickled(folder)
    result = headviz.convert(folder, tmp_path / "new")
    assert {rows.dtype for rows in load_file(result / "model.safetensors").values()} == {torch.float16}
    assert loaded(result).dtype == torch.float32


def test_a_model_pruned_by_transformers_4_is_saved_in_the_format_of_today(tmp_path: Path) -> None:
    clf = tiny_classifier()
    small = headviz.prune(clf, {0: [1], 2: [0, 3]})
    small.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    del config["quantization_config"]
    config["pruned_heads"] = {"0": [1], "2": [0, 3]}
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    (tmp_path / "m" / "headviz.json").unlink()
    pickled(tmp_path / "m")
    again = headviz.convert(tmp_path / "m", tmp_path / "new")
    assert "quantization_config" in json.loads((again / "config.json").read_text())
    assert loaded(again).digest == small.digest


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_folders_of_headviz_0_1(family: str, tmp_path: Path) -> None:
    """Written with ``pruned.safetensors``, which only headviz reads."""
    before = json.loads((RECORDED / f"{family}.json").read_text())
    folder = headviz.convert(RECORDED / family, tmp_path / "new")
    assert not (folder / "pruned.safetensors").exists()
    plain = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    for clf in (loaded(folder), loaded(RECORDED / family), headviz.wrap(plain, loaded(folder).tokenizer)):
        assert (clf.digest, clf.present.hex) == (before["digest"], before["present"])
        np.testing.assert_allclose(logits(clf).numpy(), before["logits"], atol=1e-5)


class Code:
    def __reduce__(self) -> Any:
        return (print, ("run",))


def test_nothing_but_tensors_is_read(tmp_path: Path, capsys: Any) -> None:
    folder = tiny_folder(tmp_path / "m")
    state = pickled(folder)
    file = folder / "pytorch_model.bin"
    key = next(iter(state))

    def wide() -> None:
        torch.save({**state, key: torch.zeros(1).expand(10**6, 10**6)}, file)

    def squeezed() -> None:
        torch.save(state, tmp_path / "plain.bin")
        with zipfile.ZipFile(tmp_path / "plain.bin") as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for part in old.infolist():
                new.writestr(part.filename, old.read(part))

    for write in (
        lambda: torch.save({**state, "code": Code()}, file),
        lambda: torch.save({"state_dict": state}, file),
        lambda: torch.save([1, 2], file),
        lambda: file.write_bytes(b"no pickle"),
        lambda: file.write_bytes(b""),
        wide,
        squeezed,
    ):
        write()
        with pytest.raises(UserError):
            headviz.convert(folder, tmp_path / "new")
        assert not (tmp_path / "new").exists()
    assert capsys.readouterr().out == ""


def test_shards_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    pickled(folder)
    (folder / "pytorch_model.bin").rename(tmp_path / "other.bin")
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"a": "../other.bin"}}))
    with pytest.raises(UserError, match="of its folder"):
        headviz.convert(folder, tmp_path / "new")


def test_modules_of_sentence_transformers_come_along(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    pickled(folder)
    (folder / "modules.json").write_text("[]")
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text("{}")
    torch.save({"linear.weight": torch.eye(3)}, folder / "2_Dense" / "pytorch_model.bin")
    new = headviz.convert(folder, tmp_path / "new")
    assert (new / "modules.json").exists()
    assert (new / "2_Dense" / "model.safetensors").exists()


def test_half_precision_in_several_files(tmp_path: Path) -> None:
    model = tiny_model().to(torch.bfloat16)
    model.save_pretrained(tmp_path / "m", max_shard_size="20KB")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    assert len(list((tmp_path / "m").glob("model-*.safetensors"))) > 1
    assert torch.equal(logits(loaded(tmp_path / "m")), logits(headviz.wrap(model.float(), tiny_tokenizer())))


def adapter(folder: Path, base: Path, head: bool = True, **options: Any) -> Any:
    """A LoRA adapter of the model in ``base`` in a folder, and that model with it."""
    peft = pytest.importorskip("peft")
    model = AutoModelForSequenceClassification.from_pretrained(base)
    settings = {"r": 4, "target_modules": ["query", "value"], "task_type": "SEQ_CLS" if head else None, **options}
    around = peft.get_peft_model(model, peft.LoraConfig(**settings, init_lora_weights=False))
    around.save_pretrained(folder)
    return around


@pytest.mark.parametrize(
    ("head", "options"),
    [(True, {}), (False, {"use_dora": True}), (True, {"rank_pattern": {"query": 2}, "use_rslora": True})],
)
def test_an_adapter_is_merged_into_its_model(head: bool, options: Any, tmp_path: Path) -> None:
    base = tiny_folder(tmp_path / "base", labels=("no", "yes"))
    around = adapter(tmp_path / "lora", base, head, **options)
    clf = loaded(tmp_path / "lora")
    want = headviz.wrap(around, clf.tokenizer)
    torch.testing.assert_close(logits(clf), logits(want), atol=1e-5, rtol=0)
    assert not torch.allclose(logits(clf), logits(loaded(base)), atol=1e-2)
    assert clf.labels == ("no", "yes")
    assert loaded(headviz.convert(tmp_path / "lora", tmp_path / "merged")).digest == clf.digest
    assert loaded(tmp_path / "lora", class_names=("bad", "good")).labels == ("bad", "good")


def test_settings_that_describe_no_plain_lora_of_these_weights_are_refused(tmp_path: Path) -> None:
    base = tiny_folder(tmp_path / "base")
    adapter(tmp_path / "lora", base)
    raw = json.loads((tmp_path / "lora" / "adapter_config.json").read_text())
    for wrong in (
        {"r": 10**5},
        {"rank_pattern": {"query": 10**5}},
        {"target_modules": "(a+)+$"},
        {"target_modules": ["(a+)+$"]},
        {"megatron_config": {"a": 1}, "megatron_core": "os"},
        {"init_lora_weights": "pissa"},
        {"peft_type": "IA3"},
        {"base_model_name_or_path": str(tmp_path / "lora")},
        {"base_model_name_or_path": None},
        {"target_modules": ["key"]},
        {"layer_replication": [[0, 9999]]},
    ):
        (tmp_path / "lora" / "adapter_config.json").write_text(json.dumps({**raw, **wrong}))
        with pytest.raises(UserError):
            loaded(tmp_path / "lora")


def test_without_peft_the_error_names_it(tmp_path: Path, monkeypatch: Any) -> None:
    adapter(tmp_path / "lora", tiny_folder(tmp_path / "base"))
    monkeypatch.setattr("headviz.models.adapters.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install peft.*merge_and_unload"):
        loaded(tmp_path / "lora")


def test_a_checkpoint_of_a_run_of_trainer(tmp_path: Path) -> None:
    base = tiny_folder(tmp_path / "base")
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(base), AutoTokenizer.from_pretrained(base)
    rows = [
        {**dict(tokenizer(text, pair)), "labels": i % 3}
        for i, (text, pair) in enumerate(zip(TEXTS, PAIRS, strict=True))
    ]
    arguments = TrainingArguments(str(tmp_path / "run"), max_steps=2, save_steps=2, report_to=[], use_cpu=True)
    Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer).train()
    want = headviz.wrap(model, tokenizer)
    assert torch.equal(logits(loaded(tmp_path / "run" / "checkpoint-2")), logits(want))
    with pytest.raises(UserError, match="checkpoint-2"):
        loaded(tmp_path / "run")

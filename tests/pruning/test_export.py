"""Exported models: the same answers as in PyTorch, masks as an input, int8, and what cannot be exported."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

import headviz
from headviz.cli import main
from headviz.errors import UserError
from headviz.models.onnx import NEEDED, Session, difference
from support.jobs import data_of, model_of
from support.marks import some_in_ci
from support.scored_data import made
from support.tiny import PAIRS, TEXTS, tiny_classifier

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("written_once")]

FAMILIES = ("bert", "roberta", "distilbert", "electra", "albert", "modernbert", "mpnet", "deberta-v2")
DECODERS = ("llama", "gpt2", "gpt_neox", "phi3", "olmo2", "gemma3_text")


@pytest.fixture(autouse=True)
def needed() -> None:
    for name in NEEDED:
        pytest.importorskip(name)


def pruned(family: str) -> Any:
    clf = tiny_classifier(family, layers=2)
    off = [(0, 1), (0, 2), *((1, head) for head in range(4))]
    return headviz.prune(clf, clf.full_mask.without(off)) if clf.family.prunable else clf


@pytest.mark.parametrize("family", some_in_ci((*FAMILIES, *DECODERS), [], ["deberta-v2"]))
def test_a_mask_is_an_input(family: str, tmp_path: Path) -> None:
    clf = pruned(family) if family in FAMILIES else tiny_classifier(family, layers=2)
    found = headviz.export(clf, tmp_path / "m", head_mask=True, batch=2, length=8)
    session = Session(clf, found.path / "model.onnx")
    batch = clf.collate(clf.encode(TEXTS, PAIRS))
    mask = clf.present.without([(0, 0)])
    np.testing.assert_allclose(session.outputs(batch, mask.array()), clf.logits(batch, mask).numpy(), atol=1e-4)
    assert difference(clf, found.path / "model.onnx") < 1e-4


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_comparison_is_that_of_the_answers(precision: str, tmp_path: Path) -> None:
    """A quantised file is smaller; its products fit into 16 bits, where processors without VNNI add two of them."""
    import onnx

    clf, data = tiny_classifier("bert", layers=1, hidden=128), made(40)
    found = headviz.export(clf, tmp_path / "m", precision, data=data, batch=2, length=8)
    session = Session(clf, found.path / "model.onnx")
    batch = clf.collate(clf.encode(data.texts, data.pairs))
    theirs, ours = session.outputs(batch).numpy().argmax(1), clf.logits(batch).numpy().argmax(1)
    # int8 scales what a batch has by its largest, so with other texts around it an answer near a tie may turn
    near = 1e-9 if precision == "float32" else 1.01 / len(data)
    assert found.agreement == pytest.approx(np.mean(theirs == ours), abs=near)
    assert found.n == 40
    assert found.change is not None
    gold = headviz.evaluate(clf, data).gold
    assert found.change.difference == pytest.approx(np.mean(theirs == gold) - np.mean(ours == gold), abs=near)
    assert found.speedup_low <= found.speedup <= found.speedup_high
    assert {"config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json"} <= {
        path.name for path in found.path.iterdir()
    }
    assert "quantization_config" not in json.loads((found.path / "config.json").read_text())
    # a name that transformers 4 knows, which optimum needs
    assert (
        json.loads((found.path / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    )
    again = AutoTokenizer.from_pretrained(found.path)
    assert again(TEXTS[0], PAIRS[0]).input_ids == clf.encode(TEXTS[:1], PAIRS[:1])[0].ids
    assert (found.bytes < 0.6 * 4 * clf.cost().parameters) == (precision == "int8")
    weights = [onnx.numpy_helper.to_array(w) for w in onnx.load(found.path / "model.onnx").graph.initializer]
    quantised = [w for w in weights if w.dtype == np.int8 and w.ndim == 2]
    assert bool(quantised) == (precision == "int8")
    assert all(2 * 255 * int(np.abs(w.astype(int)).max()) < 2**15 for w in quantised)


# the data of each job, and of another that an embedder answers
JOBS = {job: job for job in ("labels", "number", "rank", "tokens", "span")} | {"vector": "rank"}


@pytest.mark.parametrize(
    ("job", "head_mask"), some_in_ci(product(JOBS, [False, True]), [], [("span", False), ("tokens", True)])
)
def test_a_model_of_each_job_is_exported(job: str, head_mask: bool, tmp_path: Path) -> None:
    """Judged as the model itself is; ``sentence_embedding`` and the others have the names that other programs read."""
    whole, data = model_of(job), data_of(JOBS[job])
    clf = headviz.prune(whole, {0: [1], 1: range(4), 2: [0, 3]})
    found = headviz.export(clf, tmp_path / "m", data=data, head_mask=head_mask, batch=2, length=8)
    assert found.change is not None
    assert (found.change.metric, found.change.difference) == (data.task.metrics[0], pytest.approx(0, abs=1e-5))
    assert found.agreement == (1 if job in ("labels", "tokens", "span") else None)
    import onnxruntime

    session = onnxruntime.InferenceSession(str(found.path / "model.onnx"), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    wanted = {"span": ["start_logits", "end_logits"], "vector": ["last_hidden_state", "sentence_embedding"]}
    assert names == wanted.get(job, ["logits"])
    batch, given = clf.sample(TEXTS), {one.name for one in session.get_inputs()}
    mask = {"head_mask": clf.present.array().astype("float32")} if head_mask else {}
    outputs = session.run(names, {k: v.numpy() for k, v in batch.items() if k in given} | mask)
    there = batch["attention_mask"].numpy()
    for mine, theirs in zip(clf.graph(batch, clf.call()), outputs, strict=True):
        real = (there if mine.shape[:2] == there.shape else np.ones(mine.shape[:2])).astype(bool)
        np.testing.assert_allclose(theirs[real], mine.detach().numpy()[real], atol=1e-4)
    assert (job == "vector") == (found.path / "modules.json").exists()


@pytest.mark.parametrize("job", some_in_ci(JOBS, [], ["vector"]))
def test_a_model_of_each_job_in_int8(job: str, tmp_path: Path) -> None:
    """The change is that of the answers of the file, with the task's own paired interval."""
    clf, data = headviz.prune(model_of(job), {0: [1], 2: [0, 3]}), data_of(JOBS[job])
    found = headviz.runtimes(clf, None, data, batch=2, length=8).rows
    assert [row.value for row in found[:2]] == [
        pytest.approx(headviz.evaluate(clf, data).metrics[data.task.metrics[0]], abs=1e-5)
    ] * 2
    change = found[2].change
    assert change is not None
    assert change.difference == pytest.approx(found[2].value - found[0].value)
    assert change.low <= change.difference <= change.high


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tiny_classifier(layers=1).save(tmp_path / "small")
    words = ["export", "--model", str(folder), "--out", str(tmp_path / "m"), "--batch", "2", "--length", "8", "--json"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["precision"], result["agreement"], result["path"]) == ("float32", None, str(tmp_path / "m"))


def test_what_cannot_be_exported_is_one_line(tmp_path: Path) -> None:
    clf = tiny_classifier()
    with pytest.raises(UserError, match="int4"):
        headviz.export(clf, tmp_path / "m", "int4")
    with pytest.raises(UserError, match="length"):
        headviz.export(clf, tmp_path / "m", length=10_000)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(UserError, match="full"):
        headviz.export(clf, tmp_path / "full", batch=2, length=8)
    assert not (tmp_path / "m").exists()

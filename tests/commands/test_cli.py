"""The command line: JSON of the contract, exit codes, one clear line for a mistake, nothing written."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import headviz
from headviz.cli import main
from headviz.evaluation import evaluator, mask_evaluator
from headviz.models.fast.linear import bfloat16_here
from support.command import call, mistake
from support.custom_files import custom, write_custom
from support.tiny import tiny_folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("models") / "bert", layers=12, heads=12, hidden=48)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_custom(tmp_path_factory.mktemp("data"), dev=30)


@pytest.mark.slow
def test_an_interrupted_training_says_where_it_goes_on(
    capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headviz.pruning import finetuning
    from headviz.pruning.training_folder import FINGERPRINT

    def stopped(*_: object, folder: Path, **__: object) -> None:
        folder.mkdir(exist_ok=True)
        (folder / FINGERPRINT).touch()
        (folder / "weights").write_bytes(bytes(3_000_000))
        raise KeyboardInterrupt

    monkeypatch.setattr(finetuning, "fine_tune", stopped)
    (tmp_path / "data").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "data" / f"{split}.csv").write_text((data / "dev.csv").read_text())
    words = ["finetune", "--model", str(model), *map(str, custom(tmp_path / "data")), "--out", str(tmp_path / "new")]
    assert main(words) == 130
    said = capsys.readouterr().err
    assert f"checkpoints of 3 MB are in {tmp_path / '.new-training'}; the same command goes on from there" in said
    assert "goes on from the checkpoints" not in said
    assert main(words) == 130
    assert "goes on from the checkpoints in" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("how", ["--off", "--mask"])
def test_evaluate_under_a_mask(capsys: pytest.CaptureFixture[str], model: Path, data: Path, how: str) -> None:
    mask = headviz.HeadMask.full(12, 12).without([(3, 5), (7, 0)])
    value = "3.5,7.0" if how == "--off" else mask.hex
    result = call(capsys, "evaluate", "--model", model, *custom(data), how, value)
    dataset = headviz.load_task("custom", data=data, text_columns=["a", "b"], label_column="y")
    expected = headviz.evaluate(headviz.load(model), dataset, mask=mask)
    assert result["metrics"]["accuracy"] == pytest.approx(expected.metrics["accuracy"])
    assert (result["n"], result["mask"]) == (30, mask.hex)
    assert result["seconds"] > 0


@pytest.mark.slow
def test_a_metric_without_a_value_is_missing_everywhere_and_says_why(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    rows = "".join(f"a dog sleeps .,a cat runs,{y}\n" for y in ("entailment", "neutral", "contradiction"))
    (tmp_path / "dev.csv").write_text("a,b,y\n" + rows)
    source = custom(tmp_path)
    words = ("evaluate", "--model", model, *source, "--limit", 1, "--off", "1.2,0.3", "--compare")
    found = call(capsys, *words)
    assert found["undefined"] == {"matthews": "every gold label is the same"}
    matthews = found["comparison"]["deltas"][1]
    assert {matthews[k] for k in ("delta", "interval_low", "interval_high", "p_value")} == {None}
    assert main([str(w) for w in words]) == 0
    shown = capsys.readouterr().out
    assert "Matthews correlation has no value: every gold label is the same." in shown
    assert re.search(r"^Matthews correlation +1( +–){4}$", shown, re.MULTILINE), shown


@pytest.mark.slow
def test_evaluate_fast_shows_the_answer_as_it_grows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path, data: Path
) -> None:
    monkeypatch.setattr(mask_evaluator, "AT_ONCE", 0.0)
    monkeypatch.setattr(mask_evaluator, "ONE_PART", 0.0)
    words = ("evaluate", "--model", model, *custom(data))
    for off in ((), ("--off", "1.2,0.3")):
        expected = call(capsys, *words, *off)
        assert main([str(w) for w in (*words, *off, "--fast", "--json")]) == 0
        out, shown = capsys.readouterr()
        assert [re.findall(r"on (\d+) of 30 examples", line) for line in shown.splitlines()] == [["8"], ["16"]]
        assert {**json.loads(out), "seconds": 0} == {**expected, "seconds": 0}


@pytest.mark.slow
def test_evaluate_and_compare_with_every_head_on(capsys: pytest.CaptureFixture[str], model: Path, data: Path) -> None:
    off = ",".join(f"{layer}.{head}" for layer in (2, 5, 8, 11) for head in range(12))
    words = ("evaluate", "--model", model, *custom(data), "--off", off)
    found = call(capsys, *words, "--compare")
    dataset = headviz.load_task("custom", data=data, text_columns=["a", "b"], label_column="y")
    clf = headviz.load(model)
    full = headviz.evaluate(clf, dataset)
    (delta, *_) = found["comparison"]["deltas"]
    assert delta["full"] == pytest.approx(full.metrics["accuracy"])
    assert delta["delta"] == pytest.approx(found["metrics"]["accuracy"] - full.metrics["accuracy"])
    flips = found["comparison"]["flips"]
    assert (len(flips["better"]) - len(flips["worse"])) / 30 == pytest.approx(delta["delta"])
    assert np.trace(found["comparison"]["confusion_full"]) == round(30 * full.metrics["accuracy"])
    assert "comparison" not in call(capsys, *words)
    assert main([str(w) for w in (*words, "--compare")]) == 0
    out = capsys.readouterr().out
    assert f"Flipped: {len(flips['worse'])} right → wrong, {len(flips['better'])} wrong → right" in out
    assert "[95 %]" in out
    assert "heads that are off" in mistake(capsys, "evaluate", "--model", model, *custom(data), "--compare")


@pytest.mark.slow
def test_prune_save_reload(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    words = ("--off", "0.0,0.1,11.3", "--length", "32", "--out", tmp_path / "small")
    result = call(capsys, "prune", "--model", model, *words)
    assert result["flops"]["length"] == 32
    assert result["heads_per_layer"] == [10, *[12] * 10, 11]
    assert result["parameters"]["after"] < result["parameters"]["before"]
    small = headviz.load(tmp_path / "small")
    assert small.present.off == ((0, 0), (0, 1), (11, 3))
    info = call(capsys, "info", "--model", tmp_path / "small")
    assert info["heads_per_layer"] == result["heads_per_layer"]
    assert info["layers"] == info["heads"] == 12
    again = call(capsys, "prune", "--model", tmp_path / "small", "--off", "5.5", "--out", tmp_path / "smaller")
    assert headviz.HeadMask.from_hex(again["mask"], 12, 12).off == ((0, 0), (0, 1), (5, 5), (11, 3))


@pytest.mark.slow
def test_with_data_pruning_says_what_it_costs(
    capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path
) -> None:
    words = ["--model", model, "--off", "0.0,0.1,11.3"]
    result = call(capsys, "prune", *words, *custom(data), "--out", tmp_path / "small")
    compared = call(capsys, "evaluate", *words, *custom(data), "--compare")
    assert result["metrics"]["accuracy"] == compared["metrics"]["accuracy"]
    assert result["change"]["difference"] == pytest.approx(compared["comparison"]["deltas"][0]["delta"])
    assert f"accuracy: {result['metrics']['accuracy']:.4f}" in (tmp_path / "small/README.md").read_text()


def test_prune_writes_onnx_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    """Without a speed, as the guide shows it. What the file holds is tested where ONNX is installed."""
    written = []

    def export(clf: headviz.Classifier, path: Path) -> Path:
        written.append((clf.present.off, path))
        return path

    monkeypatch.setattr("headviz.models.onnx.NEEDED", ())
    monkeypatch.setattr("headviz.models.onnx.export_onnx", export)
    out = tmp_path / "small"
    result = call(capsys, "prune", "--model", model, "--off", "0.0", "--onnx", "--out", out)
    assert written == [(((0, 0),), out / "model.onnx")]
    assert result["onnx"] == str(out / "model.onnx")
    both = ("prune", "--model", model, "--off", "0.0", "--onnx", "--masked", "--out", tmp_path / "x")
    assert "Give one of the two" in mistake(capsys, *both)
    monkeypatch.setattr("headviz.models.onnx.NEEDED", ("no_such_package",))
    told = mistake(capsys, "prune", "--model", model, "--off", "0.0", "--onnx", "--out", tmp_path / "x")
    assert "pip install 'headviz[onnx]'" in told
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_mistakes(capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluate = ("evaluate", "--model", model, *custom(data))
    columns = ("--task", "custom", "--data", data, "--text-columns", "a,z", "--label-column", "y")
    for said, *words in (
        ("Did you mean 'evaluate'?", "evalute"),
        ("--model", "info"),
        ("Head 12.0 does not exist: layers are 0 to 11", *evaluate, "--off", "12.0"),
        ("Write layer.head", *evaluate, "--off", "3:5"),
        ("36 hexadecimal digits", *evaluate, "--mask", "ff"),
        ("not allowed with", *evaluate, "--mask", "ff", "--off", "1.1"),
        ("whole number", *evaluate, "--limit", "0"),
        ("Head 0.12", "prune", "--model", model, "--off", "0.12", "--out", out),
        ("'z'", "evaluate", "--model", model, *columns),
    ):
        assert said in mistake(capsys, *words)
    assert not out.exists()


def test_an_internal_fault_is_not_a_users_mistake(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("headviz.load", broken)
    assert main(["info", "--model", "demo"]) == 1
    err = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: planted" in err
    assert "Traceback" in err


@pytest.mark.parametrize("wrong", [["--task", "demmo"], ["--task", "demo", "--off", "3-5"]])
def test_a_slip_is_told_before_anything_is_loaded(wrong: list[str], monkeypatch, capsys) -> None:
    monkeypatch.setattr("headviz.load", lambda *_, **__: pytest.fail("the model was loaded"))
    assert main(["evaluate", "--model", "demo", *wrong]) == 2
    assert capsys.readouterr().err.startswith("headviz: ")


def test_what_is_misspelt_is_named_with_what_is_near(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    at = ("--model", model, "--task", "demo")
    assert "--limt 48. Did you mean --limit?" in mistake(capsys, "score", *at, "--limt", "48")
    assert ". Did you mean --limit and --samples? See: headviz score --help" in mistake(
        capsys, "score", *at, "--limt", "48", "--smples=16"
    )
    assert "A command comes first, not --versoin. Did you mean --version? See" in mistake(capsys, "--versoin")
    assert mistake(capsys, "--model", model).startswith("headviz: A command comes first, not --model. See")
    assert "Unknown split 'tst' of task 'demo'." in mistake(capsys, "evaluate", *at, "--split", "tst")
    wrong = mistake(capsys, "evaluate", *at, "--mask", "mask.jsn")
    assert "'mask.jsn' is no file of a mask: those end in .json, .npy, .txt." in wrong
    assert "There is no file '" in mistake(capsys, "evaluate", *at, "--mask", "nope.json")


def test_conductance_writes_only_files_of_its_own_kind(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    """One wrong completion of a name, and a file of data was a zip."""
    precious = tmp_path / "precious.csv"
    precious.write_text("a,b\n")
    words = ("--model", model, "--device", "cpu", "--text", "a dog", "--text-pair", "a cat", "--out", precious)
    assert "must end in .npz" in mistake(capsys, "conductance", *words)
    assert precious.read_text() == "a,b\n"


def test_numbers_with_one_cell_that_holds_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m", labels=("value",))
    rows = [f"a dog,{i / 10}" for i in range(1, 12)] + ["a cat,n/a"]
    (tmp_path / "dev.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    words = ("--model", folder, "--device", "cpu", "--task", "custom", "--data", tmp_path, "--text-columns", "text")
    for more, wanted in (((), "has classes, such as 'n/a'"), (("--regression",), "line 13")):
        assert main([str(w) for w in ("evaluate", *words, *more)]) == 2
        assert wanted in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("info", "--model", "demo", "--device=--"),
        ("evaluate", "--model", "demo", "--task", "demo", "--limit-seed=--"),
        ("conductance", "--model", "demo", "--text=--"),
        ("run", "start", "--title=--"),
        ("info", "--model", "demo", "--plugin=--"),
    ],
)
def test_two_dashes_are_no_value(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert words[-1].partition("=")[0] in mistake(capsys, *words)


@pytest.mark.parametrize("name", ["my--model", "a..b", "x.git", "abc-", "bert-base-uncased.", "o/x.git", "a" * 97])
def test_a_name_that_the_hub_cannot_have_is_a_mistake(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "not a hub id" in mistake(capsys, "info", "--model", name)


def test_an_empty_column_is_refused_before_all_else(capsys: pytest.CaptureFixture[str]) -> None:
    for name, *words in (
        ("--slice-column", "evaluate", "--model", "none"),
        ("--label-column", "distill", "--model", "none"),
        ("--text-columns", "prune"),
    ):
        said = mistake(capsys, *words, "--task", "custom", f"{name}=")
        assert name in said
        assert "empty" in said or "text columns" in said


def test_evaluate_in_a_precision(capsys: pytest.CaptureFixture[str], model: Path, data: Path) -> None:
    words = ("evaluate", "--model", model, *custom(data))
    assert "precision" not in call(capsys, *words, "--precision", "tf32")  # on a processor that is float32
    assert "bfloat16" in mistake(capsys, *words, "--precision", "float8")
    if bfloat16_here(torch.device("cpu")):
        result = call(capsys, *words, "--precision", "bfloat16", "--off", "1.2", "--compare")
        assert result["precision"] == result["comparison"]["precision"] == "bfloat16"
        assert main(list(map(str, (*words, "--precision", "bfloat16")))) == 0
        assert re.search(r"computed in +bfloat16", capsys.readouterr().out)


def test_what_pruning_reports_is_measured_in_float32(
    capsys: pytest.CaptureFixture[str], model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "fastest", lambda *_: pytest.fail("the precision was left to the device"))
    words = ("--model", model, *custom(data), "--off", "0.0", "--out", tmp_path / "small")
    assert call(capsys, "prune", *words)["metrics"]

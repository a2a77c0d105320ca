"""The command line of fine-tuning, tickets and transfer: JSON results, mistakes in one line, nothing half-written."""

import json
import re

import pytest

import headviz
from headviz.cli import main
from headviz.heads import HeadMask
from headviz.pruning import finetuning
from support.pruning_plans import make_data
from support.tiny import tiny_folder

LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture
def place(tmp_path):
    data = make_data(48)
    for split in ("train", "dev"):
        rows = [f"{x.text}\t{x.pair}\t{x.label}" for x in data]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["one\ttwo\tlabel", *rows]) + "\n")
    tiny_folder(tmp_path / "base", labels=LABELS)
    return tmp_path


def arguments(place, *more):
    task = ["--task", "custom", "--data", str(place), "--text-columns", "one,two", "--label-column", "label"]
    return ["--model", str(place / "base"), *task, "--device", "cpu", *more]


def call(capsys, *words):
    status = main([str(w) for w in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.slow
def test_finetune_writes_a_model_and_its_report(place, capsys):
    words = arguments(place, "--out", place / "new", "--epochs", 2, "--batch", 8, "--seed", 3, "--off", "0.1,1.0")
    status, out, err = call(capsys, "finetune", *words, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["heads_per_layer"] == [3, 3, 4]
    assert [p["metrics"] is not None for p in found["curve"]].count(True) == 2
    assert found["options"]["batch"] == 8
    assert json.loads((place / "new" / "training-report.json").read_text()) == found
    clf = headviz.load(place / "new", device="cpu")
    assert clf.digest == found["digest"]
    assert sorted(clf.labels) == sorted(LABELS)
    assert not list(place.glob(".new-*"))
    text = call(capsys, "finetune", *arguments(place, "--out", place / "three", "--epochs", 0.2))[1]
    assert "dev accuracy" in text


@pytest.mark.slow
def test_finetune_reads_masks_and_heads_as_the_other_commands_do(place, capsys):
    """It took no file of a mask, and no name of a stack."""
    tiny_folder(place / "bart", "bart", layers=2, heads=4, labels=LABELS)
    mask = HeadMask.full(8, 4).without([(3, 1)])  # the second layer of the cross attention
    headviz.write_mask(mask, place / "mask.json")
    for number, heads in enumerate((("--mask", place / "mask.json"), ("--mask", mask.hex), ("--off", "cross.1.1"))):
        words = [*arguments(place, "--out", place / f"new{number}", "--epochs", 0.1), *heads, "--json"]
        words[1] = place / "bart"
        status, out, err = call(capsys, "finetune", *words)
        assert status == 0, err
        assert json.loads(out)["mask"] == mask.hex


@pytest.mark.slow
def test_a_diverged_finetune_leaves_its_curve_and_can_be_repeated_with_a_lower_rate(place, capsys):
    words = arguments(place, "--out", place / "new", "--epochs", 1, "--batch", 8)
    status, _, err = call(capsys, "finetune", *words, "--learning-rate", "1e36")
    assert status == 2
    assert "Lower the learning rate" in err
    left = json.loads((place / "new-diverged.json").read_text())
    assert left["error"] in err
    assert left["options"]["learning_rate"] == 1e36
    assert [p["step"] for p in left["curve"]] == [1]
    assert not (place / "new").exists()
    status, _, err = call(capsys, "finetune", *words, "--learning-rate", "1e-3")
    assert status == 0, err


@pytest.mark.slow
def test_a_label_order_names_the_outputs_of_the_new_head(place, capsys):
    order = ("neutral", "contradiction", "entailment")
    words = ["--epochs", 3, "--batch", 8, "--learning-rate", "3e-3", "--label-order", ",".join(order)]
    status, out, err = call(capsys, "finetune", *arguments(place, "--out", place / "new", *words), "--json")
    assert status == 0, err
    found = json.loads(out)
    assert tuple(found["labels"]) == headviz.load(place / "new", device="cpu").labels == order
    task = arguments(place)[2:]
    status, out, err = call(capsys, "evaluate", "--model", place / "new", *task, "--json")
    assert status == 0, err
    assert json.loads(out)["metrics"] == found["metrics"]
    for wrong, says in (("neutral,entailment", "names 2 classes"), ("a,b,c", "does not name each class")):
        more = arguments(place, "--out", place / "two", "--label-order", wrong)
        status, _, err = call(capsys, "finetune", *more)
        assert (status, says in err) == (2, True), err
        assert not (place / "two").exists()


@pytest.mark.slow
def test_transfer_is_continued_from_its_file(place, capsys):
    target = {
        "model": str(place / "base"),
        "task": "custom",
        "data": str(place),
        "text_columns": ["one", "two"],
        "label_column": "label",
        "device": "cpu",
    }
    spec = place / "spec.json"
    spec.write_text(json.dumps({"masks": {"a": "7ff", "b": "0ff"}, "targets": {"t": target}, "random": 2}))
    status, out, err = call(capsys, "transfer", spec, "--out", place / "cells.jsonl", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert (found["sources"], found["targets"]) == (["a", "b"], ["t"])
    lines = (place / "cells.jsonl").read_text().splitlines()
    assert len(lines) == 3 + 2 * 2  # two random masks of each size
    (place / "cells.jsonl").write_text("\n".join(lines[:2]) + "\n" + lines[2][:10])
    status, out, _ = call(capsys, "transfer", spec, "--out", place / "cells.jsonl", "--json")
    assert json.loads(out) == found
    # the broken line is no part of the one after it
    assert (place / "cells.jsonl").read_text().splitlines()[3:] == lines[2:]
    shown = call(capsys, "transfer", spec)[1]
    assert "every head on" in shown
    assert found["finding"] in shown
    for changed, says in (
        ({"masks": {"a": "7ff", "b": "00f"}}, "another mask of 'b'"),
        ({"retrain": True, "targets": {"t": {**target, "base": str(place / "base")}}}, "without retraining"),
        ({"targets": {"t": target, "u": target}, "masks": {"a": "7ff"}}, "another matrix"),
        ({"seeds": [0, 0]}, "a list of different whole numbers"),
        (
            {"targets": {"t": {k: v for k, v in target.items() if k != "text_columns"}}},
            'In the JSON file: "text_columns".',
        ),
    ):
        content = {"masks": {"a": "7ff", "b": "0ff"}, "targets": {"t": target}, **changed}
        spec.write_text(json.dumps(content))
        status, _, err = call(capsys, "transfer", spec, "--out", place / "cells.jsonl")
        assert (status, says in err) == (2, True), err
    spec.write_text(json.dumps({"masks": {"a": "7ff"}, "targets": {"t": target}}))
    foreign = place / "notes.jsonl"
    for content in (
        b'{"mine": 1}\n',
        b"\xff\xfe",
        b'{"source":' * 100_000,
        (place / "cells.jsonl").read_bytes() + b"and a note\n",
    ):
        foreign.write_bytes(content)
        status, _, err = call(capsys, "transfer", spec, "--out", foreign)
        assert (status, "was not written by this command" in err) == (2, True), err
        assert foreign.read_bytes() == content
    for wrong, says in ((place, "is a folder"), (place / "none" / "x.jsonl", "There is no folder")):
        status, _, err = call(capsys, "transfer", spec, "--out", wrong)
        assert (status, says in err) == (2, True), err
    spec.write_text("{}")
    status, _, err = call(capsys, "transfer", spec)
    assert (status, "masks" in err, "targets" in err) == (2, True, True), err


@pytest.mark.slow
def test_transfer_goes_on_with_cells_of_the_same_model_and_data_alone(place, capsys):
    target = {"model": str(place / "base"), "task": "custom", "data": str(place), "dev_limit": 12, "device": "cpu"}
    target |= {"text_columns": ["one", "two"], "label_column": "label"}
    spec, out = place / "spec.json", place / "cells.jsonl"
    spec.write_text(json.dumps({"masks": {"a": "7ff"}, "targets": {"t": target}, "random": 0}))

    def says():
        status, _, err = call(capsys, "transfer", spec, "--out", out)
        return (status, "another model, other data or another training" in err)

    assert says() == (0, False)
    written = out.read_text()
    for change in ({"dev_limit": 11}, {"label_order": LABELS[::-1]}):
        spec.write_text(json.dumps({"masks": {"a": "7ff"}, "targets": {"t": target | change}, "random": 0}))
        assert says() == (2, True)
    spec.write_text(json.dumps({"masks": {"a": "7ff"}, "targets": {"t": target}, "random": 0}))
    assert says() == (0, False)
    tiny_folder(place / "base", labels=LABELS, seed=1)
    assert says() == (2, True)
    assert out.read_text() == written
    cells = [json.loads(line) for line in written.splitlines()]
    old = [{k: v for k, v in cell.items() if k != "subject"} for cell in cells]
    out.write_text("".join(json.dumps(cell) + "\n" for cell in old))
    assert says() == (0, False)  # version 0.1 did not write it


def test_finetune_says_its_size_and_time_before_it_starts(place, capsys, monkeypatch):
    monkeypatch.setattr("headviz.progress.LONG", 0.0)
    monkeypatch.setattr("headviz.commands.finetune.TIMED", 2)
    plain = finetuning.fine_tune

    def fine_tune(*args, folder=None, **more):
        if folder is not None:  # the training itself
            raise KeyboardInterrupt
        return plain(*args, **more)

    monkeypatch.setattr(finetuning, "fine_tune", fine_tune)
    status, _, err = call(capsys, "finetune", *arguments(place, "--out", place / "new", "--epochs", 1, "--batch", 4))
    assert status == 130
    assert "note: 12 updates on 48 examples" in err
    assert re.search(r"note: training takes about \d+ minutes. --epochs N trains less, --limit N", err)


def test_finetune_leaves_a_foreign_folder_alone(place, capsys):
    foreign = place / ".new-training"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    status, _, err = call(capsys, "finetune", *arguments(place, "--out", place / "new", "--epochs", 0.1))
    assert status == 2
    assert "thesis.txt" in err
    assert (foreign / "thesis.txt").read_text() == "mine"
    assert not (place / "new").exists()

"""The study's cells: in an order that can be followed, and computed once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from headviz import HeadMask
from headviz.answers import ANSWERS
from study import cells, leads, models, orders, page_pruned, papers, tables


def test_an_order_with_ties_is_a_mean_over_ten_orders_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By place, 59 heads of 144 that tied were removed layer by layer, in one order without a spread."""
    gold, full, seen = np.arange(40) % 2, HeadMask.full(4, 9), []

    def predictions(mask: HeadMask, keep: bool = True) -> np.ndarray:
        seen.append(mask)
        lost = sum(head.layer == 0 for head in mask.off) / 9  # the model needs the first layer
        return np.where(np.arange(40) < 40 * lost, 1 - gold, gold)

    monkeypatch.setattr(orders.headviz, "evaluator_of", lambda *args: SimpleNamespace(predictions=predictions))
    task = SimpleNamespace(answer=ANSWERS["class"], metrics=("accuracy", "matthews"))
    dev = SimpleNamespace(gold=gold, label_names=("no", "yes"), task=task)
    context: Any = SimpleNamespace(clf=SimpleNamespace(full_mask=full), dev=dev)
    scores = np.zeros((4, 9))
    plan = {"algorithm": "one-importance", "seeds": [0]}
    state: Any = SimpleNamespace(plan=plan, choices=[SimpleNamespace(scores=scores.tolist())], sizes=(9, 18))
    drawn = orders.over_ties(context, state)
    assert [one.shape for one in drawn] == [(10, 40)] * 2
    assert len(set(seen)) == 20
    right = drawn[0] == gold
    result = orders.lead(right, np.zeros((3, 40)), gold, np.random.default_rng(0))
    assert result["ties_low"] < result["mean"] < result["ties_high"]
    assert result["mean"] == pytest.approx(right.mean())
    assert result["mean"] > 0.5  # by place the first layer went first, and nothing was right
    one = {"metrics": {"accuracy": 0.0, "matthews": None}, "predicted": {}, "deltas": {}, "mask": full.hex}
    step = orders.mean_step(dev, one, drawn[0])
    assert step["metrics"]["accuracy"] == pytest.approx(right.mean())
    ends = step["over_ties"]["accuracy"]
    assert (ends["orders"], ends["low"], ends["high"]) == (10, right.mean(axis=1).min(), right.mean(axis=1).max())
    assert sum(step["predicted"].values()) == pytest.approx(40)
    assert "deltas" not in step
    state.choices[0].scores = np.arange(36.0).reshape(4, 9).tolist()
    assert orders.over_ties(context, state) == []


def test_each_model_has_random_orders_of_its_own() -> None:
    models = [("minilm", task, seed) for task in ("mrpc", "sst2", "cola") for seed in range(3)]
    drawn = [seed for model in models for seed in orders.own_draws(*model)]
    assert len(set(drawn)) == len(drawn) == 9 * orders.ORDERS["minilm"]

    def cell(first: int, right: tuple[float, ...]) -> dict[str, Any]:
        return {"steps": [{"seed": first + at, "sparsity": 0.5, "right": value} for at, value in enumerate(right)]}

    cells_of = [cell(900, (0.1, 0.2)), cell(0, (0.3, 0.4))]
    assert tables.by_order(cells_of, lambda step: step["right"]) == {0.5: {0: [0.1, 0.3], 1: [0.2, 0.4]}}


def test_every_cell_comes_after_what_it_needs(study: ModuleType) -> None:
    """A call that does all cells in order never makes one twice; what a cell needs is planned."""
    planned = study.cells()
    place = {cell.name: at for at, cell in enumerate(planned)}
    assert len(place) == len(planned)
    late = [(c.name, need) for c in planned for need in c.needs if place[need] > place[c.name]]
    assert late == []


def glue(folder: Path) -> Path:
    """Pairs of made-up words in the files of MRPC and MNLI; equal first words decide."""
    import random

    draw = random.Random(0)
    words = ["cat", "dog", "sun", "sea", "red", "big"]
    for task, header, names in (
        ("MRPC", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "01"),
        ("MNLI", "index\tsentence1\tsentence2\tgold_label", ("neutral", "entailment", "contradiction")),
    ):
        (folder / task).mkdir(parents=True)
        for split, count in (("train", 64), ("dev" if task == "MRPC" else "dev_matched", 48)):
            lines = [header]
            for i in range(count):
                first, second = (" ".join(draw.choices(words, k=4)) for _ in range(2))
                label = names[i % len(names)]
                row = [label, str(i), str(i), first, second] if task == "MRPC" else [str(i), first, second, label]
                lines.append("\t".join(row))
            (folder / task / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_cells_are_computed_and_a_second_call_has_nothing_left(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kinds of cells that train, remove and compare, on an encoder of MiniLM's shape with random weights."""
    import headviz
    from support.tiny import tiny_folder

    for module in (orders, papers):
        monkeypatch.setattr(module, "SAMPLES", 8)
    monkeypatch.setitem(leads.DEV, "mrpc", {"equivalent": 24, "not_equivalent": 24})
    encoder = tiny_folder(tmp_path / "encoder", layers=6, heads=12, hidden=24)
    only = ("prune-minilm-mrpc-0-one-importance-taylor", "retrain-minilm-mrpc-0-isp-taylor", "cross-minilm-mnli")
    call = ["--encoder", f"minilm={encoder}", "--data", str(glue(tmp_path / "glue")), "--work", str(tmp_path / "work")]
    call += ["--out", str(tmp_path / "cells"), *(part for name in only for part in ("--only", name))]
    monkeypatch.setattr(sys, "argv", ["study", *call])
    cells.main()
    result = study.read(tmp_path / "cells")
    assert {c["experiment"] for c in result.values()} == {"training", "E2", "E3", "X"}
    steps = result["retrain-minilm-mrpc-0-isp-taylor"]["steps"]
    assert [s["heads_off"] for s in steps] == [22, 37, 47, 55, 60, 64]
    # θ* is the full model of the retrained ones: the same training, whenever checkpoints are written
    data = headviz.load_task("mrpc", split="train", data=str(tmp_path / "glue" / "MRPC"))
    fresh = headviz.load(str(encoder), fresh_labels=data.label_names, seed=0, device="cpu")
    again = models.fine_tune(fresh, data, models.recipe(), 0).classifier
    assert again.digest == result["train-minilm-mrpc-0"]["digest"]
    said = study.page(result, study.cells())
    assert "ISP, IGSPP, `taylor`" in said
    assert "′](results/" not in said  # one machine, one set of weights
    capsys.readouterr()
    cells.main()
    assert capsys.readouterr().out == ""
    # what another process is at is left to it
    gone = tmp_path / "cells" / f"{only[0]}.json"
    gone.unlink()
    monkeypatch.setattr(sys, "argv", ["study", *call, "--minutes", "0.03"])
    with FileLock(tmp_path / "work" / "taken" / only[0]):
        cells.main()
    assert not gone.exists()
    cells.main()
    assert gone.exists()
    # of a run that was broken off: what it has, which is no whole cell
    for state in sorted((tmp_path / "work" / "runs").glob("*-one-importance-taylor/state-*"))[-2:]:
        state.unlink()
    gone.unlink()
    monkeypatch.setattr(sys, "argv", ["study", *call, "--as-is"])
    crossing = tmp_path / "cells" / "cross-minilm-mnli-0.json"
    crossing.unlink()  # no run of steps: left alone
    cells.main()
    assert not crossing.exists()
    part, full = json.loads(gone.read_text()), result[only[0]]
    there = len(full["steps"]) - part["left"]
    assert (0 < there < len(full["steps"]), len(part["ahead"])) == (True, there)
    assert part["steps"] == full["steps"][:there]
    monkeypatch.setattr(sys, "argv", ["study", *call])
    cells.main()
    again = json.loads(gone.read_text())
    assert again["steps"] == full["steps"]
    assert "left" not in again


def test_a_lead_stands_beside_the_orders_that_it_was_measured_against(study: ModuleType) -> None:
    """Two sets of random orders of one model's weights."""

    def cell(score: str, steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        name = f"prune-minilm-mrpc-0-one-importance-{score}"
        known = {"cell": name, "experiment": "E2", "algorithm": "one-importance", "score": score, "digest": "d"}
        return {**known, "steps": steps, "ahead_in": orders.AHEAD_IN, **more}

    before, since = ([{"seed": first + at} for at in range(3)] for first in (0, 700))
    twins = {"twin": cell("random", since)}
    for draws, expected in (({}, before), ({"draws": [700, 701, 702]}, since), ({"draws": [900, 901, 902]}, None)):
        cells_of = {"random": cell("random", before), "taylor": cell("taylor", [{"seed": 0}], **draws)}
        of = study.beside(cells_of, twins)["taylor"]
        assert page_pruned.comparable(of) == (expected is not None)
        assert expected is None or of["of random"]["steps"] == expected


def test_random_orders_of_the_same_weights_drawn_otherwise_stand_beside_those_that_are_there(tmp_path: Path) -> None:
    """A lead names the orders it was measured against: both are kept. The same once more is written nowhere."""
    (tmp_path / "made").mkdir()
    (tmp_path / "out").mkdir()
    args = SimpleNamespace(work=tmp_path, out=tmp_path / "out", device="cpu", tf32=False, as_is=False)
    for first, digest in ((0, "abcdefghij"), (700, "abcdefghij"), (700, "otherweights"), (0, "abcdefghij")):
        result = {"digest": digest, "draws": [first, first + 1], "steps": []}
        cells.write(args, models.Cell("prune-x", "E2", (), 0, 1.0, lambda *_, known=result: known), lambda: False)
    files = {str(path.relative_to(tmp_path / "out")): json.loads(path.read_text()) for path in tmp_path.rglob("*.json")}
    assert {name: (cell["digest"], cell["draws"][0]) for name, cell in files.items()} == {
        "prune-x.json": ("abcdefghij", 0),
        "twins/prune-x-abcdefgh-draws.json": ("abcdefghij", 700),
        "twins/prune-x-otherwei.json": ("otherweights", 700),
    }

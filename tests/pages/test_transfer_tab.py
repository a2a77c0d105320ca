"""Transfer on the Runs page: which runs, what is measured, what is said, and output of the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.cli import main
from headviz.extras.tickets import transfer_spec
from headviz.heads import HeadMask
from headviz.runs.reading import show
from headviz.storage.paths import home
from support import studio
from support.plain import evaluate
from support.recorded_runs import Runs, press, pruning, put_sweep, said, tab

pytestmark = pytest.mark.slow
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def places(small_folder: Path) -> list[dict[str, str]]:
    """Two models of one grid, each with data whose labels are its own answers, so that it has something to lose."""
    found = []
    for name in ("model", "steps/step-1"):
        model = small_folder / name
        data = studio.answered(model, small_folder / "data", f"answers-of-{model.name}")
        found.append({"model": str(model), "data": str(data)})
    return found


@pytest.fixture
def two(runs: Runs, small: dict[str, str], small_folder: Path, places: list[dict[str, str]]) -> tuple[str, str]:
    """Finished runs of two models of one grid."""
    first, second = (
        runs.put("done", "prune", pruning(small_folder, **where), title=f"run of {Path(where['model']).name}")
        for where in places
    )
    return first, second


def choose(app: Any, key: str, value: Any) -> Any:
    app.session_state["run_tabs"] = "Transfer"
    return next(w for w in (*app.multiselect, *app.selectbox, *app.number_input) if w.key == key).set_value(value).run()


def measured(open_page: Open, two: tuple[str, str]) -> Any:
    app = tab(open_page("runs", run=two[0]), "Transfer")
    app = choose(app, "transfer_runs", list(two))
    app = choose(app, "transfer_draws", 3)
    assert "12 evaluations: 2 models" in said(app)
    app = press(app, "transfer_run", run_tabs="Transfer")
    assert not app.exception
    assert not list(app.error), [e.value for e in app.error]
    return app


def test_masks_of_two_runs_on_both_models(
    open_page: Open, two: tuple[str, str], places: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    app = measured(open_page, two)
    table = next(d.value for d in app.dataframe if "kept %" in d.value.columns)
    masks = ["custom, model", "custom, step-1"]
    assert list(table["mask of"]) == [m for m in masks for _ in range(2)] + ["random masks"] * 2
    steps = [transfer_spec.masks_of(show(run))[0.5] for run in two]
    columns = {"text_columns": "premise,hypothesis", "label_column": "label"}
    for i, text in enumerate(steps):
        for j, where in enumerate(places):
            clf = headviz.load(where["model"], device="cpu")
            dev = headviz.load_task("custom", data=where["data"], limit=24, **columns)
            expected = evaluate(clf, dev, HeadMask.from_hex(text, 3, 4)).metrics["accuracy"]
            floor = max(np.bincount(dev.labels)) / 24
            row = table[(table["mask of"] == masks[i]) & (table["model of"] == masks[j])].iloc[0]
            assert row["value"] == pytest.approx(expected)
            assert row["every head on"] == 1.0
            assert row["kept %"] == pytest.approx(100 * (expected - floor) / (1 - floor))
    assert "Of 2 pairs of a mask and another model" in said(app)
    # the printed Python and the printed command give the same
    python, command = [c.value for c in app.code][-2:]
    names: dict[str, Any] = {}
    exec(compile(python, "recipe", "exec"), names)
    assert [e.value for e in names["result"].entries] == pytest.approx(list(table["value"])[:4])
    wrote, ran = command.split("\n")
    folder = home()
    monkeypatch.chdir(folder)
    text, file = shlex.split(wrote)[1], shlex.split(wrote)[-1]
    Path(file).write_text(text)
    capsys.readouterr()
    assert main([*shlex.split(ran)[1:], "--json"]) == 0
    theirs = json.loads(capsys.readouterr().out)
    assert [e["value"] for e in theirs["entries"]] == pytest.approx(list(table["value"])[:4])
    assert theirs["finding"].split(".")[0].replace("custom, ", "") in said(app).replace("custom, ", "")
    # its output is shown as well
    app.session_state["transfer_way"] = "With retraining"
    app = tab(app, "Transfer")
    field = next(t for t in app.text_input if t.key == "transfer_place")
    app.session_state["run_tabs"], app.session_state["transfer_way"] = "Transfer", "With retraining"
    app = field.set_value(str(folder / "cells.jsonl")).run()
    again = next(d.value for d in app.dataframe if "kept %" in d.value.columns)
    assert list(again["value"]) == pytest.approx(list(table["value"]))


def test_a_model_that_has_changed_and_a_folder_that_is_not_allowed_are_refused(
    open_page: Open, two: tuple[str, str], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = [show(i) for i in two]
    planned = transfer_spec.plan_of(views, 0.5, random=0)
    assert len(transfer_spec.measure(planned)) == 6
    changed = transfer_spec.TransferOfRuns(planned.spec, planned.own_targets, dict.fromkeys(planned.digests, "0" * 64))
    with pytest.raises(headviz.errors.UserError, match="does not hold the weights"):
        transfer_spec.measure(changed)
    monkeypatch.setenv("HEADVIZ_ROOTS", str(small_folder / "data"))
    app = tab(open_page("runs", run=two[0]), "Transfer")
    app = choose(app, "transfer_runs", list(two))
    app = press(app, "transfer_run", run_tabs="Transfer")
    assert "outside the allowed folders" in said(app)


def test_a_measurement_that_was_stopped_goes_on_with_its_cells(two: tuple[str, str]) -> None:
    planned = transfer_spec.plan_of([show(i) for i in two], 0.5, random=1)
    kept: list[Any] = []

    def enough() -> bool:
        return len(kept) >= 3

    with pytest.raises(headviz.errors.Cancelled):
        transfer_spec.measure(planned, keep=kept.append, cancel=enough)
    told: list[tuple[int, int]] = []
    whole = transfer_spec.measure(planned, tuple(kept), progress=lambda done, total: told.append((done, total)))
    assert len(kept) == 3
    assert whole[:3] == kept
    assert whole == transfer_spec.measure(planned)
    assert (told[0], told[-1]) == ((3, 8), (8, 8))


def test_a_sweep_offers_one_run_of_each_model(
    open_page: Open, small: dict[str, str], runs: Runs, small_folder: Path
) -> None:
    parent, ids = put_sweep(runs, small_folder)
    app = tab(open_page("runs", **small, run=parent), "Transfer", "sweep_tabs")
    assert not app.exception
    picked = next(m for m in app.multiselect if m.key == "transfer_runs")
    assert picked.value == ids[:1]
    assert "Choose a second run, of another task or model" in said(app)

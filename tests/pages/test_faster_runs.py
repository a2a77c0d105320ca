"""Faster models on the Runs page: the form starts what it says, and a run shows what each speed keeps."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.cli import main
from headviz.pruning.options import FinetuneOptions
from headviz.runs.files import RunFiles
from headviz.runs.registry import Registry
from support.recorded_runs import Runs, button, press, said, source
from support.timed import Clock


@pytest.mark.slow
def test_the_form_starts_a_run_with_what_was_chosen(
    open_page: Callable[..., Any], small: dict[str, str], home: Path
) -> None:
    app = open_page("runs", **small, limit="24", skip_bad="1")
    assert app.segmented_control(key="w_new").options[0] == "Make it faster"
    app = app.segmented_control(key="w_new").set_value("faster").run()
    app = app.text_input(key="fast_targets").set_value("0.5").run()
    assert "give a number above 1" in said(app)
    app = app.text_input(key="fast_targets").set_value("1.3, 1.6").run()
    app = app.number_input(key="fast_length").set_value(12).run()
    assert not [e for e in app.number_input if "_epochs" in str(e.key)]
    assert app.toggle(key="fast_beside_False").value
    app = app.toggle(key="fast_retrain").set_value(True).run()
    assert not app.toggle(key="fast_beside_True").value  # it would take as long once more

    def field(kind: Any, name: str) -> Any:
        return next(e for e in kind if str(e.key).startswith("fast_train_") and str(e.key).endswith(name))

    field(app.text_input, "_rate").set_value("fast")
    assert "“Learning rate” is a number" in said(app.run())
    field(app.text_input, "_rate").set_value("3e-4")
    field(app.number_input, "_epochs").set_value(0.5)
    field(app.number_input, "_limit").set_value(16)
    press(app.run(), "fast_plan", new_box=True)
    assert not app.exception
    assert not list(app.error), [e.value for e in app.error]
    assert "2 models" in said(app)
    press(app, "fast_start", new_box=True)
    (record,) = Registry().records()
    assert record.spec["skip_bad"]
    trained = FinetuneOptions.from_dict(record.spec["finetune"])
    assert (record.kind, record.spec["targets"], record.spec["length"]) == ("faster", [1.3, 1.6], 12)
    assert (trained.learning_rate, trained.epochs, record.spec["train_limit"]) == (3e-4, 0.5, 16)


@pytest.mark.parametrize(("state", "waits"), [("running", True), ("failed", False)])
def test_only_a_run_at_work_has_a_model_to_come(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, runs: Runs, state: str, waits: bool
) -> None:
    run = runs.put(state, "faster", {**source(small_folder), "targets": [1.2]}, 0)
    app = open_page("runs", **small, run=run)
    assert not app.exception
    assert any("the run continues" in e.value for e in app.info) == waits


@pytest.mark.slow
def test_a_run_shows_what_each_speed_keeps(
    open_page: Callable[..., Any],
    small: dict[str, str],
    small_folder: Path,
    runs: Runs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headviz.pruning.faster.Timer", Clock)
    spec = {**source(small_folder), "targets": [1.2], "batch": 2, "length": 8, "samples": 12, "dev_limit": 24}
    run = runs.put("done", "faster", spec)
    app = open_page("runs", **small, run=run)
    assert not app.exception
    assert "measured speed, batches of 2 texts of 8 tokens" in said(app)
    assert button(app, "faster_use") is not None
    made = str(next(RunFiles(run).results.rglob("*/config.json")).parent)
    assert "has no part" not in said(open_page("runs", **{**small, "model": made}, run=run))
    sides = open_page("compare", **{**small, "model": made}, a="the dog sleeps", b="a cat runs")
    assert "from which the open model was made" in next(s for s in sides.selectbox if s.key == "w_first").options[1]
    assert button(app, "faster_runtimes") is not None
    (slider,) = app.select_slider
    app = slider.set_value(slider.options[-1]).run()
    assert not app.exception
    assert f"{slider.options[-1]}: accuracy changes by" in said(app)
    pair = {**small, "a": "the dog sleeps", "b": "a cat runs"}
    other = open_page("compare", **pair, other=f"run:{run}:0")
    assert not other.exception
    assert f"run:{run}:0" in next(s for s in other.selectbox if s.key == "w_other").value

    def models_of_the_run() -> int:
        page = open_page("compare", **pair)
        return sum("× as fast" in one for one in next(s for s in page.selectbox if s.key == "w_other").options)

    before = models_of_the_run()
    shutil.rmtree(next(RunFiles(run).results.rglob("*/config.json")).parent)
    assert models_of_the_run() == before - 1  # a deleted one is no choice
    assert main(["run", "report", run, "--out", str(tmp_path / "run.html")]) == 0
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "accuracy" in page
    assert "Metric against heads pruned" not in page  # models side by side are no curve

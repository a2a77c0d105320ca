"""Faster models on the Runs page: the form starts what it says, and a run shows what each speed keeps."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.cli import main
from headviz.runs.files import RunFiles
from headviz.runs.registry import Registry
from support.recorded_runs import Runs, button, press, said, source
from support.timed import Clock


@pytest.mark.slow
def test_the_form_starts_a_run_with_what_was_chosen(open_page: Callable[..., Any], home: Path) -> None:
    app = open_page("runs", limit="24")
    app = app.segmented_control(key="w_new").set_value("faster").run()
    app = app.text_input(key="fast_targets").set_value("0.5").run()
    assert "give a number above 1" in " ".join(e.value for e in app.error)
    app = app.text_input(key="fast_targets").set_value("1.3, 1.6").run()
    app = app.number_input(key="fast_length").set_value(12).run()
    press(app, "fast_plan", new_box=True)
    assert not app.exception
    assert not list(app.error), [e.value for e in app.error]
    assert "4 models" in said(app)
    press(app, "fast_start", new_box=True)
    (record,) = Registry().records()
    assert (record.kind, record.spec["targets"], record.spec["length"]) == ("faster", [1.3, 1.6], 12)


@pytest.mark.slow
def test_the_smaller_models_can_be_trained(open_page: Callable[..., Any], home: Path) -> None:
    from headviz.pruning.options import FinetuneOptions

    app = open_page("runs", limit="24")
    app = app.segmented_control(key="w_new").set_value("faster").run()
    assert not [e for e in app.number_input if "_epochs" in str(e.key)]
    app = app.checkbox(key="fast_retrain").check().run()
    assert not app.exception

    def field(kind: Any, name: str) -> Any:
        return next(e for e in kind if str(e.key).startswith("fast_train_") and str(e.key).endswith(name))

    field(app.text_input, "_rate").set_value("fast")
    assert "“Learning rate” is a number" in " ".join(e.value for e in app.run().error)
    field(app.text_input, "_rate").set_value("3e-4")
    field(app.number_input, "_epochs").set_value(0.5)
    field(app.number_input, "_limit").set_value(16)
    app = app.number_input(key="fast_length").set_value(12).run()
    press(app, "fast_plan", new_box=True)
    assert not list(app.error), [e.value for e in app.error]
    assert re.search(r"The trainings take about \d", said(app))
    press(app, "fast_start", new_box=True)
    (record,) = Registry().records()
    trained = FinetuneOptions.from_dict(record.spec["finetune"])
    assert (trained.learning_rate, trained.epochs, record.spec["train_limit"]) == (3e-4, 0.5, 16)


@pytest.mark.parametrize(("state", "waits"), [("running", True), ("failed", False)])
def test_only_a_run_at_work_has_a_model_to_come(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, state: str, waits: bool
) -> None:
    app = open_page("runs", run=runs.put(state, "faster", {**source(studio_folder), "targets": [1.2]}, 0))
    assert not app.exception
    assert any("the run continues" in e.value for e in app.info) == waits


@pytest.mark.slow
@pytest.mark.parametrize("state", ["running", "done"])
def test_a_run_shows_what_each_speed_keeps(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, state: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("headviz.pruning.faster.Timer", Clock)
    spec = {**source(studio_folder), "targets": [1.2, 1.5], "batch": 2, "length": 8, "samples": 12, "dev_limit": 24}
    run = runs.put(state, "faster", spec, None if state == "done" else 1)
    app = open_page("runs", run=run)
    assert not app.exception
    if state == "running":
        assert "The first model appears once it is built" in " ".join(e.value for e in app.info)
        return
    assert "measured speed, batches of 2 texts of 8 tokens" in said(app)
    assert "The fastest model (removed: " in said(app) or "Of the fastest models" in said(app)
    assert button(app, "faster_use") is not None
    (slider,) = app.select_slider
    app = slider.set_value(slider.options[-1]).run()
    assert not app.exception
    assert f"{slider.options[-1]}: accuracy changes by" in said(app)
    assert button(app, "faster_runtimes") is not None
    other = open_page("compare", a="the dog sleeps", b="a cat runs", other=f"run:{run}:0")
    assert not other.exception
    assert f"run:{run}:0" in next(s for s in other.selectbox if s.key == "w_other").value
    assert "1.2×" in said(other)

    def models_of_the_run() -> int:
        page = open_page("compare", a="the dog sleeps", b="a cat runs")
        return sum("× as fast" in one for one in next(s for s in page.selectbox if s.key == "w_other").options)

    before = models_of_the_run()
    shutil.rmtree(next(RunFiles(run).results.rglob("*/config.json")).parent)
    assert models_of_the_run() == before - 1  # a deleted one is no choice
    assert main(["run", "show", run]) == 0
    assert main(["run", "report", run, "--out", str(tmp_path / "run.html")]) == 0
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "accuracy" in page
    assert "Metric against heads pruned" not in page  # models side by side are no curve

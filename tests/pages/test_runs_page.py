"""The Runs page in every state of a run, cold and by link; what its forms plan; what its sentences say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headviz.cli import main
from headviz.errors import OptionError
from headviz.heads import HeadMask
from headviz.runs.files import RunFiles
from headviz.runs.record import SWEEP
from headviz.runs.registry import Registry
from headviz.ui.pages.runs import plans
from support.page import DEMO
from support.recorded_runs import ME, Runs, button, kinds, press, pruning, put_sweep, said, tab


def test_without_runs_the_form_is_open_and_the_page_says_what_to_do(open_page: Callable[..., Any], home) -> None:
    app = open_page("runs")
    assert not app.exception
    assert "No runs yet" in said(app)
    assert button(app, "new_plan") is not None
    assert button(app, "new_start").disabled


@pytest.mark.slow
@pytest.mark.parametrize("state", ["queued", "running", "cancelled", "failed", "lost", "done"])
def test_every_state_is_drawn(open_page: Callable[..., Any], studio_folder: Path, runs: Runs, state: str) -> None:
    pieces = {"queued": 0, "running": 4, "failed": 4, "cancelled": 2}.get(state)
    run = runs.put(state, "prune", pruning(studio_folder), pieces)
    app = open_page("runs", run=run)
    assert not app.exception
    text = said(app)
    assert not [e for e in app.error if "failed here" in str(e.value)]
    assert "a prune run" in text
    busy, again = state in ("queued", "running"), state in ("cancelled", "failed", "lost")
    assert (button(app, "run_cancel") is not None) == busy
    assert (button(app, "run_resume") is not None) == again
    assert (button(app, "run_delete") is not None) == (not busy)
    if state == "failed":
        assert "The disk is full" in text
    if state == "done":
        assert "heads" in text
        assert button(app, "run_open") is not None


def test_a_run_s_notes_stand_on_its_page_and_in_its_table(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.put("done", "prune", pruning(studio_folder, samples=13))  # of three classes: one lacks an example
    notes = RunFiles(run).read_json(RunFiles(run).outcome)["notes"]
    assert notes
    shown = said(open_page("runs", run=run))
    assert main(["run", "show", run]) == 0
    printed = capsys.readouterr().out
    assert all(note in shown and note in printed for note in notes)


def test_deleting_asks_first_says_what_it_frees_and_leaves_nothing(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    run = runs.put("cancelled", "prune", pruning(studio_folder), 2)
    app = open_page("runs", run=run)
    assert button(app, "run_delete").disabled
    assert "frees" in button(app, "run_delete").label
    next(c for c in app.checkbox if c.key == "run_sure").check().run()
    button(app, "run_delete").click().run()
    assert not app.exception
    assert not RunFiles(run).folder.exists()
    assert "No runs yet" in said(app)


@pytest.mark.slow
def test_a_step_opens_in_the_mask_lab_with_the_run_s_own_model(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, runs: Runs
) -> None:
    run = runs.put("done", "prune", pruning(small_folder))
    app = open_page("runs", run=run, step="1", **DEMO)
    mask = next(s["mask"] for s in Registry().steps(run) if s.get("step") == 1)
    button(app, "run_open").click().run()
    assert not app.exception
    assert "Mask lab" in [t.value for t in app.title]
    view = app.session_state["headviz"].view
    assert (view.model, view.task, view.mask) == (str(small_folder / "model"), "custom", mask)


def retraining(small_folder: Path, **changes: Any) -> dict[str, Any]:
    """Two steps of networks trained anew, for a few updates."""
    train = {"epochs": 1.0, "batch": 8, "learning_rate": 1e-3}
    return pruning(
        small_folder,
        algorithm="one-shot-isp",
        base=str(small_folder / "model"),
        finetune=train,
        train_limit=16,
        sparsities=[0.25, 0.5],
        **changes,
    )


@pytest.mark.slow
def test_a_retrained_run_names_its_baselines_and_opens_its_own_model(
    open_page: Callable[..., Any],
    small: dict[str, str],
    small_folder: Path,
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runs.put("done", "prune", retraining(small_folder))
    monkeypatch.setenv("HEADVIZ_ROOTS", f"{small_folder}:{RunFiles(run).folder}")
    app = open_page("runs", **small, run=run, step="1")
    assert not app.exception
    assert "the full θ0 retrained the same way reaches" in said(app)
    table = next(d.value for d in app.dataframe if "model" in d.value.columns)
    assert list(table["model"]) == ["unpruned model", "full θ0, retrained the same way", "pruned", "pruned"]
    assert {m.label.replace("\\", "") for m in app.metric} >= {"unpruned model", "full θ0, retrained the same way"}
    # the first step's model was not kept: the lab shows θ* under its mask, and that is said
    assert button(app, "run_open_model") is None
    assert "θ*" in button(app, "run_open").label
    assert "This step's own model was not kept" in said(app)
    app = open_page("runs", **small, run=run, step="2")
    folder = RunFiles(run).results / "models" / "seed0-step2"
    button(app, "run_open_model").click().run()
    assert not app.exception
    assert "Mask lab" in [t.value for t in app.title]
    view = app.session_state["headviz"].view
    assert (view.model, view.mask) == (str(folder), "")


@pytest.mark.slow
def test_one_example_is_followed_through_the_steps(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, runs: Runs
) -> None:
    run = runs.put("done", "prune", pruning(small_folder))
    gone = HeadMask.from_hex(next(s["mask"] for s in Registry().steps(run) if s.get("step") == 1), 3, 4).off[0]
    app = tab(open_page("runs", **small, run=run, head=gone.dotted), "One example")
    assert not app.exception
    press(app, "run_load", run_tabs="One example")
    assert not app.exception
    assert f"{gone} is removed at 25 %" in said(app)
    assert not list(app.error), [e.value for e in app.error]


@pytest.mark.slow
def test_the_model_is_saved_below_an_allowed_folder_only(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, home: Path
) -> None:
    import headviz

    run = runs.put("done", "prune", pruning(studio_folder))
    app = tab(open_page("runs", run=run, step="2"), "Save the model")
    assert not app.exception
    field = next(t for t in app.text_input if t.label == "A new folder")
    assert field.value.startswith(str(home))
    save = next(b for b in app.button if b.label == "Save")
    field.set_value("/etc/headviz-model")
    app.session_state["run_tabs"] = "Save the model"
    save.click().run()
    assert "outside the allowed folders" in said(app)
    next(t for t in app.text_input if t.label == "A new folder").set_value(str(home / "models" / "small"))
    app.session_state["run_tabs"] = "Save the model"
    next(b for b in app.button if b.label == "Save").click().run()
    assert not app.exception
    assert "Saved in" in said(app)
    mask = next(s["mask"] for s in Registry().steps(run) if s.get("step") == 2)
    assert headviz.load(home / "models" / "small" / "pruned", device="cpu").present.hex == mask
    press(app, "run_use", run_tabs="Save the model")
    assert app.session_state["headviz"].view.model.endswith("pruned")
    app = tab(open_page("runs", run=run), "Save the model")
    press(app, "run_zip_ask", run_tabs="Save the model")
    assert len(list((home / "exports").glob("headviz-*.zip"))) == 1


def test_a_name_alone_is_a_folder_of_the_dashboard_s_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headviz.errors import UserError
    from headviz.ui.pages.runs.models import target

    monkeypatch.chdir(Path(__file__).parent)  # an allowed root, where nothing is meant to land by chance
    assert target(" small ") == (home / "models" / "small").resolve()
    assert target(str(home / "x")) == (home / "x").resolve()
    for text, answer in (
        ("  ", "Name a new folder"),
        ("/etc/x", "may not write into '/etc/x'"),
        ("../../../../../../../../etc/x", "may not write into"),
        ("~nobody-of-this-name/x", "an unknown user"),
    ):
        with pytest.raises(UserError, match=answer):
            target(text)


@pytest.mark.slow
def test_a_sweep_shows_its_plan_and_starts_all_or_nothing(
    open_page: Callable[..., Any], studio_folder: Path, home: Path
) -> None:
    app = open_page("runs", score="magnitude", limit="24", new="sweep")
    app.run()
    assert not app.exception
    next(m for m in app.multiselect if m.key == "sweep_algorithms").set_value(["one-importance"]).run()
    next(n for n in app.number_input if n.key == "sweep_samples").set_value(12).run()
    next(n for n in app.number_input if n.key == "sweep_step").set_value(50).run()
    next(s for s in app.selectbox if s.key == "sweep_length_filter").set_value("none").run()
    next(t for t in app.text_input if t.key == "sweep_seeds").set_value("0,1").run()
    assert button(app, "sweep_start").disabled
    press(app, "sweep_plan", new_box=True)
    assert not app.exception
    assert "4 runs, 4 scorings, no training" in said(app)
    press(app, "sweep_start", new_box=True)
    assert not app.exception
    (parent,) = [r for r in Registry().records() if r.kind == SWEEP]
    children = Registry().records(parent=parent.id)
    assert [(c.spec["score"], c.spec["seeds"]) for c in children] == [
        ("magnitude", [0]),
        ("magnitude", [1]),
        ("random", [0]),
        ("random", [1]),
    ]
    assert {c.owner for c in (parent, *children)} == {ME}


@pytest.mark.slow
def test_a_sweep_in_the_middle_has_curves_results_and_runs_to_open(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, runs: Runs
) -> None:
    parent, ids = put_sweep(runs, small_folder)
    ids.append(runs.put("queued", "prune", pruning(small_folder), parent=parent))
    app = open_page("runs", **small, run=parent)
    assert not app.exception
    assert "reaches the highest" in said(app)
    table = next(d for d in app.dataframe if "missing" in d.value.columns)
    assert set(table.value["score"]) == {"magnitude", "random"}
    random = table.value[(table.value["score"] == "random") & (table.value["metric"] == "accuracy")]
    assert set(random[random["heads removed"] > 0]["seeds"]) == {2}
    python, command = (str(c.value) for c in app.code[-2:])
    *lines, last = python.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    assert len(eval(last, names)) == len(table.value)
    assert command.startswith("headviz run sweep")
    assert "--score magnitude,random" in command
    assert "--seeds 0,1" in command
    app = tab(app, "Winning tickets", "sweep_tabs")
    assert "No winning tickets yet" in said(app)
    app = tab(app, "Its runs", "sweep_tabs")
    app.session_state["sweep_tabs"] = "Its runs"
    next(s for s in app.selectbox if s.key == "sweep_open").set_value(ids[0]).run()
    assert app.session_state["headviz"].view.run == ids[0]
    assert not app.exception


@pytest.mark.slow
def test_a_score_run_opens_on_heads_with_its_own_numbers(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, runs: Runs
) -> None:
    from headviz.ui.parts import scoring

    scoring._sizes.clear()  # other tests' tables of more examples
    run = runs.put("done", *kinds(small_folder)["score"])
    outcome = RunFiles(run).read_json(RunFiles(run).outcome)
    app = press(open_page("runs", run=run, **DEMO), "run_heads")
    assert not app.exception
    assert "Scores" in [t.value for t in app.title]
    view = app.session_state["headviz"].view
    assert (view.model, view.score, view.samples) == (str(small_folder / "model"), "fisher", 12)
    found = scoring.scores(view)
    assert found is not None
    np.testing.assert_array_equal(found.values, np.array(outcome["values"], float))
    assert button(app, "compute_fine-tuned_fisher") is None  # nothing is left to compute


@pytest.mark.slow
def test_an_ablation_run_opens_on_analyses_without_computing_it_again(
    open_page: Callable[..., Any],
    small: dict[str, str],
    small_folder: Path,
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runs.put("done", *kinds(small_folder)["ablation"])
    app = open_page("runs", **small, run=run, limit="12")
    table = next(d.value for d in app.dataframe if "cost [95 %]" in d.value.columns)
    monkeypatch.setattr("headviz.analyses.ablation.ablate", None)  # would fail
    app = press(app, "run_analyses")
    assert not app.exception
    assert "Analyses" in [t.value for t in app.title]
    assert not list(app.error), [e.value for e in app.error]
    shown = next(d.value for d in app.dataframe if "cost [95 %]" in d.value.columns)
    assert shown.equals(table)


@pytest.mark.slow
def test_a_fine_tuning_is_checked_started_and_opened(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "used_by_others", lambda: 60.0)
    app = open_page("data", limit="12", base=str(studio_folder / "model"))
    app.session_state["tune_box"] = True
    app.run()
    assert not app.exception
    base = str(studio_folder / "model")
    next(n for n in app.number_input if n.key == f"tune_{base}_batch").set_value(8).run()
    next(n for n in app.number_input if n.key == f"tune_{base}_epochs").set_value(1.0).run()
    assert button(app, "tune_start").disabled
    press(app, "tune_plan", tune_box=True)
    assert not app.exception
    assert "on this machine, which other programs use to 60 % now: 8 updates on 60 training examples" in said(app)
    press(app, "tune_start", tune_box=True)
    assert not app.exception
    (record,) = Registry().records()
    assert (record.kind, record.owner, record.spec["model"]) == ("finetune", ME, base)
    runs.claimed(record).end()
    app = open_page("data", limit="12", run=record.id)
    assert not app.exception
    button(app, "tune_use").click().run()
    assert not app.exception
    view = app.session_state["headviz"].view
    assert (view.model, view.base) == (str(RunFiles(record.id).results / "model"), base)


def test_survival_is_the_last_share_at_which_a_head_was_there() -> None:
    from headviz.ui.pages.runs.steps import survival

    full = HeadMask.full(1, 4)
    masks = ((0.25, full.without([(0, 0)])), (0.5, full.without([(0, 0), (0, 2)])))
    steps = [{"step": i, "sparsity": share, "mask": mask.hex} for i, (share, mask) in enumerate(masks, 1)]
    np.testing.assert_array_equal(survival(steps, 1, 4), [[0, 0.5, 0.25, 0.5]])


def test_a_sweep_over_tasks_puts_the_name_in_and_confines_the_folder(
    home: Path, studio_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headviz.errors import UserError
    from headviz.ui.pages.runs.run_form import expand

    monkeypatch.setenv("HEADVIZ_ROOTS", str(studio_folder))
    places = {"model": "org/bert-{task}", "data": str(studio_folder / "{task}")}
    made = expand({}, ["mrpc", "rte"], ["iterative"], ["taylor"], [0], places)
    assert [(p.model, Path(p.data or "").name) for p in made] == [("org/bert-mrpc", "mrpc"), ("org/bert-rte", "rte")]
    with pytest.raises(UserError, match="outside the allowed folders"):
        expand({}, ["mrpc", "rte"], ["iterative"], ["taylor"], [0], {**places, "data": "/etc/{task}"})
    with pytest.raises(OptionError, match="Name the models"):
        expand({}, ["mrpc", "rte"], ["iterative"], ["taylor"], [0], {"model": "", "data": ""})


def test_a_run_that_is_gone_is_said_and_the_newest_is_shown(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    runs.put("queued", "prune", pruning(studio_folder))
    app = open_page("runs", run="0badcafe")
    assert not app.exception
    assert "There is no run 0badcafe" in said(app)
    assert "a prune run" in said(app)

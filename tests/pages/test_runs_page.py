"""The Runs page in every state of a run, cold and by link; what its forms plan; what its sentences say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headviz.errors import Cancelled, OptionError
from headviz.heads import HeadMask
from headviz.runs import service
from headviz.runs.files import RunFiles
from headviz.runs.record import SWEEP
from headviz.runs.registry import Registry
from support import rehearsal
from support.marks import all_in_ci
from support.recorded_runs import ME, Runs, button, kinds, press, pruning, put_sweep, said, tab, tuning


def test_without_runs_the_form_is_open_and_the_page_says_what_to_do(open_page: Callable[..., Any], home) -> None:
    app = open_page("runs")
    assert not app.exception
    assert "No runs yet" in said(app)
    assert button(app, "new_plan") is not None
    assert button(app, "new_start").disabled


@pytest.mark.slow
@pytest.mark.parametrize("state", ["queued", "running", "cancelled", "failed", "lost", "done"])
@pytest.mark.parametrize("linked", all_in_ci([False, True], [True]), ids=["cold", "by link"])
def test_every_state_is_drawn(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, state: str, linked: bool
) -> None:
    pieces = {"queued": 0, "running": 4, "failed": 4, "cancelled": 2}.get(state)
    run = runs.put(state, "prune", pruning(studio_folder), pieces)
    app = open_page("runs", **({"run": run} if linked else {}))
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


def test_cancel_acts_and_others_may_only_look(open_page: Callable[..., Any], studio_folder: Path, runs: Runs) -> None:
    mine = runs.put("queued", "prune", pruning(studio_folder))
    theirs = runs.put("queued", "prune", pruning(studio_folder), owner="another")
    app = open_page("runs", run=theirs)
    assert button(app, "run_cancel").disabled
    app = open_page("runs", run=mine)
    button(app, "run_cancel").click().run()
    assert Registry().get(mine).state == "cancelled"
    assert button(app, "run_resume") is not None
    app = open_page("runs", run=mine)
    button(app, "run_resume").click().run()
    assert Registry().get(mine).state == "queued"


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


def test_an_archived_run_can_be_brought_back(open_page: Callable[..., Any], studio_folder: Path, runs: Runs) -> None:
    run = runs.put("cancelled", "prune", pruning(studio_folder), 1)
    service.archive(run, ME)
    app = open_page("runs", run=run)  # a link still leads there
    assert not app.exception
    button(app, "run_back").click().run()
    assert not Registry().get(run).archived


@pytest.mark.slow
def test_a_step_opens_in_the_mask_lab_with_the_run_s_own_model(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    run = runs.put("done", "prune", pruning(studio_folder))
    app = open_page("runs", run=run, step="1", model="demo", task="demo", data="", columns="", label="", groups="")
    mask = next(s["mask"] for s in Registry().steps(run) if s.get("step") == 1)
    button(app, "run_open").click().run()
    assert not app.exception
    assert "Mask lab" in [t.value for t in app.title]
    view = app.session_state["headviz"].view
    assert (view.model, view.task, view.mask) == (str(studio_folder / "model"), "custom", mask)


def retraining(studio_folder: Path, **changes: Any) -> dict[str, Any]:
    """Two steps of networks trained anew, for a few updates."""
    train = {"epochs": 1.0, "batch": 8, "learning_rate": 1e-3}
    return pruning(
        studio_folder,
        algorithm="one-shot-isp",
        base=str(studio_folder / "model"),
        finetune=train,
        train_limit=16,
        sparsities=[0.25, 0.5],
        **changes,
    )


@pytest.mark.slow
def test_a_retrained_run_names_its_baselines_and_opens_its_own_model(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.put("done", "prune", retraining(studio_folder))
    monkeypatch.setenv("HEADVIZ_ROOTS", f"{studio_folder}:{RunFiles(run).folder}")
    app = open_page("runs", run=run, step="1")
    assert not app.exception
    assert "the full θ0 retrained alike reaches" in said(app)
    table = next(d.value for d in app.dataframe if "model" in d.value.columns)
    assert list(table["model"]) == ["unpruned model", "full θ0, retrained alike", "pruned", "pruned"]
    assert {m.label.replace("\\", "") for m in app.metric} >= {"unpruned model", "full θ0, retrained alike"}
    # the first step's model was not kept: the lab shows θ* under its mask, and that is said
    assert button(app, "run_open_model") is None
    assert "θ*" in button(app, "run_open").label
    assert "This step's own model was not kept" in said(app)
    app = open_page("runs", run=run, step="2")
    folder = RunFiles(run).results / "models" / "seed0-step2"
    button(app, "run_open_model").click().run()
    assert not app.exception
    assert "Mask lab" in [t.value for t in app.title]
    view = app.session_state["headviz"].view
    assert (view.model, view.mask) == (str(folder), "")


@pytest.mark.slow
def test_tickets_stand_beside_a_test_with_a_margin_of_ones_own(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    app = open_page("runs", run=runs.put("done", "prune", retraining(studio_folder, seeds=[0, 1])))
    app = tab(app, "Winning tickets", "run_tabs")
    assert "With 2 seeds the thesis's criterion also passes 42 %" in said(app)
    next(n for n in app.number_input if n.key == "run_tickets_margin").set_value(50.0).run()
    assert not app.exception
    assert any("within 50 points" in d.value.columns for d in app.dataframe)
    next(n for n in app.number_input if n.key == "run_tickets_margin").set_value(0.0).run()
    assert any("Loss that would matter" in e.value for e in app.error)


@pytest.mark.slow
def test_runs_measured_on_other_examples_are_not_laid_over_each_other_in_silence(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    few, many = (runs.put("done", "prune", pruning(studio_folder, dev_limit=n)) for n in (12, 24))
    same = runs.put("done", "prune", pruning(studio_folder, dev_limit=24, score="random"))
    app = open_page("runs", run=f"{many},{few}")
    assert not app.exception
    assert "measured on different dev examples (n = 24, 12)" in said(app)
    assert "different dev examples" not in said(open_page("runs", run=f"{many},{same}"))


@pytest.mark.slow
def test_one_example_is_followed_through_the_steps(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    run = runs.put("done", "prune", pruning(studio_folder))
    gone = HeadMask.from_hex(next(s["mask"] for s in Registry().steps(run) if s.get("step") == 1), 12, 12).off[0]
    app = tab(open_page("runs", run=run, head=gone.dotted), "One example")
    assert not app.exception
    press(app, "run_load", run_tabs="One example")
    assert not app.exception
    assert f"{gone} is removed at 25 %" in said(app)
    assert not list(app.error), [e.value for e in app.error]


@pytest.mark.slow
def test_the_open_tab_is_part_of_the_address(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, home: Path
) -> None:
    run = runs.put("done", "prune", pruning(studio_folder))
    app = open_page("runs", run=run, tab="Save the model")
    assert not app.exception
    assert any(t.label == "A new folder" for t in app.text_input)
    assert dict(app.query_params)["tab"] in ("Save the model", ["Save the model"])
    app = tab(app, "One example")
    assert dict(app.query_params)["tab"] in ("One example", ["One example"])
    app = open_page("runs", run=run, tab="no such tab")
    assert not app.exception
    assert "tab" not in dict(app.query_params)


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


def test_a_run_is_planned_before_it_can_be_started(
    open_page: Callable[..., Any], studio_folder: Path, home: Path
) -> None:
    app = open_page("runs", score="magnitude", limit="24")
    next(n for n in app.number_input if n.key == "new_samples").set_value(12).run()
    next(s for s in app.selectbox if str(s.key).endswith("_filter")).set_value("none").run()
    press(app, "new_plan", new_box=True)
    assert not app.exception
    assert "9 steps, 1 scoring, no training, 10 evaluations" in said(app)
    press(app, "new_start", new_box=True)
    assert not app.exception
    (record,) = Registry().records()
    assert (record.kind, record.owner, record.spec["score"], record.state) == ("prune", ME, "magnitude", "queued")
    assert record.id in str(app.session_state["headviz"].view.run)


@pytest.mark.parametrize(
    ("key", "value", "answer"),
    [
        ("new_seeds", "0,x", "“Seeds” is a whole number"),
        ("new_seeds", "", "at least one seed"),
        ("new_seeds", "1,1", "Each seed may be given once"),
    ],
)
def test_a_form_that_makes_no_sense_says_so(
    open_page: Callable[..., Any], home: Path, key: str, value: str, answer: str
) -> None:
    app = open_page("runs")
    next(t for t in app.text_input if t.key == key).set_value(value).run()
    assert not app.exception
    assert answer in said(app)
    assert button(app, "new_start") is None


@pytest.mark.slow
def test_a_sweep_shows_its_plan_and_starts_all_or_nothing(
    open_page: Callable[..., Any], studio_folder: Path, home: Path
) -> None:
    app = open_page("runs", score="magnitude", limit="24")
    app.session_state["new_what"] = "A sweep"
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
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    parent, ids = put_sweep(runs, studio_folder)
    ids.append(runs.put("queued", "prune", pruning(studio_folder), parent=parent))
    app = open_page("runs", run=parent)
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


def test_other_kinds_are_shown_too(open_page: Callable[..., Any], studio_folder: Path, runs: Runs) -> None:
    rehearsal.load()
    app = open_page("runs", run=runs.put("done", "rehearsal", {"steps": 2}))
    assert not app.exception
    assert "a rehearsal run" in said(app)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["score", "ablation"])
@pytest.mark.parametrize("state", all_in_ci(["queued", "running", "failed", "done"], ["running", "done"]))
def test_a_table_of_heads_in_every_state(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, name: str, state: str
) -> None:
    pieces = {"queued": 0, "running": 3 if name == "ablation" else 1, "failed": 2}.get(state)
    run = runs.put(state, *kinds(studio_folder)[name], pieces)
    app = open_page("runs", run=run)
    assert not app.exception
    assert not [e for e in app.error if "failed here" in str(e.value)]
    assert (button(app, {"score": "run_heads", "ablation": "run_analyses"}[name]) is not None) == (state == "done")


def test_a_score_run_opens_on_heads_with_its_own_numbers(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    from headviz.ui.parts import scoring

    scoring._sizes.clear()  # other tests' tables of more examples
    run = runs.put("done", *kinds(studio_folder)["score"])
    outcome = RunFiles(run).read_json(RunFiles(run).outcome)
    app = press(open_page("runs", run=run, model="demo", task="demo", data="", columns="", label=""), "run_heads")
    assert not app.exception
    assert "Heads" in [t.value for t in app.title]
    view = app.session_state["headviz"].view
    assert (view.model, view.score, view.samples) == (str(studio_folder / "model"), "fisher", 12)
    found = scoring.scores(view)
    assert found is not None
    np.testing.assert_array_equal(found.values, np.array(outcome["values"], float))
    assert button(app, "compute_fine-tuned_fisher") is None  # nothing is left to compute


@pytest.mark.parametrize(
    "more",
    [
        {"off": "0.1"},
        {"split": "dev"},
        {"limit": 20},
        {"options": {"abs_level": "token"}},
        {"length_filter": "none"},
        {"score": "thesis-2024"},
        {"score": "random", "seed": 3},
    ],
    ids=lambda m: next(iter(m)),
)
def test_a_table_that_heads_would_not_compute_stays_where_it_is(more: dict[str, Any]) -> None:
    from headviz.ui.pages.runs.detail import asked_on_heads

    assert asked_on_heads({"model": "m", "task": "t", "score": "taylor", "samples": 9, "seed": 2})
    assert not asked_on_heads({"model": "m", "task": "t", "score": "taylor", **more})


def test_an_ablation_run_opens_on_analyses_without_computing_it_again(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.put("done", *kinds(studio_folder)["ablation"])
    app = open_page("runs", run=run, limit="12")
    table = next(d.value for d in app.dataframe if "cost [95 %]" in d.value.columns)
    monkeypatch.setattr("headviz.analyses.ablation.ablate", None)  # would fail
    app = press(app, "run_analyses")
    assert not app.exception
    assert "Analyses" in [t.value for t in app.title]
    assert not list(app.error), [e.value for e in app.error]
    shown = next(d.value for d in app.dataframe if "cost [95 %]" in d.value.columns)
    assert shown.equals(table)


@pytest.mark.parametrize(("state", "pieces"), [("lost", 2), ("done", None)])
def test_an_ablation_whose_metric_is_undefined_is_drawn_without_costs(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, state: str, pieces: int | None
) -> None:
    kind, spec = kinds(studio_folder)["ablation"]
    run = runs.put(state, kind, {**spec, "metric": "matthews", "limit": 1}, pieces)
    app = open_page("runs", run=run)
    assert not app.exception
    assert not list(app.error), [e.value for e in app.error]
    assert ("for the heads measured so far" in said(app)) is (state == "lost")


# ---- fine-tuning


@pytest.mark.slow
def test_a_fine_tuning_is_checked_started_and_opened(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
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
    assert "8 updates on 60 training examples" in said(app)
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


@pytest.mark.slow
@pytest.mark.parametrize("state", all_in_ci(["queued", "running", "failed", "cancelled", "done"], ["running", "done"]))
@pytest.mark.parametrize("page", all_in_ci(["runs", "data"], ["runs"]))
def test_a_fine_tuning_in_every_state(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs, state: str, page: str
) -> None:
    run = runs.put(state, "finetune", tuning(studio_folder), None if state == "done" else 0)
    app = open_page(page, run=run, limit="12")
    assert not app.exception
    assert not [e for e in app.error if "failed here" in str(e.value)]
    assert (button(app, "tune_use") is not None) == (state == "done")
    if page == "runs" and state == "done":
        assert "6 updates, 2 epochs" in said(app)


@pytest.mark.parametrize(
    ("base", "answer"), [("", "Name the model to train"), ("/nowhere", "outside the allowed folders")]
)
def test_a_base_that_cannot_be_trained_is_said_beside_the_field(
    open_page: Callable[..., Any], home: Path, base: str, answer: str
) -> None:
    app = open_page("data", limit="12", base=base)
    app.session_state["tune_box"] = True
    app.run()
    assert not app.exception
    assert answer in said(app)
    assert button(app, "tune_start") is None


# ---- sentences and small decisions


def step(share: float, value: float, delta: float, low: float, high: float, mask: str = "f") -> dict[str, Any]:
    change = {"delta": delta, "low": low, "high": high, "p": 0.5}
    return {
        "step": round(share * 4),
        "sparsity": share,
        "mask": mask,
        "metrics": {"accuracy": value},
        "against": "given",
        "change": {"accuracy": change},
    }


def test_survival_is_the_last_share_at_which_a_head_was_there() -> None:
    from headviz.ui.pages.runs.steps import survival

    full = HeadMask.full(1, 4)
    steps = [
        step(0.25, 0, 0, 0, 0, full.without([(0, 0)]).hex),
        step(0.5, 0, 0, 0, 0, full.without([(0, 0), (0, 2)]).hex),
    ]
    np.testing.assert_array_equal(survival(steps, 1, 4), [[0, 0.5, 0.25, 0.5]])


def test_a_stopped_check_of_a_sweep_is_cancelled(home: Path, studio_folder: Path) -> None:
    from headviz.pruning.plan import PruningPlan
    from headviz.ui.pages.runs.sweep_form import _prepare

    plan = PruningPlan.from_dict(pruning(studio_folder))
    with pytest.raises(Cancelled):
        _prepare([plan], lambda *_: None, lambda: True)


def test_a_sweep_over_tasks_puts_the_name_in_and_confines_the_folder(
    home: Path, studio_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headviz.errors import UserError
    from headviz.ui.pages.runs.sweep_form import expand

    monkeypatch.setenv("HEADVIZ_ROOTS", str(studio_folder))
    places = {"model": "org/bert-{task}", "data": str(studio_folder / "{task}")}
    made = expand({}, ["mrpc", "rte"], ["iterative"], ["taylor"], [0], places)
    assert [(p.model, Path(p.data or "").name) for p in made] == [("org/bert-mrpc", "mrpc"), ("org/bert-rte", "rte")]
    with pytest.raises(UserError, match="outside the allowed folders"):
        expand({}, ["mrpc", "rte"], ["iterative"], ["taylor"], [0], {**places, "data": "/etc/{task}"})
    with pytest.raises(OptionError, match="Name the models"):
        expand({}, ["mrpc", "rte"], ["iterative"], ["taylor"], [0], {"model": "", "data": ""})


def test_the_sentence_of_a_sweep_says_what_its_intervals_do_not_tell_apart() -> None:
    from types import SimpleNamespace as Some

    from headviz.runs.reading import results
    from headviz.ui.pages.runs.detail import finding

    def run(score: str, seed: int, delta: float, half: float | None) -> Some:
        ends = {"low": delta - half, "high": delta + half} if half is not None else {"low": None, "high": None}
        step = {"sparsity": 0.5, "metrics": {"accuracy": 0.9 + delta}, "change": {"accuracy": {"delta": delta, **ends}}}
        spec = {"task": "demo", "algorithm": "isp", "score": score, "seeds": [seed]}
        return Some(record=Some(spec=spec, kind="prune"), steps=[{**step, "role": "pruned"}], baseline=[])

    def said(half: float | None) -> str:
        runs = [run("taylor", 0, -0.01, half), run("gates", 0, -0.02, half), run("random", 0, -0.3, half)]
        runs.append(run("gates", 1, -0.03, half))  # the seed that reaches farthest decides
        return finding(results(runs), runs)

    assert said(0.011).endswith("Not told apart from the highest: isp by gates.")
    assert "Not told apart" not in said(0.002)
    assert "Not told apart" not in said(None)
    assert "isp by gates, isp by random." in said(0.2)


def test_a_run_that_is_gone_is_said_and_the_newest_is_shown(
    open_page: Callable[..., Any], studio_folder: Path, runs: Runs
) -> None:
    runs.put("queued", "prune", pruning(studio_folder))
    app = open_page("runs", run="0badcafe")
    assert not app.exception
    assert "There is no run 0badcafe" in said(app)
    assert "a prune run" in said(app)


def test_an_upload_has_nothing_to_train_on(open_page: Callable[..., Any], home: Path) -> None:
    from headviz.ui.shell import uploads

    table = "premise,hypothesis,label,phenomenon\n" + "the dog,a cat,neutral,number\nthe cat,a dog,entailment,number\n"
    place = uploads.keep_upload(table.encode(), "csv")
    app = open_page("data", data=place)
    app.session_state["tune_box"] = True
    app.run()
    assert not app.exception
    assert "An upload has no training split" in said(app)
    assert button(app, "tune_plan") is None


def test_runs_of_one_title_are_told_apart() -> None:
    from types import SimpleNamespace

    from headviz.ui.pages.runs.listing import labels

    made = [
        SimpleNamespace(state="done", record=SimpleNamespace(id=i, title=t))
        for i, t in (("a1", "twice"), ("b2", "twice"), ("c3", "once"))
    ]
    assert labels(made) == {"a1": "✓ twice · a1", "b2": "✓ twice · b2", "c3": "✓ once"}  # type: ignore[arg-type]

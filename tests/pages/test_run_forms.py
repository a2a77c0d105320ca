"""The forms of the Runs page: what the tables declare can be chosen, and what is chosen reaches the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.runs.registry import Registry
from support.recorded_runs import ME, button, press, said


@pytest.fixture
def plain_form(open_page: Callable[..., Any], home: Path) -> Callable[..., Any]:
    """The form of one run on few examples of any length."""

    def opened(**more: str) -> Any:
        app = open_page("runs", limit="24", **more)
        field(app.number_input, "new_samples").set_value(12)
        field(app.selectbox, "_filter").set_value("none")
        return app.run()

    return opened


def field(elements: Any, ending: str) -> Any:
    """The one field whose key ends like this."""
    (found,) = [e for e in elements if str(e.key).endswith(ending)]
    return found


def spec_of(app: Any) -> dict[str, Any]:
    """Plan, start, and read the run that was written down."""
    press(app, "new_plan", new_box=True)
    assert not app.exception
    assert not list(app.error), [e.value for e in app.error]
    press(app, "new_start", new_box=True)
    (record,) = Registry().records()
    return record.spec


@pytest.mark.slow
def test_every_option_that_a_score_declares_has_a_field(plain_form: Callable[..., Any]) -> None:
    from dataclasses import fields

    from headviz.scores.catalogue import SCORES

    app = plain_form()
    for name, score in SCORES.items():
        app = field(app.selectbox, "new_score_None").set_value(name).run()
        assert not app.exception
        drawn = {str(e.key) for kind in (app.selectbox, app.number_input, app.toggle, app.text_input) for e in kind}
        wanted = {f"new_option_{name}_{f.name}" for f in fields(score.options) if f.name != "seed"}
        assert wanted <= drawn
        assert not [k for k in drawn - wanted if k.startswith("new_option_")]


@pytest.mark.slow
def test_a_published_choice_sets_its_options(plain_form: Callable[..., Any]) -> None:
    from headviz.scores import PRESETS

    app = plain_form(beside="conductance-spearman")
    choice = next(e for e in app.selectbox if e.key == "preset_new_option_conductance-spearman")
    app = choice.set_value("thesis-2024").run()
    assert spec_of(app)["score_options"] == dict(PRESETS["thesis-2024"].options)


def test_a_run_left_as_it_is_has_the_plan_of_the_command_line(
    plain_form: Callable[..., Any], studio_folder: Path
) -> None:
    from headviz.pruning.plan import PruningPlan

    app = plain_form(score="magnitude")
    press(app, "new_plan", new_box=True)
    assert "9 steps, 1 scoring, no training, 10 evaluations" in said(app)
    press(app, "new_start", new_box=True)
    assert not app.exception
    (record,) = Registry().records()
    assert (record.kind, record.owner, record.state) == ("prune", ME, "queued")
    assert record.id in str(app.session_state["headviz"].view.run)
    plan = PruningPlan(
        model=str(studio_folder / "model"),
        task="custom",
        algorithm="one-importance",
        score="magnitude",
        data=str(studio_folder / "data"),
        text_columns=("premise", "hypothesis"),
        label_column="label",
        dev_limit=24,
        samples=12,
        length_filter="none",
    )
    assert {k: v for k, v in record.spec.items() if k != "digests"} == plan.to_dict()


@pytest.mark.slow
def test_retraining_is_told_how_to_train(plain_form: Callable[..., Any], studio_folder: Path) -> None:
    app = plain_form(score="magnitude", base=str(studio_folder / "model"))
    field(app.selectbox, "new_algorithm").set_value("one-shot-isp").run()
    field(app.selectbox, "_filter").set_value("none")
    field(app.text_input, "_rate").set_value("fast").run()
    assert "“Learning rate” is a number" in said(app)
    field(app.text_input, "_rate").set_value("1e-3")
    field(app.number_input, "_epochs").set_value(1.0)
    field(app.number_input, "_train_" + str(studio_folder / "model") + "_limit").set_value(30)
    field(app.text_input, "_sparsities").set_value("30, 70 %")
    spec = spec_of(app.run())
    assert (spec["finetune"]["epochs"], spec["finetune"]["learning_rate"], spec["train_limit"]) == (1.0, 1e-3, 30)
    assert spec["sparsities"] == [0.3, 0.7]
    assert spec["base"] == str(studio_folder / "model")


@pytest.mark.slow
def test_a_translation_model_is_pruned_stack_by_stack(
    plain_form: Callable[..., Any], translator: dict[str, str]
) -> None:
    app = plain_form(**translator, score="magnitude")
    assert not app.exception
    assert "conductance-spearman" not in field(app.selectbox, "new_score_None").options
    stack = field(app.selectbox, "_stack")
    assert stack.options == ["all stacks", "encoder", "cross", "decoder"]
    stack.set_value("cross")
    spec = spec_of(app.run())
    assert (spec["stack"], spec["task"]) == ("cross", "custom-translation")


@pytest.mark.slow
def test_a_number_out_of_range_is_refused_and_nothing_can_be_planned_or_started_with_another(
    plain_form: Callable[..., Any],
) -> None:
    app = plain_form(score="magnitude")
    press(app, "new_plan", new_box=True)
    assert not button(app, "new_start").disabled
    app.session_state["new_box"] = True
    field(app.number_input, "new_step").set_value(200).run()
    assert not app.exception
    assert "“Each step removes, % of heads” is 200" in said(app)
    assert button(app, "new_plan") is None
    assert button(app, "new_start") is None
    assert Registry().records() == []

"""The Distil page: what the grid and the lists come to, what a run's steps come to, and the page itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headviz.errors import UserError
from headviz.extras.distillation.job import make
from headviz.extras.distillation.pages import results
from support.page import texts

PLAN = {"model": "m", "task": "custom", "remove": "layers:1", "inits": ["random", "copy"], "seeds": [0, 1]}


def student(init: str, seed: int, ends: float) -> dict[str, Any]:
    curve = [
        {"step": s, "metrics": {"accuracy": v}, "loss": None, "kl": None, "seconds": float(s)}
        for s, v in ((0, 0.3), (4, ends))
    ]
    return {
        "init": init,
        "seed": seed,
        "curve": curve,
        "metrics": curve[-1]["metrics"],
        "parameters": 80,
        "digest": "",
        "seconds": 4.0,
        "wall_seconds": 5.0,
        "model": f"students/{init}-s{seed}",
    }


def view_of(*pieces: tuple[str, int, float]) -> Any:
    """A run as pages see it, with these students done."""
    teacher = {"metrics": {"accuracy": 0.9}, "parameters": 100, "notes": [], "digest": "", "data": ""}
    job = make(PLAN)
    state = job.absorb(job.begin(), "teacher", json.dumps(teacher).encode())
    for init, seed, ends in pieces:
        state = job.absorb(state, f"{init}-s{seed}", json.dumps(student(init, seed, ends)).encode())
    steps = job.steps(state)
    return SimpleNamespace(
        record=SimpleNamespace(spec=PLAN, kind="distill"),
        baseline=[steps[0]],
        steps=[steps[i] for i in sorted(steps) if i],
    )


def test_a_runs_steps_become_curves_with_intervals() -> None:
    found = results.outcome_of(view_of(("random", 0, 0.5), ("copy", 0, 0.8), ("random", 1, 0.6), ("copy", 1, 0.82)))
    assert [s["init"] for s in found["students"]] == ["random", "copy"]
    assert found["students"][0]["metrics"]["accuracy"] == pytest.approx(0.55)
    assert found["students"][1]["curve"][-1]["interval_low"]["accuracy"] < 0.8
    assert "not clear whether a start from the teacher helps" in results.finding(found, "accuracy")
    close = results.outcome_of(view_of(("random", 0, 0.5), ("copy", 0, 0.8), ("random", 1, 0.501), ("copy", 1, 0.801)))
    assert "a start from the teacher helps" in results.finding(close, "accuracy")
    fig = results.learning_curves(found["students"], 0.9, "accuracy")
    assert [t.name for t in fig.data if t.name] == ["random weights", "copied weights", "teacher"]
    assert sum(t.fill == "toself" for t in fig.data) == 2


def test_what_to_remove_is_in_the_address(open_page: Callable[..., Any], tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    app = open_page("runs", new="distill", layers="3,5,99", ffn="7")
    assert not app.exception
    assert "'99' does not exist here" in texts(app)
    assert "Removes layers 3, 5 and ffn 7;" in texts(app)
    next(m for m in app.button_group if m.key == "w_layers").set_value(["5", "1"]).run()
    assert not app.exception
    assert (app.query_params["layers"], app.query_params["ffn"]) in ((["5,1"], ["7"]), ("5,1", "7"))


def test_heads_of_a_translation_model_are_named_by_their_stack(monkeypatch) -> None:
    from headviz.extras.distillation.pages import distil
    from headviz.heads import HeadMask
    from headviz.ui.shell.loaders import Shape

    present = HeadMask.full(9, 8)
    shape = Shape(present, (), (("encoder", 3), ("cross", 3), ("decoder", 3)), "sentence")
    mask = present.without([(0, 1), (4, 3), (5, 0), (7, 2), (8, 7)])
    monkeypatch.setattr(distil.state, "mask", lambda given: mask)
    assert distil.removal(shape, [], []).text == "heads:cross.1.3,cross.2.0,decoder.1.2,decoder.2.7,encoder.0.1"
    # what goes with a layer is not said twice
    what = distil.removal(shape, [("decoder", 2)], [("decoder", 2), ("encoder", 0)])
    assert what.text == "heads:cross.1.3,decoder.1.2,encoder.0.1+layers:decoder.2+ffn:0"
    monkeypatch.setattr(distil.state, "mask", lambda given: present)
    with pytest.raises(UserError, match="Choose what to remove"):
        distil.removal(shape, [], [])


def recurrent(tmp_path, **sizes: Any) -> str:
    from headviz.extras.translation.recurrent import RnnTranslator

    made = RnnTranslator.new(["a dog"], ["kan mil"], embedding=4, hidden=5, units=3, **sizes)
    return str(made.save(tmp_path / "rnn"))


def test_a_recurrent_translator_loses_its_attention(open_page, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    app = open_page("runs", new="distill", model=recurrent(tmp_path), task="demo-translation")
    assert not app.exception
    assert not app.error
    assert next(b for b in app.button if b.key == "distil_plan")
    assert "Removes attention; trains 6 students" in texts(app)
    assert not [b for b in app.button_group if b.key == "w_layers"]


@pytest.mark.parametrize("page", ["scores", "runs", "data"])
def test_other_pages_say_what_a_recurrent_translator_lacks(open_page, tmp_path, monkeypatch, page) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    app = open_page(page, model=recurrent(tmp_path), task="demo-translation", label="")
    assert not app.exception
    assert len(app.error) == 1
    assert "no attention heads to look into" in texts(app)

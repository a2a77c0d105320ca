"""The board of scores on the Scores page: one click on a user's own model, and what its result decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.analyses import grading
from headviz.ui.shell import view as addresses
from headviz.ui.shell.view import COST, View, by_grade, remember_grades
from support import studio
from support.graded import graded_as
from support.page import texts

USUAL = ("taylor", "magnitude", "ablation", "random")  # what the small model is graded on


@pytest.mark.slow
def test_one_click_on_heads_grades_all_scores_and_the_result_orders_the_choice(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "SEEDS", 3)
    monkeypatch.setattr(grading, "SCORES", {name: grading.SCORES[name] for name in USUAL})
    monkeypatch.setattr(addresses, "_grades", {})
    known = studio.answered(small_folder / "model", small_folder / "data")  # the model answers all of it right
    own = {**small, "data": str(known), "limit": "45", "samples": "12"}
    app = open_page("scores", **own, side="board", score="taylor")
    app.button(key="compute_fine-tuned_taylor").click().run()
    assert "It has not been measured on this model" in texts(app)
    app.button(key="grade_here").click().run()
    assert not app.exception
    (found,) = addresses._grades.values()
    assert {g.score for g in found} == set(USUAL)
    assert "Measured here on" in texts(app)
    assert not [b for b in app.button if b.key == "grade_here"]
    app.run()
    choice = next(s for s in app.selectbox if s.label == "Score")
    assert list(choice.options)[: len(USUAL)] == [g.score for g in found]
    view = app.session_state["headviz"].view
    other = View(**{**view.__dict__, "score": View().score})
    assert other.order == (COST if found.best in found.not_better else found.best)


def test_a_best_that_is_no_better_than_chance_orders_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_grades", {})
    view = View(model="another")
    assert view.order == COST
    remember_grades(view.source, graded_as(taylor=0.8, fisher=0.7))
    assert view.order == "taylor"
    assert by_grade(view.source, ["gates", "fisher", "taylor"]) == ["taylor", "fisher", "gates"]
    assert View(model="a third").order == COST
    remember_grades(view.source, graded_as(taylor=0.5))
    assert view.order == COST
    assert View().order != COST  # the demo's, as recorded

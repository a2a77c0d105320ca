"""What the Analyses page gives an analysis to work with is said by the analysis, whoever brought it."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("streamlit")

from headviz.analyses.catalogue import ANALYSES
from headviz.heads import HeadMask
from headviz.models.stand_in import StandIn
from headviz.ui.pages import analyses
from headviz.ui.parts import scoring
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View, grades_of, remember_grades
from support.graded import graded_as


@pytest.mark.parametrize(("over_draws", "draws"), [(True, 5), (False, 1)])
def test_an_analysis_says_itself_whether_it_takes_several_draws(monkeypatch: Any, over_draws: bool, draws: int) -> None:
    seen: list[StandIn] = []
    monkeypatch.setattr(loaders, "evaluator", lambda clf, data, choice, **_: seen.append(choice.stand_in))
    mine: Any = replace(ANALYSES["redundant"], name="mine", over_draws=over_draws)
    drawn = StandIn("resample", draws=5)
    clf: Any = object()
    analyses.FromPage(mine, clf, clf, View(), HeadMask.full(2, 2), {}, [], drawn).on(clf)
    assert [one.draws for one in seen] == [draws]


def test_a_job_prunes_by_the_order_that_its_page_has_chosen(monkeypatch: Any) -> None:
    """The grades that choose it are one user's, and a thread does not know whose."""
    who = ["ann"]
    monkeypatch.setattr(scoring, "all_known", lambda view, present: {})
    monkeypatch.setattr(loaders, "shape", lambda view: SimpleNamespace(scores=["taylor"]))
    monkeypatch.setattr(analyses.measure, "stand_in", StandIn)
    monkeypatch.setattr(analyses.state, "mask", lambda present: present)
    grades_of(lambda: who[0])
    clf: Any = SimpleNamespace(present=HeadMask.full(2, 2), max_length=9)
    view = View(model="m", task="custom")
    try:
        remember_grades(view.source, graded_as(taylor=0.9, random=0.1))
        assert scoring.removing(view) == "taylor"
        request = analyses._request(ANALYSES["pruning-curves"], clf, clf, view)
        who[0] = "the machine's user"
        assert scoring.removing(view) != "taylor"
        assert request.option("scores").split(",")[0] == "taylor"
    finally:
        grades_of(str)


@pytest.mark.parametrize("select", ["other", "same"])
@pytest.mark.parametrize("name", [name for name, analysis in ANALYSES.items() if analysis.recipe is not None])
def test_a_recipe_uses_the_names_that_its_options_say(name: str, select: str) -> None:
    """The page defines them before the recipe."""
    analysis = ANALYSES[name]
    options = {option.name: option.default for option in analysis.options}
    options |= {"select": select} if analysis.asks("select") else {}
    code = ast.parse(analysis.recipe(options))
    used = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
    assert used & {"evaluator", "some", "other", "checkpoints"} == analysis.recipe_names(options)

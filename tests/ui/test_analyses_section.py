"""What the Analyses page gives an analysis to work with is said by the analysis, whoever brought it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("streamlit")

from headviz.analyses.analysis import Grid
from headviz.analyses.catalogue import ANALYSES
from headviz.heads import HeadMask
from headviz.models.stand_in import StandIn
from headviz.ui.pages.analyses import drawing, section
from headviz.ui.parts import abilities
from headviz.ui.shell import loaders, show, state
from headviz.ui.shell.view import View


@pytest.mark.parametrize(("over_draws", "draws"), [(True, 5), (False, 1)])
def test_an_analysis_says_itself_whether_it_takes_several_draws(monkeypatch: Any, over_draws: bool, draws: int) -> None:
    seen: list[StandIn] = []
    monkeypatch.setattr(loaders, "evaluator", lambda clf, data, place, **_: seen.append(place[0]))
    mine: Any = replace(ANALYSES["redundant"], name="mine", over_draws=over_draws)
    drawn = StandIn("resample", draws=5)
    clf: Any = object()
    section.FromPage(mine, clf, clf, View(), HeadMask.full(2, 2), {}, drawn).on(clf)
    assert [one.draws for one in seen] == [draws]


def test_whose_results_other_pages_show_and_whose_take_draws() -> None:
    assert {a.name for a in ANALYSES.values() if a.over_draws} == {"ablation"}
    told = {a.name: section.REMEMBER[a.tells] for a in ANALYSES.values() if a.tells}
    assert set(told) == {"by-slice", "roles", "grade"}
    assert (told["by-slice"], told["roles"]) == (abilities.remember, abilities.remember_roles)


@pytest.mark.parametrize("losses", [True, False])
def test_a_grid_says_itself_whether_it_shows_losses(monkeypatch: Any, losses: bool) -> None:
    looks: list[Any] = []
    monkeypatch.setattr(show, "head_grid", lambda *_, look, **__: looks.append(look))
    monkeypatch.setattr(show, "note", lambda *_, **__: None)
    monkeypatch.setattr(state, "view", View)
    drawing._grid(Grid("a_grid", HeadMask.full(2, 2), np.eye(2), "cost-like score", "", losses=losses), ())
    assert [(look.scale is not None, look.blank_zeros) for look in looks] == [(losses, losses)]

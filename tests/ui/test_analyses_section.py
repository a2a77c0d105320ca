"""What the Analyses page gives an analysis to work with is said by the analysis, whoever brought it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("streamlit")

from headviz.analyses.catalogue import ANALYSES
from headviz.heads import HeadMask
from headviz.models.stand_in import StandIn
from headviz.ui.pages import analyses
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View


@pytest.mark.parametrize(("over_draws", "draws"), [(True, 5), (False, 1)])
def test_an_analysis_says_itself_whether_it_takes_several_draws(monkeypatch: Any, over_draws: bool, draws: int) -> None:
    seen: list[StandIn] = []
    monkeypatch.setattr(loaders, "evaluator", lambda clf, data, place, **_: seen.append(place[0]))
    mine: Any = replace(ANALYSES["redundant"], name="mine", over_draws=over_draws)
    drawn = StandIn("resample", draws=5)
    clf: Any = object()
    analyses.FromPage(mine, clf, clf, View(), HeadMask.full(2, 2), {}, drawn).on(clf)
    assert [one.draws for one in seen] == [draws]

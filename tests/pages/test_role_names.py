"""What heads look at, once measured, stands in the tooltips of every grid; and a mask with means by place is a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.ui.parts import abilities
from support.page import texts


@pytest.mark.slow
def test_roles_are_named_on_the_grid_once_they_are_measured(
    open_page: Callable[..., Any], drawn: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abilities, "_looks", {})
    few = {"limit": "12", "samples": "4"}
    assert not open_page("scores", **few).exception
    assert all("looks at" not in one["tips"] for one in drawn.values())
    app = open_page("analyses", analysis="roles", **few)
    app.button(key="run_roles").click().run()
    assert not app.exception
    (named,) = abilities._looks.values()
    drawn.clear()
    assert not open_page("scores", **few).exception
    told = next(iter(drawn.values()))["tips"]["looks at"]
    assert {h: told[h.layer][h.head] for h in named} == named
    assert sum(cell != "–" for row in told for cell in row) == len(named)


@pytest.mark.slow
def test_pages_say_what_stands_in_a_heads_place(open_page: Callable[..., Any]) -> None:
    given = {"off": "0.1,2.3", "limit": "12", "a": "a dog sleeps", "b": "a cat runs"}
    mean = texts(open_page("compare", **given, ablation="mean:8"))
    assert "2 of 144 off (mean of 8 training examples in their place)" in mean
    assert "headviz.standing_in(clf, 'mean', reference)" in mean
    assert "--ablation mean --reference 8" in mean
    assert "zero in their place here" in texts(open_page("compare", **given, ablation="resample:8"))

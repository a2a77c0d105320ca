"""What heads look at, once measured, stands in the tooltips of every grid; and a mask with means by place is a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.ui.pages import scores
from headviz.ui.parts import abilities


@pytest.mark.slow
def test_roles_are_named_on_the_grid_once_they_are_measured(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abilities, "_looks", {})
    drawn: list[dict[str, Any]] = []
    real = scores.show.head_grid

    def noted(key: str, present: Any, values: Any, **more: Any) -> None:
        drawn.append(more)
        real(key, present, values, **more)

    monkeypatch.setattr(scores.show, "head_grid", noted)
    small = {"limit": "12", "samples": "4"}
    assert not open_page("scores", **small).exception
    assert all("looks at" not in one["tips"] for one in drawn)
    app = open_page("analyses", analysis="roles", **small)
    next(b for b in app.button if b.key == "run_roles").click().run()
    assert not app.exception
    (named,) = abilities._looks.values()
    drawn.clear()
    assert not open_page("scores", **small).exception
    told = drawn[-1]["tips"]["looks at"]
    assert {h: told[h.layer][h.head] for h in named} == named
    assert sum(cell != "–" for row in told for cell in row) == len(named)


@pytest.mark.slow
def test_pages_say_what_stands_in_a_heads_place(open_page: Callable[..., Any]) -> None:
    given = {"off": "0.1,2.3", "limit": "12"}

    def head_of(page: str, ablation: str) -> list[str]:
        app = open_page(page, **given, ablation=ablation, a="a dog sleeps", b="a cat runs")
        assert not app.exception
        return [one.proto.body for one in app.get("html")] + [c.value for c in app.code]

    mean = head_of("compare", "mean:8")
    assert any("2 of 144 off (mean of 8 training examples in their place)" in c for c in mean), mean
    assert any("headviz.standing_in(clf, 'mean', reference)" in c for c in mean), mean
    assert any("--ablation mean --reference 8" in c for c in mean)
    drawn = head_of("compare", "resample:8")
    assert any("zero in their place here: resample has another vector for every text" in c for c in drawn), drawn

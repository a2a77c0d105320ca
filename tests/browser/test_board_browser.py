"""In a real browser: the board of scores, recorded and made by one click; and the form of a faster model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]


def figures(v: Any, count: int) -> None:
    v.page.wait_for_function(f"document.querySelectorAll('.js-plotly-plot .main-svg').length >= {count}")
    v.settle()


def test_the_recorded_board_has_areas_curves_and_costs(visit: Open) -> None:
    v = visit(viewport={"width": 390, "height": 800})
    v.go("", model="demo", task="demo", side="board")
    v.page.get_by_text("On this model use attattr-max").first.wait_for()
    figures(v, 3)
    for title in ("area: share that is kept", "heads removed, %", "CPU seconds per example"):
        assert v.page.locator(".js-plotly-plot").get_by_text(title, exact=True).count() == 1
    assert v.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

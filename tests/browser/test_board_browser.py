"""In a real browser: the board of scores, recorded and made by one click; and the form of a faster model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import studio

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
LONG = 400_000  # milliseconds that all scores of a small model may take on a busy machine


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


def test_one_click_grades_a_model_of_ones_own(visit: Open, query: dict[str, str], studio_folder: Path) -> None:
    small = studio_folder / "graded"
    if not small.exists():  # a second try finds it
        studio.make_model(small, layers=2, heads=2)
    data = studio.answered(small, Path(query["data"]), "graded-data")
    v = visit()
    own = {**query, "model": str(small), "data": str(data), "limit": "", "score": "magnitude", "side": "board"}
    v.go("", **{k: value for k, value in own.items() if value})
    compute = v.page.locator(".st-key-compute_fine-tuned_magnitude button")
    board = v.page.get_by_role("button", name="Grade the scores here")
    compute.or_(board).first.wait_for()
    v.settle()
    if compute.count():
        compute.click()
    board.wait_for()
    v.settle()
    board.click()
    v.page.get_by_role("button", name="Stop").or_(v.page.get_by_text("Measured here on")).first.wait_for()
    v.page.get_by_text("Measured here on").wait_for(timeout=LONG)
    assert not board.count()
    figures(v, 3)


def test_a_faster_model_is_planned_with_a_training_and_started(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("runs", **query, limit="24")
    box = v.page.locator("[data-testid=stExpander] summary").filter(has_text="Start a run").first
    box.wait_for()
    v.settle()
    if box.locator("xpath=..").get_attribute("open") is None:
        box.click()
    name = "A faster model"
    v.page.get_by_role("radio", name=name).or_(v.page.get_by_role("button", name=name)).first.click()
    v.page.get_by_text("so many times as fast on this machine").wait_for()
    v.settle()
    v.fill("Times as fast", "1.3")
    v.fill("Tokens of each", "12")
    v.fill("Examples to choose on", "12")
    v.page.get_by_text("Train the smaller models", exact=True).click()
    v.page.get_by_text("Training of the smaller models").first.wait_for()
    v.settle()
    v.page.get_by_role("button", name="Plan", exact=True).click()
    v.page.get_by_text(re.compile("2 models, timed on")).wait_for(timeout=LONG)
    v.page.get_by_role("button", name="Start", exact=True).click()
    v.page.get_by_role("heading", name="1.3× as fast").first.wait_for()
    v.page.wait_for_url(re.compile("[?&]run="))

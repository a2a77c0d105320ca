"""The first page in a browser: hover, click, phone; the search; both grids in a wide window."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
PAIR = {"model": "demo", "task": "demo", "a": "The dog is not sleeping.", "b": "The dog is sleeping."}


def test_hovering_says_what_the_click_does(visit: Open) -> None:
    v = visit()
    v.go("", **PAIR)
    cell = v.page.locator(".st-key-board_cost .cell[aria-label^='L4·H10,']")
    cell.wait_for()
    v.settle()
    cell.hover()
    tip = v.page.locator(".st-key-board_cost .tip:not([hidden])")
    tip.get_by_text(re.compile(r"contradiction \.\d\d → ")).wait_for()
    said = tip.locator("dd").first.inner_text()
    cell.click()
    v.page.locator(".result b", has_text=said).wait_for()
    v.page.locator(".result", has_text="1 of 144 off").wait_for()
    v.page.get_by_text("examples are answered right; with all heads").wait_for()
    # a screen reader hears the bar, not each number of the answers, which are named
    assert not v.page.locator(".answers").get_by_role("status").count()
    assert re.search(r"contradiction all heads 0\.\d\d without those", v.page.locator(".answers").aria_snapshot())
    v.settle()
    v.page.keyboard.press("Control+z")
    v.page.locator(".result", has_text="all 144 heads on").wait_for()


def test_a_wide_window_has_both_grids_and_they_switch_together(visit: Open) -> None:
    v = visit()
    v.page.set_viewport_size({"width": 1600, "height": 900})
    v.go("", **PAIR)
    boards = v.page.locator(".board")
    boards.nth(1).wait_for(state="attached")
    v.settle()
    assert all(board.is_visible() for board in boards.all())
    boards.nth(0).locator(".cell[aria-label^='L8·H6,']").click()
    v.page.locator(".result", has_text="1 of 144 off").wait_for()
    v.settle()
    assert boards.nth(1).locator('.cell[data-off="1"]').count() == 1
    v.go("", **{**PAIR, "score": "shapley"})  # not computed: its button stands below the grid
    v.page.get_by_role("button", name=re.compile("^Compute")).wait_for()
    v.settle()
    assert len({board.bounding_box()["y"] for board in boards.all()}) == 1


def test_the_two_grids_of_a_narrow_window_stand_in_the_same_place_and_say_their_meaning_once(visit: Open) -> None:
    v = visit()
    places = []
    for grid in ("cost", "score"):
        v.go("", **PAIR, grid="" if grid == "cost" else grid)
        board = v.page.locator(f".st-key-board_{grid} .board")
        board.wait_for()
        v.settle()
        assert [one.is_visible() for one in v.page.locator(".board").all()].count(True) == 1
        places.append(board.bounding_box())
        cell = board.locator(".cell[aria-label^='L4·H10,']").get_attribute("aria-label")
        assert len(cell) < 80
        assert cell.startswith("L4·H10, cost " if grid == "cost" else "L4·H10, conductance-spearman ")
        assert "blue" in board.get_attribute("aria-label")
    assert places[0] == places[1]


def test_a_tap_on_a_phone_moves_the_grid_by_nothing(visit: Open) -> None:
    v = visit()
    v.page.set_viewport_size({"width": 390, "height": 844})
    cell = v.page.locator(".st-key-board_cost .cell[aria-label^='L4·H10,']")

    v.go("", **PAIR)
    cell.wait_for()
    v.settle()
    before = cell.bounding_box()
    cell.click()
    v.page.locator(".result", has_text="1 of 144 off").wait_for()
    v.settle()
    assert cell.bounding_box() == before
    bar = v.page.locator(".st-key-result_bar").bounding_box()
    assert bar["y"] + bar["height"] <= 844 + 1
    v.go("")
    way = v.page.locator(".st-key-continue_view")  # the way to the last view goes with the first click
    way.wait_for()
    v.settle()
    before = cell.bounding_box()
    cell.click()
    way.wait_for(state="detached")
    v.settle()
    assert cell.bounding_box() == before


def test_three_keys_and_enter_lead_to_an_ability_and_to_a_head(visit: Open) -> None:
    v = visit()
    v.go("masklab", model="demo", task="demo")
    v.page.keyboard.press("Control+k")
    v.page.keyboard.type("neg")
    v.page.keyboard.press("Enter")
    v.page.get_by_role("heading", name="Workbench").wait_for()
    v.page.get_by_text("of 100 answers about negation").wait_for()
    v.settle()
    v.page.keyboard.press("Control+k")
    v.page.keyboard.type("off 8.6")
    v.page.keyboard.press("Enter")
    v.page.locator(".result", has_text="1 of 144 off").wait_for()

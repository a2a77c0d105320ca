"""Switching heads off by mouse, drag and keyboard; undo; two people at once; what flipped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from headviz.heads import HeadMask

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
OFF = HeadMask.full(12, 12).without_random(40, seed=3)


@pytest.mark.slow
def test_mouse_keyboard_headers_drag_and_undo(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("masklab", **query)
    v.heads_off(0)
    v.cell("L3·H5").click()
    v.heads_off(1)
    assert v.cell("L3·H5").get_attribute("aria-pressed") == "false"
    v.settle()
    v.cell("L3·H5").focus()
    v.page.keyboard.press("ArrowRight")
    v.page.keyboard.press("ArrowDown")
    v.page.keyboard.press("Space")
    v.heads_off(2)
    v.settle()
    assert [h.dotted for h in v.mask().off] == ["3.5", "4.6"]
    v.page.get_by_role("button", name="L11: toggle this layer").click()
    v.heads_off(14)
    v.settle()
    v.page.get_by_role("button", name="Undo").click()
    v.heads_off(2)
    v.settle()
    v.page.get_by_role("button", name="Redo").click()
    v.heads_off(14)
    v.settle()
    v.page.keyboard.press("Control+z")  # undo without the mouse
    v.heads_off(2)
    v.settle()
    v.page.get_by_role("button", name="All on").click()
    v.heads_off(0)
    v.settle()
    start, end = (v.cell(f"L2·H{h}").bounding_box() for h in (1, 6))  # a drag switches many
    v.page.mouse.move(start["x"] + 9, start["y"] + 9)
    v.page.mouse.down()
    v.page.mouse.move(end["x"] + 9, end["y"] + 9, steps=25)
    v.page.mouse.up()
    v.heads_off(6)
    v.settle()
    assert [h.dotted for h in v.mask().off] == [f"2.{h}" for h in range(1, 7)]
    v.cell("L7·H3").dblclick()  # solo
    v.heads_off(17)
    v.settle()
    assert v.mask().off_in(7) == tuple(h for h in range(12) if h != 3)
    v.page.get_by_role("button", name="Undo").click()
    v.heads_off(6)
    v.settle()
    for layer in range(6, 12):  # quick clicks are all kept
        v.cell(f"L{layer}·H0").click()
    v.heads_off(12)
    v.settle()
    assert [h.dotted for h in v.mask().off][6:] == [f"{layer}.0" for layer in range(6, 12)]


@pytest.mark.slow
def test_two_people_have_masks_of_their_own(visit: Open, query: dict[str, str]) -> None:
    one, two = visit(), visit()
    for v in (one, two):
        v.go("masklab", **query)
        v.heads_off(0)
    one.cell("L3·H5").click()
    one.heads_off(1)
    for h in range(2):
        two.cell(f"L7·H{h}").click()
    two.heads_off(2)
    one.cell("L4·H4").click()
    one.heads_off(2)
    one.settle()
    two.settle()
    assert [h.dotted for h in one.mask().off] == ["3.5", "4.4"]
    assert [h.dotted for h in two.mask().off] == ["7.0", "7.1"]


@pytest.mark.slow
def test_all_metrics_are_listed_and_a_flipped_row_opens_compare(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("masklab", **query, mask=OFF.hex)
    v.heads_off(40)
    v.page.locator("[data-testid=stExpander] summary").filter(has_text="All metrics").click()
    cells = v.page.get_by_test_id("stExpander").filter(has_text="All metrics").locator("[role=gridcell]")
    cells.first.wait_for(state="attached")
    v.settle()
    assert 0 <= float(cells.nth(5).inner_text()) <= 1  # the number itself; how it is written is painted on the canvas
    v.page.get_by_text(re.compile(r"Changed answers: \d+ now wrong")).wait_for()
    table = v.page.get_by_test_id("stDataFrame").last.locator("canvas").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    v.page.mouse.click(box["x"] + 18, box["y"] + 52)  # the first row's tick
    v.page.get_by_role("heading", name="Compare", exact=True).wait_for()
    v.page.get_by_text("← changed").first.wait_for()
    v.settle()
    example = parse_qs(urlparse(v.page.url).query).get("example", ["0"])[0]
    assert v.page.get_by_text(f"Example {example} (").count()
    assert v.mask() == OFF

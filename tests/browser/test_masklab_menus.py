"""The Mask lab's menus and its right side: many heads at once, named masks, pasted ones, hints, flipped examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from headviz.heads import HeadMask, lowest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
OFF = HeadMask.full(12, 12).without_random(40, seed=3)


def press(v: Any, name: str) -> None:
    v.page.get_by_test_id("stMain").get_by_role("button", name=name, exact=True).first.click()
    v.settle()


def menu(v: Any, name: str) -> None:
    v.page.locator("[data-testid=stPopover] button").filter(has_text=name).first.click()
    v.settle()


def inside(v: Any, name: str) -> Any:
    return v.page.get_by_test_id("stPopoverBody").get_by_role("button", name=name)


def test_random_lowest_inverted_and_all_on(visit: Open, query: dict[str, str]) -> None:
    import headviz

    v = visit()
    v.go("scores", **query, score="magnitude")
    compute, table = v.page.get_by_role("button", name="Compute").first, v.page.get_by_text(re.compile("^magnitude: "))
    compute.or_(table).first.wait_for()
    if not table.is_visible():  # the score lies in the cache where another test has already computed it
        compute.click()
    table.wait_for()
    v.go("masklab", **query, score="magnitude", count="20")
    v.heads_off(0)
    menu(v, "Select heads")
    inside(v, "20 at random, a new draw").click()
    v.heads_off(20)
    v.settle()
    first = v.mask()
    inside(v, "20 at random, a new draw").click()
    v.page.wait_for_function("old => !location.search.includes(old)", arg=first.hex)
    v.heads_off(20)
    v.settle()
    assert len(v.mask().off) == 20
    inside(v, "The 20 lowest by magnitude").click()
    values = headviz.score_heads(
        headviz.load(query["model"]),
        headviz.load_task("custom", data=query["data"], text_columns=["premise", "hypothesis"], label_column="label"),
        score="magnitude",
    ).values
    expected = HeadMask.full(12, 12).without(lowest(values, 20, HeadMask.full(12, 12).kept, seed=0))
    v.page.wait_for_function("hex => location.search.includes(hex)", arg=expected.hex)
    v.heads_off(20)
    v.settle()
    v.page.keyboard.press("Escape")
    press(v, "Invert")
    v.heads_off(124)
    v.settle()
    assert set(v.mask().off) == set(expected.kept)
    press(v, "All on")
    v.heads_off(0)
    v.page.get_by_role("button", name="H2: toggle this column").click()
    v.heads_off(12)
    v.settle()
    assert [h.dotted for h in v.mask().off] == [f"{layer}.2" for layer in range(12)]


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

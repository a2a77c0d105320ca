"""Switching heads off by mouse, drag and keyboard; undo; links; two people at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.heads import HeadMask

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


@pytest.mark.slow
def test_mouse_keyboard_headers_and_undo(visit: Open, query: dict[str, str]) -> None:
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


@pytest.mark.slow
def test_drag_switches_many_and_a_double_click_solos(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("masklab", **query)
    v.heads_off(0)
    start, end = (v.cell(f"L2·H{h}").bounding_box() for h in (1, 6))
    v.page.mouse.move(start["x"] + 9, start["y"] + 9)
    v.page.mouse.down()
    v.page.mouse.move(end["x"] + 9, end["y"] + 9, steps=25)
    v.page.mouse.up()
    v.heads_off(6)
    v.settle()
    assert [h.dotted for h in v.mask().off] == [f"2.{h}" for h in range(1, 7)]
    v.cell("L7·H3").dblclick()
    v.heads_off(17)
    v.settle()
    assert v.mask().off_in(7) == tuple(h for h in range(12) if h != 3)
    v.page.get_by_role("button", name="Undo").click()
    v.heads_off(6)


@pytest.mark.slow
def test_quick_clicks_are_all_kept(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("masklab", **query)
    v.heads_off(0)
    for layer in range(6):
        v.cell(f"L{layer}·H0").click()
    v.heads_off(6)
    v.settle()
    assert [h.dotted for h in v.mask().off] == [f"{layer}.0" for layer in range(6)]


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
def test_a_mask_goes_out_as_json_and_comes_back(visit: Open, query: dict[str, str], tmp_path: Path) -> None:
    import headviz

    v = visit()
    v.go("masklab", **query, mask=HeadMask.full(12, 12).without([(3, 5), (7, 0)]).hex)
    v.heads_off(2)
    with v.page.expect_download() as saved:
        v.page.get_by_role("button", name="JSON").click()
    place = tmp_path / "mask.json"
    saved.value.save_as(place)
    made = json.loads(place.read_text())
    assert (made["off"], made["digest"]) == (["3.5", "7.0"], headviz.load(query["model"]).digest)
    v.page.get_by_role("button", name="All on").click()
    v.heads_off(0)
    v.settle()
    v.page.get_by_role("button", name="Import mask").click()
    v.page.get_by_role("textbox", name="A mask").fill(place.read_text())
    v.page.get_by_role("textbox", name="A mask").press("Control+Enter")
    v.settle()
    v.page.get_by_role("button", name="Use this mask").click()
    v.heads_off(2)
    v.settle()
    assert [h.dotted for h in v.mask().off] == ["3.5", "7.0"]


@pytest.mark.slow
def test_column_names_never_touch(visit: Open, query: dict[str, str]) -> None:
    v = visit(viewport={"width": 390, "height": 900})
    v.go("head", **query)
    names = v.page.locator(".board .head:not(.side)")
    names.first.wait_for()
    v.settle()
    inside = names.evaluate_all("all => all.map(n => n.scrollWidth <= n.clientWidth)")
    assert len(inside) == 12
    assert all(inside)

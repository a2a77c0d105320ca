"""One's own texts, back and forward, the menu of a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from headviz.heads import HeadMask

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

MASK = HeadMask.full(12, 12).without_random(40, seed=3).hex


@pytest.mark.slow
def test_typing_changes_the_answer_at_once(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("compare", **query, mask=MASK)
    text = v.page.locator(".fields textarea").first
    text.wait_for()
    before = v.page.locator("h3").all_inner_texts()
    text.fill("three birds see the red house")
    v.page.wait_for_function(
        "before => JSON.stringify([...document.querySelectorAll('h3')].map(e => e.innerText)) !== before",
        arg=__import__("json").dumps(before, separators=(",", ":")),
    )
    v.settle()
    assert "a=three+birds" in v.page.url
    assert text.input_value() == "three birds see the red house"


@pytest.mark.slow
def test_back_and_forward_go_one_step_each(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("masklab", **query)
    v.heads_off(0)

    def to(page: str) -> None:
        v.page.get_by_role("heading", level=1, name=page, exact=True).wait_for()
        v.settle()

    for page in ("Compare", "Scores", "Mask lab"):
        v.page.get_by_role("link", name=page, exact=True).first.click()
        to(page)
    v.cell("L0·H1").click()
    v.heads_off(1)
    v.page.wait_for_function("location.search.includes('mask=')")
    v.settle()
    v.page.go_back()  # at once: what the server has just written is not mistaken for its echo
    v.heads_off(0)
    for page in ("Scores", "Compare", "Mask lab"):
        v.page.go_back()
        to(page)
    for page in ("Compare", "Scores", "Mask lab"):
        v.page.go_forward()
        to(page)
    v.heads_off(0)
    v.page.go_forward()
    v.heads_off(1)


@pytest.mark.slow
def test_on_a_phone_the_menu_closes_when_a_page_is_chosen(visit: Open) -> None:
    v = visit(viewport={"width": 390, "height": 800})
    v.go("data", model="demo", task="demo", limit="20")
    menu = v.page.get_by_test_id("stSidebar")
    v.page.get_by_test_id("stExpandSidebarButton").click()
    menu.get_by_role("link", name="Runs", exact=True).click()
    v.page.wait_for_url(re.compile("/runs"))
    menu.wait_for(state="hidden")  # and so out of the way of the Tab key
    v.settle()
    assert v.page.get_by_role("heading", name="Runs", exact=True).is_visible()

"""One's own texts, back and forward, wrong links, and texts that would rather be markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.heads import HeadMask

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

MASK = HeadMask.full(12, 12).without_random(40, seed=3).hex
ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3)) the dog"


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

    for page in ("Compare", "Heads", "Mask lab"):
        v.page.get_by_role("link", name=page, exact=True).first.click()
        to(page)
    v.cell("L0·H1").click()
    v.heads_off(1)
    v.page.wait_for_function("location.search.includes('mask=')")
    v.settle()
    v.page.go_back()  # at once: what the server has just written is not mistaken for its echo
    v.heads_off(0)
    for page in ("Heads", "Compare", "Mask lab"):
        v.page.go_back()
        to(page)
    for page in ("Compare", "Heads", "Mask lab"):
        v.page.go_forward()
        to(page)
    v.heads_off(0)
    v.page.go_forward()
    v.heads_off(1)


@pytest.mark.slow
def test_what_a_link_has_wrong_stays_until_the_reader_does_something(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    mask = HeadMask.full(12, 12).without_random(7, seed=91).hex  # nobody has measured it: the page draws itself again
    v.go("masklab", **query, mask=mask, beside="nope")
    v.page.get_by_text(" points").first.wait_for()
    v.heads_off(7)
    v.settle()
    said = v.page.get_by_text("Score 'nope' does not exist here")
    said.wait_for()
    v.page.get_by_role("button", name="All on", exact=True).click()
    v.heads_off(0)
    v.settle()
    assert not said.count()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["compare", "head"])
def test_texts_are_never_run(visit: Open, query: dict[str, str], page: str) -> None:
    v = visit()
    v.go(page, **query, mask=MASK, a=ATTACK, b=ATTACK)
    v.page.locator(".fields textarea").first.wait_for()
    v.page.wait_for_timeout(2500)
    assert v.page.locator(".fields textarea").first.input_value() == ATTACK
    assert v.page.locator("img[src=x]").count() == 0
    assert not v.dialogs


@pytest.mark.slow
def test_an_upload_is_read_whatever_its_name_and_labels(visit: Open, query: dict[str, str], tmp_path: Path) -> None:
    table = tmp_path / "..<img src=x onerror=alert(4)>.csv"
    rows = [
        f"the dog sleeps {i},a cat runs,{label}"
        for i in range(3)
        for label in ("entailment", "neutral", "contradiction")
    ]
    table.write_text("\n".join(["<b>premise</b>,hypothesis,label", *rows]), encoding="utf-8")
    v = visit()
    v.go("data", **query)
    v.page.get_by_role("tab", name="Upload").click()
    v.page.locator("input[type=file]").first.set_input_files(str(table))
    v.page.get_by_role("button", name="Use these data").wait_for()
    chosen = v.page.get_by_test_id("stMultiSelect").locator("input")
    chosen.press("Backspace")
    v.page.get_by_text("choose a second text column").wait_for()
    chosen.fill("hypothesis")
    v.page.get_by_role("option").first.wait_for()
    chosen.press("Enter")
    v.page.get_by_text("choose a second text column").wait_for(state="detached")
    chosen.press("Escape")
    v.page.get_by_role("button", name="Use these data").click()
    v.page.get_by_text("dev: 9 examples").wait_for()
    v.settle()
    assert "data=upload-" in v.page.url
    assert v.page.locator("img[src=x]").count() == 0
    assert not v.dialogs


@pytest.mark.slow
def test_presentation_hides_the_controls(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("masklab", **query, mask=MASK, present="1")
    v.heads_off(40)
    assert v.page.get_by_role("button", name="Undo").count() == 0


@pytest.mark.slow
def test_the_ranking_selects_by_mouse_and_by_keyboard(visit: Open) -> None:
    v = visit()
    v.go("", score="magnitude")  # the demo comes with its scores
    rows = v.page.locator(".ranking .row")
    rows.first.wait_for()
    assert rows.count() == 144
    name = rows.nth(2).locator(".name").inner_text()
    rows.nth(2).click()
    v.page.locator("h3", has_text=f"{name} ").wait_for()
    listbox = v.page.get_by_role("listbox", name="Heads by magnitude")
    v.page.locator(".ranking .row[aria-selected=true]", has_text=name).wait_for()
    listbox.focus()
    listbox.press("ArrowDown")
    listbox.press("ArrowDown")
    listbox.press("Enter")
    last = rows.nth(4).locator(".name").inner_text()
    v.page.locator("h3", has_text=f"{last} ").wait_for()
    v.settle()
    assert f"head={last[1:].replace('·H', '.')}" in v.page.url


@pytest.mark.slow
def test_the_code_is_drawn_when_it_is_opened(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("", **query)
    fold = v.page.get_by_text("The same in Python or on the command line")
    fold.wait_for()
    v.settle()
    assert v.page.get_by_test_id("stCode").count() == 0
    fold.click()
    v.page.get_by_test_id("stCode").nth(1).get_by_text("headviz score").wait_for()


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

"""From start to the flip of negation; two linked grids; picker, gallery, two masks; no escape sign on any page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
DEMO = {"model": "demo", "task": "demo"}
FLIP = re.compile(r"Without L8·H0 the answer changes: contradiction 0\.\d\d becomes entailment 0\.9")


def steps(v: Any) -> Any:
    return v.page.locator(".st-key-chips_story").get_by_role("button")


def test_one_click_leads_from_the_first_page_to_the_flip_and_keys_lead_on(visit: Open) -> None:
    v = visit()
    v.go("")
    steps(v).first.click()
    v.page.get_by_text(FLIP).wait_for()
    v.page.get_by_text("1 of 4 · One head turns an answer.").wait_for()
    v.settle()
    v.page.keyboard.press("PageDown")
    v.page.get_by_text("2 of 4 · Word order on another.").wait_for()
    v.page.get_by_text(re.compile("Without L8·H6 the model no longer knows")).wait_for()
    v.settle()
    # the switch kept the key, and a step began where the last one was left
    main = v.page.get_by_test_id("stMain")
    v.page.get_by_text("Presentation", exact=True).click()
    v.settle()
    main.evaluate("m => m.scrollTo({top: 400})")
    v.page.keyboard.press("PageDown")
    v.page.get_by_text("3 of 4 · 40 % of the heads can go.").wait_for()
    v.settle()
    assert main.evaluate("m => m.scrollTop") == 0
    v.page.get_by_text("Presentation", exact=True).click()
    v.settle()
    v.page.get_by_text(re.compile("Without 58 heads")).wait_for()
    v.settle()
    v.page.keyboard.press("PageUp")
    v.page.get_by_text("2 of 4 · Word order on another.").wait_for()
    v.page.get_by_role("button", name="End").click()
    v.page.get_by_text("2 of 4").wait_for(state="detached")
    v.page.get_by_text(re.compile("Without L8·H6")).wait_for()  # the view stays


def test_a_presentation_keeps_what_the_story_needs(visit: Open) -> None:
    v = visit()
    v.go("", present="1")
    assert not steps(v).count()
    v.go(
        "compare",
        a="Bruno is richer than Alice.",
        b="Bruno is poorer than Alice.",
        off="8.0",
        tokens="1",
        story="1",
        present="1",
    )
    v.page.get_by_text(FLIP).wait_for()
    v.page.get_by_role("paragraph").filter(has_text="How much each token speaks for").wait_for()
    assert v.page.get_by_role("button", name="Next").count()
    assert not v.page.get_by_role("textbox").count()
    v.go("compare", a="The dog is not sleeping.", b="The dog is sleeping.", off="4.10", story="4", present="1")
    v.page.get_by_role("textbox", name="Premise").wait_for()  # this step asks for a sentence of one's own


def test_pointing_and_choosing_run_over_both_grids(visit: Open) -> None:
    v = visit()
    v.go("scores", **DEMO)
    boards = v.page.locator(".board")
    boards.nth(1).wait_for()
    v.settle()
    left, right = (boards.nth(i).locator('.cell[aria-label^="L4·H10,"]') for i in (0, 1))
    left.hover()
    assert right.get_attribute("data-pointed") == "1"
    tip = v.page.locator(".tip:not([hidden])")
    assert {"conductance-spearman", "ablation", "carries"} <= set(tip.locator("dt").all_inner_texts())
    assert "negation" in tip.inner_text()
    right.focus()
    v.page.keyboard.press("ArrowLeft")
    assert boards.nth(0).locator('[data-pointed="1"]').get_attribute("aria-label").startswith("L4·H9")
    v.page.keyboard.press("Enter")
    assert boards.nth(0).locator('[data-selected="1"]').get_attribute("aria-label").startswith("L4·H9")
    v.page.get_by_text(re.compile("carries temporal")).first.wait_for()
    v.page.wait_for_url(re.compile("head=4.9"))


def test_pointing_at_a_token_leaves_its_arcs(visit: Open) -> None:
    v = visit()
    v.go("head", **DEMO, head="4.10", picture="arcs")
    plot = v.page.locator(".st-key-arcs_attention .js-plotly-plot")
    plot.locator(".textpoint").first.wait_for()
    v.page.wait_for_function("document.querySelector('.st-key-arcs_attention .js-plotly-plot').headvizArcs")
    box = plot.locator(".textpoint text").first.bounding_box()
    v.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    v.page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] / 2)
    lines = "document.querySelectorAll('.st-key-arcs_attention .scatterlayer > .trace')"
    faded = f"[...{lines}].filter(t => t.style.opacity).length"
    v.page.wait_for_function(f"{faded} > 0")
    total = v.page.evaluate(f"{lines}.length")
    assert v.page.evaluate(faded) < total


def test_leaving_a_step_ends_the_demonstration_and_back_opens_each_view_as_it_was(visit: Open) -> None:
    """Scores went on to compare with the step's score, and the first page kept the step's mask."""
    v = visit()
    v.go("", model="demo", task="demo")
    steps(v).nth(2).click()
    v.page.locator(".result", has_text="58 of 144 off").wait_for()
    v.page.get_by_text("3 of 4 ·").wait_for()
    v.settle()
    v.page.get_by_role("link", name="Scores", exact=True).click()
    v.page.get_by_role("heading", name="Scores").wait_for()
    v.settle()
    assert "story" not in v.page.url
    assert "beside" not in v.page.url
    v.page.go_back()
    v.page.get_by_text("3 of 4 ·").wait_for()
    v.settle()
    v.page.go_back()
    v.page.locator(".result", has_text="all 144 heads on").wait_for()

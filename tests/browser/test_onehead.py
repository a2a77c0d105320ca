"""One head: its maps by text, part and class; arcs, the layer; the keyboard; narrow screens; long and wrong texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from support.running import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
OWN = {"a": "the dog sleeps", "b": "a cat runs"}


def shown(v: Any, side: str) -> list[str]:
    """The queries or keys that the maps show, in their order."""
    v.page.locator(".st-key-maps [data-label]").wait_for()
    v.settle()
    found: list[str] = json.loads(v.page.locator(".st-key-maps .wrap").get_attribute(f"data-{side}"))
    return found


def pick(v: Any, name: str) -> None:
    v.page.get_by_role("radio", name=name, exact=True).or_(
        v.page.get_by_role("button", name=name, exact=True)
    ).first.click()
    v.settle()


def test_one_cross_hair_for_both_maps_zoom_and_parts_of_a_pair(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("head", **query, **OWN, head="3.5", limit="24")
    words = ["the", "dog", "sleeps", "a", "cat", "runs"]
    special = ["[CLS]", "[SEP]", "[SEP]"]  # at the edge
    assert shown(v, "queries") == shown(v, "keys") == words + special
    maps = v.page.locator(".st-key-maps canvas")
    read = v.page.locator(".st-key-maps .read")
    maps.nth(0).focus()
    for _ in range(2):
        maps.nth(0).press("ArrowDown")
    maps.nth(0).press("ArrowRight")
    assert re.search(r"sleeps → dog: attention .+ of 9 keys\) · attribution .+ of 9 keys\)", read.inner_text())
    maps.nth(0).press("Escape")
    box = maps.nth(1).bounding_box()  # the second map's cross-hair is that of both
    v.page.mouse.move(box["x"] + box["width"] - 80, box["y"] + box["height"] - 60)
    assert re.search(r"^\S+ → \S+: attention", read.inner_text())
    bar = v.page.locator(".st-key-maps .bar")
    maps.nth(0).focus()
    maps.nth(0).press("ArrowDown")
    bar.get_by_role("button", name="Zoom in").click()
    assert len(json.loads(v.page.locator(".st-key-maps .wrap").get_attribute("data-keys"))) < 9
    bar.get_by_role("button", name="whole map").click()
    assert len(shown(v, "keys")) == 9
    bar.get_by_role("button", name="linear").click()
    v.page.wait_for_url(re.compile("scale=linear"))
    v.page.get_by_text("Linear scale.").first.wait_for()
    v.settle()
    pick(v, "A→B")
    v.page.wait_for_url(re.compile("arrows="))
    v.page.get_by_text("some keys are hidden").first.wait_for()
    assert shown(v, "queries")[:3] == ["the", "dog", "sleeps"]
    assert shown(v, "keys")[:3] == ["a", "cat", "runs"]
    v.page.locator("label").filter(has_text="[CLS], [SEP]").click()
    v.page.wait_for_url(re.compile("special=0"))
    assert shown(v, "queries") == ["the", "dog", "sleeps"]
    assert shown(v, "keys") == ["a", "cat", "runs"]
    pick(v, "B→A")
    v.page.locator(".st-key-maps [data-queries*=cat]").wait_for()
    assert shown(v, "queries") == ["a", "cat", "runs"]
    assert shown(v, "keys") == ["the", "dog", "sleeps"]
    bar.get_by_role("button", name="strongest first").click()
    v.page.wait_for_url(re.compile("places=strongest"))
    assert sorted(shown(v, "queries")) == ["a", "cat", "runs"]


def test_maps_follow_a_change_of_the_theme_and_every_choice_of_connections_is_in_sight(
    visit: Open, query: dict[str, str]
) -> None:
    v = visit()
    v.page.set_viewport_size({"width": 1280, "height": 800})
    v.go("head", **query, **OWN, head="3.5", limit="24")
    canvas = v.page.locator(".st-key-maps canvas").first
    canvas.wait_for()
    v.settle()
    last = v.page.locator(".st-key-w_arrows button").last.bounding_box()
    group = v.page.locator(".st-key-w_arrows").bounding_box()
    assert last["x"] + last["width"] <= group["x"] + group["width"] + 1
    light = canvas.evaluate("c => c.toDataURL()")
    v.page.emulate_media(color_scheme="dark")
    until(lambda: canvas.evaluate("c => c.toDataURL()") != light, 30, "maps in the colours of the dark theme")


def test_both_ways_through_the_heads_and_the_class_explained(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("head", **query, **OWN, head="3.5", limit="24")
    v.page.locator("h3", has_text="L3·H5").wait_for()
    v.settle()
    for key, name in (("j", "L3·H6"), ("k", "L3·H5"), ("k", "L3·H4")):
        v.page.locator("body").press(key)
        v.page.locator("h3", has_text=name).wait_for()
        v.settle()
    v.page.get_by_role("button", name=re.compile("Next.*J", re.S)).first.click()
    v.page.locator("h3", has_text="L3·H5").wait_for()
    v.settle()
    v.page.locator('.cell[aria-label^="L7·H2"]').first.click()
    v.page.locator("h3", has_text="L7·H2").wait_for()
    v.settle()
    for label in ("neutral", "entailment"):  # one of them is not what the model predicts
        v.choose(re.compile("Class explained"), label)
        v.page.wait_for_url(re.compile(f"target={label}"))
        v.page.get_by_text(f"Class explained: {label}.").wait_for()


def test_a_long_text_fits_a_phone_whole(visit: Open, query: dict[str, str]) -> None:
    v = visit(viewport={"width": 390, "height": 900})
    v.go("head", **query, head="3.5", limit="24", a="a dog sleeps " * 6, b="a cat runs")
    assert len(shown(v, "keys")) == 24
    for i in (0, 1):
        box = v.page.locator(".st-key-maps canvas").nth(i).bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    assert v.page.evaluate("document.documentElement.scrollWidth") <= 390
    # names of columns never touch
    inside = v.page.locator(".board .head:not(.side)").evaluate_all(
        "all => all.map(n => n.scrollWidth <= n.clientWidth)"
    )
    assert inside == [True] * 12

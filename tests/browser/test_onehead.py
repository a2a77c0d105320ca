"""One head: its maps by text, part and class; arcs, the layer; the keyboard; narrow screens; long and wrong texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from headviz.heads import HeadMask

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
OWN = {"a": "the dog sleeps", "b": "a cat runs"}


def ticks(v: Any, name: str, axis: str) -> list[str]:
    """The token names along one axis of a figure."""
    found = v.page.locator(f".st-key-{name} .{axis}tick text")
    found.first.wait_for()
    v.settle()
    return [t.strip() for t in found.all_text_contents() if t.strip()]


def pick(v: Any, name: str) -> None:
    v.page.get_by_role("radio", name=name, exact=True).or_(
        v.page.get_by_role("button", name=name, exact=True)
    ).first.click()
    v.settle()


def test_parts_of_a_pair_and_special_tokens(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("head", **query, **OWN, head="3.5", limit="24")
    whole = ["[CLS]", "the", "dog", "sleeps", "[SEP]", "a", "cat", "runs", "[SEP]"]
    assert ticks(v, "map_attention", "x") == whole
    assert ticks(v, "map_attention", "y") == whole
    pick(v, "A→B")
    v.page.wait_for_url(re.compile("arrows="))
    assert set(ticks(v, "map_attention", "y")) >= {"the", "dog", "sleeps"}
    assert not {"a", "cat", "runs"} & set(ticks(v, "map_attention", "y"))
    assert not {"the", "dog", "sleeps"} & set(ticks(v, "map_attribution", "x"))
    v.page.get_by_text("some keys are hidden").wait_for()
    v.page.locator("label").filter(has_text="[CLS], [SEP]").click()
    v.page.wait_for_url(re.compile("special=0"))
    assert ticks(v, "map_attention", "y") == ["the", "dog", "sleeps"]
    assert ticks(v, "map_attribution", "x") == ["a", "cat", "runs"]
    pick(v, "B→A")
    assert ticks(v, "map_attention", "y") == ["a", "cat", "runs"]
    assert ticks(v, "map_attribution", "x") == ["the", "dog", "sleeps"]


def test_arcs_and_the_whole_layer(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    v.go("head", **query, **OWN, head="3.5", limit="24")
    pick(v, "Strongest connections")
    said = v.page.get_by_text(re.compile(r"The \d+ strongest connections")).first
    said.wait_for()
    count = int(re.search(r"The (\d+) strongest", said.inner_text())[1])
    assert v.page.locator(".st-key-arcs_attention .scatterlayer path.js-line").count() == count
    pick(v, "Layer 3")
    names = v.page.locator(".st-key-layer_attention .annotation-text")
    names.first.wait_for()
    assert [n.strip() for n in names.all_text_contents()] == [f"L3·H{h}" for h in range(12)]
    assert "picture=layer" in v.page.url


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
        box = v.page.get_by_role("combobox", name=re.compile("Class explained")).first
        box.click()
        box.press_sequentially(label)
        box.press("Enter")
        v.page.wait_for_url(re.compile(f"target={label}"))
        v.page.get_by_text(f"Class explained: {label}.").wait_for()


def test_names_of_tokens_keep_their_distance_and_only_the_map_scrolls(visit: Open, query: dict[str, str]) -> None:
    v = visit(viewport={"width": 390, "height": 900})
    v.go("head", **query, head="3.5", limit="24", a="a dog sleeps " * 6, b="a cat runs")
    names = v.page.locator(".st-key-map_attention .xtick text")
    names.first.wait_for()
    v.settle()
    places = sorted(names.evaluate_all("all => all.map(t => t.getBoundingClientRect().left)"))
    assert len(places) == 24
    assert min(b - a for a, b in pairwise(places)) >= 10
    frame = v.page.locator('.st-key-map_attention [class*="st-key-wide"]').first
    assert frame.evaluate("e => e.scrollWidth > e.clientWidth")
    assert v.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_head_that_is_off_and_texts_that_do_not_fit(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    off = HeadMask.full(12, 12).without([(3, 5)]).hex
    v.go("head", **query, **OWN, head="3.5", limit="24", mask=off)
    v.page.get_by_text("L3·H5 is switched off").wait_for()
    fields = v.page.locator(".fields textarea")
    fields.nth(0).fill("the dog sleeps " * 700)  # more than ten thousand characters
    v.page.get_by_text(re.compile(r"The two texts together are longer than the model's \d+ tokens")).wait_for()
    v.settle()
    assert len(fields.nth(0).input_value()) == 10_500
    fields.nth(0).fill("☃ ☃")
    v.page.get_by_text("knows no word of").wait_for()
    v.settle()
    assert fields.nth(0).input_value() == "☃ ☃"
    fields.nth(0).fill("the dog sleeps")
    v.page.get_by_text("knows no word of").wait_for(state="detached")
    assert ticks(v, "map_attention", "x")[0] == "[CLS]"
    assert not v.page.get_by_text("Traceback").count()


def test_an_example_is_found_by_its_words(visit: Open, query: dict[str, str]) -> None:
    from headviz import load_task
    from headviz.ui.parts.texts import find

    data = load_task(
        "custom",
        data=query["data"],
        text_columns=["premise", "hypothesis"],
        label_column="label",
        slice_column="phenomenon",
    )
    word = data[30].text.split()[0]
    found = find(data, word, "all")
    v = visit()
    v.go("head", **query, head="3.5", limit="0")
    v.page.locator("[data-testid=stPopover] button").filter(has_text="Find an example").click()
    field = v.page.get_by_role("textbox", name="Words")
    field.fill("no such words")
    field.press("Enter")
    v.page.get_by_text(f"0 of {len(data)} examples").wait_for()
    field.fill(word)
    field.press("Enter")
    v.page.get_by_text(f"{len(found)} of {len(data)} examples").wait_for()
    v.settle()
    box = v.page.get_by_test_id("stPopoverBody").locator("canvas").first.bounding_box()
    v.page.mouse.click(box["x"] + 18, box["y"] + 52 + 35 * (1 if len(found) > 1 else 0))
    chosen = found[1 if len(found) > 1 else 0]
    if chosen:
        v.page.wait_for_url(re.compile(f"example={chosen}"))
    v.settle()
    fields = v.page.locator(".fields textarea")
    assert [fields.nth(i).input_value() for i in (0, 1)] == [data[chosen].text, data[chosen].pair]
    v.page.get_by_text(f"Example {chosen} (numbered 0 to {len(data) - 1})").wait_for()

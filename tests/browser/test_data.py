"""Data & model in a real browser: what cannot be read is said beside its control, and nothing is lost by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from support.axe import serious

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]

WRONG_MODELS = (
    ("nobody/this-model-is-not-there", "the hub cannot be reached"),  # the server under test is offline
    ("../../etc", "outside the allowed folders"),
    ("<img src=x onerror=alert(1)>", "There is no folder"),
    ("x" * 3000, "has a name longer than 255 bytes"),
    ("", "Name a model"),
)


def test_a_wrong_model_is_said_and_the_right_one_stays(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    page = v.go("data", **query)
    before = page.url
    page.get_by_text("Another model: hub id").click()
    name = page.get_by_role("textbox", name="Model", exact=True)
    for given, answer in WRONG_MODELS:
        name.fill(given)
        page.get_by_role("button", name="Load", exact=True).click()
        page.get_by_test_id("stAlert").get_by_text(answer).first.wait_for()
        v.settle()
        assert name.input_value() == given[: len(name.input_value())]
        assert page.get_by_text("size of a head").count() or page.get_by_test_id("stMetric").count() >= 3
    assert page.url == before
    assert page.locator("img[src=x]").count() == 0
    assert page.get_by_test_id("stException").count() == 0
    assert not v.dialogs


WRONG_FILES = (
    ("latin.csv", b"text,label\ncaf\xe9,1\n", "latin.csv is not UTF-8"),
    ("empty.csv", b"", "empty.csv is empty"),
    ("one.csv", b"text\na dog\n", "It needs a text column and a label column"),
    ("no.parquet", b"not a table", "no.parquet is not a complete parquet file"),
    ("half.jsonl", b'{"text": "a dog", "label"', "half.jsonl, line 1: not valid JSON"),
)


def test_a_broken_upload_is_called_by_its_name(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    page = v.go("data", **query, tab="Upload")
    for name, content, answer in WRONG_FILES:
        send(v, name, content)
        page.get_by_test_id("stAlert").get_by_text(answer).wait_for()
    assert page.get_by_text("dev: 48 examples").count()  # the data before are still there
    assert page.get_by_test_id("stException").count() == 0


def test_another_upload_brings_its_own_columns(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    page = v.go("data", **query, tab="Upload")
    send(v, "first.csv", b"left,right,answer\nthe dog sleeps,a cat runs,neutral\na cat,the dog,entailment\n")
    page.get_by_test_id("stMultiSelect").get_by_text("left", exact=True).wait_for()
    assert page.get_by_role("combobox", name=re.compile("Label column")).first.input_value() == "answer"
    send(v, "../../second<b>.csv", b"gold,one,two\nneutral,the dog sleeps,a cat runs\nentailment,a cat eats,the dog\n")
    page.get_by_test_id("stMultiSelect").get_by_text("one", exact=True).wait_for()
    page.get_by_role("button", name="Use these data").click()
    page.get_by_text("dev: 2 examples").wait_for()
    v.settle()
    address = parse_qs(urlparse(page.url).query)
    assert (address["columns"], address["label"]) == (["one,two"], ["gold"])
    assert re.fullmatch(r"upload-[0-9a-f]{16}", address["data"][0])
    assert page.get_by_test_id("stException").count() == 0


def test_precision_subset_and_seed_are_taken_and_shown(visit: Open, query: dict[str, str]) -> None:
    v = visit()
    page = v.go("data", **query)
    before = page.get_by_text(re.compile("Sample for scoring:")).inner_text()
    page.get_by_role("spinbutton", name="Dev examples (0 = all)").fill("-5")
    page.get_by_role("button", name="Use these data", exact=True).click()
    page.get_by_text("is -5: give a whole number from 0").wait_for()  # and not: the number before it is used
    page.get_by_role("spinbutton", name="Dev examples (0 = all)").fill("24")
    page.get_by_role("spinbutton", name="Seed", exact=True).first.fill("5")
    page.get_by_role("button", name="Use these data", exact=True).click()
    page.get_by_text("dev: 24 examples").wait_for()
    page.get_by_text("limited to 24 of 48 examples (seed 5)").wait_for()
    v.settle()
    after = page.get_by_text(re.compile("Sample for scoring:")).inner_text()
    assert "seed 0" in before
    assert "seed 5" in after
    page.get_by_text("Another model: hub id").click()
    v.choose("Precision", "bfloat16")
    page.get_by_role("button", name="Load", exact=True).click()
    page.wait_for_url(re.compile("dtype=bfloat16"))
    v.settle()
    address = parse_qs(urlparse(page.url).query)
    assert (address["limit"], address["seed"], address["dtype"]) == (["24"], ["5"], ["bfloat16"])
    assert page.get_by_test_id("stException").count() == 0


def send(v: Any, name: str, content: bytes) -> None:
    """Put a file where the page takes one; the one before is given back first."""
    before = v.page.get_by_test_id("stFileUploader").get_by_role("button", name=re.compile("^Remove "))
    if before.count():
        before.first.click()
        v.settle()
    v.page.locator("input[type=file]").first.set_input_files(
        files=[{"name": name, "mimeType": "text/plain", "buffer": content}]
    )
    v.settle()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_open_forms_fit_a_phone_and_hide_nothing_from_anybody(
    visit: Open, query: dict[str, str], studio_folder: Any, scheme: str
) -> None:
    v = visit(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page = v.go("data", **query, tab="Upload", base=str(studio_folder / "model"))
    send(v, "mine.csv", b"left,right,answer\nthe dog sleeps,a cat runs,neutral\na cat,the dog,entailment\n")
    page.get_by_role("button", name="Use these data").wait_for()
    for fold in ("Fine-tune a base model", "More about the training"):
        page.locator("[data-testid=stExpander] summary").filter(has_text=fold).first.click()
        v.settle()
    page.get_by_role("spinbutton", name="Weight decay").wait_for()
    wide = page.evaluate("(m => m.scrollWidth - m.clientWidth)(document.querySelector('[data-testid=stMain]'))")
    assert wide == 0
    assert not serious(v)

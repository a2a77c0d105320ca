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


def test_forms_fit_a_phone_and_another_upload_brings_its_own_columns(
    visit: Open, query: dict[str, str], studio_folder: Any
) -> None:
    v = visit(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = v.go("data", **query, tab="Upload", base=str(studio_folder / "model"))
    send(v, "first.csv", b"left,right,answer\nthe dog sleeps,a cat runs,neutral\na cat,the dog,entailment\n")
    page.get_by_test_id("stMultiSelect").get_by_text("left", exact=True).wait_for()
    assert page.get_by_role("combobox", name=re.compile("Label column")).first.input_value() == "answer"
    for fold in ("Fine-tune a base model", "More about the training"):
        page.locator("[data-testid=stExpander] summary").filter(has_text=fold).first.click()
        v.settle()
    page.get_by_role("spinbutton", name="Weight decay").wait_for()
    wide = page.evaluate("(m => m.scrollWidth - m.clientWidth)(document.querySelector('[data-testid=stMain]'))")
    assert wide == 0
    assert not serious(v)
    send(v, "../../second<b>.csv", b"gold,one,two\nneutral,the dog sleeps,a cat runs\nentailment,a cat eats,the dog\n")
    page.get_by_test_id("stMultiSelect").get_by_text("one", exact=True).wait_for()
    page.get_by_role("button", name="Use these data").click()
    page.get_by_text("dev: 2 examples").wait_for()
    v.settle()
    address = parse_qs(urlparse(page.url).query)
    assert (address["columns"], address["label"]) == (["one,two"], ["gold"])
    assert re.fullmatch(r"upload-[0-9a-f]{16}", address["data"][0])


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


def test_the_form_changes_the_data(visit: Open, query: dict[str, str]) -> None:
    """What a field refuses is shown beside it; what is valid is in the address, and the page has these data."""
    v = visit()
    page = v.go("data", **query)
    form = page.get_by_test_id("stForm").filter(has=page.get_by_label("Label column", exact=True))
    press = form.get_by_role("button", name="Use these data")
    form.get_by_label("Label column", exact=True).fill("no such column")
    press.click()
    page.get_by_text("no such column", exact=False).and_(page.locator("[data-testid=stAlert] *")).first.wait_for()
    form.get_by_label("Label column", exact=True).fill("label")
    form.get_by_role("textbox", name="Dev examples").or_(form.get_by_role("spinbutton", name="Dev examples")).fill("7")
    press.click()
    page.wait_for_url(re.compile("[?&]limit=7(&|$)"))
    page.get_by_text("dev: 7 ", exact=False).first.wait_for()

"""Patching, paths, explanations, what a head reads and writes, and what stands in its place: the library's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz import UserError

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
A, B, DONOR = "the dog sleeps", "a cat runs", "the old man sleeps"


def test_patching_says_what_the_library_finds_and_takes_pairs_from_a_file(
    visit: Open, query: dict[str, str], clf: Any, tmp_path: Path
) -> None:
    import headviz
    from headviz.ui.pages.compare.patching import pairs_sentence, sentence

    v = visit()
    v.go("compare", **query, a=A, b=B, donor=DONOR, tab="Patching", positions="first")
    v.page.get_by_text(sentence(headviz.patch(clf, (A, B), (DONOR, B), positions="first")).split(";")[0]).wait_for()
    v.settle()
    v.page.get_by_text("The other way").click()
    v.page.get_by_text(sentence(headviz.patch(clf, (DONOR, B), (A, B), positions="first")).split(";")[0]).wait_for()
    v.settle()

    words = ("dog", "cat", "man", "red", "old", "two", "bird", "no")
    texts = [((f"the {a} sleeps", B), (f"the {b} eats", B)) for a in words for b in words]
    try:
        expected = pairs_sentence(headviz.patch_pairs(clf, texts, positions="first"))
    except UserError as wrong:  # a random model may give all of them one answer
        expected = str(wrong)
    table = tmp_path / "pairs.csv"
    rows = [f"{a} | {c},{b} | {d}" for (a, c), (b, d) in texts]
    table.write_text("\n".join(["one,other", *rows]) + "\n", encoding="utf-8")
    v.page.locator("[data-testid=stExpander] summary").filter(has_text="Many pairs at once").click()
    v.settle()
    v.page.locator("[data-testid=stFileUploader] input[type=file]").last.set_input_files(str(table))
    v.page.get_by_text(expected.split(".")[0]).first.wait_for()
    v.settle()
    broken = tmp_path / "broken.csv"
    broken.write_text("text,other,third\na,b,c\n", encoding="utf-8")
    v.page.get_by_test_id("stFileUploader").last.get_by_role("button", name="Remove").first.click()
    v.settle()
    v.page.locator("[data-testid=stFileUploader] input[type=file]").last.set_input_files(str(broken))
    v.page.get_by_text("no column 'donor'").wait_for()

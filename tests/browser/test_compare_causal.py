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


def test_an_edited_alignment_goes_into_the_paths(visit: Open, query: dict[str, str], clf: Any) -> None:
    import headviz
    from headviz.ui.pages.compare import patching

    v = visit()
    v.go("compare", **query, a=A, b=B, donor=DONOR, tab="Patching")
    first = headviz.patch(clf, (A, B), (DONOR, B))
    v.page.get_by_text(patching.sentence(first).split(";")[0]).first.wait_for()
    v.settle()
    edited = {i: j for i, j in enumerate(first.alignment) if j is not None} | {2: 4}
    table = v.page.locator(".st-key-patch_alignment")
    table.locator(".dvn-scroller").first.click(position={"x": 30, "y": 52})  # the first row; the table is one canvas
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        v.page.keyboard.press(key)
    table.locator("[id=glide-cell-2-2][aria-selected=true]").wait_for(state="attached")
    v.page.keyboard.type("4")
    v.page.wait_for_timeout(1500)  # a key that comes before the cell's field has opened is lost
    v.page.keyboard.press("Enter")
    own = headviz.patch(clf, (A, B), (DONOR, B), alignment=edited)
    assert patching.sentence(own) != patching.sentence(first)
    v.page.get_by_text(patching.sentence(own).split(";")[0]).first.wait_for()
    v.settle()
    v.page.get_by_role("button", name="Follow the paths").click()
    found = headviz.paths(clf, [((A, B), (DONOR, B))], alignment=edited)
    v.page.get_by_text(patching.path_sentence(found).split(":")[0]).first.wait_for()
    v.page.locator(".st-key-path_graph .js-plotly-plot").wait_for()
    assert v.page.locator(".st-key-path_graph .scatterlayer .trace").count() > 1

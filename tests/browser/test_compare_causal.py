"""Compare's tabs Patching and Explanations: the same numbers as the library's, pairs from a file, a clear refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz import UserError
from headviz.heads import HeadMask

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
A, B, DONOR = "the dog sleeps", "a cat runs", "the old man sleeps"


@pytest.fixture(scope="module")
def clf(query: dict[str, str]) -> Any:
    import headviz

    return headviz.load(query["model"])


def test_patching_says_what_the_library_finds_and_takes_pairs_from_a_file(
    visit: Open, query: dict[str, str], clf: Any, tmp_path: Path
) -> None:
    import headviz
    from headviz.ui.pages.compare.many_pairs import said as of_many
    from headviz.ui.pages.compare.patching import said

    v = visit()
    v.go("compare", **query, a=A, b=B, donor=DONOR, tab="Patching", positions="first")
    v.page.get_by_text(said(headviz.patch(clf, (A, B), (DONOR, B), positions="first")).split(";")[0]).wait_for()
    v.settle()
    v.page.get_by_text("The other way").click()
    v.page.get_by_text(said(headviz.patch(clf, (DONOR, B), (A, B), positions="first")).split(";")[0]).wait_for()
    v.settle()

    words = ("dog", "cat", "man", "red", "old", "two", "bird", "no")
    texts = [((f"the {a} sleeps", B), (f"the {b} eats", B)) for a in words for b in words]
    try:
        expected = of_many(headviz.patch_pairs(clf, texts, positions="first"))
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


def test_explanations_stand_side_by_side(visit: Open, query: dict[str, str], clf: Any) -> None:
    import headviz
    from headviz.attribution.token_explanations import METHODS
    from headviz.ui.pages.compare.explanations import said

    mask = HeadMask.full(12, 12).without_random(40, seed=3)
    v = visit()
    v.go("compare", **query, a=A, b=B, mask=mask.hex)
    v.page.get_by_role("tab", name="Explanations").click()
    v.page.get_by_text(said(headviz.token_explanations(clf, A, B, mask=mask)).split(";")[0]).wait_for()
    v.settle()
    assert "tab=Explanations" in v.page.url
    drawn = v.page.locator(".st-key-explained_words").inner_text()
    assert all(method.title in drawn for method in METHODS.values())
    assert v.page.locator(".st-key-explained_curves .legendtext").all_text_contents()[-1] == "random orders"
    v.page.locator(".st-key-explained_agreement").wait_for()

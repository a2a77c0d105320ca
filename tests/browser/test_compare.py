"""One's own sentence pair: a mask flips the answer, and the search names the head that was planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.heads import HeadId, HeadMask
from support import studio

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

HEAD = HeadId(*studio.PLANTED)
OFF = HeadMask.full(*studio.SIZE).without([HEAD, (0, 0), (1, 2), (3, 3)])


@pytest.fixture(scope="module")
def planted(query: dict[str, str], studio_folder: Any) -> dict[str, str]:
    return {**query, "model": str(studio.make_planted(studio_folder / "planted"))}


def write(v: Any, first: str, second: str) -> None:
    fields = v.page.locator(".fields textarea")
    fields.first.wait_for()
    fields.nth(0).fill(first)
    fields.nth(1).fill(second)


@pytest.mark.slow
def test_ones_own_pair_flips_and_the_planted_head_is_found(visit: Open, planted: dict[str, str]) -> None:
    v = visit()
    v.go("compare", **planted, mask=OFF.hex)
    write(v, "a dog sleeps", "a cat runs")
    v.page.get_by_text("same answer", exact=False).wait_for()
    write(v, f"a dog sleeps {studio.FLIPS}", "a cat runs")
    v.page.get_by_text("changed").first.wait_for()
    v.settle()
    said = [t.split()[0] for t in v.page.locator("h3").all_inner_texts()]
    assert said == ["contradiction", "neutral"]
    v.page.get_by_role("button", name="Which head did it?").click()
    answer = v.page.get_by_text(f"With {HEAD} on again, the answer is contradiction again")
    answer.wait_for()
    assert "this one head is enough" in answer.inner_text()
    v.page.get_by_role("button", name="Switch it on again").click()
    v.page.get_by_text("current mask (3 off)").first.wait_for()
    v.settle()
    assert [t.split()[0] for t in v.page.locator("h3").all_inner_texts()] == ["contradiction", "contradiction"]

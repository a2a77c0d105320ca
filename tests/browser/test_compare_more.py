"""Compare beyond one mask: which head moves an answer, many lines, files, a pruned model, what attention changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.heads import HeadMask

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]
OFF = HeadMask.full(12, 12).without_random(40, seed=3)


def answer(clf: Any, text: str, pair: str, mask: HeadMask) -> tuple[str, float]:
    p = clf.logits(clf.collate(clf.encode([text], [pair])), mask)[0].softmax(-1)
    return clf.labels[int(p.argmax())], float(p.max())


def test_a_pruned_model_stands_beside_its_mask(
    visit: Open, query: dict[str, str], clf: Any, studio_folder: Path
) -> None:
    import headviz

    folder = studio_folder / "pruned"
    headviz.prune(clf, OFF).save(folder)
    v = visit()
    v.go("compare", **query, mask=OFF.hex, a="the dog sleeps", b="a cat runs")
    v.page.locator("[data-testid=stPopover] button").filter(has_text="Another model").click()
    field = v.page.get_by_role("textbox", name="Model to compare with")
    field.fill("/nowhere")
    field.press("Enter")
    v.page.get_by_test_id("stAlert").get_by_text("outside the allowed folders").wait_for()
    v.settle()
    field.fill(str(folder))
    field.press("Enter")
    v.page.get_by_text("(104 heads)").first.wait_for()
    v.page.keyboard.press("Escape")
    v.settle()
    said = v.page.locator("h3").all_inner_texts()
    assert len(said) == 3
    assert said[1] == said[2]  # the pruned model answers as the masked one
    name, p = answer(clf, "the dog sleeps", "a cat runs", OFF)
    assert said[2] == f"{name} {p:.3f}"

"""Compare beyond one mask: which head moves an answer, many lines, files, a pruned model, what attention changed."""

from __future__ import annotations

import re
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
    if not folder.exists():  # a second try finds it
        headviz.prune(clf, OFF).save(folder)

    v = visit()
    v.go("compare", **query, mask=OFF.hex, a="the dog sleeps", b="a cat runs")
    field = v.page.locator(".st-key-w_other input")
    field.fill("/nowhere")
    field.press("Enter")
    v.page.get_by_test_id("stAlert").get_by_text("outside the allowed folders").wait_for()
    v.settle()
    field.fill(str(folder))
    field.press("Enter")
    v.page.get_by_text("(104 heads)").first.wait_for()
    v.settle()
    first = v.page.locator(".st-key-w_first input")
    first.fill("current mask")
    v.page.get_by_role("option", name="current mask (40 off)").click()  # Enter would take what is typed
    v.page.wait_for_url(re.compile("first=mask"))
    v.settle()
    said = v.page.locator("h3").all_inner_texts()
    assert len(said) == 2
    assert said[0] == said[1]  # the pruned model answers as the masked one
    name, p = answer(clf, "the dog sleeps", "a cat runs", OFF)
    assert said[1] == f"{name} {p:.3f}"

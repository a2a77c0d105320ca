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


def several(v: Any) -> None:
    v.page.locator("[data-testid=stExpander] summary").filter(has_text="Several texts").click()
    v.page.get_by_role("textbox", name="Paste texts").wait_for()
    v.settle()


def cells(v: Any) -> list[str]:
    """What the table of answers holds."""
    table = v.page.get_by_test_id("stExpander").filter(has_text="Several texts").locator("[role=gridcell]")
    table.first.wait_for(state="attached")
    v.settle()
    return table.all_inner_texts()


def test_many_lines_are_answered_and_wrong_ones_named(
    visit: Open, query: dict[str, str], clf: Any, tmp_path: Path
) -> None:
    v = visit()
    v.go("compare", **query, mask=OFF.hex)
    several(v)
    field = v.page.get_by_role("textbox", name="Paste texts")
    field.fill("the dog sleeps | a cat runs\nan old man\tthe red dog\nalone\n☃ | a cat runs")
    field.press("Control+Enter")
    v.page.get_by_text("Line 3 is not a pair").wait_for()
    v.page.get_by_text("knows no word of").wait_for()
    found = cells(v)
    full = HeadMask.full(12, 12)
    for row, (a, b) in enumerate((("the dog sleeps", "a cat runs"), ("an old man", "the red dog"))):
        was, now = answer(clf, a, b, full), answer(clf, a, b, OFF)
        change = "same" if was[0] == now[0] else f"{was[0]} → {now[0]}"
        told = [f"{name} {p:.2f}" for name, p in (was, now)]
        assert found[6 * row : 6 * row + 6] == [str(row + 1), a, b, *told, change]
    assert found[12:] == ["4", "☃", "a cat runs", "–", "–", "not answered"]

    lines = tmp_path / "lines.txt"
    lines.write_text("the red dog\ta cat runs\n", encoding="utf-8")
    v.page.locator("[data-testid=stFileUploader] input[type=file]").last.set_input_files(str(lines))
    v.page.get_by_text("The file's lines are used, not the pasted ones.").wait_for()
    v.page.get_by_text("of 1 answers change").wait_for()
    assert cells(v)[:3] == ["1", "the red dog", "a cat runs"]
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"PK\x03\x04\x00\x00\x00")
    v.page.get_by_test_id("stFileUploader").last.get_by_role("button", name=re.compile("Remove|lines")).first.click()
    v.settle()
    v.page.locator("[data-testid=stFileUploader] input[type=file]").last.set_input_files(str(broken))
    v.page.get_by_text("This file is not plain text").wait_for()


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


def test_a_pair_where_the_model_takes_one_text_is_said_beside_the_fields(visit: Open, studio_folder: Path) -> None:
    from support.tiny import tiny_folder

    folder = tiny_folder(studio_folder / "single", layers=2, heads=2, labels=("negative", "positive"))
    data = studio_folder / "single-data"
    data.mkdir()
    rows = [f"the dog sleeps {'not' * (i % 2)},{('negative', 'positive')[i % 2]}" for i in range(12)]
    for split in ("train", "dev"):
        (data / f"{split}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    v = visit()
    asked = {
        "model": str(folder),
        "task": "custom",
        "data": str(data),
        "columns": "text",
        "label": "label",
        "a": "the dog sleeps",
        "b": "a cat runs",
    }
    for page in ("compare", "head"):
        v.go(page, **asked)
        warned = v.page.get_by_test_id("stAlert").filter(has_text="reads one text (negative, positive)")
        warned.wait_for()
        fields = v.page.locator(".fields textarea")
        assert [fields.nth(i).input_value() for i in (0, 1)] == ["the dog sleeps", "a cat runs"]
        fields.nth(1).fill("")
        warned.wait_for(state="detached")
        v.settle()
        assert v.page.locator(".fields textarea").count() == 1
        assert fields.nth(0).input_value() == "the dog sleeps"
        assert v.page.locator(".js-plotly-plot").count()


def test_a_text_of_ten_thousand_characters_is_answered_and_its_cut_named(
    visit: Open, query: dict[str, str], clf: Any
) -> None:
    v = visit()
    v.go("compare", **query, mask=OFF.hex, a="the dog sleeps", b="a cat runs")
    long = "the dog sleeps " * 700
    v.page.locator(".fields textarea").nth(0).fill(long)
    v.page.get_by_text(re.compile(r"longer than the model's \d+ tokens: of the first text only")).wait_for()
    v.settle()
    said = v.page.locator("h3").all_inner_texts()
    expected = (answer(clf, long, "a cat runs", m) for m in (HeadMask.full(12, 12), OFF))
    assert said == [f"{name} {p:.3f}" for name, p in expected]
    assert v.page.locator(".fields textarea").nth(0).input_value() == long
    v.page.get_by_role("link", name="Mask lab").first.click()  # a text too long for the address stays with the tab
    v.heads_off(40)
    v.page.get_by_role("link", name="Compare").first.click()
    v.page.get_by_role("heading", name="Compare", exact=True).wait_for()
    v.page.locator(".fields textarea").first.wait_for()
    v.settle()
    assert v.page.locator(".fields textarea").nth(0).input_value() == long

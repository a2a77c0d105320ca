"""Every chart on paper: no text leaves the picture, is cut, or meets another, and all are dark enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from headviz.display.figures.style import paper
from support import drawn
from support.gallery import CHARTS

BOXES = """(svg) => [...svg.querySelectorAll("text")].map((node) => {
  const { x, y, width, height } = node.getBBox();
  return [x, y, x + width, y + height, ...svg.getAttribute("viewBox").split(" ").map(Number), node.textContent];
})"""
MEET, OUT = 1.5, 0.5  # pixels: boxes have some air around their letters


@pytest.fixture(scope="module")
def sheet(browser: Any) -> Iterator[Any]:
    page = drawn.open_page(browser)
    yield page
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
def test_every_text_is_whole_apart_and_dark_enough(name: str, sheet: Any) -> None:
    _whole_and_apart(drawn.draw(sheet, paper(CHARTS[name](), 2)))
    found = drawn.draw(sheet, paper(CHARTS[name](), 1))
    _whole_and_apart(found)
    ground = drawn.without_texts(sheet, found)
    for text in found["texts"]:
        corners = np.array(text["corners"])
        middle = corners.mean(axis=0)
        points = [middle, *(middle + (corner - middle) * part for corner in corners for part in (0.3, 0.6, 0.8))]
        here = np.median([ground[int(y), int(x)] for x, y in points], axis=0)
        ink = np.array([float(v) for v in re.findall(r"[\d.]+", text["fill"])[:3]])
        ink = ink * text["opacity"] + here * (1 - text["opacity"])
        pale, dark = sorted([_luminance(ink), _luminance(here)], reverse=True)
        assert (pale + 0.05) / (dark + 0.05) >= 4.5, text["text"]


def _whole_and_apart(found: dict[str, Any]) -> None:
    texts = found["texts"]
    assert texts
    for text in texts:
        (left, up), (right, down) = np.min(text["corners"], axis=0), np.max(text["corners"], axis=0)
        assert min(left, up) > -OUT, f"cut: {text['text']}"
        assert right < found["width"] + OUT, f"cut at the right: {text['text']}"
        assert down < found["height"] + OUT, f"cut below: {text['text']}"
        if text["clip"]:
            x0, y0, x1, y1 = text["clip"]
            assert max(x0 - left, y0 - up, right - x1, down - y1) < 1, f"cut by its axes: {text['text']}"
    for i, one in enumerate(texts):
        for other in texts[:i]:
            assert _overlap(one["corners"], other["corners"]) < MEET, f"{one['text']} meets {other['text']}"


def _overlap(one: Any, other: Any) -> float:
    """How deep two rectangles lie in one another, also where they are turned."""
    one, other = np.array(one), np.array(other)
    sides = np.concatenate([np.diff(one[:3], axis=0), np.diff(other[:3], axis=0)])
    depths = []
    for axis in sides / np.linalg.norm(sides, axis=1, keepdims=True):
        a, b = one @ axis, other @ axis
        depths.append(min(a.max(), b.max()) - max(a.min(), b.min()))
    return float(min(depths))


def _luminance(colour: Any) -> float:
    c = np.asarray(colour) / 255
    return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


# ---- saved from the dashboard

KINDS = {".png", "-wide.png", ".svg", ".tex", ".txt"}


def _saved(v: Any, box: Any) -> dict[str, bytes]:
    """All kinds of files of one picture, by what follows their common name."""
    box.get_by_role("button", name="↓ Save").first.click()
    with v.page.expect_download() as caught:
        box.get_by_role("button", name="All", exact=True).first.click()
    with ZipFile(caught.value.path()) as files:
        stem = caught.value.suggested_filename.removesuffix(".zip")
        made = {name.removeprefix(stem): files.read(name) for name in files.namelist()}
    assert made.keys() == KINDS
    assert [_width(made[k]) for k in (".png", "-wide.png")] == [round(mm / 25.4 * 300) for mm in (84, 174)]
    return made


def _boxes(v: Any, svg: str) -> Any:
    """Where the texts of a saved picture stand."""
    sheet = v.page.context.new_page()
    sheet.set_content(svg)
    sheet.evaluate("document.fonts.ready")
    return sheet.locator("svg").evaluate(BOXES)


@pytest.mark.slow
def test_a_figure_a_grid_and_a_table_are_saved_with_their_caption(visit: Any) -> None:
    v = visit()
    v.go("masklab", model="demo", task="demo", off="4.10,8.6")
    v.page.locator(".st-key-mask_slices").get_by_role("button", name="↓ Save").wait_for()
    for box in (v.page.locator(".st-key-mask_slices").first, v.page):  # the page's first is the grid's
        made = _saved(v, box)
        picture, caption = made[".svg"].decode(), made[".txt"].decode().strip()
        assert "font/woff2" in picture or "octet-stream" in picture  # the font is in it
        assert caption in picture.split("</desc>")[0].replace("&amp;", "&")
        assert caption[:20] in made[".tex"].decode()
    made = _saved(v, v.page.locator(".st-key-note_mask_flips_files"))
    assert r"\begin{tabular}" in made[".tex"].decode()
    assert "The first 40 of" in made[".txt"].decode()
    found = _boxes(v, made[".svg"].decode())
    assert len(found) > 40 * 8
    for i, (x, y, right, low, _, _, width, height, text) in enumerate(found):
        assert min(x, y) >= 0, text
        assert right <= width, text
        assert low <= height, text
        for x2, y2, right2, low2, *_, other in found[:i]:
            apart = x >= right2 - MEET or x2 >= right - MEET or y >= low2 - 2 * MEET or y2 >= low - 2 * MEET
            assert apart, f"{text} meets {other}"


@pytest.mark.slow
def test_a_saved_grid_holds_its_whole_legend(visit: Any) -> None:
    """What cost means is longer than the grid is wide."""
    v = visit()
    v.go("", model="demo", task="demo", off="4.10")
    box = v.page.locator(".st-key-board_cost")
    box.get_by_role("button", name="↓ Save").click()
    with v.page.expect_download() as caught:
        box.get_by_role("button", name="SVG", exact=True).click()
    found = _boxes(v, Path(caught.value.path()).read_text(encoding="utf-8"))
    assert any("blue" in text for *_, text in found)
    for x, y, right, low, _, _, width, height, text in found:
        assert min(x, y) >= 0, text
        assert right <= width, text
        assert low <= height, text


def _width(png: bytes) -> int:
    assert png.startswith(b"\x89PNG")
    assert b"pHYs" in png[:80]
    return int.from_bytes(png[16:20], "big")

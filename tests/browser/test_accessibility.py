"""axe-core (vendored, Mozilla Public License 2.0) finds nothing serious on any page, in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.ui.shell.frame import PAGES
from support.axe import check, check_everywhere

pytestmark = pytest.mark.browser

# states beyond a page as it opens: what a switch, a tab or a presentation adds
STATES = (
    ("head", {"picture": "arcs"}),
    ("compare", {"tokens": "1", "shift": "1", "story": "2"}),
    ("masklab", {"present": "1"}),
)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*PAGES])
def test_nothing_serious_in_light_and_dark_and_nothing_too_wide_for_a_phone(
    visit: Callable[..., Any], query: dict[str, str], page: str
) -> None:
    v = visit()
    check_everywhere(v, page, query)
    assert "\\" not in v.page.get_by_test_id("stMain").inner_text(), "a text is escaped twice"


@pytest.mark.slow
@pytest.mark.parametrize(("page", "more"), STATES, ids=lambda s: s if isinstance(s, str) else "-".join(s))
def test_nothing_serious_in_other_states(
    visit: Callable[..., Any], query: dict[str, str], page: str, more: dict[str, str]
) -> None:
    check(visit(color_scheme="dark"), page, {**query, **more})


CONTRASTS = """(cells) => {
  const light = (css) => css.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  return cells.map((cell) => {
    const glyph = cell.firstElementChild, style = getComputedStyle(glyph);
    if (!glyph.textContent || cell.dataset.off === '1') return null;
    const [low, high] = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }).filter((v) => v !== null);
}"""


@pytest.mark.slow
def test_numbers_in_cells_can_be_read(visit: Callable[..., Any], query: dict[str, str]) -> None:
    """axe passes over them. White on a middle blue had 3.6."""
    v = visit()
    for shade in ("light", "dark"):
        v.page.emulate_media(color_scheme=shade)
        v.go("scores", **query, score="magnitude", numbers="1")
        v.page.locator(".cell[data-kind=value]", has_text=".").nth(99).wait_for()
        v.settle()
        found = v.page.locator(".cell[data-kind=value]").evaluate_all(CONTRASTS)
        assert len(found) >= 100
        assert min(found) >= 4.5


RINGED = """() => {
    let e = document.activeElement;
    while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    const name = e.getAttribute("aria-label") || e.dataset.testid || e.innerText.slice(0, 20);
    for (let depth = 0, part = e; depth < 6 && part?.nodeType === 1; depth++, part = part.parentElement) {
        const s = getComputedStyle(part);
        const outline = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1;
        const border = s.borderColor === "rgb(11, 114, 133)";  // a field's, in the primary colour
        if (outline || border || s.boxShadow !== "none") return [name, true];
    }
    return [name, false];
}"""


@pytest.mark.slow
def test_tables_have_words_and_what_tab_reaches_has_a_ring(visit: Callable[..., Any]) -> None:
    """On the screen a table is a canvas and a figure a drawing."""
    v = visit()
    v.go("masklab", model="demo", task="demo", off="4.10")
    v.page.locator(".st-key-mask_slices .words tr").nth(2).wait_for(state="attached")
    assert "negation" in v.page.locator(".st-key-mask_slices .words").inner_text()
    assert v.page.locator(".words table caption").count() >= 2
    v.settle()
    v.page.get_by_role("link", name="Workbench").focus()
    reached = {}
    for _ in range(25):
        v.page.keyboard.press("Tab")
        name, ringed = v.page.evaluate(RINGED)
        reached[name] = ringed
    assert {"stTopNavLink", "stMain"} <= set(reached)
    assert not [name for name, ringed in reached.items() if not ringed]


@pytest.mark.slow
def test_a_finger_finds_room_and_no_hint_at_keys(visit: Callable[..., Any], query: dict[str, str]) -> None:
    v = visit(has_touch=True, is_mobile=True)
    v.page.set_viewport_size({"width": 390, "height": 844})
    v.go("masklab", **query)
    buttons = v.page.locator("[data-testid^=stBaseButton]:visible")
    assert min(box["height"] for b in buttons.all() if (box := b.bounding_box())) >= 40
    assert not v.page.locator("kbd:visible").count()
    assert not v.page.get_by_text("Keys: arrows").is_visible()
    # cells grow to a finger's width where twelve do not fit
    v.go("", model="demo", task="demo")
    cell = v.page.locator(".board .cell:visible").nth(12 * 4 + 10)
    cell.wait_for()
    assert cell.bounding_box()["width"] < 40
    v.page.locator("button.larger:visible").tap()
    v.page.wait_for_function("document.documentElement.scrollWidth <= 390")
    assert min(cell.bounding_box()[side] for side in ("width", "height")) >= 40
    cell.tap()  # it slides into sight
    assert cell.get_attribute("data-off") == "1"
    v.page.locator("button.larger:visible").tap()
    assert cell.bounding_box()["width"] < 40

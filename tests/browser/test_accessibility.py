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
        v.go("", **query, score="magnitude", numbers="1")
        v.page.locator(".cell[data-kind=value]", has_text=".").nth(99).wait_for()
        v.settle()
        found = v.page.locator(".cell[data-kind=value]").evaluate_all(CONTRASTS)
        assert len(found) >= 100
        assert min(found) >= 4.5

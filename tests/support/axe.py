"""What axe-core (vendored, Mozilla Public License 2.0) finds on a page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headviz.heads import HeadMask
from headviz.ui.shell.frame import PAGES

AXE = (Path(__file__).parents[1] / "browser" / "vendor" / "axe-4.14.1.min.js").read_text(encoding="utf-8")
PHONE = {"width": 390, "height": 800}
MASK = HeadMask.full(12, 12).without_random(40, seed=3).hex
# Streamlit draws tables on a canvas and names the scroll area of its own page; neither is ours to change.
NOT_OURS = ("[data-testid=stDataFrame]", "[data-testid=stMain]", "[data-testid=stHeader]")


def check(v: Any, page: str, query: dict[str, str]) -> None:
    v.go("" if page == next(iter(PAGES)) else page, **query, mask=MASK, head="3.5")
    v.page.wait_for_timeout(2500)
    v.settle()
    assert not serious(v)


def check_everywhere(v: Any, page: str, query: dict[str, str]) -> None:
    """One visit: nothing serious in light and in dark, and on a phone nothing is wider than the screen."""
    check(v, page, query)
    light = shade(v)
    v.page.emulate_media(color_scheme="dark")
    v.settle()
    assert (light, shade(v)) == ("rgb(253, 253, 252)", "rgb(20, 23, 27)")  # the page follows its reader
    assert not serious(v)
    v.page.emulate_media(color_scheme="light")
    v.page.set_viewport_size(PHONE)
    v.settle()
    wide = v.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    main = v.page.evaluate("(m => m.scrollWidth - m.clientWidth)(document.querySelector('[data-testid=stMain]'))")
    assert (wide, main) == (0, 0)


def shade(v: Any) -> str:
    return str(v.page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor"))


def serious(v: Any) -> list[Any]:
    """What axe-core finds on the page as it stands."""
    v.page.evaluate(AXE)
    result = v.page.evaluate(
        "exclude => axe.run({exclude: exclude.map(e => [e])}, {resultTypes: ['violations']})", list(NOT_OURS)
    )
    return [
        (f["id"], f["impact"], [n["target"] for n in f["nodes"]][:4], f["nodes"][0]["failureSummary"][:300])
        for f in result["violations"]
        if f["impact"] in ("serious", "critical")
    ]

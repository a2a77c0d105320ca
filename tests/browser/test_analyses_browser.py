"""Analyses in a real browser: run, watch, stop, go on; the result, its published figures, and the ways on from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from support.axe import serious

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Open = Callable[..., Any]

LONG = 240_000  # milliseconds that an analysis may take on a busy machine
# analysis -> what its sentence says
SAID = {"ablation": "heads cost", "by-slice": "when one head is off"}


def run(v: Any, name: str, query: dict[str, str], **more: str) -> Any:
    """Open an analysis, run it, wait for its sentence."""
    page = v.go("analyses", **query, analysis=name, **more)
    button = page.get_by_role("button", name="Run", exact=True)
    said = page.get_by_text(SAID[name]).first
    button.or_(said).first.wait_for()
    if button.count():
        button.click()
    said.wait_for(timeout=LONG)
    v.settle()
    return page


def test_an_analysis_is_run_and_reads_well_for_everybody(visit: Open, query: dict[str, str]) -> None:
    v = visit(color_scheme="dark")
    page = run(v, "ablation", query, limit="24")
    for fold in page.locator("[data-testid=stExpander] summary").filter(has_text="Published figures").all():
        fold.click()
        v.settle()
    assert not serious(v)
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(1500)
    wide = page.evaluate("(m => m.scrollWidth - m.clientWidth)(document.querySelector('[data-testid=stMain]'))")
    assert wide == 0


def test_a_kind_of_examples_leads_to_its_head_in_the_mask_lab(visit: Open) -> None:
    v = visit()
    for _ in range(2):  # and once more after coming back
        page = run(v, "by-slice", {}, limit="130")
        page.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(position={"x": 16, "y": 52})
        page.wait_for_url(lambda url: "/masklab" in url)
        assert "mask" in parse_qs(urlparse(page.url).query)

"""Runs in a real browser: start, leave, return, cancel, resume, open a mask; a sweep's plan; data of one's own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from headviz.heads import HeadMask

pytestmark = pytest.mark.browser
Open = Callable[..., Any]

LONG = 240_000  # milliseconds that a run may take on a slow or busy machine


def expander(v: Any, name: str) -> Any:
    return v.page.locator("[data-testid=stExpander] summary").filter(has_text=name).first


def choose(v: Any, label: str, option: str) -> None:
    """An option of a select box; it stands there afterwards."""
    v.choose(re.compile(label), option)
    assert v.page.get_by_role("combobox", name=re.compile(label)).first.input_value() == option


def pruning_form(v: Any, **fields: str) -> None:
    """The form of one run, with few examples to score on."""
    v.page.get_by_role("heading", name="Runs", exact=True).wait_for()
    box = expander(v, "Start a run")
    box.wait_for()
    v.settle()
    if box.locator("xpath=..").get_attribute("open") is None:  # it is open where there is no run yet
        box.click()
    v.page.get_by_role("button", name="Plan", exact=True).wait_for()
    for label, value in fields.items():
        v.fill(label, value)


def state_of(v: Any, title: str, *states: str) -> str:
    """Wait until the list says that a run is in one of these states."""
    said = re.compile(rf"{title}\s*({'|'.join(states)})\s*·")
    line = v.page.locator("[role=radiogroup] > div").filter(has_text=said).first
    line.wait_for(timeout=LONG)
    result = said.search(line.inner_text())
    return result[1] if result else state_of(v, title, *states)  # it has changed since


def steps_of(v: Any, title: str) -> int:
    """Steps of a run, as the list says."""
    line = v.page.locator("[role=radiogroup] > div").filter(has_text=title).first.inner_text()
    result = re.search(r"(\d+) of \d+ steps", line)
    return int(result[1]) if result else 0


@pytest.mark.slow
def test_a_run_is_started_left_found_again_cancelled_resumed_and_its_mask_opened(
    visit: Open, query: dict[str, str]
) -> None:
    v = visit()
    v.go("runs", **query, beside="conductance-spearman", limit="48")
    # scored anew before each of a hundred steps: slow enough to be stopped on any machine
    pruning_form(v, **{"Each step removes, % of heads": "1", "Up to, % of heads": "90", "Examples to score on": "24"})
    choose(v, "Algorithm", "Iterative")
    v.fill("Title (optional)", "browser run")
    start = v.page.get_by_role("button", name="Start", exact=True)
    assert start.is_disabled()
    v.page.get_by_role("button", name="Plan", exact=True).click()
    v.page.get_by_text(re.compile("^About .* on this machine")).wait_for(timeout=LONG)
    assert v.page.get_by_text(re.compile("scorings, no training")).count()
    start.click()
    v.page.get_by_role("heading", name="browser run").wait_for()
    state_of(v, "browser run", "queued", "running", "done")
    v.page.wait_for_url(re.compile("[?&]run="))

    v.page.get_by_role("link", name="Mask lab").first.click()
    v.page.get_by_role("heading", name="Mask lab").wait_for()
    v.settle()
    v.page.get_by_role("link", name="Runs").first.click()
    v.page.get_by_role("heading", name="browser run").wait_for()
    v.page.get_by_text("After removing").wait_for(timeout=LONG)  # a first step has come while nobody did anything

    if v.page.get_by_role("button", name="Cancel", exact=True).count():
        v.page.get_by_role("button", name="Cancel", exact=True).click()
    if state_of(v, "browser run", "cancelled", "done") == "cancelled":
        before = steps_of(v, "browser run")
        v.page.get_by_role("button", name="Resume", exact=True).click()
        state_of(v, "browser run", "queued", "running", "done")
        until = time.monotonic() + LONG / 1000
        while steps_of(v, "browser run") <= before:
            assert time.monotonic() < until, "the resumed run makes no step"
            v.page.wait_for_timeout(300)
        cancel = v.page.get_by_role("button", name="Cancel", exact=True)
        if cancel.count():
            cancel.click()
        state_of(v, "browser run", "cancelled", "done")
    v.settle()
    v.page.get_by_role("button", name="Open its mask in the Mask lab").click()
    v.page.get_by_role("heading", name="Mask lab").wait_for()
    v.settle()
    mask = HeadMask.from_hex(parse_qs(urlparse(v.page.url).query)["mask"][0], 12, 12)
    assert mask.off
    v.heads_off(len(mask.off))

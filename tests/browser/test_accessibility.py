"""axe-core (vendored, Mozilla Public License 2.0) finds nothing serious on any page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.heads import HeadMask
from headviz.ui.shell.frame import PAGES

pytestmark = pytest.mark.browser
AXE = (Path(__file__).parent / "vendor" / "axe-4.14.1.min.js").read_text(encoding="utf-8")
MASK = HeadMask.full(12, 12).without_random(40, seed=3).hex
# Streamlit draws tables on a canvas and names the scroll area of its own page; neither is ours to change.
NOT_OURS = ("[data-testid=stDataFrame]", "[data-testid=stMain]", "[data-testid=stHeader]")


# states beyond a page as it opens: what a switch, a tab or a presentation adds
STATES = (
    ("head", {"picture": "arcs"}),
    ("head", {"picture": "layer"}),
    ("compare", {"tokens": "1", "shift": "1"}),
    ("masklab", {"present": "1"}),
    ("heads", {"score": "magnitude", "numbers": "0"}),
)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("page", [file for file, _ in PAGES])
def test_nothing_serious(visit: Callable[..., Any], query: dict[str, str], page: str, scheme: str) -> None:
    check(visit(color_scheme=scheme), page, query)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "more"), STATES, ids=lambda s: s if isinstance(s, str) else "-".join(s))
def test_nothing_serious_in_other_states(
    visit: Callable[..., Any], query: dict[str, str], page: str, more: dict[str, str]
) -> None:
    check(visit(color_scheme="dark"), page, {**query, **more})


def check(v: Any, page: str, query: dict[str, str]) -> None:
    v.go("" if page == PAGES[0][0] else page, **query, mask=MASK, head="3.5")
    v.page.wait_for_timeout(2500)
    v.settle()
    assert not serious(v)


def serious(v: Any) -> list[Any]:
    """What axe-core finds on the page as it stands."""
    v.page.evaluate(AXE)
    found = v.page.evaluate(
        "exclude => axe.run({exclude: exclude.map(e => [e])}, {resultTypes: ['violations']})", list(NOT_OURS)
    )
    return [
        (f["id"], f["impact"], [n["target"] for n in f["nodes"]][:4], f["nodes"][0]["failureSummary"][:300])
        for f in found["violations"]
        if f["impact"] in ("serious", "critical")
    ]

"""axe-core (vendored, Mozilla Public License 2.0) finds nothing serious on any page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.ui.shell.frame import PAGES
from support.axe import check

pytestmark = pytest.mark.browser

# states beyond a page as it opens: what a switch, a tab or a presentation adds
STATES = (
    ("head", {"picture": "arcs"}),
    ("head", {"picture": "layer"}),
    ("compare", {"tokens": "1", "shift": "1"}),
    ("masklab", {"present": "1"}),
    ("heads", {"score": "magnitude", "numbers": "0"}),
)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", [file for file, _ in PAGES])
def test_nothing_serious(visit: Callable[..., Any], query: dict[str, str], page: str, scheme: str) -> None:
    check(visit(color_scheme=scheme), page, query)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "more"), STATES, ids=lambda s: s if isinstance(s, str) else "-".join(s))
def test_nothing_serious_in_other_states(
    visit: Callable[..., Any], query: dict[str, str], page: str, more: dict[str, str]
) -> None:
    check(visit(color_scheme="dark"), page, {**query, **more})

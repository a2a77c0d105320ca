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
    ("head", {"picture": "layer"}),
    ("compare", {"tokens": "1", "shift": "1"}),
    ("compare", {"story": "2"}),
    ("masklab", {"present": "1"}),
    ("heads", {"score": "magnitude", "numbers": "0"}),
)


@pytest.mark.slow
@pytest.mark.parametrize("page", [file for file, _ in PAGES])
def test_nothing_serious_in_light_and_dark_and_nothing_too_wide_for_a_phone(
    visit: Callable[..., Any], query: dict[str, str], page: str
) -> None:
    check_everywhere(visit(), page, query)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "more"), STATES, ids=lambda s: s if isinstance(s, str) else "-".join(s))
def test_nothing_serious_in_other_states(
    visit: Callable[..., Any], query: dict[str, str], page: str, more: dict[str, str]
) -> None:
    check(visit(color_scheme="dark"), page, {**query, **more})

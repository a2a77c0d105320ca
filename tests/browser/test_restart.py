"""A page that stays open while its server is killed and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.server import serve
from tools.container_steps import free_port

from .conftest import SCREEN, Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_page_that_outlives_its_server_has_the_mask_that_it_shows(
    browser: Any, tmp_path: Path, query: dict[str, str], studio_folder: Path
) -> None:
    from playwright.sync_api import TimeoutError as TooLate

    port, environment = free_port(), {"HEADVIZ_ROOTS": str(studio_folder), "OMP_NUM_THREADS": "1"}
    context = browser.new_context(viewport=SCREEN)
    with serve(tmp_path / "home", tmp_path / "first.log", port, **environment) as server:
        v = Visit(context, server.address)
        v.go("masklab", **query)
        for head in ("L3·H5", "L4·H6"):
            v.cell(head).click()
            v.settle()
        v.heads_off(2)
    v.cell("L5·H7").click()  # nobody is there to take it
    with serve(tmp_path / "home", tmp_path / "second.log", port, **environment):
        on = v.page.locator('[aria-label^="L3·H5"][aria-pressed="true"]')
        for _ in range(20):  # a press before the page is connected again is lost
            v.page.get_by_role("button", name="All on").click()
            try:
                on.wait_for(timeout=5000)  # what Python does shows on the grid
                break
            except TooLate:
                continue
        v.heads_off(0)
        assert v.cell("L5·H7").get_attribute("aria-pressed") == "true"
        v.settle()
        v.cell("L5·H7").click()
        v.heads_off(1)
        v.settle()
        assert [h.dotted for h in v.mask().off] == ["5.7"]
    context.close()

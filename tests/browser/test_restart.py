"""A page that stays open while its server is killed and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.server import serve
from tools.container_steps import free_port

from .conftest import SCREEN, Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_page_shows_the_mask_of_its_address_after_a_restart(
    browser: Any, tmp_path: Path, query: dict[str, str], studio_folder: Path
) -> None:
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
    assert v.cell("L5·H7").get_attribute("aria-pressed") == "false"
    with serve(tmp_path / "home", tmp_path / "second.log", port, **environment):
        v.page.locator('[aria-label^="L5·H7"][aria-pressed="true"]').wait_for()
        v.settle()
        v.heads_off(2)
        assert [h.dotted for h in v.mask().off] == ["3.5", "4.6"]
        v.page.get_by_role("button", name="All on").click()  # what Python does shows on the grid
        v.page.locator('[aria-label^="L3·H5"][aria-pressed="true"]').wait_for()
        v.cell("L5·H7").click()
        v.heads_off(1)
        v.settle()
        assert [h.dotted for h in v.mask().off] == ["5.7"]
    context.close()

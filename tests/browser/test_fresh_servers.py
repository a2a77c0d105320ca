"""The first seconds of a new server: whatever is clicked first, and however early, no page fails.

Torch and transformers are imported in the background then, and any page may need them at the same moment.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import IDLE, PATIENCE, SCREEN
from headviz.ui.shell.frame import PAGES
from support.server import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1800)]
SERVERS, TOGETHER = 50, 5  # fresh servers in all, and one after the other in a test
LATEST = 3.0  # seconds after the first page at which the first click may come


@pytest.mark.parametrize("seed", range(SERVERS // TOGETHER))
def test_a_fresh_server_and_random_first_clicks(browser: Any, tmp_path: Path, seed: int) -> None:
    draw, wrong = random.Random(seed), []
    for number in range(TOGETHER):
        begin, *clicks = draw.sample(PAGES, 3)
        waits = [draw.uniform(0, LATEST) for _ in clicks]
        log = tmp_path / f"{number}.log"
        with serve(tmp_path / f"home{number}", log, HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1") as server:
            context = browser.new_context(viewport=SCREEN)
            page = context.new_page()
            page.set_default_timeout(3 * PATIENCE)  # a server that starts on a busy machine is late, not wrong
            page.goto(f"{server.address}/{begin[0] if begin is not PAGES[0] else ''}")
            page.get_by_role("link", name=clicks[0][1], exact=True).first.wait_for()
            for (_, title), wait in zip(clicks, waits, strict=True):
                page.wait_for_timeout(1000 * wait)
                page.get_by_role("link", name=title, exact=True).first.click()
            page.get_by_role("heading", level=1, name=clicks[-1][1], exact=True).wait_for()
            page.wait_for_selector(IDLE)
            page.wait_for_timeout(300)
            page.wait_for_selector(IDLE)
            alerts = page.locator("[data-testid=stException], [data-testid=stAlertContentError]").all_inner_texts()
            context.close()
        messages = log.read_text(errors="replace")
        told = [line for line in messages.splitlines() if "Error" in line or "Traceback" in line]
        if alerts or told:
            path = " → ".join([begin[1], *(f"{w:.1f} s {t}" for (_, t), w in zip(clicks, waits, strict=True))])
            wrong.append(f"{path}: {alerts} {told[-5:]}")
    assert not wrong, "\n".join(wrong)

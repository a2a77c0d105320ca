"""The first seconds of a new server: whatever is clicked first, and however early, no page fails.

Transformers is imported in the background then, and any page may need it at the same moment. The first server of each
five is a new Python, as a user's is. The others are forked from a process that has imported Streamlit and torch but
nothing of transformers or headviz: the same race, in a third of the time. All show a tiny model.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from browser.conftest import IDLE, PATIENCE, SCREEN
from headviz.ui.shell.frame import PAGES
from support.forked import Nursery
from support.marks import seeds
from support.server import serve
from tools.container_steps import free_port

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
SERVERS, TOGETHER = 50, 5  # fresh servers in all, and one after the other in a test
LATEST = 2.0  # seconds after a page at which the next click may come
WRONG = "[data-testid=stException], [data-testid=stAlertContentError]"
IMPORTED = (
    "streamlit.web.bootstrap streamlit.web.cli streamlit.elements.plotly_chart streamlit.testing.v1 pandas "
    "plotly.graph_objects pyarrow.parquet scipy.stats sympy torch torch._dynamo torch.distributed.tensor"
).split()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery(IMPORTED) as made:
        yield made


@pytest.mark.parametrize("seed", seeds(range(2), range(2, SERVERS // TOGETHER)))
def test_a_fresh_server_and_random_first_clicks(
    browser: Any, nursery: Nursery, query: dict[str, str], studio_folder: Path, tmp_path: Path, seed: int
) -> None:
    draw, wrong, port = random.Random(seed), [], free_port()
    context = browser.new_context(viewport=SCREEN)  # on one port, so that the browser loads Streamlit's files once
    for number in range(TOGETHER):
        begin, *clicks = draw.sample([(name, page.title) for name, page in PAGES.items()], 3)
        waits = [draw.uniform(0, LATEST) for _ in clicks]
        log = tmp_path / f"{number}.log"
        settings = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HEADVIZ_ROOTS": str(studio_folder)}
        started = time.perf_counter()
        with serve(tmp_path / f"home{number}", log, port, nursery if number else None, **settings) as server:
            page = context.new_page()
            page.set_default_timeout(2 * PATIENCE)  # one that starts on a busy machine is late, not wrong
            path = begin[0] if begin[0] != next(iter(PAGES)) else ""
            page.goto(f"{server.address}/{path}?{urlencode(query)}")
            page.get_by_role("link", name=clicks[0][1], exact=True).first.wait_for()
            for (_, title), wait in zip(clicks, waits, strict=True):
                page.wait_for_timeout(1000 * wait)
                page.get_by_role("link", name=title, exact=True).first.click()
            page.get_by_role("heading", level=1, name=clicks[-1][1], exact=True).wait_for()
            page.wait_for_selector(IDLE)
            page.wait_for_timeout(300)
            page.wait_for_selector(IDLE)
            alerts = page.locator(WRONG).all_inner_texts()
            page.close()
        messages = log.read_text(errors="replace")
        told = [line for line in messages.splitlines() if "Error" in line or "Traceback" in line]
        way = " → ".join([begin[1], *(f"{w:.1f} s {t}" for (_, t), w in zip(clicks, waits, strict=True))])
        print(f"{time.perf_counter() - started:5.1f} s  {way}")
        if alerts or told:
            wrong.append(f"{way}: {alerts} {told[-5:]}")
    context.close()
    assert not wrong, "\n".join(wrong)


def test_a_link_to_a_page_that_is_no_file_is_the_first_thing_that_a_server_is_asked_for(
    browser: Any, query: dict[str, str], studio_folder: Path, tmp_path: Path
) -> None:
    """A page that came through the plugins' door was "not found" until another page had been opened."""
    settings = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HEADVIZ_ROOTS": str(studio_folder)}
    with serve(tmp_path / "home", tmp_path / "log", **settings) as server:
        page = browser.new_page()
        page.set_default_timeout(2 * PATIENCE)
        page.goto(f"{server.address}/distil?{urlencode(query)}")
        page.get_by_role("heading", level=1, name="Distil", exact=True).wait_for()
        page.wait_for_selector(IDLE)
        assert "not found" not in page.inner_text("body").lower()
        page.close()

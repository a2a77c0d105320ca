"""One dashboard and several people; and a dashboard that is killed while it has a run at work."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import psutil
import pytest

from browser.conftest import Visit, end_runs
from headviz.runs.registry import Registry
from headviz.runs.service import this_user
from headviz.storage import workspace
from support import rehearsal
from support.proxy import named
from support.recorded_runs import Runs, pruning
from support.running import ended, until
from support.server import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
HEADERS = {"STREAMLIT_SERVER_TRUSTED_USER_HEADERS": json.dumps({"X-Forwarded-Email": "email"})}


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a dashboard, which this process uses, too."""
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path / "home"))
    yield tmp_path / "home"
    end_runs(tmp_path / "home")


def test_a_run_is_its_owners_alone_behind_a_login(browser: Any, shared: Path, studio_folder: Path) -> None:
    """The proxy in front names each connection's user in a header, as the README says. Chromium itself sends a
    test's headers with requests only, not with web sockets."""
    run = Runs().put("lost", "prune", pruning(studio_folder), 2, owner="ann@example.org", title="Ann's run")
    for user, name in (("ann@example.org", "hers"), (this_user(), "the machine's")):
        workspace.change(user, "ab" * 16, lambda stored, name=name: replace(stored, masks={name: "0f"}))
    with (
        serve(shared, shared.parent / "log.txt", HEADVIZ_ROOTS=str(studio_folder), **HEADERS) as server,
        named("ann@example.org", urlparse(server.address).port) as for_ann,
        named("bob@example.org", urlparse(server.address).port) as for_bob,
    ):

        def exported(address: str) -> list[str]:
            visit = Visit(browser.new_context(), address)
            visit.go("data")
            with visit.page.expect_download() as sent:
                visit.page.get_by_role("button", name="Export all").click()
            models = json.loads(Path(sent.value.path()).read_text(encoding="utf-8"))["models"]
            return [name for one in models.values() for name in one["masks"]]

        def resume(address: str) -> Any:
            visit = Visit(browser.new_context(), address)
            visit.go("runs", run=run)
            visit.page.get_by_role("heading", name="Ann's run").wait_for()
            return visit.page.get_by_role("button", name="Resume", exact=True)

        assert exported(for_ann) == ["hers"]
        assert exported(for_bob) == []
        hers, his = resume(for_ann), resume(for_bob)
        his.wait_for()
        assert his.is_disabled()
        assert his.page.get_by_role("button", name="Archive or delete").is_disabled()
        assert hers.is_enabled()
        # a browser that gets around the disabled button is refused by the server
        his.evaluate("e => { e.disabled = false; e.click() }")
        his.page.wait_for_timeout(2000)
        assert Registry().get(run).state == "lost"
        hers.click()
        until(lambda: Registry().get(run).state != "lost", 120, "Ann's resumed run")


def test_a_killed_dashboard_leaves_its_run_at_work_and_a_new_one_shows_it(browser: Any, shared: Path) -> None:
    with serve(shared, shared.parent / "first.txt") as server:
        tab = Visit(browser.new_context(), server.address)
        rehearsal.load()
        run = Runs().add("rehearsal", {"steps": 30, "seconds": 0.5}, title="survivor")  # waits for who looks next
        tab.go("runs", run=run.id)
        until(lambda: len(Registry().steps(run.id)) >= 2, 60, "two steps")
        assert psutil.Process(Registry().get(run.id).pid).ppid() == server.pid
        tab.page.get_by_role("heading", name="survivor").wait_for()
        os.kill(server.pid, signal.SIGKILL)
    assert Registry().get(run.id).state == "running"
    with serve(shared, shared.parent / "second.txt") as server:
        tab = Visit(browser.new_context(), server.address)
        tab.go("runs", run=run.id)
        tab.page.get_by_role("heading", name="survivor").wait_for()
        after = ended(run.id, 240)
        assert (after.state, after.attempt) == ("done", 1)
        tab.page.get_by_text(re.compile(r"survivor\s*done")).first.wait_for()

"""What lies in the folder where the dashboard is started switches no guard off."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headviz.commands import serve
from support.server import wait_until_healthy
from tools.container_steps import free_port

from .test_server import answer, upgrade

OPTIONS = """
import json, sys
from streamlit import config
config._main_script_path = sys.argv[1]
from headviz.ui.shell import server
server.begin()
found = {name: option.value for name, option in config.get_config_options().items()}
print(json.dumps(found, default=str))
"""
# What no guard hangs on, so that a file may set it. An option that is new in Streamlit is in neither place: decide.
LEFT = """
logger.level logger.messageFormat logger.enableRich
client.disableDataExport client.showSidebarNavigation ui.hideTopBar
runner.fastReruns runner.enumCoercion runner.parallelMaxWorkers runner.cacheBackgroundRefreshMaxWorkers
runner.cacheBackgroundRefreshTTLMultiplier runner.connectionDefaultTTL runner.cacheHashSeed
server.folderWatchBlacklist server.maxCacheDataSize server.headless server.port server.allowRunOnSave
server.baseUrlPath server.websocketPingInterval server.sslCertFile server.sslKeyFile
server.agentWaitTimeout server.agentSessionTTL server.agentMaxSessions server.agentPreviewRows
browser.serverPort magic.displayRootDocString magic.displayLastExprIfNoSemicolon
global.disableWidgetStateDuplicationWarning global.showWarningOnDirectExecution global.unitTest
global.suppressDeprecationWarnings global.minCachedMessageSize global.maxCachedMessageAge
""".split()


def effective(folder: Path, **environment: str) -> dict[str, Any]:
    """Streamlit's options for a dashboard that is started in this folder."""
    words = [sys.executable, "-P", "-c", OPTIONS, str(serve.app_file())]
    env = {k: v for k, v in os.environ.items() if not k.startswith("STREAMLIT_")} | environment
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def other(name: str, value: Any) -> Any:
    """Another value than this one."""
    special = {
        "server.trustedUserHeaders": '{"X-Evil": "email"}',
        "server.unsafeMetricsUserAttributes": ["email"],
        "server.xsrfCookieSameSite": "strict",
        "client.toolbarMode": "developer",
    }
    if name in special:
        return special[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return ["http://evil.example"] if isinstance(value, list) else "evil"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose files set every option of Streamlit that a guard may hang on, and secrets."""
    folder = tmp_path_factory.mktemp("hostile")
    clean = effective(folder)
    sections: dict[str, list[str]] = {}
    for name, value in clean.items():
        section, _, key = name.partition(".")
        if section != "theme" and name not in LEFT:
            sections.setdefault(section, []).append(f"{key} = {json.dumps(other(name, value))}")
    sections["secrets"] = [f"files = [{json.dumps(str(folder / '.streamlit' / 'secrets.toml'))}]"]
    (folder / ".streamlit").mkdir()
    lines = [f"[{section}]\n" + "\n".join(rows) + "\n" for section, rows in sections.items()]
    (folder / ".streamlit" / "config.toml").write_text("\n".join(lines))
    (folder / ".streamlit" / "secrets.toml").write_text('HEADVIZ_ROOTS = "/"\n[auth]\ncookie_secret = "known"\n')
    return folder


@pytest.mark.slow
def test_no_option_that_guards_something_can_be_set_there(hostile: Path, tmp_path: Path) -> None:
    clean, result = effective(tmp_path), effective(hostile)
    changed = [name for name in clean if result[name] != clean[name] and name != "server.cookieSecret"]
    assert changed == []
    assert result["server.cookieSecret"] not in ("evil", clean["server.cookieSecret"])


@pytest.mark.slow
def test_a_theme_and_the_environment_are_the_users_own(tmp_path: Path) -> None:
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text('[theme]\nbase = "dark"\nshowSidebarBorder = true\n')
    result = effective(tmp_path, STREAMLIT_SERVER_COOKIE_SECRET="mine")
    assert (result["theme.base"], result["theme.showSidebarBorder"]) == ("dark", True)
    assert result["server.cookieSecret"] == "mine"


@pytest.fixture(scope="module")
def started(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path, Path]]:
    """``headviz MODEL`` in the hostile folder: its port, what it printed, and what it gave to the browser."""
    place = tmp_path_factory.mktemp("started")
    (place / "model").mkdir()
    opener, log, opened = place / "xdg-open", place / "log.txt", place / "opened.txt"
    opener.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    opener.chmod(0o755)
    port = free_port()
    environment = {
        **os.environ,
        "HEADVIZ_HOME": str(place / "home"),
        "DISPLAY": ":99",  # else Streamlit opens no browser
        "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
    }
    words = [sys.executable, "-m", "headviz", str(place / "model"), "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, cwd=hostile, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}", process, log)
        yield port, log, opened
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="xdg-open")
def test_one_address_is_printed_and_opened(started: tuple[int, Path, Path]) -> None:
    port, log, opened = started
    assert re.findall(r"https?://\S+", log.read_text()) == [f"http://127.0.0.1:{port}"]
    until = time.monotonic() + 20
    while not (opened.is_file() and opened.read_text()) and time.monotonic() < until:  # made empty, then written
        time.sleep(0.05)
    assert opened.read_text().split() == [f"http://127.0.0.1:{port}"]


@pytest.mark.slow
def test_a_foreign_origin_opens_no_connection_there(started: tuple[int, Path, Path]) -> None:
    port = started[0]
    assert upgrade(port, f"127.0.0.1:{port}", "http://evil.example") == 403
    assert upgrade(port, f"127.0.0.1:{port}", f"http://127.0.0.1:{port}") == 101
    assert answer(port, "evil.example")[0] == 403

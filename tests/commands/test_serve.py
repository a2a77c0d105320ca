"""A server's place: what cannot be used is one line, before anything is started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from headviz import cli
from headviz.commands import serve
from headviz.commands.serve import check_place
from headviz.errors import OptionError
from support.server import wait_until_healthy
from tools.container_steps import free_port


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["serve", "--headless", *words]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("port", ["0", "-1", "65536", "999999999999", "http", "1e3", "9" * 5000, ""])
def test_a_port_that_is_none(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--port" in refused(capsys, f"--port={port}")


@pytest.mark.parametrize("address", ["nonsense", "256.1.1.1", "1.2.3.4", "", "::zz", "localhost:80", "a b", "x" * 3000])
def test_an_address_that_is_not_here(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Give one such as" in (said := refused(capsys, f"--address={address}", "--port", "8599")) or "cannot" in said


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"Port {port}" in refused(capsys, "--port", str(port))
    check_place("127.0.0.1", port)


@pytest.mark.skipif(not hasattr(os, "fork") or not os.path.exists("/proc/sys/net/ipv4"), reason="Linux only")
def test_a_port_that_only_root_may_have() -> None:
    """As an ordinary user, in a child of its own."""
    if os.geteuid() == 0:
        child = os.fork()
        if child == 0:
            os.setgid(65534)
            os.setuid(65534)
            try:
                check_place("127.0.0.1", 1)
            except OptionError as wrong:
                os._exit(0 if "cannot be used" in str(wrong) else 1)
            os._exit(0 if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 1 else 2)
        assert os.waitpid(child, 0)[1] == 0
    else:
        with pytest.raises(OptionError, match="cannot be used"):
            check_place("127.0.0.1", 1)


class Started:
    """Stands in for the server's process and keeps what it was started with."""

    def __init__(self) -> None:
        self.command: list[str] = []
        self.environment: dict[str, str] = {}

    def __call__(self, command: list[str], env: dict[str, str], check: bool) -> Any:
        self.command, self.environment = command, env
        return subprocess.CompletedProcess(command, 0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    result = Started()
    monkeypatch.setattr(serve.subprocess, "run", result)
    monkeypatch.setattr(serve, "check_place", lambda address, port: None)
    return result


def test_a_server_does_not_outlive_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sleeping = [sys.executable, "-c", f"open({str(tmp_path / 'up')!r}, 'w'); import time; time.sleep(60)"]
    monkeypatch.setattr(serve, "server", lambda *_, **__: (sleeping, dict(os.environ)))
    monkeypatch.setattr(serve, "check_place", lambda address, port: None)
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(serve.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])

    def end() -> None:
        while not (tmp_path / "up").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    with pytest.raises(SystemExit, match="143"):
        cli.main(["serve", "--headless"])
    assert started[0].wait(10) != 0
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.slow
def test_files_where_the_user_stands_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file click.py in the folder ended the server before it began."""
    for name in ("click", "random", "streamlit", "headviz"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this file was imported')", encoding="utf-8")
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path / "home"))
    command, environment = serve.server("127.0.0.1", free_port(), [], headless=True)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until_healthy(f"http://127.0.0.1:{command[command.index('--server.port') + 1]}", process, tmp_path / "log")
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize(
    ("address", "opened"), [("0.0.0.0", ""), ("::", ""), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")]
)
def test_which_address_is_printed_and_opened(
    address: str, opened: str, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on every address has 127.0.0.1, as its own file says; a user's own choice stands."""
    name = "STREAMLIT_BROWSER_SERVER_ADDRESS"
    monkeypatch.delenv(name, raising=False)
    assert cli.main(["serve", "--headless", "--address", address]) == 0
    assert started.environment.get(name, "") == opened
    monkeypatch.setenv(name, "headviz.example")
    assert cli.main(["serve", "--headless", "--address", address]) == 0
    assert started.environment[name] == "headviz.example"


@pytest.fixture
def streamlit_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Streamlit's file in the folder where the server starts, and that in the user's home."""
    files = {place: tmp_path / place / ".streamlit" / "config.toml" for place in ("folder", "home")}
    for file in files.values():
        file.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "folder")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return files


@pytest.mark.parametrize("place", ["folder", "home"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'[theme]\nbase = "http://evil.example/theme.toml"\n', "another machine"),
        (b'[theme]\nbase = "gone.toml"\n', "nor a file"),
        (b"[theme]\nbase = 3\n", "nor a file"),
        (b"\xff\xfe[theme]\n", "cannot be read"),
        (b"theme = 3\n", "no section"),
    ],
)
def test_files_that_end_streamlit_or_let_it_fetch_a_theme_are_refused(
    place: str,
    content: bytes,
    said: str,
    started: Started,
    streamlit_files: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    streamlit_files[place].write_bytes(content)
    told = refused(capsys)
    assert said in told
    assert "config.toml" in told
    assert not started.command


def test_the_environments_theme_is_checked_too(
    started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for base in ("http://evil.example/theme.toml", "gone.toml"):
        monkeypatch.setenv("STREAMLIT_THEME_BASE", base)
        assert "STREAMLIT_THEME_BASE" in refused(capsys)
        assert not started.command
    monkeypatch.setenv("STREAMLIT_THEME_BASE", "dark")
    assert cli.main(["serve", "--headless"]) == 0


def test_other_themes_are_the_users_own(started: Started, streamlit_files: dict[str, Path]) -> None:
    Path("mine.toml").write_text("[theme]\n")
    for text in ('[theme]\nbase = "dark"\n', "no toml", "[server]\nport = 3\n", '[theme]\nbase = "mine.toml"\n'):
        for file in streamlit_files.values():
            file.write_text(text)
        assert cli.main(["serve", "--headless"]) == 0
    streamlit_files["home"].write_text('[theme]\nbase = "http://evil.example/theme.toml"\n')
    assert cli.main(["serve", "--headless"]) == 0  # the folder's own comes first


def test_a_models_name_alone_opens_the_dashboard_on_it(started: Started, tmp_path: Path) -> None:
    def opens() -> dict[str, str]:
        return dict(parse_qsl(started.environment["HEADVIZ_START"]))

    assert cli.main(["serve", "--headless"]) == 0
    assert opens() == {}
    assert cli.main(["demo", "--port", "8599"]) == 0
    assert opens() == {"model": "demo", "task": "demo"}
    assert "--server.headless" not in started.command  # Streamlit opens the browser, at the one address
    model, data = tmp_path / "my model", tmp_path / "data"
    model.mkdir()
    data.mkdir()
    assert cli.main([str(model), "mrpc", str(data), "--headless"]) == 0
    assert opens() == {"model": str(model), "task": "mrpc", "data": str(data)}
    assert started.environment["HEADVIZ_ROOTS"].split(os.pathsep)[:2] == [str(model), str(data)]
    assert cli.main(["textattack/bert-base-uncased-MNLI", "--headless"]) == 0
    assert opens() == {"model": "textattack/bert-base-uncased-MNLI"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demoo"], "Unknown command 'demoo'"),
        (["bert-base-uncased", "mrpc"], "To open a model of this name: headviz serve bert-base-uncased"),
        (["./nowhere"], "There is no folder './nowhere' with the model"),
        (["demo", "mprc"], "Did you mean 'mrpc'?"),
        (["demo", "mrpc", "/nowhere/at/all"], "There is no folder '/nowhere/at/all' with the data"),
    ],
)
def test_a_slip_is_named_before_anything_starts(
    started: Started, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, "--headless"]) == 2
    assert said in capsys.readouterr().err
    assert not started.command

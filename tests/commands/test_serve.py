"""A server's place: what cannot be used is one line, before anything is started."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from headviz import cli
from headviz.commands.serve import check_place
from headviz.errors import OptionError


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

"""The dashboard's server against foreign hosts and origins: nothing is served, and no request leaves the machine."""

from __future__ import annotations

import base64
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headviz.ui.shell.server import host_allowed
from support.server import serve

# A module that every Python of the server loads at its start: it writes down each name that is looked up and each
# address that is connected to, and lets only this machine's own through.
SPY = """
import os, socket
_log, _look, _open = os.environ["HEADVIZ_TEST_SPY"], socket.getaddrinfo, socket.socket.connect
OWN = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "", None)
def note(host):
    with open(_log, "a") as file:
        file.write(f"{host}\\n")
def getaddrinfo(host, *rest, **more):
    name = host.decode() if isinstance(host, bytes) else host
    if name not in OWN:
        note(name)
        raise socket.gaierror("no address but this machine's own")
    return _look(host, *rest, **more)
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and self.type != socket.SOCK_DGRAM and address[0] not in OWN:
        note(address[0])
        raise ConnectionRefusedError("no address but this machine's own")
    return _open(self, address)
socket.getaddrinfo, socket.socket.connect = getaddrinfo, connect
"""


@pytest.fixture(scope="module")
def spied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A server's port, and the file with what it asked of other machines."""
    folder = tmp_path_factory.mktemp("spied")
    (folder / "sitecustomize.py").write_text(SPY)
    log = folder / "outside.txt"
    log.touch()
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    with serve(folder / "home", folder / "log.txt", PYTHONPATH=path, HEADVIZ_TEST_SPY=str(log)) as running:
        yield int(running.address.rpartition(":")[2]), log


def answer(port: int, host: str, path: str = "/", **headers: str) -> tuple[int, str]:
    """Status and head of the answer to a raw request."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        got = b""
        while b"\r\n\r\n" not in got:
            part = line.recv(4096)
            if not part:
                break
            got += part
    head = got.split(b"\r\n\r\n")[0].decode("latin-1")
    return int(head.split(" ")[1]) if head else 0, head.lower()


def upgrade(port: int, host: str, origin: str | None) -> int:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": base64.b64encode(os.urandom(16)).decode(),
    }
    return answer(port, host, "/_stcore/stream", **headers, **({} if origin is None else {"Origin": origin}))[0]


FOREIGN = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example:8501",
    "[::ffff:1.2.3.4]",
    "x@y",
)


def test_a_foreign_host_is_served_nothing(spied: tuple[int, Path]) -> None:
    port, log = spied
    for host in FOREIGN:
        assert [answer(port, host, path)[0] for path in ("/", "/_stcore/health", "/heads")] == [403] * 3, host
        assert upgrade(port, host, f"http://{host}") == 403, host
    assert log.read_text() == ""


def test_a_foreign_origin_opens_no_connection_and_asks_nobody(spied: tuple[int, Path]) -> None:
    port, log = spied
    for origin in ("http://evil.example", "https://127.0.0.1.evil.example", "null", "file://", "x"):
        assert upgrade(port, f"127.0.0.1:{port}", origin) == 403, origin
    assert log.read_text() == ""


def test_the_own_page_is_served_with_a_policy_that_keeps_it_here(spied: tuple[int, Path]) -> None:
    port, log = spied
    status, head = answer(port, f"127.0.0.1:{port}")
    assert status == 200
    assert "content-security-policy: default-src 'self'" in head
    assert "x-content-type-options: nosniff" in head
    assert upgrade(port, f"127.0.0.1:{port}", f"http://127.0.0.1:{port}") == 101
    assert upgrade(port, f"localhost:{port}", f"http://localhost:{port}") == 101
    assert log.read_text() == ""


def test_the_spy_would_have_seen_a_request(spied: tuple[int, Path]) -> None:
    import subprocess

    folder = spied[1].parent
    log = folder / "other.txt"
    log.touch()
    code = (
        "import urllib.request\ntry: urllib.request.urlopen('http://checkip.example', timeout=1)\nexcept OSError: pass"
    )
    env = {**os.environ, "PYTHONPATH": str(folder), "HEADVIZ_TEST_SPY": str(log)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)
    assert "checkip.example" in log.read_text()


@pytest.mark.parametrize(
    ("host", "allowed", "expected"),
    [
        ("localhost:8501", "localhost", True),
        ("LOCALHOST.", "localhost", True),
        ("a.b.example", "*.b.example", True),
        ("anything", "*", True),
        ("b.example", "*.b.example", False),
        ("evil", "localhost", False),
        ("", "localhost", False),
        ("[::1", "localhost", False),
    ],
)
def test_which_hosts_are_allowed(host: str, allowed: str, expected: bool) -> None:
    assert host_allowed(host, [allowed]) is expected
    assert host_allowed(host, [])

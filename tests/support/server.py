"""A dashboard in a process of its own, for browser tests and benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.container_steps import free_port

from .forked import Forked, Nursery, module

ROOT = Path(__file__).resolve().parents[2]
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"  # a page that is drawn
PATIENCE = 120  # seconds until the server answers; a loaded machine needs many


@dataclass(frozen=True)
class Server:
    """A running dashboard."""

    address: str
    begun: float  # time.perf_counter() at the start of its process
    pid: int


@contextmanager
def serve(home: Path, log: Path, port: int = 0, nursery: Nursery | None = None, **environment: str) -> Iterator[Server]:
    """A dashboard on a free port that keeps its files in ``home`` and writes its messages to ``log``.

    It answers when the block begins and has ended when the block is left. A ``nursery`` forks it; else it is a new
    Python, as a user's is.
    """
    port = port or free_port()
    words = ["run", str(ROOT / "app.py"), "--server.port", str(port), "--server.headless", "true"]
    env = {**os.environ, "HEADVIZ_HOME": str(home), **environment}
    with log.open("wb") as messages:
        begun = time.perf_counter()
        process: Forked | subprocess.Popen[bytes]
        if nursery is None:
            command = [sys.executable, "-m", "streamlit", *words]
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=messages, stderr=subprocess.STDOUT)
        else:
            process = module("streamlit", words, env, log, nursery.address)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_healthy(address, process, log)
            yield Server(address, begun, process.pid)
        finally:
            process.terminate()
            process.wait(20)


def wait_until_healthy(address: str, process: Forked | subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError(f"The dashboard does not answer. Its messages:\n{log.read_text(errors='replace')}")

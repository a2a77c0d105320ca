"""What is wrong with how a case ended; nothing where it behaved."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headviz.errors import LONGEST, Cancelled, UserError

from .case import Case

PATIENCE = 30  # seconds; what a case may take: a speed search needs six, on a busy machine more
LINE = LONGEST + 50  # characters of a message; its escapes and "headviz: " come on top
MEMORY = 2**30  # bytes by which a case may make the process grow


class Hang(BaseException):
    """A case takes too long; nobody catches this by accident."""


def finding(case: Case) -> str:
    """What is wrong with what a case did; empty where it behaved."""

    def ring(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    start, taken = time.perf_counter(), _memory(reset=True)
    signal.alarm(PATIENCE)
    try:
        wrong = _ended(case)
    except Hang:
        wrong = f"still at work after {time.perf_counter() - start:.0f} s"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    grown = _memory() - taken
    return wrong or (f"took {grown / 2**30:.1f} GiB" if grown > MEMORY else "")


def _ended(case: Case) -> str:
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = case.run()
    except UserError as wrong:
        return wrong_line(str(wrong))
    except Cancelled:
        return ""
    except SystemExit as end:
        return "" if end.code in (0, None) else f"exit {end.code}"
    except Hang:
        raise
    except BaseException as fault:  # the finding is reported, not hidden
        return f"{type(fault).__name__}: {str(fault)[:300]}"
    if not case.command or status == 0:
        return ""
    if status != 2:
        return f"exit {status}: {err.getvalue()[-600:]}"
    said = [line for line in err.getvalue().splitlines() if not line.startswith("headviz: note:")]
    if len(said) != 1 or not said[0].startswith("headviz: "):
        return f"not one line but {len(said)}: {err.getvalue()[-600:]!r}"
    return wrong_line(said[0])


def wrong_line(text: str) -> str:
    """What is wrong with a message; empty where it is one line of a bounded length."""
    if "\n" in text or "\r" in text:
        return f"a message of several lines: {text[:300]!r}"
    if len(text) > 10 * LINE or len(re.sub(r"\\(x..|u....|U.{8}|n|t|r)", "", text)) > LINE:
        return f"a message of {len(text):,} characters: {text[:200]!r}"
    if "\x1b" in text:
        return f"a message with terminal commands: {text[:200]!r}"
    if "enough memory" in text or "Out of memory" in text:
        return f"it asked for too much memory: {text[:200]!r}"
    return ""


def _memory(reset: bool = False) -> int:
    """The most that this process has taken since the last reset, in bytes; 0 where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return 0


@contextlib.contextmanager
def alone() -> Iterator[list[str]]:
    """What was asked of other machines in this block; nothing gets through."""
    asked: list[str] = []

    def look(host: Any, *_: Any, **__: Any) -> Any:
        asked.append(str(host))
        raise socket.gaierror("no address but this machine's own")

    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            asked.append(str(address))
        raise ConnectionRefusedError("no address but this machine's own")

    usual = socket.getaddrinfo, socket.socket.connect
    socket.getaddrinfo, socket.socket.connect = look, connect  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        socket.getaddrinfo, socket.socket.connect = usual  # type: ignore[method-assign]

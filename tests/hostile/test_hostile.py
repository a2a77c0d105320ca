"""Hostile cases by the hundred: no traceback, no hang, no foreign request, no output that looks whole and is not.

A failure names its case; ``HEADVIZ_HOSTILE_SEED`` draws others.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import headviz
from headviz import cli
from headviz.errors import LONGEST, Cancelled, UserError
from hostile.case import Case
from hostile.command_lines import COMMANDS
from hostile.generator import cases
from hostile.place import Place

SEED = int(os.environ.get("HEADVIZ_HOSTILE_SEED", "20"))
PATIENCE = 30  # seconds; what a case may take: a speed search needs six, on a busy machine more
LINE = LONGEST + 50  # characters of a message; its escapes and "headviz: " come on top


class Hang(BaseException):
    """A case takes too long; nobody catches this by accident."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("hostile"))
    (made.out / "kept").write_text("so that this is no empty folder")
    with contextlib.chdir(made.out):  # an output may have a name without a folder
        yield made


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of other machines; nothing gets through."""
    asked: list[str] = []

    def look(host: Any, *_: Any, **__: Any) -> Any:
        asked.append(str(host))
        raise socket.gaierror("no address but this machine's own")

    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            asked.append(str(address))
        raise ConnectionRefusedError("no address but this machine's own")

    monkeypatch.setattr(socket, "getaddrinfo", look)
    monkeypatch.setattr(socket.socket, "connect", connect)
    return asked


def finding(case: Case) -> str:
    """What is wrong with what a case did; empty where it behaved."""

    def ring(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    out, err = io.StringIO(), io.StringIO()
    start = time.perf_counter()
    signal.alarm(PATIENCE)
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
        return f"still at work after {time.perf_counter() - start:.0f} s"
    except BaseException as fault:  # the finding is reported, not hidden
        return f"{type(fault).__name__}: {str(fault)[:300]}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
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
    return ""


def check(count: int, seed: int, place: Place, outside: list[str]) -> None:
    for module in ("pyarrow.parquet", "headviz.ui.pages.data", *(cli.COMMANDS[c].module for c in COMMANDS)):
        import_module(module)  # imports are slow on a busy machine, and are not what is timed
    clf = headviz.load(place.model)
    start = time.perf_counter()
    data = headviz.load_task("custom", data=place.data, text_columns="text", label_column="label")
    found, kinds = [], Counter()
    for case in cases(count, seed, place, clf, data):
        kinds[case.kind] += 1
        if wrong := finding(case):
            found.append(f"{case.kind}: {case.name}\n    {wrong}")
        if outside:
            found.append(f"{case.kind}: {case.name}\n    asked {outside}")
            outside.clear()
    print(f"{count} cases in {time.perf_counter() - start:.1f} s, seed {seed}: {dict(kinds)}; {len(found)} findings")
    touched = place.untouched()
    assert not touched, f"changed: {touched}"
    assert not place.half_written()
    assert len(kinds) >= 6
    assert not found, f"{len(found)} of {count} cases, seed {seed}:\n" + "\n".join(found[:40])


def test_a_small_draw(place: Place, outside: list[str]) -> None:
    check(150, SEED, place, outside)


@pytest.mark.slow
def test_the_full_draw(place: Place, outside: list[str]) -> None:
    check(1600, SEED + 1, place, outside)


def test_a_finding_is_found() -> None:
    """The checks above can fail: each kind of finding is told from good behaviour."""

    def raises(error: BaseException) -> Case:
        def run() -> None:
            raise error

        return Case("call", "x", run)

    def prints(status: int, text: str) -> Case:
        import sys

        return Case("command", "x", lambda: sys.stderr.write(text) and status, command=True)

    assert finding(raises(ValueError("inside"))) == "ValueError: inside"
    assert str(UserError("one\ntwo \x1b[31m")) == r"one\ntwo \x1b[31m"
    assert wrong_line("one\ntwo")
    assert wrong_line("\x1b[31m")
    assert len(str(UserError("x" * 10_000 + " Give another."))) < LINE
    assert str(UserError("x" * 10_000 + " Give another.")).endswith(" Give another.")
    assert wrong_line("x" * (LINE + 1))
    assert not finding(raises(UserError("one line")))
    assert finding(prints(1, "headviz: internal error\n"))
    assert finding(prints(2, "headviz: one\nheadviz: two\n"))
    assert finding(prints(2, "Traceback\n"))
    assert not finding(prints(2, "headviz: note: mind\nheadviz: one\n"))


def test_a_change_of_what_is_not_the_cases_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.untouched() == []
    (place.folder / "special" / "fifo").unlink()
    (place.folder / "special" / "fifo").write_text("x")
    assert place.untouched() == [str(place.folder / "special" / "fifo")]
    (place.out / "model").mkdir()
    (place.out / "model" / "half.bin").write_text("x")
    assert place.half_written() == [str(place.out / "model")]

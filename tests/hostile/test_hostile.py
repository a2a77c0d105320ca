"""Hostile cases by the hundred: no traceback, no hang, no foreign request, no output that looks whole and is not.

A failure names its case; ``HEADVIZ_HOSTILE_SEED`` draws others.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

import headviz
from headviz.errors import UserError
from hostile import worker
from hostile.case import Case
from hostile.generator import SHARES, cases
from hostile.judge import LINE, alone, finding, wrong_line
from hostile.place import Place
from support.plugin_files import nothing_stays

__all__ = ["nothing_stays"]

SEED = int(os.environ.get("HEADVIZ_HOSTILE_SEED", "20"))
LEAST = 50  # of each kind in a thousand


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_stays")  # some name plugins, broken ones too
def test_a_small_draw(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.out / "kept").write_text("so that this is no empty folder")
    clf = headviz.load(place.model)
    data = headviz.load_task("custom", data=place.data, text_columns="text", label_column="label")
    wrong = {}
    with contextlib.chdir(place.out), alone() as asked:
        for case in cases(100, SEED, place, clf, data):
            if case.kind not in ("holes", "setting", "tokenizer"):  # these take memory, so they have a process
                wrong |= {case.name: result} if (result := finding(case)) else {}
    assert not wrong
    assert not asked
    assert not place.untouched()
    assert not place.half_written()


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="a limit on a process's memory")
@pytest.mark.parametrize("part", range(10))
def test_the_full_draw(part: int, tmp_path: Path) -> None:
    found = worker.draw(1000, SEED + 1 + part, tmp_path)
    print(f"{found.kinds.total()} cases in {found.seconds:.0f} s: {dict(found.kinds)}")
    assert set(found.kinds) == set(SHARES)
    assert min(found.kinds.values()) >= LEAST
    assert not found.findings, f"{len(found.findings)} findings:\n" + "\n".join(found.findings[:40])


def test_a_case_that_ends_its_process_is_named(tmp_path: Path) -> None:
    log = worker.Log(tmp_path / "log")
    for number in range(2):
        log.begin(Case("call", f"case {number}", lambda: None))
        if not number:
            log.end("")
    lines = worker.lines_of(tmp_path / "log")
    assert [line.get("wrong") for line in lines] == ["", None]


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

"""The engine, here: every piece is kept, and a job that is stopped anywhere goes on to the same end."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from headviz.engine.here import run_here, tools_here
from headviz.errors import Cancelled, UserError
from support.rehearsal import make

SPEC = {"steps": 4, "chains": 2}


def timeless(state: Any) -> Any:
    return {chain: [link["value"] for link in links] for chain, links in state.items()}


def test_every_state_is_kept_before_it_is_given(tmp_path: Path) -> None:
    job, kept = make(SPEC), []
    for state in run_here(job, job.begin(), tools_here(tmp_path), kept.append):
        assert state is kept[-1]
    assert len(kept) == 8
    assert job.ready(kept[-1]) == []
    assert list(run_here(job, kept[-1], tools_here(tmp_path), kept.append)) == []


def test_a_job_that_is_stopped_at_any_moment_goes_on_to_the_same_end(tmp_path: Path) -> None:
    job, draw = make(SPEC), random.Random(0)
    *_, whole = run_here(job, job.begin(), tools_here(tmp_path), job.pack)
    kept, stops = [job.pack(job.begin())], 0
    while make(SPEC).ready(state := job.unpack(kept[-1])):
        asked = iter(range(draw.randint(1, 3)))
        tools = tools_here(tmp_path, None, lambda asked=asked: next(asked, None) is None)
        try:
            for _ in run_here(make(SPEC), state, tools, lambda state: kept.append(job.pack(state))):
                pass
        except Cancelled:
            stops += 1
    assert stops >= 2
    assert timeless(state) == timeless(whole)


def test_a_piece_that_fails_loses_nothing_before_it(tmp_path: Path) -> None:
    job, kept = make({**SPEC, "fail_at": 2}), []
    with pytest.raises(UserError, match="asked to fail"):
        list(run_here(job, job.begin(), tools_here(tmp_path), kept.append))
    assert [len(links) for links in kept[-1].values()] == [2, 0]

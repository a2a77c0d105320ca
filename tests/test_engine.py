"""The engine, here: every piece is kept, and a job that is stopped anywhere goes on to the same end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headviz.engine import Checkpoints, Execution, Job, Order, Workplace, restored, run_here
from headviz.errors import Cancelled, RunError, UserError
from support.rehearsal import make

SPEC = {"steps": 4, "chains": 2}


def timeless(state: Any) -> Any:
    return {chain: [link["value"] for link in links] for chain, links in state.items()}


def going_on(folder: Path, spec: dict[str, int] = SPEC, cancel: Callable[[], bool] | None = None) -> Iterator[Any]:
    """A process that finds nothing but the folder."""
    job, checkpoints = make(spec), Checkpoints(folder)
    execution = Execution(job, checkpoints, restored(job, checkpoints)[0])
    return run_here(execution, Workplace(job, folder), cancel=cancel)


def kept(folder: Path) -> Any:
    return make(SPEC).unpack(Checkpoints(folder).newest() or b"")


def test_every_state_is_kept_before_it_is_given(tmp_path: Path) -> None:
    states = [state for state in going_on(tmp_path) if state == kept(tmp_path)]
    assert len(states) == 8
    assert make(SPEC).ready(states[-1]) == []
    assert list(going_on(tmp_path)) == []


def test_a_job_that_is_stopped_at_any_moment_goes_on_to_the_same_end(tmp_path: Path) -> None:
    draw, stops, done = random.Random(0), 0, False
    *_, whole = going_on(tmp_path / "whole")
    while not done:
        asked = iter(range(draw.randint(1, 3)))
        try:
            list(going_on(tmp_path / "stopped", cancel=lambda asked=asked: next(asked, None) is None))
            done = True
        except Cancelled:
            stops += 1
    assert stops >= 2
    assert timeless(kept(tmp_path / "stopped")) == timeless(whole)


def test_a_piece_that_fails_loses_nothing_before_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="asked to fail"):
        list(going_on(tmp_path, {**SPEC, "fail_at": 2}))
    assert [len(links) for links in kept(tmp_path).values()] == [2, 0]


@pytest.mark.parametrize("changed", ["model", "data"])
def test_a_piece_is_refused_where_the_models_or_data_are_others(tmp_path: Path, changed: str) -> None:
    class Of(Job):
        def sources(self, state: Any) -> dict[str, str]:
            return {"model": "1", "data": "2"}

        def digest(self, loaded: Any, name: str) -> Any:
            return loaded[name]

    loaded = {"model": "1", "data": "2", changed: "3"}
    with pytest.raises(RunError, match=f"The {changed} of this run has changed") as refused:
        Workplace(Of(), tmp_path, loaded).do(Order.of(Of(), None, "piece"))
    assert (refused.value.code, refused.value.resumable) == ("source-changed", False)


# the files ----------------------------------------------------------------------------------------


def test_the_newest_checkpoint_counts_and_only_few_are_kept(tmp_path: Path) -> None:
    for checkpoints in (Checkpoints(tmp_path), Checkpoints(tmp_path, "state-", digits=6, keep=3, sealed=False)):
        for n in range(1, 12):
            checkpoints.save(b"content %d" % n)
        checkpoints.save(b"content 11")  # which is there
        assert checkpoints.newest() == b"content 11"
        assert [n for n, _ in checkpoints.files()] == [11, 10, 9][: checkpoints.keep]


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "foreign", "gone"])
def test_a_damaged_checkpoint_is_passed_over_and_its_number_not_used_again(tmp_path: Path, harm: str) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(b"[1]")
    checkpoints.save(b"[1, 2]")
    path = tmp_path / "checkpoint-2.bin"
    raw = path.read_bytes()
    changed = {"cut": raw[:-1], "flip": raw[:-1] + bytes([raw[-1] ^ 1]), "empty": b"", "foreign": b"\x80\x04pickle"}
    path.write_bytes(changed.get(harm, b""))
    if harm == "gone":
        path.unlink()
    job = make(SPEC)
    assert restored(job, checkpoints) == ([1], [] if harm == "gone" else ["checkpoint-2.bin"])
    checkpoints.save(b"[3]")
    assert checkpoints.files()[0][0] == (2 if harm == "gone" else 3)
    for _, file in checkpoints.files():
        file.write_bytes(b"")
    assert restored(job, checkpoints)[0] == job.begin()

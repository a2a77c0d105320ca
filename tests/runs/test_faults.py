"""What goes wrong on real machines: killed workers, killed servers, locks, full disks, damaged files, clocks set back.

Most of it on rehearsals, whose result depends on every step before; the slow ones on real pruning runs.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headviz.pruning import ALGORITHMS
from headviz.runs import reading, service
from headviz.runs.files import RunFiles
from headviz.runs.process import start_of
from headviz.runs.queue import look
from headviz.runs.record import DONE, LOST
from headviz.runs.registry import Registry
from headviz.storage.store import default_store
from support.marks import algorithms, seeds
from support.real_runs import folders, options
from support.running import done, ended, essence, running_steps, until
from support.small_disk import run_on_small_disk


def rehearse(**spec: Any) -> Any:
    return service.start("rehearsal", spec)


def whole(kind: str, spec: dict[str, Any]) -> list[dict]:
    """The steps of an uninterrupted run. Others find nothing of it in the cache: they shall do their own work."""
    run = service.start(kind, spec)
    after = ended(run.id, 280)
    assert (after.state, after.error) == (DONE, "")
    default_store().clear()
    return essence(run.id)


def kill_worker(run_id: str) -> bool:
    """SIGKILL, if there is a worker to kill."""
    record = look(Registry(), run_id)
    if record.state != "running" or record.worker is None or not record.worker.alive():
        return False
    os.kill(record.worker.pid, signal.SIGKILL)
    return True


def interrupted(kind: str, spec: dict[str, Any], kills: int, draw: random.Random, ahead: int, nap: float) -> list[dict]:
    """The steps of a run whose worker is killed at random moments and resumed each time.

    How long a run takes differs tenfold between machines: one that is over before its first kill is begun anew and
    killed sooner.
    """
    for patience in (1.0, 0.5, 0.2, 0.0):
        run = service.start(kind, spec)
        if _killed(run.id, kills, draw, round(ahead * patience), nap * patience):
            return essence(run.id)
    raise AssertionError("the run was over before every kill")


def _killed(run_id: str, kills: int, draw: random.Random, ahead: int, nap: float) -> int:
    """How often the worker was killed before the run was done."""
    killed = 0
    while killed < kills:
        at = newest(run_id) + draw.randint(0, ahead)
        begun = time.monotonic()
        while newest(run_id) < at and look(Registry(), run_id).state != DONE and time.monotonic() - begun < 120:
            time.sleep(0.01)
        time.sleep(0.005 + draw.random() * nap)
        if look(Registry(), run_id).state == DONE:
            break
        if kill_worker(run_id):
            killed += 1
            if ended(run_id, 20).state == LOST:
                service.resume(run_id)
    done(run_id, 280)
    return killed


def newest(run_id: str) -> int:
    result = RunFiles(run_id).checkpoints.files()
    return result[0][0] if result else 0


# killed ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kills", seeds([4], [20]))
def test_killed_at_random_moments(registry, kills):
    spec = {"steps": 3 * kills, "seconds": 0.03, "payload": 20_000}
    expected = whole("rehearsal", {**spec, "seconds": 0.0})
    assert interrupted("rehearsal", spec, kills, random.Random(7), 2, 0.1) == expected


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("algorithm", algorithms(["isp"], ALGORITHMS))
def test_every_algorithm_killed_at_three_random_moments(registry, tmp_path, algorithm):
    spec = options(folders(tmp_path / "real"), algorithm, step=0.25, until=0.5)
    expected = whole("prune", spec)
    draw = random.Random(list(ALGORITHMS).index(algorithm))
    assert interrupted("prune", spec, 3, draw, 2, 0.5) == expected


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("phase", seeds(["train"], ["score"]))
def test_a_real_run_cancelled_in_each_phase_stops_in_time_and_resumes_to_the_same(registry, tmp_path, phase):
    """Progress is written once a second: a phase that is over before it is seen is made longer."""
    for factor in (1, 4, 16):
        spec = long_phase(phase, factor, tmp_path / str(factor))
        run = service.start("prune", spec)
        until(
            lambda: reading.show(run.id).progress.phase == phase or look(registry, run.id).state == DONE,  # noqa: B023
            280,
            phase,
        )
        if look(registry, run.id).state != DONE:
            break
    assert look(registry, run.id).state != DONE, f"phase '{phase}' was over too soon to be seen"
    begun = time.monotonic()
    after = service.cancel(run.id)
    assert time.monotonic() - begun < 2.0
    assert after.state == "cancelled"
    until(lambda: start_of(after.pid) != after.worker.start, 1, "the end of the process")
    service.resume(run.id)
    done(run.id, 280)
    assert essence(run.id) == whole("prune", spec)


def long_phase(phase: str, factor: int, place: Path) -> dict[str, Any]:
    """A run that spends most of its time in one phase."""
    changes: dict[str, Any] = {
        "score": {"score": "conductance-spearman", "score_options": {"steps": 1024 * factor}},
        "train": {"finetune": {"epochs": 25.0 * factor, "batch": 8, "learning_rate": 1e-3}},
    }[phase]
    return options(folders(place), "igspp", until=0.25, retrain_full=False, **changes)


@pytest.mark.slow
def test_a_run_survives_the_death_of_the_program_that_started_it(registry):
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from headviz import plugins; plugins.load_environment()\n"
            "from headviz.runs import service\n"
            "print(service.start('rehearsal', {'steps': 8, 'seconds': 0.2}).id, flush=True); time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    run_id = server.stdout.readline().strip()
    running_steps(run_id, 1)
    os.killpg(server.pid, signal.SIGKILL)  # and everything that a terminal would take along
    server.wait(10)
    server.stdout.close()
    after = ended(run_id)
    assert (after.state, after.attempt) == (DONE, 1)


# damaged, locked, full ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("harm", seeds(["newest"], ["both"]))
def test_a_damaged_checkpoint_costs_steps_but_not_the_result(registry, harm):
    spec = {"steps": 8, "seconds": 0.1}
    run = rehearse(**spec)
    running_steps(run.id, 4)
    kill_worker(run.id)
    ended(run.id)
    result = RunFiles(run.id).checkpoints.files()
    for _, path in result if harm == "both" else result[:1]:
        path.write_bytes(path.read_bytes()[:-5])
    service.resume(run.id)
    done(run.id)
    assert essence(run.id) == whole("rehearsal", {"steps": 8})
    history = [e["what"] for e in registry.events(run.id)]
    assert history.count("damaged checkpoint") == (2 if harm == "both" else 1)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", seeds([1.5], [30]))
def test_a_registry_locked_by_another_program(registry, seconds):
    run, other = rehearse(steps=6, seconds=0.1), None
    running_steps(run.id, 1)
    other = sqlite3.connect(registry.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    try:
        assert reading.show(run.id).state == "running"  # looking is still possible
        while time.monotonic() - begun < seconds:
            assert look(registry, run.id).state == "running"
            time.sleep(0.1)
    finally:
        other.execute("ROLLBACK")
        other.close()
    done(run.id)
    assert essence(run.id) == whole("rehearsal", {"steps": 6})


@pytest.mark.slow
def test_a_cancel_is_heard_while_the_registry_is_locked(registry):
    run = rehearse(steps=50, seconds=1.0)
    until(lambda: reading.show(run.id).progress.phase == "scoring", what="work")
    other = sqlite3.connect(registry.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        pid = look(registry, run.id).pid
        begun = time.monotonic()
        asked = threading.Thread(target=service.cancel, args=(run.id,))  # it waits for the registry
        asked.start()
        until(lambda: start_of(pid) is None, 4, "the end of the worker")
        assert time.monotonic() - begun < 3.5
    finally:
        other.execute("ROLLBACK")
        other.close()
    asked.join()
    assert ended(run.id).state == "cancelled"


@pytest.mark.slow
def test_a_full_disk_fails_the_run_and_more_room_lets_it_go_on(tmp_path):
    script = """
        import subprocess, sys
        from headviz import plugins
        from headviz.runs import service
        from headviz.runs.registry import Registry
        plugins.load_environment()
        run = service.start("rehearsal", {"steps": 12, "payload": 100_000, "seconds": 0.02})
        full = service.wait_for(run.id, timeout=60)
        print(full.state, "|", full.error, "|", len(Registry().steps(run.id)))
        subprocess.run(["mount", "-o", "remount,size=64m", sys.argv[1]], check=True)
        service.resume(run.id)
        print(service.wait_for(run.id, timeout=60).state, len(Registry().steps(run.id)))
    """
    first, last = run_on_small_disk(tmp_path / "small", script)[-2:]
    state, error, steps = first.split(" | ")
    assert state == "failed"
    assert "is full. Free some space" in error
    assert 0 < int(steps) < 12
    assert last == "done 12"


def test_runs_can_be_read_on_a_disk_without_a_free_byte(tmp_path):
    """SQLite wants 32 kB beside the registry even to read it. Waiting for a run died of that, and blamed the disk."""
    script = """
        from headviz import plugins
        from headviz.runs import service
        from headviz.runs.registry import Registry
        plugins.load_environment()
        run = service.start("rehearsal", {"steps": 3})
        service.wait_for(run.id, timeout=60)
        print(fill())
        print(service.wait_for(run.id, timeout=60).state, [r.id for r in Registry().records()] == [run.id])
        try:
            service.start("rehearsal", {"steps": 3})
        except Exception as error:
            print(type(error).__name__, error)
    """
    free, read, written = run_on_small_disk(tmp_path / "small", script)
    assert free == "0"
    assert read == "done True"
    assert written.startswith("DiskFull")
    assert "is full. Free some space" in written


# time and number ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_that_the_system_ends_for_want_of_memory_is_named_and_resumes(tmp_path):
    """A memory limit of 160 MB, enlarged later. The worker asks for more and is killed without a word."""
    groups = Path("/sys/fs/cgroup/memory")
    place = (groups if groups.is_dir() else groups.parent) / f"headviz-test-{os.getpid()}"
    limit = place / ("memory.limit_in_bytes" if groups.is_dir() else "memory.max")
    script = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
        Path(sys.argv[2]).write_text(str(160 * 2**20))
        from headviz import plugins
        from headviz.runs import service
        from headviz.runs.registry import Registry
        plugins.load_environment()
        run = service.start("rehearsal", {"steps": 3, "payload": 50_000_000, "seconds": 0.6})
        ended = service.wait_for(run.id, timeout=120)
        print(ended.state, "|", ended.code, "|", ended.error)
        Path(sys.argv[2]).write_text(str(8 * 2**30))
        service.resume(run.id)
        print(service.wait_for(run.id, timeout=120).state, len(Registry().steps(run.id)))
    """)
    try:
        place.mkdir()
        assert limit.exists()
    except (OSError, AssertionError):
        pytest.skip("this machine does not let a test limit the memory of its processes")
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(place), str(limit)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HEADVIZ_HOME": str(tmp_path)},
        )
    finally:
        until(lambda: not (place / "cgroup.procs").read_text(), 30, "the end of the worker")
        place.rmdir()
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    state, code, error = first.split(" | ")
    assert (state, code) == ("lost", "out-of-memory")
    assert error.startswith("The worker process ran out of memory: the system ended it. It last used ")
    assert error.endswith("Resume continues from its last step.")
    assert last == "done 3"


@pytest.mark.slow
def test_the_clock_set_back_in_the_middle_of_a_run(registry, tmp_path, monkeypatch):
    """The worker's clock jumps back by a day; so does ours. Neither liveness nor the result depends on it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import time\n_real, _begun = time.time, time.monotonic()\n"
        "time.time = lambda: _real() - (86400 if time.monotonic() - _begun > 1 else 0)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = rehearse(steps=10, seconds=0.25)
    running_steps(run.id, 2)
    real = time.time
    for shift in (-86400, 86400, 0):
        monkeypatch.setattr(time, "time", lambda: real() + shift)  # noqa: B023
        view = reading.show(run.id)
        assert view.state == "running"
        assert view.progress.responsive
    after = ended(run.id)
    assert (after.state, after.attempt) == (DONE, 1)
    assert after.ended < after.started  # the clock did jump
    assert reading.show(run.id).seconds >= 0
    monkeypatch.delenv("PYTHONPATH")
    assert essence(run.id) == whole("rehearsal", {"steps": 10})


@pytest.mark.slow
def test_a_worker_that_was_only_stopped_is_not_called_lost(registry):
    run = rehearse(steps=6, seconds=0.2)
    pid = running_steps(run.id, 1).record.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(1.0)
        assert look(registry, run.id).state == "running"
        begun = time.monotonic()
        assert service.cancel(run.id, wait=4).state == "cancelled"  # it cannot hear, so it is ended
        assert time.monotonic() - begun < 3.5
    finally:
        if start_of(pid):
            os.kill(pid, signal.SIGCONT)

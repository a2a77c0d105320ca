"""Real worker processes: start, queue, cancel, resume, ownership, service."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from headviz.errors import RunError, UserError
from headviz.runs import reading, service
from headviz.runs.process import Identity, place, start_of
from headviz.runs.queue import NICENESS, look
from headviz.runs.record import IllegalTransition
from support.marks import seeds
from support.running import ended, folder_of, log_of, running_steps, until

QUICK = {"steps": 3}
SLOW = {"steps": 200, "seconds": 0.15}


def rehearse(**spec):
    return service.start("rehearsal", spec)


def test_a_run_goes_from_queued_to_done_and_leaves_everything_readable(registry):
    begun = rehearse(**QUICK)
    assert begun.state in ("queued", "running")
    assert begun.version
    assert begun.owner == service.this_user()
    done = ended(begun.id)
    assert (done.state, done.error, done.attempt) == ("done", "", 1)
    view = reading.show(begun.id)
    assert [s["sparsity"] for s in view.steps] == pytest.approx([1 / 3, 2 / 3, 1])
    assert view.outcome["value"]
    assert any("is done" in line for line in view.log)
    out = view.to_dict()
    assert {"id", "state", "pid", "algorithm", "score", "steps", "error"} <= set(out)
    assert (out["state"], out["error"]) == ("done", None)
    until(lambda: not psutil.pid_exists(out["pid"]) or start_of(out["pid"]) is None, 30, "the worker's end")


def test_the_record_is_there_before_the_process(registry, monkeypatch):
    seen = []

    def spy(run_id, *_):
        seen.append(registry.get(run_id).state)
        raise OSError("no process for you")

    monkeypatch.setattr("headviz.runs.queue.spawn", spy)
    failed = rehearse(**QUICK)
    assert seen == ["queued"]
    assert failed.state == "failed"
    assert "could not be started: no process for you" in failed.error


def test_a_spec_that_does_not_fit_is_refused_and_nothing_is_written(registry):
    for kind, spec in (("rehearsal", {"stepz": 1}), ("rehearsal", {"steps": 0}), ("dance", {})):
        with pytest.raises(UserError):
            service.start(kind, spec)
    assert not registry.folder.exists()


@pytest.mark.slow
def test_the_worker_is_its_own_session_and_nice_and_without_streamlit(registry, monkeypatch):
    monkeypatch.delenv("HEADVIZ_NICENESS")
    run = rehearse(**SLOW)
    view = running_steps(run.id)
    pid = view.record.pid
    assert os.getsid(pid) == pid != os.getsid(0)
    assert psutil.Process(pid).nice() == NICENESS
    group = Path(f"/proc/{pid}/autogroup")
    if group.exists() and group.read_text().startswith("/autogroup"):
        assert group.read_text().split()[-1] == str(NICENESS)
    maps = psutil.Process(pid).memory_maps()
    assert not any("streamlit" in m.path or "torch" in m.path for m in maps)
    service.cancel(run.id)


@pytest.mark.slow
def test_runs_of_one_device_wait_for_each_other_in_order(registry):
    runs = [rehearse(steps=2, seconds=0.5), *(rehearse(steps=2, seconds=0.1) for _ in range(3))]
    assert [reading.show(r.id).position for r in runs] == [None, 1, 2, 3]
    for r in runs:
        assert ended(r.id).state == "done"
    spans = [(look(registry, r.id).started, look(registry, r.id).ended) for r in runs]
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert start >= end


@pytest.mark.slow
@pytest.mark.parametrize("phase", seeds(["queued", "deaf"], ["scoring", "starting", "training", "evaluating"]))
def test_a_cancel_takes_effect_within_two_seconds_in_every_phase(registry, phase):
    if phase == "queued":
        rehearse(**SLOW)
    spec = {"steps": 5, "seconds": 60.0} if phase != "deaf" else {"steps": 5, "seconds": 60.0, "deaf_at": 0}
    if phase in ("training", "evaluating"):
        spec["seconds"] = 1.5  # so that the phase comes soon
    run = rehearse(**spec)
    if phase in ("scoring", "training", "evaluating", "deaf"):
        wanted = "scoring" if phase == "deaf" else phase
        until(lambda: reading.show(run.id).progress.phase == wanted, what=phase)
    begun = time.monotonic()
    after = service.cancel(run.id)
    assert after.state == "cancelled"
    assert time.monotonic() - begun < 2.0
    if after.pid is not None:
        until(lambda: start_of(after.pid) != after.worker.start, 1, "the end of the process")
    assert time.monotonic() - begun < 2.5


@pytest.mark.slow
def test_a_cancel_keeps_the_finished_steps_and_leaves_no_process(registry):
    run = rehearse(**SLOW, child_at=1)
    view = running_steps(run.id, 3)
    pid = view.record.pid
    children = psutil.Process(pid).children(recursive=True)
    assert children, "the step should have started a process"
    after = service.cancel(run.id)
    assert after.state == "cancelled"
    assert len(registry.steps(run.id)) >= 3
    until(lambda: not any(c.is_running() and c.status() != "zombie" for c in children), 3, "the end of the children")


@pytest.mark.slow
def test_a_killed_worker_is_lost_and_its_children_go_with_it(registry):
    """What waits for it starts then."""
    run, following = rehearse(**SLOW, child_at=0), rehearse(**QUICK)
    view = running_steps(run.id, 1)
    children = psutil.Process(view.record.pid).children(recursive=True)
    os.kill(view.record.pid, signal.SIGKILL)
    after = ended(run.id)
    assert after.state == "lost"
    assert "killed" in after.error
    assert "Resume" in after.error
    until(lambda: [v.state for v in reading.overview()] == ["done", "lost"], what="the second run")
    assert reading.overview()[0].record.id == following.id
    until(lambda: not any(c.is_running() and c.status() != "zombie" for c in children), 3, "the end of the children")


@pytest.mark.slow
def test_a_polite_request_to_end_counts_as_lost_at_once(registry):
    run = rehearse(**SLOW)
    os.kill(running_steps(run.id).record.pid, signal.SIGTERM)
    after = ended(run.id, 3)
    assert after.state == "lost"
    assert "The system ended the worker" in after.error


@pytest.mark.slow
def test_an_error_is_named_and_the_run_can_go_on(registry):
    run = rehearse(steps=5, fail_at=3)
    after = ended(run.id)
    assert (after.state, after.error) == ("failed", "Step 3 was asked to fail.")
    assert len(registry.steps(run.id)) == 3
    assert "Step 3 was asked to fail." in log_of(run.id)
    with pytest.raises(IllegalTransition, match="nothing to cancel"):
        service.cancel(run.id)
    service.resume(run.id)
    assert ended(run.id).attempt == 2


@pytest.mark.slow
def test_others_may_look_but_only_the_owner_may_change(registry):
    run = service.start("rehearsal", SLOW, owner="ann")
    assert reading.show(run.id).record.owner == "ann"
    running_steps(run.id)
    for action in (service.cancel, service.resume, service.archive, service.delete):
        with pytest.raises(RunError, match="belongs to ann"):
            action(run.id, "bob")
    assert look(registry, run.id).state == "running"
    assert service.cancel(run.id, "ann").state == "cancelled"
    service.delete(run.id, "ann")


def test_an_active_run_is_neither_archived_nor_deleted(registry):
    run = rehearse(**SLOW)
    for action in (service.archive, service.delete):
        with pytest.raises(RunError, match="Cancel it first"):
            action(run.id)


@pytest.mark.slow
def test_archiving_and_deleting_free_what_they_say(registry):
    run = rehearse(steps=3, payload=50_000)
    ended(run.id)
    folder = folder_of(run.id)
    until(lambda: start_of(look(registry, run.id).pid) is None, 5, "the end of the worker")
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    assert service.disk_usage(run.id) == size
    freed = service.archive(run.id)
    left = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    assert freed == size - left > 100_000
    assert reading.overview() == []
    assert [v.record.id for v in reading.overview(archived=True)] == [run.id]
    assert len(reading.show(run.id).steps) == 3
    service.archive(run.id, back=True)
    assert [v.record.id for v in reading.overview()] == [run.id]
    assert service.delete(run.id) == left
    assert not folder.exists()
    assert registry.records() == []


def test_deleting_never_follows_a_link_out(registry, tmp_path):
    run = rehearse(**QUICK)
    ended(run.id)
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "file").write_text("x")
    (folder_of(run.id) / "results" / "link").symlink_to(outside)
    service.delete(run.id)
    assert (outside / "file").read_text() == "x"


@pytest.mark.slow
def test_the_progress_of_a_running_run_is_told(registry):
    run = rehearse(steps=10, seconds=0.6)
    running_steps(run.id, 2)
    until(lambda: reading.show(run.id).progress.memory, 5, "a beat")
    now = reading.show(run.id).progress
    assert now.phase in ("scoring", "training", "evaluating", "recording", "loading")
    assert now.memory > 5_000_000
    assert now.silent < 3
    assert now.responsive
    until(lambda: reading.show(run.id).progress.remaining, 5, "an estimate")
    assert 0.3 < reading.show(run.id).progress.remaining < 12
    service.cancel(run.id)
    assert reading.show(run.id).progress == reading.WorkerReport()


def test_an_identity_is_more_than_a_pid():
    own = Identity.own()
    assert own.alive() is True
    assert Identity(place(), own.pid, "1").alive() is False
    host, boot, space = place().split("|")
    assert Identity(f"{host}|another-boot|{space}", own.pid, own.start).alive() is False
    assert Identity(f"elsewhere|{boot}|{space}", own.pid, own.start).alive() is None


@pytest.mark.slow
def test_a_worker_on_another_machine_is_judged_by_its_beat(registry):
    run = rehearse(**QUICK)
    ended(run.id)
    other = Identity("elsewhere|x|y", 1, "1")
    with registry._write() as db:
        db.execute("UPDATE runs SET state = 'running', place = ?", (other.place,))
    assert look(registry, run.id).state == "running"
    old = time.time() - 1000
    (folder_of(run.id) / "progress.json").touch()
    os.utime(folder_of(run.id) / "progress.json", (old, old))
    assert look(registry, run.id).state == "lost"


@pytest.mark.slow
def test_two_starts_of_one_run_and_one_wins(registry, monkeypatch):
    monkeypatch.setattr(service, "dispatch", lambda registry: [])
    run = rehearse(steps=3, seconds=0.3)
    command = [sys.executable, "-m", "headviz.runs.worker", run.id]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    results = sorted((p.wait(60), p.communicate()[1]) for p in both)
    assert [r[0] for r in results] == [0, 3]
    assert "not started" in results[1][1]
    assert look(registry, run.id).state == "done"
    assert look(registry, run.id).attempt == 1
    assert [e["what"] for e in registry.events(run.id)].count("step") == 3

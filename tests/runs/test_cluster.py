"""Runs on a real Dask cluster: a scheduler and two workers on loopback, each a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import psutil
import pytest

from headviz import plugins
from headviz.engine import Workplace
from headviz.errors import RunError
from headviz.extras.cluster import driver, remote
from headviz.extras.cluster.driver import cluster_address
from headviz.pruning import PruningPlan, State
from headviz.runs import reading, service
from headviz.runs.carrier import Carrier
from headviz.runs.kinds import make_job
from headviz.runs.record import CARRIED, SWEEP
from headviz.runs.sweep import Member, start_sweep
from support import forked
from support.forked import Forked
from support.plugin_files import SCORE, nothing_stays, written
from support.pruning_plans import without_times
from support.real_runs import folders, options
from support.recorded_runs import Runs
from support.running import ended, essence, running_steps, until

__all__ = ["nothing_stays"]
pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")


class Cluster:
    """Processes of one test; ended by their pids."""

    def __init__(self, folder: Path, tls: list[str] | None = None) -> None:
        self.folder, self.tls = folder, tls or []
        self.processes: list[Forked] = []
        self.workers: list[Forked] = []
        self.address = ""

    def start(self, workers: int = 2) -> None:
        where = self.folder / "scheduler.json"
        host = "tls://127.0.0.1" if self.tls else "127.0.0.1"
        words = f"--host {host} --port 0 --no-dashboard --no-show".split()
        self._spawn("scheduler", *words, "--scheduler-file", str(where), *self.tls)
        until(where.exists, 30, "the scheduler")
        until(lambda: where.read_text().rstrip().endswith("}"), what="the scheduler's address")
        self.address = json.loads(where.read_text())["address"]
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, *more: str) -> Forked:
        words = "--nthreads 1 --no-nanny --no-dashboard --death-timeout 30".split()
        made = self._spawn("worker", self.address, *words, "--local-directory", str(self.folder), *self.tls, *more)
        self.workers.append(made)
        return made

    def _spawn(self, what: str, *arguments: str) -> Forked:
        log = self.folder / f"{what}-{len(self.processes)}.log"
        made = forked.module("dask", [what, *arguments], dict(os.environ), log)
        self.processes.append(made)
        return made

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait(10)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: object) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.start()
        monkeypatch.setenv("HEADVIZ_DASK", made.address)
        yield made
    finally:
        made.stop()


def on_cluster(**spec):
    return service.start("rehearsal", spec, executor="dask")


# addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["tls://gpu.example.org:8786", "tcp://127.0.0.1:8786", "tcp://localhost:1/", "tcp://[::1]:8786"]
)
def test_safe_addresses(address):
    assert cluster_address(address) == address.rstrip("/")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", "No cluster is set"),
        ("tcp://10.0.0.5:8786", "neither encrypted nor on this machine"),
        ("tcp://0.0.0.0:8786", "neither encrypted nor on this machine"),
        ("tcp://127.0.0.1.example.org:8786", "neither encrypted nor on this machine"),
        ("tcp://localhost.example.org:8786", "neither encrypted nor on this machine"),
        ("ws://127.0.0.1:8786", "not supported"),
        ("inproc://127.0.0.1:8786", "not supported"),
        ("127.0.0.1:8786", "not the address"),
        ("tls://host", "not the address"),
        ("tls://user@host:1", "not the address"),
        ("tcp://127.0.0.1:99999", "not the address"),
        ("tcp://127.0.0.1:8786/x", "not the address"),
    ],
)
def test_unsafe_addresses_are_refused(address, reason):
    with pytest.raises(RunError, match=reason):
        cluster_address(address)


def test_an_open_network_can_be_allowed_on_purpose(monkeypatch):
    monkeypatch.setenv("HEADVIZ_DASK_INSECURE", "1")
    assert cluster_address("tcp://10.0.0.5:8786")


# runs -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_split_over_two_workers_equals_the_local_one_and_survives_the_loss_of_one(cluster, registry):
    spec = {"steps": 8, "chains": 4, "seconds": 0.09}
    local = service.start("rehearsal", spec)
    ended(local.id)
    run = on_cluster(**spec)
    running_steps(run.id, 2)
    os.kill(cluster.workers[0].pid, signal.SIGKILL)
    after = ended(run.id)
    assert (after.state, after.error) == ("done", "")
    assert essence(run.id) == essence(local.id)
    assert reading.show(run.id).outcome["value"] == reading.show(local.id).outcome["value"]
    assert any(e["what"] == "cluster" and e["words"].startswith("2 workers") for e in registry.events(run.id))


@pytest.mark.slow
def test_a_cluster_that_stays_without_workers_ends_the_run_which_can_be_resumed(cluster, registry):
    run = on_cluster(steps=6, chains=2, seconds=0.1, gone=12.0)
    running_steps(run.id, 1)
    for worker in cluster.workers:
        os.kill(worker.pid, signal.SIGKILL)
    after = ended(run.id, 300)
    assert (after.state, after.resumable) == ("failed", True)
    assert "has had no worker for" in after.error
    cluster.add_worker()
    service.resume(run.id)
    assert ended(run.id, 300).state == "done"


@pytest.mark.slow
def test_a_cancel_reaches_the_workers(cluster, registry):
    run = on_cluster(steps=3, chains=2, seconds=300.0)
    until(lambda: reading.show(run.id).progress.phase == "scoring", what="work on the cluster")
    begun = time.monotonic()
    assert service.cancel(run.id).state == "cancelled"
    assert time.monotonic() - begun < 2.0
    # the workers are free again, so the next run ends soon
    again = on_cluster(steps=2, chains=2)
    assert ended(again.id, 15).state == "done"


@pytest.mark.slow
def test_a_killed_driver_is_lost_and_resumes_to_the_same_result(cluster, registry):
    spec = {"steps": 8, "chains": 2, "seconds": 0.1}
    local = service.start("rehearsal", spec)
    ended(local.id)
    run = on_cluster(**spec)
    os.kill(running_steps(run.id, 2).record.pid, signal.SIGKILL)
    assert ended(run.id).state == "lost"
    service.resume(run.id)
    assert ended(run.id).state == "done"
    assert essence(run.id) == essence(local.id)


@pytest.mark.slow
def test_runs_on_a_gpu_wait_for_workers_that_offer_one(cluster, registry):
    run = service.start("rehearsal", {"steps": 2}, executor="dask", device="cuda:0")
    until(lambda: any(e["what"] == "cluster" for e in registry.events(run.id)), 30, "the cluster")
    time.sleep(1.0)
    assert registry.steps(run.id) == []
    cluster.add_worker("--resources", "GPU=1")
    assert ended(run.id).state == "done"


def test_a_cluster_that_is_not_there_is_named(registry, monkeypatch):
    monkeypatch.setenv("HEADVIZ_DASK", "tcp://127.0.0.1:9")
    run = on_cluster(steps=1)
    after = ended(run.id, 60)
    assert after.state == "failed"
    assert "does not answer" in after.error


# sweeps and real runs -------------------------------------------------------------------------


def members(count: int, **spec):
    return [Member("rehearsal", {**spec, "payload": i}, f"run {i}") for i in range(count)]


@pytest.mark.slow
def test_a_sweep_is_split_over_both_workers_and_one_may_die(cluster, registry):
    made = members(4, steps=4, seconds=0.2)
    local = start_sweep(made, title="here")
    sweep = start_sweep(made, title="there", executor="dask")
    children = registry.records(parent=sweep.id)
    until(lambda: sum(len(registry.steps(c.id)) for c in children) >= 3, 60, "three steps")
    os.kill(cluster.workers[1].pid, signal.SIGKILL)
    after = ended(sweep.id, 120)
    assert (after.state, after.error) == ("done", "")
    service.wait_for(local.id, timeout=120)
    result, expected = (registry.records(parent=s.id) for s in (sweep, local))
    assert [r.state for r in result] == ["done"] * 4
    assert [essence(r.id) for r in result] == [essence(r.id) for r in expected]
    assert {r.pid for r in result} == {after.pid}  # one process for all


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_examples_of_a_scoring_are_split_over_both_workers_and_one_may_die(cluster, registry, tmp_path):
    """One seed without training: nothing but the parts of its scoring can be done at the same time."""
    spec = options(
        folders(tmp_path / "real", train=400),
        "one-importance",
        samples=400,
        until=0.5,
        keep_per_layer=0,
        score="conductance-spearman",
        score_options={"steps": 16},
    )
    local = service.start("prune", spec)
    assert ended(local.id, 200).error == ""
    before = [psutil.Process(w.pid).cpu_times().user for w in cluster.workers]
    run = service.start("prune", spec, executor="dask")

    def both_work() -> bool:
        now = [psutil.Process(w.pid).cpu_times().user for w in cluster.workers]
        return all(b - a > 0.5 for a, b in zip(before, now, strict=True))

    until(both_work, 200, "work on both")  # the seconds are those of loading the model
    os.kill(cluster.workers[0].pid, signal.SIGKILL)
    done = ended(run.id, 200)
    assert (done.state, done.error) == ("done", "")
    assert essence(run.id) == essence(local.id)
    states = [State.load(registry.folder / r.id / "results") for r in (run, local)]
    assert states[0].score_parts == (4,)
    assert without_times(states[0]) == without_times(states[1])


# TLS ------------------------------------------------------------------------------------------


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A certificate authority and one certificate, made with openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("the program openssl is not installed")
    made = tmp_path / "tls"
    made.mkdir()

    def openssl(words: str, *more: str) -> None:
        subprocess.run(["openssl", *words.split(), *more], cwd=made, check=True, capture_output=True)

    new_key = "-newkey rsa:2048 -nodes"
    openssl(f"req -x509 {new_key} -keyout ca-key.pem -out ca.pem -days 2 -subj", "/CN=test authority")
    openssl(f"req {new_key} -keyout key.pem -out request.pem -subj /CN=localhost")
    (made / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    signed = "-CA ca.pem -CAkey ca-key.pem -CAcreateserial"
    openssl(f"x509 -req -in request.pem {signed} -out cert.pem -days 2 -extfile names")
    return made


@pytest.mark.slow
def test_a_run_over_tls(tmp_path, certificates, registry, monkeypatch):
    made = {n: str(certificates / f) for n, f in (("ca", "ca.pem"), ("cert", "cert.pem"), ("key", "key.pem"))}
    flags = ["--tls-ca-file", made["ca"], "--tls-cert", made["cert"], "--tls-key", made["key"]]
    spec = {"steps": 4, "chains": 2}
    local = service.start("rehearsal", spec)
    ended(local.id)
    cluster = Cluster(tmp_path, flags)
    try:
        cluster.start()
        assert cluster.address.startswith("tls://")
        monkeypatch.setenv("HEADVIZ_DASK", cluster.address)
        without = ended(on_cluster(**spec).id)
        assert "needs certificates" in without.error
        until(lambda: not without.worker.alive(), what="the end of the process")  # or it starts the next run as it is
        for name, path in made.items():
            monkeypatch.setenv(f"HEADVIZ_DASK_{name.upper()}", path)
        run = on_cluster(**spec)
        after = ended(run.id)
        assert (after.state, after.error) == ("done", "")
        assert essence(run.id) == essence(local.id)
    finally:
        cluster.stop()


# plugins --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plugins_text_travels_to_the_workers(cluster, registry, nothing_stays, tmp_path):
    """The driver deletes the file once it has loaded it, so the workers have nothing but what they are sent."""
    gone = "if sys.argv[0].endswith('worker.py'):\n    Path(__file__).unlink()\n"
    file = written(tmp_path, f"{SCORE}\nimport sys\nfrom pathlib import Path\n{gone}")
    plugins.load([file])
    spec = {**options(folders(tmp_path / "real"), "one-importance", step=0.5, until=0.5), "score": "loss-spread"}
    run = service.start("prune", PruningPlan.from_dict(spec).to_dict(), executor="dask")
    after = ended(run.id, 200)
    assert after.state == "done", (after.error, reading.show(run.id).log)
    assert not file.exists()
    assert len(reading.show(run.id).steps) == 1


def test_a_result_that_died_with_the_last_worker_is_not_waited_for_without_end(monkeypatch):
    """It is finished for the scheduler, so it comes back again and again, and the queue is never empty."""

    class Lost:
        status = "finished"

        def result(self, timeout):
            raise TimeoutError

        def add_done_callback(self, tell):
            tell(self)

    class Empty:
        status = "running"
        workers: ClassVar[dict[str, int]] = {}

        def nthreads(self):
            return self.workers

    one = driver.Driver(Empty(), None, SimpleNamespace(id="r"), None)
    carrier = SimpleNamespace()
    one.carriers = [carrier]
    one._await(Lost(), carrier, "piece", False)
    clock = [100.0]
    monkeypatch.setattr(driver, "monotonic", lambda: clock[0])
    one._alive = 100.0
    for _ in range(3):  # not at once: a worker may come
        clock[0] += driver.GONE / 3
        one._take_in()
    Empty.workers["tcp://w"] = 1
    one._take_in()
    Empty.workers.clear()
    clock[0] += driver.GONE
    one._take_in()
    clock[0] += 1
    with pytest.raises(RunError, match="has had no worker"):
        one._take_in()


class Finished:
    """A result that is there."""

    status = "finished"

    def __init__(self, value) -> None:
        self.value = value

    def result(self, timeout):
        return self.value

    def add_done_callback(self, tell):
        tell(self)

    def release(self):
        pass


class Here:
    """A cluster of one worker that does each piece at once, in this process."""

    status = "running"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def nthreads(self):
        return {"tcp://w": 1}

    def wait_for_workers(self, count, timeout):
        pass

    def subscribe_topic(self, topic, heard):
        pass

    def run(self, function, *given, **options):
        return {"tcp://w": function()} if function is remote.facts else {}

    def cancel(self, futures, **options):
        pass

    def submit(self, function, token, run, kind, spec, threads, order, *given, **options):
        result = Workplace(make_job(kind, spec), self.folder).do(order)
        return Finished((result, {}, "tcp://w"))


def drive_here(registry, record, folder):
    """Carry a run, or all runs of a sweep, to the end without another process."""
    quiet = SimpleNamespace(
        cancelled=lambda: False, progress=lambda *_: None, stepped=lambda *_: None, ending="vanish", reason=""
    )
    driver.Driver(Here(folder), registry, record, quiet).run()


def test_a_run_whose_driver_died_after_the_last_piece_ends(registry, tmp_path):
    runs = Runs()
    whole = runs.claimed(runs.add("rehearsal", {"steps": 2}))
    assert (whole.ready(), registry.get(whole.record.id).state) == ([], "running")
    drive_here(registry, whole.record, tmp_path)
    assert registry.get(whole.record.id).state == "done"


@pytest.mark.parametrize(
    ("fault", "says"),
    [(RunError("it cannot be written"), "it cannot be written"), (ValueError("odd"), "ValueError: odd")],
)
def test_a_run_of_a_sweep_that_cannot_be_finished_leaves_the_others_alone(registry, tmp_path, monkeypatch, fault, says):
    runs = Runs()
    sweep = runs.add(SWEEP, {}, executor="dask")
    bad, good = (runs.add("rehearsal", {"steps": 2}, parent=sweep.id, executor=CARRIED) for _ in range(2))
    registry.take_one(sweep.id, "t")
    sweep = registry.apply(sweep.id, "claim", claim="t")
    end = Carrier.end

    def finished(carrier):
        if carrier.record.id == bad.id:
            raise fault
        return end(carrier)

    monkeypatch.setattr(Carrier, "end", finished)
    with pytest.raises(RunError, match="1 of 2 runs did not finish"):
        drive_here(registry, sweep, tmp_path)
    first, second = (registry.get(run.id) for run in (bad, good))
    assert (first.state, second.state) == ("failed", "done")
    assert says in first.error
    log = reading.show(bad.id).log
    assert bool(log) is isinstance(fault, ValueError)  # a fault of headviz's own is there with all its lines

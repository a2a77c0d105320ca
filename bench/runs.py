"""What background runs cost, and what a cluster gains: ratios measured side by side in one run.

    python bench/runs.py                the overhead of a run and of a piece, and the idle cost
    python bench/runs.py --scale        also the same sweep on one and on two single-threaded workers

The sweep is made of rehearsals (a plugin of the tests), which spin the processor for a known time, so what is measured
is the executor alone; with ``--sleep`` they wait instead, which tells the same on a machine that is busy with other
work. With ``--spec FILE`` the sweep is made of pruning runs of that plan, one per seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HEADVIZ_NICENESS", "0")

import psutil

from headviz import plugins
from headviz.runs import service
from headviz.runs.registry import Registry
from headviz.runs.sweep import Member, start_sweep

REHEARSAL = Path(__file__).resolve().parents[1] / "tests" / "support" / "rehearsal.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--spin", type=float, default=1.0, help="seconds of processor time per step")
    parser.add_argument("--sleep", action="store_true", help="wait instead of computing")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--spec", help="a pruning plan as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["HEADVIZ_HOME"] = home
        plugins.load([REHEARSAL])
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        idle()
        local_overhead()
        cluster_overhead(Path(home))
        if args.scale:
            scale(args, Path(home))


def idle() -> None:
    """The default keeps no process: nothing of ours runs before a run, nor after its end."""
    before = ours()
    record = service.wait_for(service.start("rehearsal", {"steps": 1}).id)
    until = time.monotonic() + 5
    while ours() - before and time.monotonic() < until:
        time.sleep(0.05)
    print(f"idle: {len(before)} worker processes before a run, {len(ours())} after it ({record.state})")


def ours() -> set[int]:
    """Worker processes of this bench."""
    result = set()
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        words, home = process.info["cmdline"] or [], (process.info["environ"] or {}).get("HEADVIZ_HOME")
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if "headviz.runs.worker" in words and home == os.environ["HEADVIZ_HOME"] and alive:
            result.add(process.pid)
    return result


def local_overhead() -> None:
    """From the call to the first step, and what each further step costs besides its work."""
    first, each = [], []
    for _ in range(5):
        steps = 41
        begun = time.time()
        run = service.wait_for(service.start("rehearsal", {"steps": steps}).id)
        at = [e["at"] for e in Registry().events(run.id) if e["what"] == "step"]
        first.append(at[0] - begun)
        each.append((at[-1] - at[0]) / (steps - 1))
    print(f"local: {median(first):.2f} s from the call to the first step, {1000 * median(each):.1f} ms per step")


def cluster_overhead(home: Path) -> None:
    with Cluster(home, 1):
        begun = time.time()
        run = service.wait_for(service.start("rehearsal", {"steps": 101}, executor="dask").id)
        at = [e["at"] for e in Registry().events(run.id) if e["what"] == "step"]
    each = 1000 * (at[-1] - at[0]) / 100
    print(f"cluster: {at[0] - begun:.2f} s to the first step, {each:.1f} ms per task in one chain")


def scale(args: argparse.Namespace, home: Path) -> None:
    """The same sweep on one worker and on two, alternating, so that both meet the same machine."""
    times: dict[int, list[float]] = {1: [], 2: []}
    masks = set()
    for workers in (1, 2, 2, 1):
        with Cluster(home, workers):
            warm_up(args, workers)
            begun = time.perf_counter()
            sweep = start_sweep(members(args), title=f"{workers}", executor="dask")
            service.wait_for(sweep.id)
            times[workers].append(time.perf_counter() - begun)
            steps = [Registry().steps(r.id) for r in Registry().records(parent=sweep.id)]
            masks.add(json.dumps([[(s["mask"], s["metrics"]) for s in run] for run in steps]))
    one, two = (median(times[n]) for n in (1, 2))
    print(f"sweep: {one:.1f} s on one worker, {two:.1f} s on two: {one / two:.2f}×; results equal: {len(masks) == 1}")


def members(args: argparse.Namespace) -> list[Member]:
    if args.spec:
        plan = json.loads(Path(args.spec).read_text())
        return [Member("prune", {**plan, "seeds": [s]}, f"seed {s}") for s in range(args.runs)]
    spec = {"steps": args.steps, "seconds" if args.sleep else "spin": args.spin}
    return [Member("rehearsal", {**spec, "payload": i}, f"run {i}") for i in range(args.runs)]


def warm_up(args: argparse.Namespace, workers: int) -> None:
    """Every worker loads what it needs before the clock starts."""
    first = members(args)[0]
    again = [Member(first.kind, dict(first.spec), f"warm {i}") for i in range(2 * workers)]
    service.wait_for(start_sweep(again, title="warm", executor="dask").id)


class Cluster:
    """A scheduler and single-threaded workers on loopback, ended with the block."""

    def __init__(self, home: Path, workers: int) -> None:
        self.home, self.workers = home, workers
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> None:
        where = self.home / f"scheduler-{time.monotonic_ns()}.json"
        self._start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--no-show",
            "--scheduler-file",
            str(where),
        )
        while not where.exists() or not where.read_text().rstrip().endswith("}"):
            time.sleep(0.05)
        address = json.loads(where.read_text())["address"]
        for _ in range(self.workers):
            self._start(
                "worker",
                address,
                "--nthreads",
                "1",
                "--no-nanny",
                "--no-dashboard",
                "--local-directory",
                str(self.home),
            )
        os.environ["HEADVIZ_DASK"] = address
        from headviz.extras.cluster.driver import connected

        with connected() as client:
            client.wait_for_workers(self.workers, timeout=60)

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def _start(self, what: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "dask", what, *arguments]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


if __name__ == "__main__":
    main()

"""Processes for tests, forked from one that has done slow imports already.

They are processes like any other: a session, a process id, an environment and a log of their own, and they run
``python -m MODULE`` to its end. Only the seconds of imports are saved. Workers of runs come from a process that has
imported torch and transformers (``begin``). A rehearsal on this machine imports nothing heavy: its worker starts from
nothing, as a user's does, and so do those of a test that asks for ``real_spawn``. ``Nursery`` makes other processes.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NoReturn

PRELOADED = (
    "accelerate",
    "distributed.cli.dask_scheduler",
    "distributed.cli.dask_worker",
    "sklearn.metrics",
    "torch",
    "transformers.models.bert.modeling_bert",
    "transformers.trainer",
    "headviz.analyses",
    "headviz.attribution",
    "headviz.extras.distillation",
    "headviz.answers.comparison",
    "headviz.models.classifier",
    "headviz.pruning",
    "headviz.engine",
    "headviz.runs.carrier",
    "headviz.runs.jobs",
    "headviz.scores",
)
Order = tuple[str, list[str], dict[str, str], str, str]  # module, arguments, environment, folder, log
_address = ""


@dataclass(frozen=True)
class Forked:
    """A process as ``subprocess.Popen`` names it. The process that made it lets the system forget it."""

    pid: int

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    terminate = kill

    def poll(self) -> int | None:
        return None if Path(f"/proc/{self.pid}").exists() else 0

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while Path(f"/proc/{self.pid}").exists():
            assert time.monotonic() < until, f"process {self.pid} does not end"
            time.sleep(0.01)


def begin() -> int:
    """Fork the process that makes workers; its id. To be called before this process has computed any gradient."""
    global _address
    _address = _new_address()
    with _listen(_address) as listening:
        pid = os.fork()
        if pid == 0:
            _leave_files(listening.fileno())
            _serve(listening, _prepare)
    return pid


def _new_address() -> str:
    return str(Path(tempfile.mkdtemp(prefix="forked")) / "socket")


def _listen(address: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(f"{address}.new")
    made.listen(16)
    Path(f"{address}.new").rename(address)  # who finds it can connect
    return made


class Nursery:
    """A new Python that imports some modules and then forks processes that have them; with ``with``."""

    def __init__(self, names: Sequence[str]) -> None:
        self.address = _new_address()
        path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "support.forked", self.address, *names]
        self.process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.DEVNULL)

    def __enter__(self) -> Nursery:
        while not Path(self.address).exists():
            assert self.process.poll() is None, "the process that forks others did not start"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def spawn(run_id: str, claim: str, home: Path, log: Path, threads: int) -> int:
    """What ``headviz.runs.process.spawn`` does, by a fork."""
    from headviz.models.fast.thread_spinning import short_waits
    from headviz.runs import process
    from headviz.runs.registry import Registry

    record = Registry(home / "runs").get(run_id)
    if record.kind == "rehearsal" and not record.elsewhere:
        return process.spawn(run_id, claim, home, log, threads)
    env = {**os.environ, "HEADVIZ_HOME": str(home), "TOKENIZERS_PARALLELISM": "false"}
    env |= short_waits(env)
    env |= {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return module("headviz.runs.worker", [run_id, "--claim", claim], env, log).pid


def module(name: str, arguments: list[str], env: dict[str, str], log: Path, address: str = "") -> Forked:
    """Start ``python -m NAME ARGUMENTS``; its output goes to the end of the file. ``address`` is a ``Nursery``'s."""
    with Client(address or _address, "AF_UNIX") as line:
        line.send((name, arguments, env, os.getcwd(), str(log)))
        return Forked(line.recv())


def _serve(listening: socket.socket, prepare: Callable[[], None], sessions: bool = True) -> NoReturn:
    parent = os.getppid()
    ready = False
    while os.getppid() == parent:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not select.select([listening], [], [], 0.2)[0]:
            continue
        line = Connection(listening.accept()[0].detach())
        order = line.recv()
        if not ready:
            prepare()
            gc.collect()
            gc.freeze()
            ready = True
        pid = os.fork()
        if pid == 0:
            if sessions:
                os.setsid()
            _become(order, line, listening)
        line.send(pid)
        line.close()
    os._exit(0)


def _leave_files(kept: int) -> None:
    """Nobody shall wait for a pipe that only this process holds open.

    Every number stays taken: objects of the tests' process that are still around write to where they always wrote.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in (kept, nothing):
            with suppress(OSError):  # the listing itself was among them
                os.fstat(number)
                os.dup2(nothing, number)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")


def _import(names: Sequence[str]) -> None:
    for name in names:
        importlib.import_module(name)


def _prepare() -> None:
    _import(PRELOADED)
    queue: Any = importlib.import_module("headviz.runs.queue")
    queue.spawn = spawn


def _become(order: Order, line: Connection, listening: socket.socket) -> NoReturn:
    name, arguments, env, folder, log = order
    status = 1
    try:
        line.close()
        listening.close()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.close(out)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        import torch

        torch.set_num_threads(int(env.get("OMP_NUM_THREADS", "1")))
        warnings.resetwarnings()
        sys.argv = [name, *arguments]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    os._exit(status)


if __name__ == "__main__":
    _serve(_listen(sys.argv[1]), lambda: _import(sys.argv[2:]), sessions=False)

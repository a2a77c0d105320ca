"""Worker processes: their identity, whether they are alive, how they are started and ended.

A pid alone is not an identity, because the system uses it again. An identity is the place (machine, boot and process
namespace), the pid, and the time at which the process started.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from ..models.fast.thread_spinning import short_waits

# how a worker ends: with the run's outcome on record, not started at all, or because another worker has the run
EXIT_DONE, EXIT_REFUSED, EXIT_SUPERSEDED = 0, 3, 4
BUSY = 25.0  # per cent of the machine that other programs use, from which a run is slower for it
_started: list[subprocess.Popen[bytes]] = []  # children of this process, so that ended ones leave no zombies


def used_by_others(used_here: float = 0.0) -> float:
    """Per cent of this machine's processors that other programs have used since the last call; ``used_here`` is this
    process's use (100 = one core)."""
    return max(0.0, psutil.cpu_percent() - used_here / (psutil.cpu_count() or 1))


def monotonic() -> float:
    """Seconds since boot: the same for every process of the machine, and never set back."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; counts while the machine sleeps
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


@cache
def place() -> str:
    """This machine, boot and process namespace. Pids can be compared where this is equal."""
    return "|".join((socket.gethostname(), _boot(), _namespace()))


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{psutil.boot_time():.0f}"


def _namespace() -> str:
    with suppress(OSError, AttributeError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def memory_kills() -> int | None:
    """How many processes this machine has ended since its start because memory ran out; None where it does not say."""
    with suppress(OSError, ValueError):
        lines = Path("/proc/vmstat").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
    return None


def start_of(pid: int) -> str | None:
    """When a process started, as a text to compare; None if there is no such process, or only a zombie.

    On Linux in clock ticks since boot, so that setting the clock does not matter.
    """
    try:
        raw = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if sys.platform == "linux":
            return None
    else:
        fields = raw.rpartition(")")[2].split()  # the name before it may hold blanks
        return None if fields[0] in "ZX" else fields[19]
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


@dataclass(frozen=True)
class Identity:
    """One process, never mistaken for a later one with the same pid."""

    place: str
    pid: int
    start: str

    @classmethod
    def own(cls) -> Identity:
        return cls(place(), os.getpid(), start_of(os.getpid()) or "")

    def alive(self) -> bool | None:
        """Whether it still runs; None for a process of another machine."""
        if self.place == place():
            reap()
            return start_of(self.pid) == self.start
        theirs, ours = self.place.split("|"), place().split("|")
        if theirs[0] == ours[0] and theirs[1] != ours[1]:
            return False  # this machine has restarted since
        return None


def reap() -> None:
    """Remove the zombies of our workers that have ended."""
    _started[:] = [p for p in _started if p.poll() is None]


def spawn(run_id: str, claim: str, home: Path, log: Path, threads: int) -> int:
    """Start a worker that outlives us: its own session, no terminal, output to the run's log."""
    env = {**os.environ, "HEADVIZ_HOME": str(home), "TOKENIZERS_PARALLELISM": "false"}
    env |= short_waits(env)
    env |= {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, "-P", "-m", "headviz.runs.worker", run_id, "--claim", claim]
    options: dict[str, object] = {"start_new_session": True}
    if os.name == "nt":
        options = {"creationflags": 0x00000008 | 0x00000200}  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
    with log.open("ab") as out:
        process = subprocess.Popen(  # type: ignore[call-overload]
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env, **options
        )
    _started.append(process)
    return int(process.pid)


def be_nice(niceness: int) -> None:
    """Give way to everything else on the machine; 0 = not at all.

    With Linux' autogroups (usual on desktops) niceness counts within a session only. A worker has a session of its
    own, so its autogroup is made nice as well.
    """
    if niceness:
        with suppress(OSError, AttributeError):
            os.nice(niceness - os.nice(0))
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(niceness))


def kill(identity: Identity) -> None:
    """End a worker and everything it started, at once, if it is still the same process."""
    if identity.alive():
        kill_children(identity.pid)
        with suppress(OSError):
            os.kill(identity.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        wait_gone(identity, 0.5)
    kill_leftovers(identity)


def wait_gone(identity: Identity, seconds: float) -> bool:
    """Wait until a process has ended, so many seconds at most; whether it has."""
    until = time.monotonic() + seconds
    while identity.alive() and time.monotonic() < until:
        time.sleep(0.01)
    return not identity.alive()


def kill_children(pid: int) -> None:
    """End everything that a worker has started, except the next run's worker, which has a session of its own."""
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error, OSError):
                if os.name == "nt" or os.getsid(child.pid) == pid:
                    child.kill()


def kill_leftovers(identity: Identity) -> None:
    """End processes that a dead worker left in its session. Its number is not used again while any of them lives."""
    if os.name == "nt" or identity.place != place() or start_of(identity.pid) is not None:
        return
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if os.getsid(pid) == identity.pid and pid != os.getpid():
                os.kill(pid, signal.SIGKILL)

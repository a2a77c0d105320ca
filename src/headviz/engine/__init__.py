"""The engine for long work: a job says what can be done next, the engine does it and keeps the results.

``Job`` is the protocol that every kind of run follows; ``Execution`` holds a job's state, and ``Workplace`` does its
pieces. Python calls, workers and clusters all run jobs with these classes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import RunError
from ..progress import Cancel, PhaseProgress, stop_if
from ..storage.writing import replace_file

# -----------------------------------------------------------------------------------------------
# The protocol that the job of every kind of run follows, and the tools that a piece of its work gets.
#
# A job divides its work into *pieces*. Its state says which pieces are ready now; ready pieces do not depend on each
# other, so a cluster may do them at once, and one machine does them in turn. ``work`` is the heavy part and a pure
# function of its arguments: it may run in any process, and be repeated. Everything else is light and runs where the
# state is kept. The result depends only on which pieces are absorbed, never on their order.


@dataclass(frozen=True)
class Tools:
    """What a piece of work gets besides its data.

    ``progress(phase, done, total)`` takes reports. The work calls ``cancel()`` between chunks, and raises
    ``errors.Cancelled`` if it is true. ``folder`` holds the run's own files: those that ``needs`` named are there, and
    those that the work writes are kept. ``loaded`` is what the job's ``load`` returned.
    """

    progress: PhaseProgress
    cancel: Cancel
    folder: Path
    loaded: Any


class Job(Protocol):
    """One kind's work, made from its spec. States are the job's own; ``pack`` and ``unpack`` make them bytes (JSON)."""

    def begin(self) -> Any:
        """The state before any work."""

    def ready(self, state: Any) -> Sequence[str]:
        """Names of the pieces that can be done now, in the order one machine does them; none = finished."""

    def parcel(self, state: Any, piece: str) -> bytes:
        """Everything that a piece needs from the state."""
        return b""

    def needs(self, state: Any, piece: str) -> Sequence[str]:
        """Files or folders, relative to the run's own, that a piece reads (models trained by an earlier piece)."""
        return ()

    def load(self, folder: Path) -> Any:
        """Models and data that the pieces share. Heavy; called once per process, before its first piece."""
        return None

    def sources(self, state: Any) -> Mapping[str, Any]:
        """Digests of the models and data that the state is about, by name; none while they are not known."""
        return {}

    def digest(self, loaded: Any, name: str) -> Any:
        """The digest of one of ``sources`` in what this process has loaded."""
        return None

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        """Do a piece. Heavy; without side effects that matter."""

    def absorb(self, state: Any, piece: str, result: bytes) -> Any:
        """The state with a piece's result in it. Light."""

    def steps(self, state: Any) -> dict[int, dict[str, Any]]:
        """The steps so far by their fixed numbers, as JSON: {sparsity, mask, metrics, seconds, …}.

        A step with ``"step": 0`` is the full model that others are compared with.
        """

    def expected(self, state: Any) -> int:
        """How many steps there will be; 0 = not known yet."""

    def work_done(self, state: Any) -> float:
        """The steps so far, for the time that is left; with parts of steps where a job knows how long each takes."""
        return len(self.steps(state))

    def pack(self, state: Any) -> bytes:
        return json.dumps(state).encode()

    def unpack(self, raw: bytes) -> Any:
        return json.loads(raw)

    def finish(self, state: Any, folder: Path) -> dict[str, Any]:
        """Called once when nothing is left: may write files into ``folder``; the outcome as JSON."""

    def kept_in(self, folder: Path) -> Checkpoints | None:
        """Where the state of a finished job is kept among its results; None where its outcome is enough."""
        return None


# -----------------------------------------------------------------------------------------------
# The states of a job on disk: each is written whole, and a damaged one is passed over for the one before it.


SEAL = b"headviz-checkpoint-1\n"


@dataclass(frozen=True)
class Checkpoints:
    """A series of files in a folder, which need not exist yet. The newest ``keep`` of them stay.

    ``sealed`` files begin with a checksum of their content. In other series the reader of the content detects damage.
    """

    folder: Path
    prefix: str = "checkpoint-"  # of the files' names
    suffix: str = ".bin"
    digits: int = 1  # of the number in a name, at least; 0 = one file without a number
    keep: int = 2
    sealed: bool = True

    def files(self) -> list[tuple[int, Path]]:
        """(number, file), the newest first."""
        number = rf"(\d{{{self.digits},}})" if self.digits else "()"
        pattern = re.compile(re.escape(self.prefix) + number + re.escape(self.suffix))
        with suppress(OSError):
            matches = [(pattern.fullmatch(path.name), path) for path in self.folder.iterdir()]
            return sorted(((int(match[1] or 0), path) for match, path in matches if match), reverse=True)
        return []

    def save(self, body: bytes) -> None:
        """Write the newest state; after this returns, a crash cannot lose it. The same state is not written twice."""
        content = SEAL + hashlib.sha256(body).digest() + body if self.sealed else body
        files = self.files()
        with suppress(OSError):
            if files and files[0][1].read_bytes() == content:
                return
        number = str(files[0][0] + 1 if files else 1).zfill(self.digits) if self.digits else ""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / f"{self.prefix}{number}{self.suffix}", content, durable=True)
        for _, path in self.files()[self.keep :]:
            path.unlink(missing_ok=True)

    def bodies(self) -> Iterator[tuple[Path, bytes | None]]:
        """Each file with its content, the newest first; None = it is damaged."""
        start = len(SEAL) + hashlib.sha256().digest_size
        for _, path in self.files():
            raw = None
            with suppress(OSError):
                raw = path.read_bytes()
            if raw is not None and self.sealed:
                intact = raw[:start] == SEAL + hashlib.sha256(raw[start:]).digest()
                raw = raw[start:] if intact else None
            yield path, raw

    def newest(self) -> bytes | None:
        """The content of the newest file that is not damaged; None without one."""
        return next((body for _, body in self.bodies() if body is not None), None)


# -----------------------------------------------------------------------------------------------
# A job while it is worked on. One process holds the state and writes it down; any process may do the pieces.
#
# state, _ = restored(job, checkpoints)
# for state in run_here(Execution(job, checkpoints, state), Workplace(job, folder)):
#     …


@dataclass(frozen=True)
class Order:
    """A piece and all that it needs: plain values, which can be sent to another machine."""

    piece: str
    parcel: bytes
    needs: tuple[str, ...]  # files of the run
    sources: Mapping[str, Any]  # digests of the models and data that the earlier pieces worked with

    @classmethod
    def of(cls, job: Job, state: Any, piece: str) -> Order:
        return cls(piece, job.parcel(state, piece), tuple(job.needs(state, piece)), job.sources(state))


class Execution:
    """The state of a job, written down after every piece; a job that was stopped at any moment goes on from there."""

    def __init__(self, job: Job, checkpoints: Checkpoints, state: Any) -> None:
        self.job, self.checkpoints, self.state = job, checkpoints, state

    def ready(self) -> Sequence[str]:
        return self.job.ready(self.state)

    def order(self, piece: str) -> Order:
        return Order.of(self.job, self.state, piece)

    def absorb(self, piece: str, result: bytes) -> None:
        """Add a piece's result to the state and write it down."""
        self.keep(self.job.absorb(self.state, piece, result))

    def keep(self, state: Any) -> None:
        """Write a new state down."""
        self.state = state
        self.checkpoints.save(self.job.pack(state))

    def finish(self, folder: Path) -> dict[str, Any]:
        """The outcome of a job of which nothing is left; ``folder`` holds its results."""
        outcome = self.job.finish(self.state, folder)
        if (checkpoints := self.job.kept_in(folder)) is not None:
            checkpoints.save(self.job.pack(self.state))
        return outcome


def restored(job: Job, checkpoints: Checkpoints) -> tuple[Any, list[str]]:
    """The state in the newest checkpoint, else the beginning; and the names of damaged checkpoints before that one."""
    damaged: list[str] = []
    for path, body in checkpoints.bodies():
        if body is None:
            damaged.append(path.name)
            continue
        try:
            return job.unpack(body), damaged
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{path.name} of this run cannot be read by this version of headviz ({error}). Start a new run.",
                code="other-version",
                resumable=False,
            ) from error
    return job.begin(), damaged


class Workplace:
    """Where a process does pieces of a job: in a folder, with models and data that are loaded once."""

    def __init__(self, job: Job, folder: Path, loaded: Any = None) -> None:
        self.job, self.folder = job, folder
        self._loaded: tuple[Any, ...] = () if loaded is None else (loaded,)

    def loaded(self, progress: PhaseProgress | None = None) -> Any:
        """The job's models and data, loaded now unless a caller passed them or an earlier piece loaded them."""
        if not self._loaded:
            if progress is not None:
                progress("loading", 0, 0)
            self._loaded = (self.job.load(self.folder),)
        return self._loaded[0]

    def do(self, order: Order, progress: PhaseProgress | None = None, cancel: Cancel | None = None) -> bytes:
        """The result of a piece; a ``RunError`` if models or data are no longer those of the earlier pieces."""
        loaded = self.loaded(progress)
        for name, digest in order.sources.items():
            if self.job.digest(loaded, name) != digest:
                raise RunError(
                    f"The {name} of this run has changed since the run was started, so its results would be a mixture. "
                    "Start a new run.",
                    code="source-changed",
                    resumable=False,
                )
        tools = Tools(progress or (lambda phase, done, total: None), cancel or (lambda: False), self.folder, loaded)
        return self.job.work(order.piece, order.parcel, tools)


def run_here(
    execution: Execution, workplace: Workplace, progress: PhaseProgress | None = None, cancel: Cancel | None = None
) -> Iterator[Any]:
    """Do all pieces that are left, one after the other: yields the state after each, once it is written down."""
    while pieces := execution.ready():
        stop_if(cancel)
        execution.absorb(pieces[0], workplace.do(execution.order(pieces[0]), progress, cancel))
        yield execution.state

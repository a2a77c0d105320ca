"""What a run can be: one line per kind, and the protocol that each kind's job follows.

A job divides its work into *pieces*. Its state says which pieces are ready now; ready pieces do not depend on each
other, so a cluster may do them at once, and one machine does them in turn. ``work`` is the heavy part and a pure
function of its arguments: it may run in any process, and be repeated. Everything else is light and runs where the
registry is. The result depends only on which pieces are absorbed, never on their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from .. import plugins
from ..errors import RunError, unknown_choice
from ..progress import Cancel, PhaseProgress


@dataclass(frozen=True)
class Tools:
    """What a piece of work gets besides its data.

    ``progress(phase, done, total)`` takes reports; ``cancel()`` is asked between chunks, and if it is true the work
    raises ``errors.Cancelled``. ``folder`` holds the run's own files: those that ``needs`` named are there, and those
    that the work writes are kept.
    """

    progress: PhaseProgress
    cancel: Cancel
    folder: Path


class RunJob(Protocol):
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

    def pack(self, state: Any) -> bytes:
        return json.dumps(state).encode()

    def unpack(self, raw: bytes) -> Any:
        return json.loads(raw)

    def finish(self, state: Any, folder: Path) -> dict[str, Any]:
        """Called once when nothing is left: may write files into ``folder``; the outcome as JSON."""


@dataclass(frozen=True)
class Kind:
    """One line of the table. ``place`` is ``module:function`` below headviz.runs.jobs, imported when needed."""

    place: str
    about: str


KINDS: dict[str, Kind] = {
    "prune": Kind("prune:make", "one pruning algorithm on one model and task"),
    "finetune": Kind("finetune:make", "fine-tune a base model on a task"),
    "score": Kind("score:make", "a head score over a sample, the examples shared out"),
    "ablation": Kind("ablate:make", "switch every head off in turn and measure what it costs"),
    "faster": Kind("faster:make", "heads and neurons off until the model is so many times as fast"),
    "distill": Kind("distill:make", "remove a part and train students in its place, from several starts"),
    "rehearsal": Kind("rehearsal:make", "random numbers only: shows that runs work here and what they cost"),
}


def make_job(kind: str, spec: dict[str, Any]) -> RunJob:
    """The job of a run, with the plugins that its spec names; a spec that does not fit is a ``UserError``."""
    if kind not in KINDS:
        raise RunError(unknown_choice("kind of run", kind, KINDS))
    module, _, name = KINDS[kind].place.partition(":")
    make: Callable[[dict[str, Any]], RunJob] = getattr(import_module(f".jobs.{module}", __package__), name)
    return make(plugins.without(spec))

"""The protocol that the job of every kind of run follows, and what a piece of its work gets.

A job divides its work into *pieces*. Its state says which pieces are ready now; ready pieces do not depend on each
other, so a cluster may do them at once, and one machine does them in turn. ``work`` is the heavy part and a pure
function of its arguments: it may run in any process, and be repeated. Everything else is light and runs where the
state is kept. The result depends only on which pieces are absorbed, never on their order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..progress import Cancel, PhaseProgress
from .checkpoints import Checkpoints


@dataclass(frozen=True)
class Tools:
    """What a piece of work gets besides its data.

    ``progress(phase, done, total)`` takes reports; ``cancel()`` is asked between chunks, and if it is true the work
    raises ``errors.Cancelled``. ``folder`` holds the run's own files: those that ``needs`` named are there, and those
    that the work writes are kept. ``loaded`` is what the job's ``load`` returned.
    """

    progress: PhaseProgress
    cancel: Cancel
    folder: Path
    loaded: Any = None


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

    def pack(self, state: Any) -> bytes:
        return json.dumps(state).encode()

    def unpack(self, raw: bytes) -> Any:
        return json.loads(raw)

    def finish(self, state: Any, folder: Path) -> dict[str, Any]:
        """Called once when nothing is left: may write files into ``folder``; the outcome as JSON."""

    def kept_in(self, folder: Path) -> Checkpoints | None:
        """Where readers find the state of a finished job among its results; None where its outcome says all."""
        return None

"""A plugin with a kind of run of seeded random numbers, with phases, delays and errors on demand.

It shows that runs work on a machine or a cluster, and how long one takes besides its work. Each result depends on all
steps before it, so a run that was resumed wrongly ends with another number.

A worker executes this file as a plugin, since a run's spec names it. A test that starts rehearsals calls ``load``.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from headviz import plugins
from headviz.engine import Job, Tools
from headviz.errors import Cancelled, OptionError, UserError
from headviz.options import read_options
from headviz.plugins import RunKind

PHASES = ("scoring", "training", "evaluating")


@dataclass(frozen=True)
class Rehearsal:
    """``chains`` independent chains of ``steps`` links; a link takes ``seconds`` and computes for ``spin`` seconds."""

    steps: int = 5
    chains: int = 1
    seconds: float = 0.0
    spin: float = 0.0  # seconds of processor time
    payload: int = 0  # bytes that each state carries
    fail_at: int | None = None  # this step ends in an error
    exhaust_at: int | None = None  # this step asks for more memory than there is
    deaf_at: int | None = None  # this step does not look at the cancel flag
    child_at: int | None = None  # this step starts a process of its own and forgets it
    gone: float = 0.0  # seconds without a worker of the cluster after which the run gives up; 0 = as ever

    def __post_init__(self) -> None:
        if not (1 <= self.steps <= 100_000 and 1 <= self.chains <= 1000):
            raise OptionError("A rehearsal has 1 to 100000 steps in 1 to 1000 chains.")
        if self.seconds < 0 or self.spin < 0 or self.payload < 0:
            raise OptionError("A rehearsal's seconds, spin and payload are numbers from 0 up.")


def make(spec: Mapping[str, Any]) -> RehearsalJob:
    plan = read_options(Rehearsal, spec, "rehearsal option")
    if plan.gone:
        import_module("headviz.extras.cluster.driver").GONE = plan.gone  # type: ignore[attr-defined]
    return RehearsalJob(plan)


State = dict[str, list[dict[str, Any]]]  # chain -> its links


@dataclass(frozen=True)
class RehearsalJob(Job):
    """One piece per link of a chain."""

    plan: Rehearsal

    def begin(self) -> State:
        return {str(c): [] for c in range(self.plan.chains)}

    def ready(self, state: State) -> list[str]:
        return [c for c, links in state.items() if len(links) < self.plan.steps]

    def parcel(self, state: State, piece: str) -> bytes:
        links = state[piece]
        return json.dumps({"number": len(links), "before": links[-1]["value"] if links else ""}).encode()

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        given = json.loads(parcel)
        number, start = given["number"], time.perf_counter()
        if number == self.plan.child_at:
            _forgotten_child()
        if number == self.plan.fail_at:
            raise UserError(f"Step {number} was asked to fail.")
        if number == self.plan.exhaust_at:
            bytearray(1 << 62)
        for i, phase in enumerate(PHASES):
            tools.progress(phase, i, len(PHASES))
            self._spend(number, tools)
        value = hashlib.sha256(f"{piece}|{number}|{given['before']}".encode()).hexdigest()
        return json.dumps(
            {"value": value, "seconds": time.perf_counter() - start, "ballast": "x" * self.plan.payload}
        ).encode()

    def _spend(self, number: int, tools: Tools) -> None:
        share = 1 / len(PHASES)
        until = time.monotonic() + self.plan.seconds * share
        busy = time.process_time() + self.plan.spin * share
        while time.monotonic() < until or time.process_time() < busy:
            if tools.cancel() and number != self.plan.deaf_at:
                raise Cancelled
            if time.process_time() >= busy:
                time.sleep(min(0.01, max(0.0, until - time.monotonic())))

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        return {**state, piece: [*state[piece], json.loads(result)]}

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        """One step per link that all chains have reached."""
        whole = min(len(links) for links in state.values())
        return {
            n: {
                "sparsity": (n + 1) / self.plan.steps,
                "mask": None,
                "metrics": {"value": int(_joined(state, n)[:8], 16) / 2**32},
                "seconds": sum(links[n]["seconds"] for links in state.values()),
            }
            for n in range(whole)
        }

    def expected(self, state: State) -> int:
        return self.plan.steps

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        return {"value": _joined(state, self.plan.steps - 1), "plan": asdict(self.plan)}


def _joined(state: State, number: int) -> str:
    return hashlib.sha256("".join(state[c][number]["value"] for c in sorted(state)).encode()).hexdigest()


def _forgotten_child() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def load() -> None:
    """Make this process know the kind of run."""
    plugins.load([__file__])


RUNS = [RunKind("rehearsal", "Rehearsal", "random numbers only: shows that runs work here and what they cost", make)]

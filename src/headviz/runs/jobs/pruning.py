"""A pruning run: ``headviz.pruning``'s own ready, perform and absorb, as pieces of a background run.

The driver's part needs no torch: it holds states as JSON and logits. Loading models and data, and every
computation, is the work of a piece. A first piece checks the plan and makes the first state.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as write_tensors

from ...errors import RunError
from ...pruning.driver import absorb, ready, works
from ...pruning.plan import PruningPlan
from ...pruning.state import BUILD, Done, State, Work, _choice, _record
from ...pruning.table import ALGORITHMS
from ..kinds import Tools

if TYPE_CHECKING:
    from ...pruning.context import Context

CHECK = "check"  # the first piece: load everything once, refuse what cannot work


def make(spec: Mapping[str, Any]) -> PruningJob:
    """``digests``, beside the plan's own options: what the weights and data were when the run was written down."""
    options = dict(spec)
    digests = options.pop("digests", None) or {}
    return PruningJob(PruningPlan.from_dict(options), digests)


@dataclasses.dataclass(frozen=True)
class PruningJob:
    """Follows the protocol of ``kinds.Job``. The state is a ``pruning.State``, None before the first piece."""

    plan: PruningPlan
    digests: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def begin(self) -> State | None:
        return None

    def ready(self, state: State | None) -> list[str]:
        return [CHECK] if state is None else [w.key for w in ready(self.plan, state)]

    def parcel(self, state: State | None, piece: str) -> bytes:
        return b"" if state is None else self.pack(state)

    def needs(self, state: State | None, piece: str) -> list[str]:
        """The model that the step before trained, where this step scores it."""
        if state is None or not ALGORITHMS[self.plan.algorithm].scores_trained:
            return []
        work = self._work(state, piece)
        before = state.record(work.seed, work.step - 1)
        return [before.model] if work.kind != BUILD and before is not None and before.model else []

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...pruning.check import first_state, same_run
        from ...pruning.driver import perform

        tools.progress("loading", 0, 0)
        context = _context(json.dumps(self.plan.to_dict(), sort_keys=True), tools.folder)
        if piece == CHECK:
            state = first_state(context, self.plan, tools.progress, tools.cancel)
            self._same_as_written_down(state)
            return self.pack(state)
        state = self.unpack(parcel)
        same_run(context, state)
        context.tidy(self.plan, state)
        done = perform(context, self.plan, state, self._work(state, piece), tools.progress, tools.cancel)
        return _pack_done(done)

    def absorb(self, state: State | None, piece: str, result: bytes) -> State:
        if state is None:
            return self.unpack(result)
        return absorb(self.plan, state, _unpack_done(self._work(state, piece), result))

    def steps(self, state: State | None) -> dict[int, dict[str, Any]]:
        if state is None:
            return {}
        width = len(state.sizes) + 1
        place = {seed: i for i, seed in enumerate(self.plan.seeds)}
        found = {0: {**_step(state.reference), "reference": True}}
        return found | {1 + place[r.seed] * width + r.step: _step(r) for r in state.records}

    def expected(self, state: State | None) -> int:
        return 0 if state is None else 1 + len(self.plan.seeds) * (len(state.sizes) + 1)

    def pack(self, state: State) -> bytes:
        logits = {name: np.ascontiguousarray(a) for name, a in state.logits.items()}
        return write_tensors(logits, {"state": json.dumps(state.to_dict(), allow_nan=False)})

    def unpack(self, raw: bytes) -> State:
        words, arrays = _read(raw)
        state = State.from_dict(json.loads(words["state"]), arrays)
        if state.plan_digest != self.plan.digest:
            raise RunError("This checkpoint belongs to another plan. Start the run anew.")
        return state

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        """The state goes beside the models, where ``pruning.State.load`` finds it."""
        state.save(folder)
        return {
            "state": ".",
            "models": sorted(r.model for r in state.records if r.model),
            "notes": list(state.notes),
        }

    def _same_as_written_down(self, state: State) -> None:
        found = {"model": state.model_digest, "base": state.base_digest, "data": state.data_digest}
        for name, digest in self.digests.items():
            if digest is not None and found.get(name) != digest:
                raise RunError(f"The {name} has changed since this run was written down. Start a new run.")

    def _work(self, state: State, key: str) -> Work:
        for work in works(self.plan, state):
            if work.key == key:
                return work
        raise RunError(f"This run has no piece '{key}'.")


@lru_cache(maxsize=2)
def _context(plan: str, folder: Path) -> Context:
    """Models and data, loaded once per process."""
    from ...pruning.context import open_context

    return open_context(PruningPlan.from_dict(json.loads(plan)), folder)


def _step(record: Any) -> dict[str, Any]:
    """A record as runs show it: seconds in all, and by phase."""
    out: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(record), allow_nan=False))
    phases = out.pop("seconds")
    return {**out, "seconds": sum(phases.values()), "phases": phases}


def _pack_done(done: Done) -> bytes:
    words = {
        "choice": None if done.choice is None else dataclasses.asdict(done.choice),
        "record": None if done.record is None else dataclasses.asdict(done.record),
        "notes": list(done.notes),
    }
    arrays = {} if done.logits is None else {"logits": np.ascontiguousarray(done.logits)}
    return write_tensors(arrays, {"done": json.dumps(words, allow_nan=False)})


def _unpack_done(work: Work, raw: bytes) -> Done:
    texts, arrays = _read(raw)
    words = json.loads(texts["done"])
    return Done(
        work,
        choice=None if words["choice"] is None else _choice(words["choice"]),
        record=None if words["record"] is None else _record(words["record"]),
        logits=arrays.get("logits"),
        notes=tuple(words["notes"]),
    )


def _read(raw: bytes) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """A safetensors file's words and arrays."""
    size = int.from_bytes(raw[:8], "little")
    words: dict[str, str] = json.loads(raw[8 : 8 + size]).get("__metadata__", {})
    return words, read_tensors(raw)

"""A pruning run in the background: ``ready``, ``perform`` and ``absorb`` of ``headviz.pruning`` as pieces.

The process that holds the state needs no torch: a state is JSON and logits. Models and data are loaded within pieces
only. The first piece checks the plan and makes the first state. A scoring of many examples is several pieces; the
piece that chooses the mask gets their results.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import RunError
from ...pruning.algorithms import ALGORITHMS
from ...pruning.driver import absorb, ready, score_parts, works
from ...pruning.plan import BESIDE_THE_PLAN, PruningPlan
from ...pruning.state import BUILD, Done, ScorePart, State, Work, tidy
from ...storage.files import pack, unpack
from ..files import RunFiles
from ..protocol import RunJob, Tools
from ..record import RunRecord

if TYPE_CHECKING:
    from ...pruning.context import Context

STATE = "state"
CHECK = "check"  # the first piece: load everything once, refuse what cannot work


def make(spec: Mapping[str, Any]) -> PruningJob:
    """A job from a spec: the plan's options, and the ``digests`` of weights and data when the run was recorded."""
    options = {name: value for name, value in spec.items() if name not in BESIDE_THE_PLAN}
    return PruningJob(PruningPlan.from_dict(options), spec.get("digests") or {})


@dataclasses.dataclass(frozen=True)
class Held:
    """The state of the job: the run's state, and the parts of scorings whose mask is not chosen yet."""

    state: State
    parts: Mapping[str, bytes] = dataclasses.field(default_factory=dict)  # piece -> ScorePart as bytes

    def to_bytes(self) -> bytes:
        """The state's own bytes, or a container with the state and the parts."""
        if not self.parts:
            return self.state.to_bytes()
        held = {STATE: self.state.to_bytes(), **self.parts}
        return pack({name: np.frombuffer(raw, np.uint8) for name, raw in sorted(held.items())})

    @classmethod
    def from_bytes(cls, raw: bytes) -> Held:
        try:
            arrays, _ = unpack(raw)
        except ValueError as error:
            raise RunError(f"The state of the run is damaged: {error}") from error
        found = {name: array.tobytes() for name, array in arrays.items()}
        if STATE not in found:
            return cls(State.from_bytes(raw))
        return cls(State.from_bytes(found.pop(STATE)), found)


@dataclasses.dataclass(frozen=True)
class PruningJob(RunJob):
    """The state is ``Held``, None before the first piece."""

    plan: PruningPlan
    digests: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def begin(self) -> Held | None:
        return None

    def ready(self, held: Held | None) -> list[str]:
        if held is None:
            return [CHECK]
        out: list[str] = []
        for work in ready(self.plan, held.state):
            missing = [p for p in self._parts(held, work) if p not in held.parts]
            out += missing or [work.key]
        return out

    def parcel(self, held: Held | None, piece: str) -> bytes:
        if held is None:
            return b""
        work, part = self._piece(held, piece)
        wanted = self._parts(held, work) if part is None else []
        return Held(held.state, {p: held.parts[p] for p in wanted}).to_bytes()

    def needs(self, held: Held | None, piece: str) -> list[str]:
        """The model that the previous step trained, where this step scores it."""
        if held is None or not ALGORITHMS[self.plan.algorithm].scores_trained:
            return []
        state, (work, _) = held.state, self._piece(held, piece)
        before = state.record(work.seed, work.step - 1)
        return [before.model] if work.kind != BUILD and before is not None and before.model else []

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...pruning.check import first_state, same_run
        from ...pruning.driver import measure_part, perform

        tools.progress("loading", 0, 0)
        context = _context(json.dumps(self.plan.to_dict(), sort_keys=True), tools.folder)
        if piece == CHECK:
            state = first_state(context, self.plan, tools.progress, tools.cancel)
            self._same_as_written_down(state)
            return state.to_bytes()
        held = self.unpack(parcel)
        state, (work, part) = held.state, self._piece(held, piece)
        same_run(context, state)
        tidy(tools.folder, state)
        if part is not None:
            return measure_part(context, self.plan, state, work, part, tools.progress, tools.cancel).to_bytes()
        parts = [ScorePart.from_bytes(held.parts[p]) for p in self._parts(held, work)]
        done = perform(context, self.plan, state, work, tools.progress, tools.cancel, parts or None)
        # a state with this one piece only: reading it back checks its format
        alone = dataclasses.replace(
            state,
            choices=() if done.choice is None else (done.choice,),
            records=() if done.record is None else (done.record,),
            logits={state.reference.logits: state.logits[state.reference.logits]}
            | ({} if done.record is None or done.logits is None else {done.record.logits: done.logits}),
        )
        return alone.to_bytes()

    def absorb(self, held: Held | None, piece: str, result: bytes) -> Held:
        if held is None:
            return self.unpack(result)
        work, part = self._piece(held, piece)
        if part is not None:
            return Held(held.state, {**held.parts, piece: result})
        used = self._parts(held, work)
        left = {p: raw for p, raw in held.parts.items() if p not in used}
        return Held(self._with(held.state, work, State.from_bytes(result)), left)

    def _with(self, state: State, work: Work, alone: State) -> State:
        record = alone.record(work.seed, work.step) if work.kind == BUILD else None
        choice = None if work.kind == BUILD else alone.choice(work.seed, work.step)
        logits = None if record is None else alone.logits[record.logits]
        return absorb(self.plan, state, Done(work, choice, record, logits))

    def steps(self, held: Held | None) -> dict[int, dict[str, Any]]:
        if held is None:
            return {}
        state = held.state
        width = len(state.sizes) + 1
        place = {seed: i for i, seed in enumerate(self.plan.seeds)}
        found = {0: {**_step(state.reference), "reference": True}}
        return found | {1 + place[r.seed] * width + r.step: _step(r) for r in state.records}

    def expected(self, held: Held | None) -> int:
        return 0 if held is None else 1 + len(self.plan.seeds) * (len(held.state.sizes) + 1)

    def pack(self, held: Held) -> bytes:
        return held.to_bytes()

    def unpack(self, raw: bytes) -> Held:
        held = Held.from_bytes(raw)
        if held.state.plan_digest != self.plan.digest:
            raise RunError(
                "This checkpoint belongs to another plan. Start a new run.", code="other-plan", resumable=False
            )
        return held

    def finish(self, held: Held, folder: Path) -> dict[str, Any]:
        """Write the state beside the models, where ``pruning.State.load`` finds it."""
        state = held.state
        tidy(folder, state)
        shutil.rmtree(folder / "training", ignore_errors=True)
        state.save(folder)
        models = sorted(r.model for r in state.records if r.model and (folder / r.model).is_dir())
        return {"state": ".", "models": models, "notes": list(state.notes)}

    def _same_as_written_down(self, state: State) -> None:
        found = {"model": state.model_digest, "base": state.base_digest, "data": state.data_digest}
        for name, digest in self.digests.items():
            if digest is not None and found.get(name) != digest:
                raise RunError(
                    f"The {name} has changed since this run was written down. Start a new run.",
                    code="source-changed",
                    resumable=False,
                )

    def _parts(self, held: Held, work: Work) -> list[str]:
        """The pieces that a scoring is split into; [] = it is not split."""
        count = score_parts(self.plan, held.state, work)
        return [f"{work.key}-p{i}" for i in range(count)] if count > 1 else []

    def _piece(self, held: Held, key: str) -> tuple[Work, int | None]:
        """The work of a piece, and the number of the part if it is one of a scoring."""
        whole, _, part = key.partition("-p")
        for work in works(self.plan, held.state):
            if work.key == whole:
                return work, int(part) if part else None
        raise RunError(f"This run has no piece '{key}'.")


@lru_cache(maxsize=2)
def _context(plan: str, folder: Path) -> Context:
    """Models and data, loaded once per process."""
    from ...pruning.context import open_context

    return open_context(PruningPlan.from_dict(json.loads(plan)), folder)


def _step(record: Any) -> dict[str, Any]:
    """A record as a run's step: ``seconds`` in all, ``phases`` for each phase."""
    out: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(record), allow_nan=False))
    phases = out.pop("seconds")
    return {**out, "seconds": sum(phases.values()), "phases": phases}


def state_of(record: RunRecord, root: Path | None = None) -> State | None:
    """What a run has found so far; None before its first step. Damaged checkpoints are skipped."""
    _, raw, _ = RunFiles(record.id, root).load_checkpoint()
    return Held.from_bytes(raw).state if raw else None

"""A pruning run: ``headviz.pruning``'s own ready, perform and absorb, as pieces of a background run.

The driver's part needs no torch: it holds states as JSON and logits. Loading models and data, and every
computation, is the work of a piece. A first piece checks the plan and makes the first state.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import RunError
from ...pruning.driver import absorb, ready, works
from ...pruning.plan import PruningPlan
from ...pruning.state import BUILD, Done, State, Work
from ...pruning.table import ALGORITHMS
from ..files import RunFiles
from ..kinds import Tools
from ..record import RunRecord

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
        # a state of this one piece: its format is checked when it is read back
        alone = dataclasses.replace(
            state,
            choices=() if done.choice is None else (done.choice,),
            records=() if done.record is None else (done.record,),
            notes=tuple(done.notes),
            logits={state.reference.logits: state.logits[state.reference.logits]}
            | ({} if done.record is None or done.logits is None else {done.record.logits: done.logits}),
        )
        return alone.to_bytes()

    def absorb(self, state: State | None, piece: str, result: bytes) -> State:
        if state is None:
            return self.unpack(result)
        work, alone = self._work(state, piece), State.from_bytes(result)
        record = alone.record(work.seed, work.step) if work.kind == BUILD else None
        choice = None if work.kind == BUILD else alone.choice(work.seed, work.step)
        logits = None if record is None else alone.logits[record.logits]
        return absorb(self.plan, state, Done(work, choice, record, logits, alone.notes))

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
        return state.to_bytes()

    def unpack(self, raw: bytes) -> State:
        state = State.from_bytes(raw)
        if state.plan_digest != self.plan.digest:
            raise RunError("This checkpoint belongs to another plan. Start the run anew.")
        return state

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        """The state goes beside the models, where ``pruning.State.load`` finds it."""
        self._tidy(state, folder)
        state.save(folder)
        models = sorted(r.model for r in state.records if r.model and (folder / r.model).is_dir())
        return {"state": ".", "models": models, "notes": list(state.notes)}

    def _tidy(self, state: State, folder: Path) -> None:
        """Drop trainings' own checkpoints and, unless asked for, the models before each seed's last."""
        shutil.rmtree(folder / "training", ignore_errors=True)
        if self.plan.keep_models != "all":
            last = len(state.sizes)
            for record in state.records:
                if record.model and 0 < record.step < last:
                    shutil.rmtree(folder / record.model, ignore_errors=True)

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


def state_of(record: RunRecord, root: Path | None = None) -> State | None:
    """What a run has found so far, for readers; None before its first step. A damaged checkpoint is passed over."""
    _, raw, _ = RunFiles(record.id, root).load_checkpoint()
    return make(record.spec).unpack(raw) if raw else None

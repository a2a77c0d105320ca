"""A pruning run as a job of the engine: which pieces are ready, how one is done, and what its result adds.

    for state in run_plan(plan, context, progress=…, cancel=…):  # here; saved in the context's folder
        …

The first piece checks the plan and makes the first state. ``choose`` finds a step's mask and ``build`` makes and
evaluates its model; a scoring of many examples is several pieces, whose results the choice of the mask gets. Pieces
that are ready together do not depend on each other. The process that holds the state needs no torch: a state is JSON
and logits, and models and data are loaded within pieces only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine import Checkpoints, Execution, Job, Tools, Workplace, run_here
from ..errors import RunError
from ..progress import Cancel, PhaseProgress
from ..storage.paths import new_folder
from .algorithms import Score
from .plan import SPEC_ONLY, PruningPlan
from .state import BUILD, CHOOSE, MODELS, Done, Replay, ScorePart, State, StepRecord, Work, states_in, tidy, trained_at

if TYPE_CHECKING:
    from .context import Context

CHECK = "check"  # the first piece: load everything once, refuse what cannot work


def make(spec: Mapping[str, Any]) -> PruningJob:
    """A job from a spec: the plan's options, and the ``digests`` of weights and data when the run was recorded."""
    options = {name: value for name, value in spec.items() if name not in SPEC_ONLY}
    return PruningJob(PruningPlan.from_dict(options), spec.get("digests") or {})


@dataclass(frozen=True, eq=False)
class PruningJob(Job):
    """The state is None before the first piece. Its pieces share a ``Context``."""

    plan: PruningPlan
    digests: Mapping[str, str | None] = field(default_factory=dict)  # when the run was recorded

    def begin(self) -> State | None:
        return None

    def ready(self, state: State | None) -> list[str]:
        if state is None:
            return [CHECK]
        pieces: list[str] = []
        for work in works(self.plan, state):
            if self._is_ready(state, work):
                missing = [p for p in self.parts(state, work) if p not in state.parts]
                pieces += missing or [work.key]
        return pieces

    def _is_ready(self, state: State, work: Work) -> bool:
        chosen = state.choice(work.seed, work.step) is not None
        if work.kind == BUILD:
            return (chosen or work.step == 0) and state.record(work.seed, work.step) is None
        if chosen or (work.step > 1 and state.choice(work.seed, work.step - 1) is None):
            return False
        scored = self._trained_for(state, work)
        return scored == 0 or state.record(work.seed, scored) is not None

    def _trained_for(self, state: State, work: Work) -> int:
        """The step whose trained model a choice scores; 0 = it scores none."""
        question = None if work.kind == BUILD else Replay(self.plan, state, work.seed, work.step).question
        if not isinstance(question, Score) or question.trained is None:
            return 0
        return trained_at(state, work.seed, question.trained)

    def parts(self, state: State, work: Work) -> list[str]:
        """The pieces that a work's scoring is split into; [] = it is not split."""
        if work.kind == BUILD or not state.score_parts:
            return []
        count = state.score_parts[self.plan.seeds.index(work.seed)]
        if count == 1 or not isinstance(Replay(self.plan, state, work.seed, work.step).question, Score):
            return []
        return [f"{work.key}-p{i}" for i in range(count)]

    def parcel(self, state: State | None, piece: str) -> bytes:
        if state is None:
            return b""
        work, part = self._piece(state, piece)
        parts = self.parts(state, work) if part is None else []
        return replace(state, parts={p: state.parts[p] for p in parts}).to_bytes()

    def needs(self, state: State | None, piece: str) -> list[str]:
        """The model of an earlier step, where this one scores it."""
        if state is None:
            return []
        work, _ = self._piece(state, piece)
        record = state.record(work.seed, self._trained_for(state, work))
        return [record.model] if record is not None and record.step and record.model else []

    def load(self, folder: Path) -> Context:
        from .context import open_context

        return open_context(self.plan, folder)

    def sources(self, state: State | None) -> dict[str, str]:
        if state is None:
            return {name: digest for name, digest in self.digests.items() if digest is not None}
        return {"model": state.model_digest, "data": state.data_digest}

    def digest(self, loaded: Context, name: str) -> str:
        return loaded.digest(name, self.plan)

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from .check import start
        from .step import Step

        context = tools.loaded
        if piece == CHECK:
            return start(context, self.plan, tools.progress, tools.cancel).to_bytes()
        state = self.unpack(parcel)
        if piece not in self.ready(state):
            raise RunError(f"Piece {piece} cannot be done now: it is finished, or something it needs is not.")
        work, part = self._piece(state, piece)
        tidy(tools.folder, state)
        step = Step(context, self.plan, state, work, tools.progress, tools.cancel)
        if part is not None:
            return step.measure_part(part).to_bytes()
        if work.kind == BUILD:
            return step.build().to_bytes()
        return step.choose([ScorePart.from_bytes(state.parts[p]) for p in self.parts(state, work)]).to_bytes()

    def absorb(self, state: State | None, piece: str, result: bytes) -> State:
        if state is None:
            return self.unpack(result)
        work, part = self._piece(state, piece)
        if part is not None:
            return replace(state, parts={**state.parts, piece: result})
        joined = self.parts(state, work)
        parts = {p: raw for p, raw in state.parts.items() if p not in joined}
        return replace(state, parts=parts).plus(Done.from_bytes(result))

    def steps(self, state: State | None) -> dict[int, dict[str, Any]]:
        if state is None:
            return {}
        width = len(state.sizes) + 1
        steps = {0: {**_step(state.reference), "reference": True}}
        return steps | {1 + self.plan.seeds.index(r.seed) * width + r.step: _step(r) for r in state.records}

    def expected(self, state: State | None) -> int:
        return 0 if state is None else 1 + len(self.plan.seeds) * (len(state.sizes) + 1)

    def pack(self, state: State) -> bytes:
        return state.to_bytes()

    def unpack(self, raw: bytes) -> State:
        state = State.from_bytes(raw)
        if state.plan_digest != self.plan.digest:
            raise RunError(
                "This checkpoint belongs to another plan. Start a new run.", code="other-plan", resumable=False
            )
        return state

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        tidy(folder, state)
        with suppress(OSError):  # it holds what is not the run's
            (folder / "training").rmdir()
        models = sorted(r.model for r in state.records if r.model and (folder / r.model).is_dir())
        return {"state": ".", "models": models, "notes": list(state.notes)}

    def kept_in(self, folder: Path) -> Checkpoints:
        """Beside the models, where ``State.load`` finds it."""
        return states_in(folder)

    def _piece(self, state: State, piece: str) -> tuple[Work, int | None]:
        """The work of a piece, and the number of the part if it is one of a scoring."""
        key, _, part = piece.partition("-p")
        for work in works(self.plan, state):
            if work.key == key:
                return work, int(part) if part else None
        raise RunError(f"This run has no piece '{piece}'.")


def works(plan: PruningPlan, state: State) -> list[Work]:
    """All works of a run, in the order in which one machine does them."""
    order = []
    for seed in plan.seeds:
        order.append(Work(BUILD, seed, 0))
        for step in range(1, len(state.sizes) + 1):
            order += [Work(CHOOSE, seed, step), Work(BUILD, seed, step)]
    return order


def _step(record: StepRecord) -> dict[str, Any]:
    """A record as a run's step: ``seconds`` in all, ``phases`` for each phase."""
    step: dict[str, Any] = json.loads(json.dumps(asdict(record), allow_nan=False))
    phases = step.pop("seconds")
    return {**step, "seconds": sum(phases.values()), "phases": phases}


def run_plan(
    plan: PruningPlan,
    context: Context,
    state: State | None = None,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> Iterator[State]:
    """Do a whole run in this process: yields the state after every step, saved in the context's folder.

    A run does not begin in a folder with another run's models. To continue an interrupted one, pass its state. For runs
    that go on without this process use ``headviz.runs``. The phases of ``progress(phase, done, total)`` are score,
    repair, train and evaluate.
    """
    folder, job = context.folder, PruningJob(plan)
    execution = Execution(job, states_in(folder), state)
    if state is None:
        new_folder(folder / MODELS)  # what lies there would be replaced
    else:
        if state.plan_digest != plan.digest:
            raise RunError("This state belongs to another plan. Continue with the plan that it was started with.")
        execution.keep(state)
    records = 0 if state is None else len(state.records)
    for after in run_here(execution, Workplace(job, folder, context), progress, cancel):
        if len(after.records) > records:
            records += 1
            yield after
    execution.finish(folder)

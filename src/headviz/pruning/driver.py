"""Drive a run: find the work that is ready, do a piece of it, add its result. ``state`` has the protocol."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .. import __version__
from ..errors import RunError
from ..progress import Cancel, PhaseProgress, stop_if
from ..storage.paths import new_folder
from .algorithms import Score
from .plan import PruningPlan
from .replay import Replay, trained_at
from .state import BUILD, CHOOSE, MODELS, Done, ScorePart, State, Work, checkpoint_folder, tidy

if TYPE_CHECKING:
    from .context import Context

SECONDS = "seconds"  # beside the values of a part that is kept


def start(
    context: Context, plan: PruningPlan, progress: PhaseProgress | None = None, cancel: Cancel | None = None
) -> State:
    """The first state of a run: the plan is checked, and θ* with all heads is evaluated."""
    from .check import first_state

    return first_state(context, plan, progress, cancel)


def works(plan: PruningPlan, state: State) -> list[Work]:
    """All works of a run, in the order in which ``advance`` does them."""
    out = []
    for seed in plan.seeds:
        out.append(Work(BUILD, seed, 0))
        for step in range(1, len(state.sizes) + 1):
            out += [Work(CHOOSE, seed, step), Work(BUILD, seed, step)]
    return out


def ready(plan: PruningPlan, state: State) -> list[Work]:
    """The works that can be done now. They may run at the same time."""
    finished = _finished(state)
    return [w for w in works(plan, state) if w not in finished and _can_be_done(plan, state, w, finished)]


def _can_be_done(plan: PruningPlan, state: State, work: Work, finished: set[Work]) -> bool:
    if work.kind == BUILD:
        return work.step == 0 or Work(CHOOSE, work.seed, work.step) in finished
    if work.step > 1 and Work(CHOOSE, work.seed, work.step - 1) not in finished:
        return False
    question = Replay(plan, state, work.seed, work.step).question
    if not isinstance(question, Score) or question.trained is None or question.trained.is_full:
        return True
    return Work(BUILD, work.seed, trained_at(state, work.seed, question.trained)) in finished


def perform(
    context: Context,
    plan: PruningPlan,
    state: State,
    work: Work,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
    parts: Sequence[ScorePart] | None = None,
) -> Done:
    """Do one work; the state is not changed. If ``cancel()`` is true it stops with ``Cancelled``.

    The phases of ``progress(phase, done, total)`` are score, repair, train and evaluate. ``parts`` are all parts of
    its scoring, in order, if they have been measured before.
    """
    from .step import Step

    _require_ready(plan, state, work, cancel)
    step = Step(context, plan, state, work, progress, cancel)
    return step.choose(parts or ()) if work.kind == CHOOSE else step.build()


def score_parts(plan: PruningPlan, state: State, work: Work) -> int:
    """Into how many parts the scoring of a work can be split; 1 = it cannot, or there is no scoring."""
    if work.kind == BUILD or not state.score_parts:
        return 1
    if not isinstance(Replay(plan, state, work.seed, work.step).question, Score):
        return 1
    return state.score_parts[plan.seeds.index(work.seed)]


def measure_part(
    context: Context,
    plan: PruningPlan,
    state: State,
    work: Work,
    part: int,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> ScorePart:
    """Do one part of a scoring. Parts do not depend on each other."""
    from .step import Step

    _require_ready(plan, state, work, cancel)
    return Step(context, plan, state, work, progress, cancel).measure_part(part)


def _require_ready(plan: PruningPlan, state: State, work: Work, cancel: Cancel | None) -> None:
    stop_if(cancel)
    if work not in ready(plan, state):
        raise RunError(f"Work {work.key} cannot be done now: it is finished, or something it needs is not.")


def absorb(plan: PruningPlan, state: State, done: Done) -> State:
    """The state with the result of a work added. The order does not matter."""
    if done.work in _finished(state):
        raise RunError(f"Work {done.work.key} is in the state already.")
    order = {w: i for i, w in enumerate(works(plan, state))}
    if done.choice is not None:
        choices = (*state.choices, done.choice)
        return dataclasses.replace(
            state, choices=tuple(sorted(choices, key=lambda c: order[Work(CHOOSE, c.seed, c.step)]))
        )
    if done.record is None or done.logits is None:
        raise RunError(f"Work {done.work.key} gave neither a choice nor a record.")
    records = (*state.records, done.record)
    return dataclasses.replace(
        state,
        records=tuple(sorted(records, key=lambda r: order[Work(BUILD, r.seed, r.step)])),
        logits={**state.logits, done.record.logits: done.logits},
    )


def advance(
    context: Context,
    plan: PruningPlan,
    state: State,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> State:
    """Do one more step: the state with its choice and its record. If it is cancelled, the state has not changed.

    Parts of a scoring are kept in the context's folder; what goes on later begins with those that are there.
    """
    if is_done(state):
        raise RunError("The run is done; there is no step left.")
    records = len(state.records)
    while len(state.records) == records:
        work = ready(plan, state)[0]
        parts = _kept_parts(context, plan, state, work, progress, cancel)
        state = absorb(plan, state, perform(context, plan, state, work, progress, cancel, parts))
    tidy(context.folder, state)
    return state


def _kept_parts(
    context: Context, plan: PruningPlan, state: State, work: Work, progress: PhaseProgress | None, cancel: Cancel | None
) -> list[ScorePart] | None:
    """All parts of a work's scoring, each written down once it is measured; None where it is not split."""
    import numpy as np

    from ..scores.whole import Kept

    if (count := score_parts(plan, state, work)) == 1:
        return None
    before, built = state.choice(work.seed, work.step - 1), state.record(work.seed, work.step - 1)
    masks = (before and before.mask, built and built.model_digest)
    of = (__version__, plan.digest, state.model_digest, state.data_digest, *masks)
    place = checkpoint_folder(context.folder, work.seed, work.step) / "parts.safetensors"
    total = len(context.sample(plan, work.seed, plan.samples))
    found: list[ScorePart] = []
    for number in range(count):
        kept = Kept(place, repr(of), str(number))
        if (known := kept.load()) is None:
            told = _after_parts(progress, found, total)
            part = measure_part(context, plan, state, work, number, told, cancel)
            kept.save({**part.tables, SECONDS: np.array(part.seconds)}, done=True)
        else:
            part = ScorePart({k: v for k, v in known.items() if k != SECONDS}, float(known[SECONDS]))
        found.append(part)
    return found


def _after_parts(progress: PhaseProgress | None, parts: Sequence[ScorePart], total: int) -> PhaseProgress | None:
    """The progress of one more part, its scoring told as that of the whole sample; a repair before it as it is."""
    if progress is None:
        return None
    before = sum(len(next(iter(part.tables.values()), ())) for part in parts)
    return lambda phase, done, of: progress(phase, *((before + done, total) if phase == "score" else (done, of)))


def is_done(state: State) -> bool:
    """Whether every step of every seed has its record."""
    return len(state.records) == len(state.plan["seeds"]) * (len(state.sizes) + 1)


def run_plan(
    plan: PruningPlan,
    context: Context,
    state: State | None = None,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> Iterator[State]:
    """Do a whole run in this process: yields the state after every step, saved in the context's folder.

    A run does not begin in a folder with another run's models. To continue an interrupted one, pass its state. For runs
    that go on without this process use ``headviz.runs``.
    """
    from .check import same_run

    if state is None:
        new_folder(context.folder / MODELS)  # what lies there would be replaced
        state = start(context, plan, progress, cancel)
    if state.plan_digest != plan.digest:
        raise RunError("This state belongs to another plan. Continue with the plan that it was started with.")
    same_run(context, state)
    state.save(context.folder)
    while not is_done(state):
        state = advance(context, plan, state, progress, cancel)
        state.save(context.folder)
        yield state


def _finished(state: State) -> set[Work]:
    chosen = {Work(CHOOSE, c.seed, c.step) for c in state.choices}
    return chosen | {Work(BUILD, r.seed, r.step) for r in state.records}

"""Faster models in the background: the times are measured once, then each target is searched and built in turn.

With training the targets share their way: a round cuts the model that the one before has left, and rounds between two
targets leave a model that is removed in the end. What was timed is kept with the run: the table, and every turn of a
search. From these the shapes follow, so a run that was stopped goes on to the models that it would have had, bit for
bit.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...engine import Tools
from ...errors import OptionError
from ...models.source import Source
from ...options import declared, option
from ...pruning.options import (
    BEST,
    BOTH,
    HEADS_ONLY,
    TARGETS,
    FasterOptions,
    FinetuneOptions,
    Round,
    SearchOptions,
    rounds,
)
from ...tasks import chosen_on
from . import Loaded, SourcesJob

if TYPE_CHECKING:
    from ...pruning.faster import FasterSteps
    from ...pruning.faster_search import Turn
    from ...tasks import Dataset

TABLE, TURN, FIND, BUILD, START = "table", "turn", "find", "build", "start"
# table, sources, notes, and by "remove-target" the turns of the search, the shapes found and the results
State = dict[str, Any]


@dataclass(frozen=True)
class FasterSpec(SearchOptions, Source):
    """The options of ``headviz prune --faster``."""

    called: ClassVar[str] = "option of a run of kind 'faster'"

    targets: tuple[float, ...] = (1.5, 2.0)
    beside: bool = option(True, "also remove heads only, for the same targets", title="Heads only, next to it")
    heads_only: bool = option(False, "leave the neurons as they are")
    train_limit: int | None = option(None, least=1)
    dev_limit: int | None = option(None, least=1)
    finetune: FinetuneOptions | None = None  # train the smaller models so

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "targets", tuple(map(float, TARGETS.checked(self.targets))))

    @property
    def options(self) -> FasterOptions:
        shared = {name: getattr(self, name) for name in declared(SearchOptions)}
        return FasterOptions(**shared, retrain=self.finetune)

    @property
    def splits(self) -> tuple[Dataset, Dataset]:
        """The train and the dev split."""
        return self.dataset("train", self.train_limit), self.dataset("dev", self.dev_limit)

    @property
    def names(self) -> list[str]:
        """One for each model, in the order of the steps."""
        return [f"{remove}-{target:g}" for remove in self._kinds for target in self.targets]

    @property
    def rounds(self) -> dict[str, tuple[str, Round, str]]:
        """By name: what is removed, the round, and the name of the one that it begins with; empty for the model."""
        way: dict[str, tuple[str, Round, str]] = {}
        for remove in self._kinds:
            before = ""
            for step in rounds(self.targets, self.finetune is not None):
                name = f"{remove}-{step.name}"
                way[name] = (remove, step, before)
                before = name if self.finetune is not None else ""
        return way

    @property
    def _kinds(self) -> tuple[str, ...]:
        if self.heads_only:
            return (HEADS_ONLY,)
        return (BOTH, HEADS_ONLY) if self.beside else (BOTH,)


def make(spec: Mapping[str, Any]) -> FasterJob:
    return FasterJob(FasterSpec.from_options(spec))


@dataclass(frozen=True)
class FasterJob(SourcesJob):
    """The table, then for each model the turns of the search for its shape, each a piece, and the model itself."""

    spec: FasterSpec

    def begin(self) -> State:
        return {TABLE: None, TURN: {}, FIND: {}, BUILD: {}}

    def ready(self, state: State) -> list[str]:
        if state[TABLE] is None:
            return [TABLE]
        built = state[BUILD]
        names = [
            name
            for name, (_, _, before) in self.spec.rounds.items()
            if name not in built and (not before or before in built)
        ]
        return [f"{BUILD}:{n}" if n in state[FIND] else f"{TURN}:{n}:{len(_turns(state, n))}" for n in names]

    def parcel(self, state: State, piece: str) -> bytes:
        _, name, _ = _parts(piece)
        measured = {TABLE: state[TABLE], TURN: _turns(state, name), FIND: state[FIND].get(name)}
        return json.dumps({**measured, START: self._start(state, name)}).encode()

    def needs(self, state: State, piece: str) -> list[str]:
        """The model that a round begins with."""
        _, name, _ = _parts(piece)
        start = self._start(state, name)
        return [start] if start else []

    def _start(self, state: State, name: str) -> str:
        """What the last round before this one has left; empty for the whole model."""
        while name and (name := self.spec.rounds[name][2]):
            if model := state[BUILD][name].get("model"):
                return str(model)
        return ""

    def load(self, folder: Path) -> Loaded:
        """With the gradients."""
        from ...pruning.faster import FasterSteps, require_possible

        spec = self.spec
        clf = spec.classifier()
        train, dev = spec.splits
        require_possible(clf, spec.options, train)
        work = FasterSteps(clf, train, spec.options, dev, spec.label_order)
        return Loaded(work.clf, tuple(work.datasets), work)

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...evaluation.plain import cut_off
        from ...pruning.faster_search import Choice, Shape, Turn
        from ...pruning.latency import TimeTable

        begun, request = time.perf_counter(), json.loads(parcel)
        work: FasterSteps = tools.loaded.shared
        work.progress, work.cancel = tools.progress, tools.cancel
        task, name, _ = _parts(piece)
        if task == TABLE:
            notes = list(filter(None, (chosen_on(*work.datasets), cut_off(work.clf, work.datasets[-1]))))
            return json.dumps({TABLE: work.table.to_dict(), "sources": tools.loaded.sources, "notes": notes}).encode()
        work.table, work.folder = TimeTable.from_dict(request[TABLE]), tools.folder
        self._begin(work, tools.folder, request[START])
        remove, step, _ = self.spec.rounds[name]
        turns = [Turn.from_dict(turn) for turn in request[TURN]]
        if task == TURN:
            return json.dumps(_turn(work, remove, step.speed, turns)).encode()
        choice = turns[0].choice if turns else Choice()
        if self.spec.repair != BEST:  # turns of earlier versions do not name it
            choice = replace(choice, repair=self.spec.repair)
        if "out_of_reach" in request[FIND]:
            record = {"metrics": {}, "speedup": None, "note": request[FIND]["out_of_reach"]}
        else:
            result = work.result(step, Shape.from_dict(request[FIND]), choice, name)
            place = tools.folder / "models" / name
            shutil.rmtree(place, ignore_errors=True)  # left by an attempt that ended before its record
            result.model.save(place)
            work.forget_training(name)
            record = {k: v for k, v in result.to_dict().items() if k != TABLE}
            present = result.model.present
            record |= {"sparsity": present.sparsity, "mask": present.hex, "model": f"models/{name}"}
            record |= {"digest": result.model.digest, "batch_seconds": record["seconds"]}
        record |= {"target": step.speed, "remove": remove, "seconds": time.perf_counter() - begun}
        return json.dumps({"sparsity": None, "mask": None, **record}, allow_nan=False).encode()

    def _begin(self, work: FasterSteps, folder: Path, start: str) -> None:
        """Let the work cut the model that a round begins with."""
        place = str(folder / start)
        if start and work.start.name != place:
            work.begin(replace(self.spec, model=place, revision=None).classifier())
        elif not start:
            work.begin(None)

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        task, name, number = _parts(piece)
        record = json.loads(result)
        if task == TABLE:
            return {**state, **record}
        if task == BUILD:
            return {**state, BUILD: {**state[BUILD], name: record}}
        turns = [*_turns(state, name)[: int(number)], *record[TURN]]
        shapes = state[FIND] if record[FIND] is None else {**state[FIND], name: record[FIND]}
        return {**state, TURN: {**state.get(TURN, {}), name: turns}, FIND: shapes}

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        return {i: state[BUILD][name] for i, name in enumerate(self.spec.names, 1) if name in state[BUILD]}

    def expected(self, state: State) -> int:
        return len(self.spec.names)

    def work_done(self, state: State) -> float:
        """With training a round between two targets is a part of the work, and a faster model trains faster."""
        if self.spec.finetune is None:
            return super().work_done(state)
        work = {name: step.work for name, (_, step, _) in self.spec.rounds.items()}
        return len(self.spec.names) * sum(work[name] for name in state[BUILD]) / sum(work.values())

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        if all("note" in step for step in self.steps(state).values()):
            raise OptionError(self.steps(state)[1]["note"])
        models = [step["model"] for step in self.steps(state).values() if "model" in step]
        for name in set(state[BUILD]) - set(self.spec.names):
            shutil.rmtree(folder / "models" / name, ignore_errors=True)
        return {"models": models, TABLE: state[TABLE], "notes": state.get("notes", [])}


def _parts(piece: str) -> tuple[str, str, str]:
    """What a piece does, for which model, and the number of its turn."""
    task, name, number = [*piece.split(":"), "", ""][:3]
    return task, name, number


def _turns(state: State, name: str) -> list[dict[str, Any]]:
    """What the search for a model has timed; runs begun before turns were kept have none."""
    return state.get(TURN, {}).get(name, [])


def _turn(work: FasterSteps, remove: str, target: float, before: Sequence[Turn]) -> dict[str, Any]:
    """One turn of a search, if one is needed, and the shape once no more is."""
    turns = [*before]
    shape: dict[str, Any] | None = None
    try:
        choice = turns[0].choice if turns else work.choose(target, remove)
        search = work.search(remove, choice)
        if (sizes := search.next(target, turns)) is not None:
            turns.append(search.timed(sizes, target))
        if search.next(target, turns) is None:
            shape = search.best(target, turns)[0].to_dict()
    except OptionError as error:
        shape = {"out_of_reach": str(error)}  # of this target; the others are built
    return {TURN: [turn.to_dict() for turn in turns[len(before) :]], FIND: shape}

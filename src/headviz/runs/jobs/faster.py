"""Faster models in the background: the times are measured once, then each target is searched and built in turn.

What was timed is kept with the run. A run that was stopped goes on with the same table and the same shapes, so its
models are the same, bit for bit.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...pruning.options import FinetuneOptions, read_options, tuples, without_repeats
from ..protocol import RunJob, Tools
from .loaded import JobSpec

if TYPE_CHECKING:
    from ...pruning.faster.faster import Work

TABLE, FIND, BUILD = "table", "find", "build"
State = dict[str, Any]  # table, and by "target-remove" the shapes found and the results


@dataclass(frozen=True)
class FasterSpec(JobSpec):
    """The options of ``headviz prune --faster``. ``beside`` also removes heads only, for the same targets."""

    targets: tuple[float, ...] = (1.5, 2.0)
    batch: int = 32
    length: int | None = None
    samples: int = 1024
    repair: str = "refit"
    seed: int = 0
    beside: bool = True
    train_limit: int | None = None
    dev_limit: int | None = None
    finetune: tuple[tuple[str, Any], ...] | None = None  # train the smaller models so

    def __post_init__(self) -> None:
        from ...pruning.faster.faster import check_target

        super().__post_init__()
        tuples(self, "targets")
        object.__setattr__(self, "targets", tuple(check_target(t) for t in self.targets))
        without_repeats(self.targets, "target")
        if isinstance(self.finetune, Mapping):
            object.__setattr__(self, "finetune", tuple(sorted(self.finetune.items())))
        _ = self.options

    @property
    def options(self) -> Any:
        from ...pruning.faster.faster import FasterOptions

        retrain = None if self.finetune is None else FinetuneOptions.from_dict(dict(self.finetune))
        return FasterOptions(self.batch, self.length, self.samples, repair=self.repair, seed=self.seed, retrain=retrain)

    @property
    def names(self) -> list[str]:
        """One for each model, in the order of the steps."""
        kinds = ("both", "heads") if self.beside else ("both",)
        return [f"{remove}-{target:g}" for remove in kinds for target in self.targets]


def make(spec: Mapping[str, Any]) -> FasterJob:
    return FasterJob(read_options(FasterSpec, spec, "option of a run of kind 'faster'"))


@dataclass(frozen=True)
class FasterJob(RunJob):
    """The table, then two pieces per model: its shape, and the model itself."""

    spec: FasterSpec

    def begin(self) -> State:
        return {TABLE: None, FIND: {}, BUILD: {}}

    def ready(self, state: State) -> list[str]:
        if state[TABLE] is None:
            return [TABLE]
        left = [n for n in self.spec.names if n not in state[BUILD]]
        return [f"{BUILD if n in state[FIND] else FIND}:{n}" for n in left]

    def parcel(self, state: State, piece: str) -> bytes:
        what, _, name = piece.partition(":")
        return json.dumps({TABLE: state[TABLE], "shape": state[FIND].get(name) if what == BUILD else None}).encode()

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...errors import OptionError
        from ...pruning.faster.latency import Table
        from ...pruning.faster.search import HEADS_ONLY, Shape

        tools.progress("loading", 0, 0)
        begun, given = time.perf_counter(), json.loads(parcel)
        work = _work(self.spec)
        work.progress, work.cancel = tools.progress, tools.cancel
        what, _, name = piece.partition(":")
        if what == TABLE:
            return work.table.to_json().encode()
        work.table = Table.from_dict(given[TABLE])
        remove, _, target = name.partition("-")
        if what == FIND:
            try:
                found: dict[str, Any] = work.find(float(target), remove).to_dict()
            except OptionError as wrong:
                if remove != HEADS_ONLY:
                    raise
                found = {"out_of_reach": str(wrong)}  # heads alone seldom reach what both do
            return json.dumps(found).encode()
        if "out_of_reach" in given["shape"]:
            step = {"metrics": {}, "speedup": None, "note": given["shape"]["out_of_reach"]}
        else:
            result = work.result(float(target), Shape.from_dict(given["shape"]))
            place = tools.folder / "models" / name
            shutil.rmtree(place, ignore_errors=True)  # left by an attempt that ended before its record
            result.model.save(place)
            step = {k: v for k, v in result.to_dict().items() if k != TABLE}
            present = result.model.present
            step |= {"sparsity": present.sparsity, "mask": present.hex, "model": f"models/{name}"}
            step |= {"digest": result.model.digest}
        about = {"target": float(target), "remove": remove, "seconds": time.perf_counter() - begun}
        return json.dumps({"sparsity": None, "mask": None, **step, **about}, allow_nan=False).encode()

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        what, _, name = piece.partition(":")
        found = json.loads(result)
        return {**state, what: found if what == TABLE else {**state[what], name: found}}

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        return {i: state[BUILD][name] for i, name in enumerate(self.spec.names, 1) if name in state[BUILD]}

    def expected(self, state: State) -> int:
        return len(self.spec.names)

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        models = [step["model"] for step in self.steps(state).values() if "model" in step]
        return {"models": models, TABLE: state[TABLE]}


@lru_cache(maxsize=1)
def _work(spec: FasterSpec) -> Work:
    """Model, data and gradients, made once per process."""
    from ...pruning.faster.faster import Work, require_possible

    clf = spec.classifier()
    require_possible(clf, spec.options)
    train, dev = spec.dataset("train", spec.train_limit), spec.dataset("dev", spec.dev_limit)
    return Work(clf, train, spec.options, dev, spec.label_order)

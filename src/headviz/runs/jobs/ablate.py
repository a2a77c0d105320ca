"""Single-head ablation in the background: one piece per layer, so that a cluster can share the layers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...analyses.ablation import Ablation
from ...analyses.common import Subject, empty_grid, subject_of, sweep
from ...engine import Tools
from ...heads import HeadMask, parse_heads
from ...models.source import Source
from ...models.stand_in import ABLATIONS, EXAMPLES, ZERO, StandIn
from ...options import option
from ...progress import of_phase
from ...results import plain
from ...statistics.significance import benjamini_hochberg
from ...tasks import sample
from . import Loaded, SourcesJob

CHECK = "check"


@dataclass(frozen=True)
class AblationSpec(Source):
    """The options of ``headviz ablate``; heads in ``off`` are masked all the time."""

    called: ClassVar[str] = "option of a run of kind 'ablation'"

    split: str = "dev"
    limit: int | None = option(None, least=1)
    metric: str | None = None
    off: str = ""
    ablation: str = option(ZERO, "what stands in the place of heads that are off", ABLATIONS)
    reference: int = option(EXAMPLES, "training examples on which that is measured", least=1)


def make(spec: Mapping[str, Any]) -> AblationJob:
    return AblationJob(AblationSpec.from_options(spec))


# subject, sources, base, baseline, and for each layer done its rows [head, full, masked, low, high, p]
State = dict[str, Any]


@dataclass(frozen=True)
class AblationJob(SourcesJob):
    """One piece per layer, after a first one that measures the baseline."""

    spec: AblationSpec

    def begin(self) -> State:
        return {"about": None, "layers": {}}

    def ready(self, state: State) -> list[str]:
        if state["about"] is None:
            return [CHECK]
        mask = _mask(state)
        return [
            str(layer)
            for layer in range(mask.num_layers)
            if str(layer) not in state["layers"] and any(h.layer == layer for h in mask.kept)
        ]

    def parcel(self, state: State, piece: str) -> bytes:
        return b"" if piece == CHECK else json.dumps({"base": state["base"]}).encode()

    def load(self, folder: Path) -> Loaded:
        """With the evaluator."""
        from ...evaluation.dispatch import evaluator_of
        from ...evaluation.evaluator import EvaluatorOptions

        spec = self.spec
        clf, data = spec.classifier(), spec.dataset(spec.split, spec.limit)
        exact = EvaluatorOptions(precision="float32")  # what is kept and tested
        if spec.ablation == ZERO:
            return Loaded(clf, (data,), evaluator_of(clf, data, exact, label_order=spec.label_order))
        chosen = StandIn(spec.ablation, spec.reference, draws=1)  # so the result says one draw
        drawn = sample(spec.dataset("train"), chosen.examples, seed=chosen.seed, length_filter=None)
        evaluator = evaluator_of(clf, data, exact, label_order=spec.label_order, ablation=chosen, reference=drawn)
        return Loaded(clf, (data, drawn), evaluator)

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        loaded, evaluator = tools.loaded, tools.loaded.shared
        subject = subject_of(evaluator, self.spec.metric)
        begun = time.perf_counter()

        if piece == CHECK:
            present = evaluator.clf.present
            base = present.without(parse_heads(self.spec.off, evaluator.clf.stacks)) | present
            answers = evaluator.answers(base, cancel=tools.cancel)
            return json.dumps(
                {
                    "about": plain(subject),
                    "sources": loaded.sources,
                    "base": {"layers": base.num_layers, "heads": base.num_heads, "mask": base.hex},
                    "baseline": answers.measure(answers.full, subject.metric),
                    "seconds": time.perf_counter() - begun,
                }
            ).encode()
        base = _mask(json.loads(parcel))
        heads = [h for h in base.kept if h.layer == int(piece)]
        _, deltas = sweep(
            evaluator,
            [base.without([h]) for h in heads],
            subject.metric,
            reference=base,
            progress=of_phase(tools.progress, "evaluating"),
            cancel=tools.cancel,
        )
        rows = [
            [h.head, d.full, d.masked, d.interval_low, d.interval_high, d.p_value]
            for h, d in zip(heads, deltas, strict=True)
        ]
        return json.dumps({"rows": rows, "seconds": time.perf_counter() - begun}).encode()

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        record = json.loads(result)
        if piece == CHECK:
            return {**state, **record}
        return {**state, "layers": {**state["layers"], piece: record}}

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        steps = {}
        for layer, rows in state["layers"].items():
            # NaN where the metric is undefined: JSON has no word for it
            costs = [None if math.isnan(full - masked) else full - masked for _, full, masked, *_ in rows["rows"]]
            defined = [cost for cost in costs if cost is not None]
            steps[int(layer)] = {
                "layer": int(layer),
                "sparsity": 1 / _mask(state).size,
                "mask": None,
                "metrics": {"largest cost": max(defined, default=None), "smallest cost": min(defined, default=None)},
                "costs": [[row[0], cost] for row, cost in zip(rows["rows"], costs, strict=True)],
                "seconds": rows["seconds"],
            }
        return steps

    def expected(self, state: State) -> int:
        return 0 if state["about"] is None else len({h.layer for h in _mask(state).kept})

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        """The table of ``headviz ablate``."""
        base = _mask(state)
        values, low, high, p = (empty_grid(base) for _ in range(4))
        for layer, rows in state["layers"].items():
            for head, full, masked, interval_low, interval_high, p_value in rows["rows"]:
                at = int(layer), head
                values[at], p[at] = full - masked, p_value
                low[at], high[at] = 0.0 - interval_high, 0.0 - interval_low
        seconds = state["seconds"] + sum(f["seconds"] for f in state["layers"].values())
        table = Ablation(
            Subject(**state["about"]), base, state["baseline"], values, low, high, p, benjamini_hochberg(p), seconds
        )
        return table.to_dict()


def _mask(state: Mapping[str, Any]) -> HeadMask:
    base = state["base"]
    return HeadMask.from_hex(base["mask"], base["layers"], base["heads"])

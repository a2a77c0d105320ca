"""A head score in the background: one piece per part of the examples, so that a cluster can share them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...engine import Tools
from ...errors import RunError
from ...heads import HeadMask, parse_heads
from ...models.source import Source
from ...options import option, seed_option
from ...progress import of_phase
from ...pruning.plan import LENGTH_FILTERS, PruningPlan
from ...pruning.state import ScorePart
from ...scores import DEFAULT
from ...storage.store import pack, unpack
from ...tasks import sample
from . import Loaded, SourcesJob

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...scores.scoring import Scoring

CHECK, JOIN = "check", "join"


@dataclass(frozen=True)
class ScoreSpec(Source):
    """The options of ``headviz score``; heads in ``off`` are masked while the others are scored."""

    called: ClassVar[str] = "option of a run of kind 'score'"

    score: str | None = None  # or a preset's name
    split: str = "train"
    limit: int | None = option(None, least=1)
    samples: int = option(PruningPlan.samples, least=1)
    length_filter: str = option("none", choices=LENGTH_FILTERS)
    seed: int = seed_option()
    off: str = ""
    options: tuple[tuple[str, Any], ...] = ()  # of the score, such as {"steps": 8}


def make(spec: Mapping[str, Any]) -> ScoringJob:
    return ScoringJob(ScoreSpec.from_options(spec))


@dataclass(frozen=True)
class State:
    """``parts`` = how many, None = not known yet; ``pieces`` = those measured so far; ``table`` = all joined."""

    parts: int | None = None
    sources: dict[str, Any] | None = None  # None: of a run begun before they were kept
    pieces: Mapping[str, bytes] = field(default_factory=dict)
    table: dict[str, Any] | None = None


@dataclass(frozen=True)
class ScoringJob(SourcesJob):
    """A first piece counts the parts, one piece measures each, a last one joins them."""

    spec: ScoreSpec

    def begin(self) -> State:
        return State()

    def ready(self, state: State) -> list[str]:
        if state.parts is None:
            return [CHECK]
        if state.table is not None:
            return []
        return [name for name in self._names(state) if name not in state.pieces] or [JOIN]

    def parcel(self, state: State, piece: str) -> bytes:
        return self.pack(state) if piece == JOIN else b""

    def load(self, folder: Path) -> Loaded:
        """With the scoring, which holds the token ids."""
        from ...scores.scoring import Scoring

        spec = self.spec
        clf, data = spec.classifier(), spec.dataset(spec.split, spec.limit)
        lengths = None if spec.length_filter == "none" else clf.tokenizer
        drawn = sample(data, spec.samples, spec.seed, spec.length_filter, lengths)
        return Loaded(clf, (drawn,), Scoring(clf, drawn, **_options(spec, clf)))

    def sources(self, state: State) -> dict[str, Any]:
        return state.sources or {}

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...scores.scoring import Scoring, join_parts, measure_part, part_count

        begun = time.perf_counter()
        scoring: Scoring = tools.loaded.shared
        if piece == CHECK:
            number = part_count(scoring.score.name, len(scoring.data))
            return json.dumps({"parts": number, "sources": tools.loaded.sources}).encode()
        if piece != JOIN:
            scoring.progress = of_phase(tools.progress, "scoring")
            scoring.cancel = tools.cancel
            tables = measure_part(scoring, int(piece))
            return ScorePart(tables, time.perf_counter() - begun).to_bytes()
        state = self.unpack(parcel)
        parts = [ScorePart.from_bytes(state.pieces[name]) for name in self._names(state)]
        clf = scoring.clf
        table = join_parts(Scoring(clf, scoring.data, **_options(self.spec, clf)), [dict(p.tables) for p in parts])
        seconds = sum(p.seconds for p in parts) + time.perf_counter() - begun
        return json.dumps({**table.to_dict(), "seconds": seconds}).encode()

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        if piece == CHECK:
            return State(**json.loads(result))
        if piece == JOIN:
            return replace(state, pieces={}, table=json.loads(result))
        return replace(state, pieces={**state.pieces, piece: result})

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        """A single step, once the whole table is there."""
        if state.table is None:
            return {}
        values = [v for row in state.table["values"] for v in row if v is not None]
        return {
            1: {
                "sparsity": 0.0,
                "mask": None,
                "metrics": {"largest score": max(values, default=None), "smallest score": min(values, default=None)},
                "seconds": state.table["seconds"],
            }
        }

    def expected(self, state: State) -> int:
        return 0 if state.parts is None else 1

    def pack(self, state: State) -> bytes:
        head = json.dumps({"parts": state.parts, "sources": state.sources, "table": state.table})
        return pack({n: np.frombuffer(raw, np.uint8) for n, raw in sorted(state.pieces.items())}, {"state": head})

    def unpack(self, raw: bytes) -> State:
        try:
            arrays, words = unpack(raw)
            head = json.loads(words["state"])
            return State(pieces={n: a.tobytes() for n, a in arrays.items()}, **head)
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"The state of the run is damaged: {error}") from error

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        """The table of ``headviz score``."""
        assert state.table is not None
        return state.table

    @staticmethod
    def _names(state: State) -> list[str]:
        return [str(i) for i in range(state.parts or 0)]


def _options(spec: ScoreSpec, clf: Classifier) -> dict[str, Any]:
    """Keywords for the scoring; a score with random draws gets the spec's seed."""
    from ...pruning.step import table_options

    heads = parse_heads(spec.off, clf.stacks)
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without(heads) if heads else None
    options = table_options(spec.score or DEFAULT, dict(spec.options), spec.seed)
    return {"mask": mask, "label_order": spec.label_order, "cache": False, **options}

"""The state of a run: a frozen value that is written after every piece of work and read back exactly.

Everything is JSON except the logits (safetensors; ``to_bytes`` puts both into one file), the parts of scorings whose
mask is not chosen yet, and the models that steps trained (folders written by ``Classifier.save``, below the context's
folder). ``states_in(folder)`` has the files; ``State.load(folder)`` finds the newest sound one.

If a piece is cancelled or killed, the state is unchanged, and a training continues from its last checkpoint in the
context's folder. A continued run equals an uninterrupted one bit for bit, except for ``seconds``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import Checkpoints
from ..errors import OptionError, RunError
from ..heads import HeadMask
from ..options import option, read_options
from ..storage.store import pack, unpack
from .algorithms import ALGORITHMS, FisherSearch, LearnGates, Question, Remove, Score
from .plan import PruningPlan

FORMAT = 1
STATE = "state"  # name of the state itself in a file that also holds parts of scorings
MODELS = "models"  # the folder of the trained models

Table = tuple[tuple[float | None, ...], ...]  # [L][H], None = not measured
CHOOSE, BUILD = "choose", "build"


@dataclass(frozen=True)
class Work:
    """One piece of work: ``choose`` finds a step's mask, ``build`` makes and evaluates its model.

    Step 0 has only a ``build``: the model with every head, fine-tuned if the algorithm retrains.
    """

    kind: str
    seed: int
    step: int

    @property
    def key(self) -> str:
        return f"{self.kind}-s{self.seed}-k{self.step}"


@dataclass(frozen=True)
class Choice:
    """The mask of one step and the scores it was chosen by."""

    seed: int
    step: int
    mask: str  # hexadecimal
    scores: Table | None
    interval_low: Table | None
    interval_high: Table | None
    samples: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """A score table as a state keeps it; None = not measured, or no scores at all."""

    values: Table | None = None
    low: Table | None = None
    high: Table | None = None
    samples: int = 0

    @classmethod
    def of(cls, choice: Choice) -> Scored:
        """The scores of an earlier step."""
        assert choice.scores is not None
        return cls(choice.scores, choice.interval_low, choice.interval_high, choice.samples)


@dataclass(frozen=True)
class Point:
    """One entry of a learning curve; None = not measured there."""

    step: int
    epoch: float
    loss: float | None = None
    learning_rate: float | None = None
    metrics: dict[str, float | None] | None = None  # on dev, at the ends of epochs


@dataclass(frozen=True)
class StepRecord:
    """The result of one step. Sparsity is the exact share of all heads that are off."""

    seed: int
    step: int
    heads_off: int
    sparsity: float
    mask: str
    metrics: dict[str, float | None]
    intervals: dict[str, tuple[float | None, float | None]]  # of each metric
    deltas: dict[str, dict[str, float | None]]  # against θ* with all heads, paired: delta, low, high, p
    agreement: float | None  # share of dev predictions equal to θ*'s; for a regression Pearson's r with them
    seconds: dict[str, float]  # by phase: score, repair, train, evaluate
    logits: str  # SHA-256 of the dev logits
    parameters: int = option(most=10**15)
    flops: int = option(most=10**18)
    curve: tuple[Point, ...] = ()  # of the fine-tuning, where there was one
    repair_error: dict[str, Any] | None = None  # reconstruction error before and after the repair
    model: str | None = None  # folder of the trained model, relative to the context's folder
    model_digest: str | None = None
    predicted: dict[str, int] | None = None  # how often each class is predicted on dev
    constant: dict[str, float | None] | None = None  # what the best constant answer reaches in each metric
    tied: int | None = None  # heads that tied with another when the step chose among them


@dataclass(frozen=True, eq=False)
class ScorePart:
    """The values of a part of a scoring's examples; ``scores.scoring`` joins them."""

    tables: Mapping[str, np.ndarray]
    seconds: float

    def to_bytes(self) -> bytes:
        return pack(self.tables, {"seconds": repr(self.seconds)})

    @classmethod
    def from_bytes(cls, content: bytes) -> ScorePart:
        try:
            tables, words = unpack(content)
            return cls(tables, float(words["seconds"]))
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"A part of a scoring is damaged: {error}") from error


@dataclass(frozen=True)
class Done:
    """The result of a work: a choice, or a record with its logits."""

    work: Work
    choice: Choice | None = None
    record: StepRecord | None = None
    logits: np.ndarray | None = None

    def to_bytes(self) -> bytes:
        body = dataclasses.asdict(dataclasses.replace(self, logits=None))
        logits = {} if self.logits is None else {"logits": self.logits}
        return pack(logits, {"done": json.dumps(body, allow_nan=False)})

    @classmethod
    def from_bytes(cls, content: bytes) -> Done:
        logits, words = unpack(content)
        body = json.loads(words["done"])
        choice = None if body["choice"] is None else _choice(body["choice"])
        record = None if body["record"] is None else _record(body["record"])
        return cls(Work(**body["work"]), choice, record, logits.get("logits"))


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a run has found so far. Two states are equal if all of it is, times included."""

    plan: dict[str, Any]
    plan_digest: str
    model_digest: str  # of θ*
    base_digest: str | None  # of θ0 with the first seed's head
    data_digest: str  # of train and dev
    num_layers: int
    num_heads: int
    labels: tuple[str, ...]
    sizes: tuple[int, ...]  # heads off after each step
    finetune: dict[str, Any] | None  # the options in use: the plan's, the recipe's or the defaults
    versions: dict[str, str]
    reference: StepRecord  # θ* with all heads: what deltas and agreement compare with
    choices: tuple[Choice, ...] = ()
    records: tuple[StepRecord, ...] = ()
    notes: tuple[str, ...] = ()
    score_parts: tuple[int, ...] = ()  # of each seed: into how many parts a scoring can be split
    logits: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)  # by SHA-256
    parts: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # of scorings: piece -> ScorePart as bytes
    format: int = FORMAT

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return (self.to_dict(), self.parts) == (other.to_dict(), other.parts)

    def choice(self, seed: int, step: int) -> Choice | None:
        return next((c for c in self.choices if (c.seed, c.step) == (seed, step)), None)

    def record(self, seed: int, step: int) -> StepRecord | None:
        return next((r for r in self.records if (r.seed, r.step) == (seed, step)), None)

    def mask(self, entry: Choice | StepRecord) -> HeadMask:
        """The mask of a choice or of a record."""
        return HeadMask.from_hex(entry.mask, self.num_layers, self.num_heads)

    @property
    def steps(self) -> tuple[StepRecord, ...]:
        """The records of pruned models, without the full ones of step 0."""
        return tuple(r for r in self.records if r.step > 0)

    def plus(self, done: Done) -> State:
        """The state with the result of a work in it. The order in which results come does not matter."""
        seeds = list(self.plan["seeds"])

        def place(entry: Choice | StepRecord) -> tuple[int, int]:
            return seeds.index(entry.seed), entry.step

        if done.choice is not None:
            return dataclasses.replace(self, choices=tuple(sorted((*self.choices, done.choice), key=place)))
        if done.record is None or done.logits is None:
            raise RunError(f"Work {done.work.key} gave neither a choice nor a record.")
        records = tuple(sorted((*self.records, done.record), key=place))
        return dataclasses.replace(self, records=records, logits={**self.logits, done.record.logits: done.logits})

    def to_dict(self) -> dict[str, Any]:
        """JSON's own types; records name their logits by digest."""
        record = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("logits", "parts")}
        record["choices"] = [dataclasses.asdict(c) for c in self.choices]
        record["reference"] = dataclasses.asdict(self.reference)
        record["records"] = [dataclasses.asdict(r) for r in self.records]
        return json.loads(json.dumps(record, allow_nan=False))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], logits: Mapping[str, np.ndarray] | None = None) -> State:
        fields = dict(record)
        if fields.get("format") != FORMAT:
            raise RunError(
                f"The run's state has format {fields.get('format')}; this version of headviz reads {FORMAT}.",
                code="other-version",
                resumable=False,
            )
        fields["choices"] = tuple(_choice(c) for c in fields["choices"])
        fields["reference"] = _record(fields["reference"])
        fields["records"] = tuple(_record(r) for r in fields["records"])
        for name in ("labels", "sizes", "notes", "score_parts"):
            fields[name] = tuple(fields.get(name, ()))
        return read_options(cls, {**fields, "logits": dict(logits or {})}, "field of a state")

    # as bytes and on disk ---------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """One safetensors file: the logits, and everything else as JSON in its header. Parts of scorings wrap it."""
        if self.parts:
            files = {STATE: dataclasses.replace(self, parts={}).to_bytes(), **self.parts}
            return pack({name: np.frombuffer(raw, np.uint8) for name, raw in sorted(files.items())})
        body = json.dumps(self.to_dict(), allow_nan=False)
        # one entry only: the format keeps no order among several, and equal states must be equal bytes
        sealed = {"sha256": hashlib.sha256(body.encode()).hexdigest(), "state": body}
        return pack(dict(sorted(self.logits.items())), {"headviz": json.dumps(sealed)})

    @classmethod
    def from_bytes(cls, content: bytes) -> State:
        """The inverse of ``to_bytes``; a ``RunError`` if a byte of it is wrong."""
        try:
            logits, words = unpack(content)
            if STATE in logits:
                parts = {name: array.tobytes() for name, array in logits.items() if name != STATE}
                return dataclasses.replace(cls.from_bytes(logits[STATE].tobytes()), parts=parts)
            sealed = json.loads(words["headviz"])
            body = sealed["state"]
            if hashlib.sha256(body.encode()).hexdigest() != sealed["sha256"]:
                raise ValueError("its checksum does not match")
            state = cls.from_dict(json.loads(body), logits)
            for name in {r.logits for r in (state.reference, *state.records)}:
                if logits_digest(logits[name]) != name:
                    raise ValueError(f"the checksum of logits {name[:8]} does not match")
        except (ValueError, KeyError, TypeError, OptionError) as error:
            raise RunError(f"The state of the run is damaged: {error}") from error
        return state

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> State:
        """The newest undamaged state of a folder."""
        reasons = []
        for path, body in states_in(folder).bodies():
            try:
                return cls.from_bytes(body or b"")
            except RunError as error:
                reasons.append(f"{path.name}: {error}")
        if not reasons:
            raise RunError(f"There is no state of a run in '{folder}'.")
        raise RunError(f"No state in '{folder}' can be read ({'; '.join(reasons)}). Start a new run.")


def states_in(folder: str | os.PathLike[str]) -> Checkpoints:
    """The files of the states of a run in a folder. If the newest is damaged, an older one is read."""
    return Checkpoints(Path(folder), "state-", ".safetensors", digits=6, keep=3, sealed=False)


def logits_digest(logits: np.ndarray) -> str:
    """SHA-256 of shape and values: the name of the logits in a state."""
    sha = hashlib.sha256(f"{logits.dtype.str}{logits.shape}".encode())
    sha.update(np.ascontiguousarray(logits).tobytes())
    return sha.hexdigest()


def model_folder(folder: Path, seed: int, step: int) -> Path:
    """Where the model that a step trained is kept."""
    return folder / MODELS / f"seed{seed}-step{step}"


def checkpoint_folder(folder: Path, seed: int, step: int) -> Path:
    """Where a step's training or learning keeps its checkpoints."""
    return folder / "training" / f"seed{seed}-step{step}"


def tidy(folder: Path, state: State) -> None:
    """Delete what no later step needs: checkpoints of finished trainings and, unless kept, older models."""
    last: dict[int, int] = {}
    for record in state.records:
        shutil.rmtree(checkpoint_folder(folder, record.seed, record.step), ignore_errors=True)
        last[record.seed] = max(record.step, last.get(record.seed, 0))
    if state.plan["keep_models"] == "all":
        return
    for seed, step in last.items():
        for before in range(1, step):
            shutil.rmtree(model_folder(folder, seed, before), ignore_errors=True)


def _choice(record: Mapping[str, Any]) -> Choice:
    tables = {name: record[name] for name in ("scores", "interval_low", "interval_high") if record[name] is not None}
    tuples = {name: tuple(map(tuple, table)) for name, table in tables.items()}
    return read_options(Choice, {**record, **tuples, "notes": tuple(record["notes"])}, "field of a choice")


def _record(record: Mapping[str, Any]) -> StepRecord:
    curve = tuple(read_options(Point, p, "field of a learning curve") for p in record["curve"])
    intervals = {k: tuple(v) for k, v in record["intervals"].items()}
    return read_options(StepRecord, {**record, "curve": curve, "intervals": intervals}, "field of a step")


class Replay:
    """The algorithm before the mask of ``step``: ``question`` is what it asks first, None = nothing.

    The choices of all earlier steps must be in the state.
    """

    def __init__(self, plan: PruningPlan, state: State, seed: int, step: int) -> None:
        self.name = plan.algorithm
        full = HeadMask.full(state.num_layers, state.num_heads)
        self._masks = ALGORITHMS[plan.algorithm].masks(full, state.sizes)
        self.scores: Scored | None = None  # those that were answered last
        self._send(None)
        for number in range(1, step):
            choice = state.choice(seed, number)
            if choice is None:
                raise RunError(f"Step {step} of seed {seed} cannot be done yet: step {number} has no mask.")
            if self.question is not None:
                self.answer(Scored.of(choice))
            self._send(state.mask(choice))

    @property
    def question(self) -> Question | None:
        return self._request if isinstance(self._request, Question) else None

    @property
    def mask(self) -> Remove | FisherSearch | HeadMask:
        """How the mask of this step is made, once there is no question."""
        assert not isinstance(self._request, Question)
        return self._request

    def answer(self, scores: Scored) -> None:
        self.scores = scores
        self._send(np.array(scores.values, dtype=float))  # None becomes NaN
        if self.question is not None:
            raise RunError(f"Algorithm '{self.name}' asks twice before one mask. It may ask once.")

    def _send(self, answer: np.ndarray | HeadMask | None) -> None:
        try:
            self._request = self._masks.send(answer)
        except StopIteration:
            raise RunError(f"Algorithm '{self.name}' ends before its last step.") from None
        if not isinstance(self._request, Score | LearnGates | Remove | FisherSearch | HeadMask):
            kind = type(self._request).__name__
            raise RunError(f"Algorithm '{self.name}' yields a {kind}. It may yield Score, Remove or a mask.")


def trained_at(state: State, seed: int, mask: HeadMask) -> int:
    """The last step whose model was trained under this mask; 0 for the full one, which stands for θ*."""
    steps = [0] if mask.is_full else [c.step for c in state.choices if c.seed == seed and c.mask == mask.hex]
    if not steps:
        raise RunError(f"No step of seed {seed} trains a model under the mask {mask.hex}, whose scores are asked for.")
    return max(steps)

"""Evaluate many masks on one data set, computing only what each mask can change.

A mask changes nothing before the first layer in which it differs. The evaluator keeps the states that enter each
layer, named by the heads that were off before it, and starts from the deepest one that fits. It also keeps the
heads' outputs of the full model, so that a layer resumes behind its attention. The logits of each mask are kept, too;
where other examples' outputs stand in a head's place (``TextRows``), those of each draw.
Logits equal those of the model itself to float precision. For a single mask use ``evaluate``: it holds no memory.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from ..answers.answer import no_numbers
from ..errors import ModelError, OptionError, TaskError, require_kind
from ..heads import HeadId, HeadMask
from ..models.fast.gpu import fetch, free, split_when_full, token_bytes
from ..models.fast.linear import BFLOAT16, FLOAT32, TF32, bfloat16_here, gpu_products, has_tf32
from ..models.fast.packing import Chunk, pack
from ..models.fast.stages import has_fast_stages, stages_for
from ..models.network import require_model, weight_bytes
from ..models.places import fitted, table_of
from ..options import Options, option
from ..progress import Cancel, Progress, require_functions, stop_if, tracked
from ..results import Result
from ..storage.exchange import MaskLike
from ..tasks.dataset import require_dataset
from .donors import TextRows
from .mask_evaluator import EARLY_SIZES, SLOW_FIRST_PART, Growing, MaskEvaluator, part_of, parts
from .paired import same_answers
from .plain import (
    Evaluation,
    class_order,
    constants_for,
    counts_for,
    cut_off_sentence,
    gold_for,
    metrics_for,
    stand_in_fields,
    unread,
)
from .precision import AUTO, PRECISION
from .state_cache import Name, Piece, Slot, State, StateCache, halves, joined, plan

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset


Off = tuple[HeadId, ...]
MaskKey = tuple[Off, int]  # the heads off, and the draw of what stands in their place

SAMPLE = 256  # texts on which a precision is compared with float32
AGREE = 0.05  # the largest difference of a logit that counts as agreement, in standard deviations of the logits
GIB = 2**30
GPU_SHARE = 0.4  # of a GPU's free memory that kept states may take
CHUNK_SHARE = 0.2  # and what a layer makes of one chunk


@dataclass(frozen=True)
class Agreement(Result):
    """How far a faster precision agrees with float32 under one mask."""

    precision: str
    n: int
    same: int | None  # examples with the same prediction; None where predictions are numbers
    largest: float  # largest difference of a logit

    @property
    def share(self) -> float | None:
        return None if self.same is None else self.same / self.n

    def extra(self) -> dict[str, Any]:
        return {"share": self.share}


def dtype_of(clf: Classifier, precision: str) -> torch.dtype:
    """What the layers compute in; refuses what the model or the processor cannot do."""
    if precision != BFLOAT16:
        return clf.dtype
    if not has_fast_stages(clf):
        raise ModelError(f"{clf.family.title} is evaluated in float32 only.")
    if not bfloat16_here(clf.device):
        raise OptionError("This processor does not compute in bfloat16. Use float32.")
    return torch.bfloat16


def name_of(precision: str, dtype: torch.dtype, device: torch.device) -> str:
    """The name of the precision in which the layers compute."""
    fast = precision == TF32 and dtype == torch.float32 and has_tf32(device)
    return TF32 if fast else str(dtype).removeprefix("torch.")


def fastest(clf: Classifier, encodings: Sequence[Encoding]) -> str:
    """The fastest precision of a GPU whose answers to a sample of the texts are those of float32."""
    if clf.device.type != "cuda" or clf.dtype != torch.float32:
        return FLOAT32
    sample = encodings[:: -(-len(encodings) // SAMPLE)]
    (chunk,) = pack([len(e) for e in sample], sum(len(e) for e in sample))
    exact = _logits(clf, FLOAT32, chunk, sample)
    for precision in (BFLOAT16, TF32) if has_fast_stages(clf) and bfloat16_here(clf.device) else (TF32,):
        logits = _logits(clf, precision, chunk, sample)
        near = float(np.nanmax(np.abs(logits - exact))) <= AGREE * float(np.nanstd(exact))
        if near and (not clf.answer.decides or (logits.argmax(axis=-1) == exact.argmax(axis=-1)).all()):
            return precision
    return FLOAT32


def _logits(clf: Classifier, precision: str, chunk: Chunk, encodings: Sequence[Encoding]) -> np.ndarray:
    stages, gates = stages_for(clf, dtype_of(clf, precision)), clf.gates(None)

    def run(piece: Chunk) -> torch.Tensor:
        hidden = stages.embed(piece, encodings)
        for layer in range(clf.num_layers):
            hidden = stages.layer(layer, hidden, piece, gates)
        return stages.read_out(hidden, piece, encodings)

    with gpu_products(clf.device, precision):
        (logits,) = fetch([torch.cat([*split_when_full([chunk], run, lambda piece: piece.halves)])])()
    return logits


def is_large(clf: Any) -> bool:
    """Whether a processor takes seconds for a first part of the examples."""
    try:
        flops = clf.cost().flops
    except ModelError:  # a model without heads, see ``RnnTranslator``
        return False
    return clf.device.type == "cpu" and flops * EARLY_SIZES[0] > SLOW_FIRST_PART


def memory_note(clf: Classifier) -> str:
    """How much memory a model and its evaluation take, in words."""
    weights, states = weight_bytes(clf.model) / GIB, EvaluatorOptions().room_on(clf.device) / GIB
    return f"its weights take {weights:.1f} GiB, and states of the examples up to {states:.0f} GiB more"


def faster_in_bfloat16(clf: Classifier) -> bool:
    """Whether this processor computes the model faster in bfloat16."""
    return clf.dtype == torch.float32 and has_fast_stages(clf) and bfloat16_here(clf.device)


@dataclass(frozen=True)
class EvaluatorOptions(Options):
    """``precision="bfloat16"`` computes the layers at half the width. Predictions then agree mostly, not always: ask
    ``Evaluator.agreement`` and show it next to the result. "auto" is float32 on a processor; on a GPU it is the fastest
    precision that agrees with float32 on the first texts, and ``Evaluator.precision`` says which."""

    called: ClassVar[str] = "option of an evaluator"

    budget: int | None = option(
        None,
        "bytes of memory for kept states and results; the model and one chunk's work come on top",
        usual="1 GiB; on a GPU two fifths of its free memory",
        most=2**62,
    )
    chunk_tokens: int | None = option(
        None,
        "tokens that go through a layer at once",
        usual="1,536; on a GPU 65,536, fewer where a fifth of its free memory holds fewer",
        least=1,
    )
    precision: str = option(PRECISION.default, PRECISION.help, PRECISION.choices)

    def room_on(self, device: torch.device) -> int:
        """The budget in bytes."""
        if self.budget is not None:
            return self.budget
        return int(GPU_SHARE * free(device)) if device.type == "cuda" else GIB

    def tokens_at_once(self, device: torch.device, of_token: int = 0) -> int:
        """A processor's cache holds few; a GPU starts one kernel after the other, so there large chunks are faster.

        ``of_token`` are the bytes that a layer makes of a token, 0 if unknown.
        """
        if self.chunk_tokens is not None:
            return self.chunk_tokens
        if device.type == "cpu":
            return 1536
        room = CHUNK_SHARE * free(device) if device.type == "cuda" and of_token else math.inf
        return int(max(1, min(2**16, room / max(of_token, 1))))


class Evaluator(MaskEvaluator):
    """Many masks of one classifier on one data set. Safe to share between threads.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=30)
    >>> evaluator = headviz.Evaluator(clf, data)
    >>> compared = evaluator.compare(clf.full_mask.without([(11, 0)]))
    >>> compared.primary.metric, compared.primary.n
    ('accuracy', 30)
    """

    clf: Classifier

    def __init__(
        self,
        clf: Classifier,
        data: Dataset,
        options: EvaluatorOptions | None = None,
        *,
        label_order: Sequence[str] | str | None = None,
        donors: TextRows | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        require_model(clf)
        require_dataset(data)
        if len(data) == 0:
            raise TaskError("There is nothing to evaluate: the data set has no examples.")
        super().__init__(clf, data)
        self.options = EvaluatorOptions() if options is None else options
        require_kind(self.options, EvaluatorOptions, "options = EvaluatorOptions(budget=0)")
        self.label_order = label_order
        self._donors, self._draw, self._one_draw = donors, 0, donors is None or donors.draws == 1
        self.order = class_order(clf, data, label_order)
        if self.order is None:
            raise TaskError(
                f"'{clf.name}' has no classes and no number for a text. headviz.evaluator_of gives the evaluator that "
                "fits, and headviz evaluate, ablate and stacks take it."
            )
        self.gold = gold_for(data, self.order)
        self._encodings, self._joined = clf.sequences(data, cancel)
        self._truncated, lengths = sum(e.truncated for e in self._encodings), [len(e) for e in self._encodings]
        self._unread = 0 if data.labels is None or not self._truncated else unread(data, self._encodings)
        rows, hidden = sum(lengths), int(clf.config.hidden_size)
        steps = parts(data, 24.0 * rows * hidden**2 * clf.num_layers, clf.device)
        if packed := len(self._encodings) != len(data):  # examples share sequences: all are computed at once
            steps = [np.arange(len(self._encodings))]
        self._chunks, self._ends = list[Chunk](), dict[int, int]()  # and chunks -> examples, where a part ends
        self._too_large = set[int]()  # ids of chunks that a GPU had no room for
        at_once = self.options.tokens_at_once(clf.device, token_bytes(clf, max(lengths)))
        for step in steps:
            self._chunks += pack(lengths, at_once, step.tolist())
            end = len(step) + max(self._ends.values(), default=0)
            self._ends[len(self._chunks)] = len(data) if packed else end
        self._order = np.arange(len(data)) if packed else np.concatenate(steps)
        self._shape = data.answer.shape(self._encodings, clf.width)
        places = table_of(self._encodings)
        self._has_output = None if places is None else places >= 0  # [n, W]; not of a word without a token
        precision = self.options.precision
        self._precision = fastest(clf, self._encodings) if precision == AUTO else precision
        self._stages = stages_for(clf, dtype := dtype_of(clf, self._precision))
        self._state_size = rows * hidden * dtype.itemsize
        self._context_size = [rows * h * clf.head_size * dtype.itemsize for h in clf.heads_per_layer]
        self._last_size = len(self._encodings) * (hidden + clf.heads_per_layer[-1] * clf.head_size) * dtype.itemsize
        room = self.options.room_on(clf.device)
        self._results_budget = room // 16
        self._cache = StateCache(budget := room - room // 16)
        self._keep = plan(budget, clf.num_layers, self._state_size, max(self._context_size), self._stages.first_only)
        self._results: OrderedDict[MaskKey, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def own_keywords(self) -> dict[str, Any]:
        return {"options": self.options, "label_order": self.label_order}

    # what callers ask --------------------------------------------------------------------------

    def evaluate(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Evaluation:
        start = time.perf_counter()
        mask = self.whole(mask)
        logits = self._logits(mask, keep, progress, cancel)
        evaluators = () if self._one_draw else self.each_draw()
        draws = [metrics_for(self.data, e._logits(mask, keep, None, cancel), self.order) for e in evaluators]
        return Evaluation(
            metrics=metrics_for(self.data, logits, self.order),
            logits=logits,
            gold=self.gold,
            mask=mask,
            seconds=time.perf_counter() - start,
            truncated=self._truncated,
            unread=self._unread,
            answer=self.data.answer.in_outputs(self.order),
            predicted=counts_for(self.clf, self.data, logits, self.order),
            constant=constants_for(self.data),
            draws=tuple(draws),
            precision=self.precision,
            **stand_in_fields(self.clf, self._donors),
        )

    def stand_in_values(self, texts: Sequence[Encoding]) -> list[torch.Tensor | None]:
        """What stands in the heads' place: by layer [1, h, 1, d] or for each text [B, h, T, d]; None = nothing."""
        if self._donors is None:
            return [self.clf.stand_in_values(layer) for layer in range(self.clf.num_layers)]
        return [*self._donors.padded(texts, self._draw, self.clf.head_size)]

    def each_draw(self) -> Iterator[Self]:
        if self._one_draw or self._donors is None:
            yield self
            return
        for draw in range(self._donors.draws):
            evaluator = copy.copy(self)  # shares the cache and the results
            evaluator._draw, evaluator._one_draw = draw, True
            yield evaluator

    def predictions(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> np.ndarray:
        """[n] the task's class numbers, -1 where the model's output is none of them; values for a regression."""
        logits = self._logits(self.whole(mask), keep, progress, cancel)
        return self.data.answer.predicted(logits, self.order)

    def growing(
        self,
        mask: MaskLike | None = None,
        reference: MaskLike | None = None,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Iterator[Growing]:
        mask, base = self.whole(mask), self.whole(reference)
        shared: dict[Name, list[State]] = {}  # the mask starts from the states of the reference's last part
        total, counts, by_mask = len(self.data), list[int](), list[Iterator[tuple[np.ndarray, int]]]()

        def report(number: int, examples: int, _: int) -> None:
            counts[number] = examples
            if progress is not None:
                progress(sum(counts) // len(counts), total)

        with ExitStack() as open_steps:
            for compared in [base] if mask.off == base.off else [base, mask]:
                if (result := self._result(self._key(compared, self.clf.num_layers))) is not None:
                    by_mask.append(repeat((result, total)))
                    continue
                steps = self._growing_logits(compared, True, partial(report, len(counts)), cancel, shared)
                open_steps.callback(steps.close)
                by_mask.append(steps)
                counts.append(0)
            for step in zip(*by_mask, strict=False):
                if (count := min(n for _, n in step)) == total:
                    break
                index = np.sort(self._order[:count])
                answers = [self.data.answer.predicted(logits[index], self.order) for logits, _ in step]
                yield part_of(self.data, mask, index, answers[0], answers[-1], self.precision)
        yield from super().growing(mask, base)  # everything is computed

    @property
    def cut_off(self) -> str:
        return cut_off_sentence(self._truncated, self._unread)

    @property
    def precision(self) -> str:
        return name_of(self._precision, self._stages.dtype, self.clf.device)

    @property
    def stand_in(self) -> str:
        if self._donors is None:
            return super().stand_in
        return self._donors.described(self._draw if self._one_draw else None)

    def agreement(self, mask: MaskLike | None = None) -> Agreement:
        """Measured against float32 under the same mask; one evaluation in float32."""
        result, clf = self.evaluate(mask), self.clf.in_float32()
        options = replace(self.options, budget=0, precision="float32")
        exact = Evaluator(clf, self.data, options, label_order=self.label_order, donors=self._donors).evaluate(mask)
        same = same_answers(result.predictions, exact.predictions)
        largest = float(np.nanmax(np.abs(result.logits - exact.logits)))  # NaN where a text has no such word
        return Agreement(self.precision, result.n, None if same is None else int(same.sum()), largest)

    @property
    def room(self) -> int:
        return self._results_budget // (8 * len(self.data) * math.prod(self._shape))

    @property
    def memory(self) -> int:
        """Bytes held by kept states and results."""
        with self._lock:
            return self._cache.held + sum(v.nbytes for v in self._results.values())

    def clear(self) -> None:
        """Forget states and results."""
        self._cache.clear()
        with self._lock:
            self._results.clear()

    def _logits(self, mask: HeadMask, keep: bool, progress: Progress | None, cancel: Cancel | None) -> np.ndarray:
        *_, (logits, _) = self._growing_logits(mask, keep, progress, cancel)
        return logits

    def _growing_logits(
        self,
        mask: HeadMask,
        keep: bool,
        progress: Progress | None,
        cancel: Cancel | None,
        shared: dict[Name, list[State]] | None = None,
    ) -> Generator[tuple[np.ndarray, int]]:
        """The logits, and how many of the examples, in ``_order``, they have; at last all of them.

        ``shared`` has the states so far of masks that are evaluated side by side.
        """
        require_functions(progress, cancel)
        key, total = self._key(mask, self.clf.num_layers), len(self.data)
        if (logits := self._result(key)) is None:
            for logits, count in self._compute(mask, keep, progress, cancel, {} if shared is None else shared):
                if count < total:
                    yield logits, count
            assert logits is not None  # the last part has all examples
            self._remember(key, logits)
        elif progress is not None:
            progress(total, total)
        yield logits, total

    def _key(self, mask: HeadMask, layer: int) -> MaskKey:
        """What decides the states that enter a layer: heads off before it and, if a mask switched one off, the draw."""
        off = _before(mask, layer)
        return off, 0 if off == _before(self.clf.present, layer) else self._draw

    def _result(self, key: MaskKey) -> np.ndarray | None:
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def _remember(self, key: MaskKey, logits: np.ndarray) -> None:
        logits.setflags(write=False)  # handed to every later caller
        with self._lock:
            self._results[key] = logits
            while self._results and sum(v.nbytes for v in self._results.values()) > self._results_budget:
                self._results.popitem(last=False)

    def _compute(
        self,
        mask: HeadMask,
        keep: bool,
        progress: Progress | None,
        cancel: Cancel | None,
        shared: dict[Name, list[State]],
    ) -> Iterator[tuple[np.ndarray, int]]:
        path = [self._key(mask, layer) for layer in range(self.clf.num_layers)]
        names = list(reversed(list(enumerate(path))))
        nearest = next((name for name in names if name in shared), None)
        borrowed = self._cache.borrow(names if nearest is None else names[: names.index(nearest)])
        slots: dict[Name, Slot] = {}
        try:
            begin, states = (0, None) if nearest is None else (nearest[0], shared[nearest])
            if borrowed is not None:
                begin, states = borrowed[0][0], borrowed[1]
            if keep:
                slots = self._reserve(path, begin)
                shared.update({name: slot.states for name, slot in slots.items()})
            by_layer = [slots.get(name) for name in enumerate(path)]
            yield from self._run(mask, begin, states, by_layer, progress, cancel)
            for name, slot in slots.items():
                self._cache.publish(name, slot.states)
        except BaseException:  # a generator that is closed gets a GeneratorExit
            for name in slots:
                self._cache.release(name)
            raise
        finally:
            if borrowed is not None:
                self._cache.give_back(borrowed[0])

    def _reserve(self, path: Sequence[MaskKey], begin: int) -> dict[Name, Slot]:
        """Places for the states that this evaluation is about to compute, where the budget has them."""
        slots: dict[Name, Slot] = {}
        last = len(path) - 1
        order = [last, *range(begin, last)] if self._stages.first_only else list(range(begin, len(path)))
        for layer in order:
            # while no head is off, the states are the full model's: they stay, whichever mask computed them
            of_full_model = path[layer] == self._key(self.clf.present, layer)
            if layer == last and self._stages.first_only:
                inside, size = True, self._last_size
            elif layer in self._keep.states:
                inside = layer in self._keep.contexts and (of_full_model or self._keep.all_contexts)
                size = self._state_size + inside * self._context_size[layer]
            else:
                continue
            name = (layer, path[layer])
            if self._cache.reserve(name, size, pinned=of_full_model):
                slots[name] = Slot(inside)
        return slots

    def _run(
        self,
        mask: HeadMask,
        begin: int,
        states: list[State] | None,
        slots: Sequence[Slot | None],
        progress: Progress | None,
        cancel: Cancel | None,
    ) -> Iterator[tuple[np.ndarray, int]]:
        stages, gates = self._stages, list(self.clf.gates(mask))
        logits = np.empty((len(self._encodings), *self._shape), dtype=np.float32)
        chunks = tracked(self._chunks, progress, cancel, size=lambda chunk: len(chunk.index))
        places, outs = list[int](), list[torch.Tensor]()

        def run(piece: Piece) -> tuple[torch.Tensor, list[State]]:
            """Logits of some texts, and their states for the slots."""
            chunk, state = piece
            kept, filled = list[State](), gates
            with gpu_products(self.clf.device, self._precision):
                if self._donors is not None:
                    filled = self._donors.gates(gates, stages, chunk, self._encodings, self._draw)
                hidden, context = (stages.embed(chunk, self._encodings), None) if state is None else state
                for layer in range(begin, self.clf.num_layers):
                    stop_if(cancel)
                    slot = slots[layer]
                    if stages.splits and context is None:
                        context = stages.context(layer, hidden, chunk)
                        hidden = stages.entry(layer, hidden, chunk)
                    if slot is not None:
                        kept.append((hidden, context if slot.inside else None))
                    if context is None:
                        hidden = stages.layer(layer, hidden, chunk, filled)
                    else:
                        hidden, context = stages.finish(layer, hidden, context, filled), None
                return fitted(stages.read_out(hidden, chunk, self._encodings), self._shape), kept

        for number, chunk in enumerate(chunks):
            pieces = self._pieces((chunk, None if states is None else states[number]))
            computed = list(split_when_full(pieces, run, self._smaller))
            outs += [out for out, _ in computed]
            of_pieces = zip(*(kept for _, kept in computed), strict=True)
            for slot, kept in zip(filter(None, slots), of_pieces, strict=True):
                slot.states.append(joined(kept))
            places += chunk.index
            if number + 1 in self._ends:
                (read,) = fetch([torch.cat(outs)])()  # a device is waited for once
                if not np.isfinite(read if self._has_output is None else read[self._has_output[places]]).all():
                    raise no_numbers(self.clf)
                logits[places] = read
                places, outs = [], []
                yield self._joined(logits), self._ends[number + 1]

    def _pieces(self, piece: Piece) -> Iterator[Piece]:
        """The piece, or its parts if it is known to be too large for the device."""
        if id(piece[0]) not in self._too_large:
            yield piece
            return
        for half in halves(piece):
            yield from self._pieces(half)

    def _smaller(self, piece: Piece) -> list[Piece]:
        """What to compute where the device was full: the same if kept states have made room, or else its halves."""
        if self._cache.halve():
            return [piece]
        parts = halves(piece)
        if parts:
            self._too_large.add(id(piece[0]))  # the evaluator's chunks hold it
        return parts


def _before(mask: HeadMask, layer: int) -> Off:
    """The heads off in the layers above: they alone decide what enters this layer."""
    return tuple(h for h in mask.off if h.layer < layer)

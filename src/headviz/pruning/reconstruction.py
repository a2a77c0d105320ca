"""Least squares layer by layer: what a pruned model's linear maps read, what they should give, and the maps solved.

A map is W_O, which reads the heads' outputs, or W_2, which reads the neurons' activations. W_O should give what makes
the residual stream after a layer's attention equal to the full model's, and W_2 the same of the feed-forward block.

Texts are packed, so there is no padding; where the logits depend on the first token only, the last layer uses only
those rows. Models that headviz does not run layer by layer are read in whole passes, where only real tokens count. In a
translation model, which is teacher-forced, an encoder row counts the tokens of the source, a cross or decoder row those
of the reference. Maps are fitted in the order in which they run, each with those before it already solved.

A solution must be better on held-out rows, within a bound on the weights. Least squares on a few rows can write weights
far larger than all others of a matrix. They fit the sample, but int8 has 127 steps up to the largest weight of a
matrix, so that all others are then rounded to next to nothing.

Shapes: N rows (tokens), D hidden size, W what the map reads: h kept heads of size d, or the kept neurons; B texts,
Q queries.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..evaluation.plain import BATCH_TOKENS, batches, encode_data
from ..heads import ENCODER
from ..models.fast.linear import gpu_products
from ..models.fast.packing import Chunk, pack
from ..models.fast.stages import PostNormStages, has_fast_stages, stages_for
from ..models.feed_forward import narrowed, outer_map
from ..models.pruning import is_transposed, weight_of
from ..progress import tracked

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier, Encoding
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

HELD_OUT = 5  # one text in so many is not fitted on
BLOCK = 512  # columns of a symmetric product that are computed at once


@dataclass(frozen=True)
class Moments:
    """Second moments over the rows of a layer, in float64."""

    rows: int
    outer: np.ndarray  # [W + 1, W + 1]: inputs with a constant 1 behind them, or 0 where the map has no bias
    cross: np.ndarray  # [W + 1, D]
    energy: float  # Σ ‖target‖²

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.rows + other.rows, self.outer + other.outer, self.cross + other.cross, self.energy + other.energy
        )

    def error(self, weights: np.ndarray) -> float:
        """Σ ‖target − outputs·weights‖² for weights [W + 1, D], the last row being the bias."""
        cross = float(np.sum(weights * self.cross))
        square = float(np.sum(weights * (self.outer @ weights)))
        return max(0.0, self.energy - 2 * cross + square)


class Split(NamedTuple):
    """The moments of the rows that a map is fitted on, and of those of held-out texts."""

    fit: Moments
    held: Moments


class Part(NamedTuple):
    """One map to be solved, and what it reads and should give."""

    layer: int
    name: str
    matrix: nn.Linear
    size: int  # inputs of each head; a neuron is one
    rows: Split


def held_out(texts: Iterable[Any]) -> list[bool]:
    """Which texts are not fitted on: chosen by what they say, so that order does not matter and equal ones agree.

    Of a single text, none is.
    """
    keys = [sha256(repr((text.ids, text.target)).encode()).digest() for text in texts]
    different = sorted(set(keys))
    chosen = set(different[: max(len(different) // HELD_OUT, len(different) > 1)])
    return [key in chosen for key in keys]


def moments(pieces: Iterable[tuple[Tensor, Tensor]], constant: bool = True) -> Moments:
    """Accumulate (outputs [N, W], target [N, D]); ``constant`` says whether there is a bias to be found."""
    return reduce(add, (_moments(*piece, constant) for piece in pieces))


def split_moments(pieces: Iterable[tuple[Tensor, Tensor, Tensor]], constant: bool = True) -> Split:
    """The same of (outputs, target, whether a row is of a held-out text [N])."""

    def split(outputs: Tensor, target: Tensor, held: Tensor) -> Split:
        sides = [(outputs[rows.to(outputs.device)], target[rows.to(target.device)]) for rows in (~held, held)]
        return Split(*(_moments(*side, constant) for side in sides))

    def added(total: Split, part: Split) -> Split:
        return Split(total.fit + part.fit, total.held + part.held)

    return reduce(added, (split(*piece) for piece in pieces))


def _moments(outputs: Tensor, target: Tensor, constant: bool) -> Moments:
    behind = outputs.new_full((len(outputs), 1), float(constant))
    x = torch.cat([outputs, behind], dim=1).double()
    y = target.double().to(x.device)
    return Moments(len(x), _outer(x).cpu().numpy(), (x.T @ y).cpu().numpy(), float((y * y).sum()))


def _outer(x: Tensor) -> Tensor:
    """``x.T @ x``, of which one half is computed."""
    width = x.shape[1]
    result = x.new_empty(width, width)
    for begin in range(0, width, BLOCK):
        product = x[:, begin : begin + BLOCK].T @ x[:, begin:]
        result[begin : begin + BLOCK, begin:] = product
        result[begin:, begin : begin + BLOCK] = product.T
    return result


def weights_of(matrix: nn.Module) -> np.ndarray:
    """A linear map with its bias as the last row (zero where it has none): [W + 1, D], float64."""
    weight = weight_of(matrix)  # [D, W]
    bias: Any = matrix.bias
    last = weight.new_zeros(len(weight)) if bias is None else bias
    return torch.cat([weight.T, last[None]]).detach().double().cpu().numpy()


def set_weights(matrix: nn.Linear, weights: np.ndarray) -> None:
    """The inverse of ``weights_of``, for a model that belongs to the caller alone."""
    new = torch.from_numpy(weights).to(matrix.weight)
    weight = new[:-1] if is_transposed(matrix) else new[:-1].T
    matrix.weight = nn.Parameter(weight.contiguous(), requires_grad=False)
    if matrix.bias is not None:
        matrix.bias = nn.Parameter(new[-1].contiguous(), requires_grad=False)


STRENGTHS = tuple(10.0**k for k in range(-3, 4))  # of the ridge, as shares of the mean squared input
LIMIT = 4.0  # times a map's largest weight before the repair
# a map with its bias, its moments, inputs of each head, strength of the ridge -> the new map
Solve = Callable[[np.ndarray, Moments, int, float], np.ndarray]


def solved(solve: Solve, weights: np.ndarray, rows: Split, size: int) -> tuple[np.ndarray, float | None]:
    """Of the solutions within the bound the one that is best on held-out rows, and the strength of its ridge.

    Where none is better there than the weights as they are, these, and None. The bias is free: it is no factor of a
    product, so it is not rounded with the weights.
    """
    best, strength, error = weights, None, rows.held.error(weights)
    for tried in STRENGTHS:
        new = solve(weights, rows.fit, size, tried)
        if largest(new) <= LIMIT * largest(weights) and (new_error := rows.held.error(new)) < error:
            best, strength, error = new, tried, new_error
    return best, strength


def largest(weights: np.ndarray) -> float:
    """The largest absolute weight of [W + 1, D], the bias left out; 0 without inputs."""
    return float(np.abs(weights[:-1]).max(initial=0.0))


# (model, row, batch) -> the stream to which a map's result was added [N, D], and what the map read [N, W]
Trace = Callable[["TransformerModel", int, dict[str, Any]], tuple[Tensor, Tensor]]
Map = tuple[str, Callable[[Any, int], nn.Linear], int, Trace]  # its name, where it is, inputs of a head or neuron


def pass_moments(
    full: TransformerModel, data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Moments]:
    """Second moments of every row's head outputs in the full model."""
    total: list[Moments] | None = None
    for batch, _ in tracked(_batches(full, data), progress, cancel):
        outputs = [_real(full, row, batch, o) for row, o in enumerate(_outputs(full, batch))]
        rows = [moments([(o, o[:, :0])], _output(full, row).bias is not None) for row, o in enumerate(outputs)]
        total = rows if total is None else [a + b for a, b in zip(total, rows, strict=True)]
    assert total is not None
    return total


def pass_layers(
    full: TransformerModel, small: TransformerModel, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Iterator[Part]:
    """``text_layers`` for these models: W_O of the rows in the order of running, W_2 where neurons are gone."""
    # hooks read the sums: on copies, because the models may be in use elsewhere
    teacher, student = (dataclasses.replace(clf, model=copy.deepcopy(clf.model)) for clf in (full, small))
    batches, less = _batches(full, data), narrowed(full, small)
    steps = range(full.num_layers)
    rows = steps if full.order is None else [full.order.row(step) for step in steps]
    for row in tracked(rows, progress, cancel):
        maps: list[Map] = [("W_O", _output, small.head_size, _attention)]
        if row in less:
            maps.append(("W_2", outer_map, 1, _feed_forward))
        for name, matrix, size, trace in maps:
            theirs, ours = matrix(student, row), matrix(small, row)
            pairs = _pairs(teacher, student, row, theirs, trace, batches, cancel)
            yield Part(row, name, ours, size, split_moments(pairs, ours.bias is not None))
            theirs.weight, theirs.bias = ours.weight, ours.bias


def _pairs(
    teacher: TransformerModel,
    student: TransformerModel,
    row: int,
    matrix: nn.Linear,
    trace: Trace,
    batches: Sequence[tuple[dict[str, Any], Tensor]],
    cancel: Cancel | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(what the student's map reads [N, W], its target with the bias [N, D], held out [N]) of each batch."""
    weights = torch.from_numpy(weights_of(matrix))
    for batch, held in tracked(batches, cancel=cancel):
        target, _ = trace(teacher, row, batch)
        stream, inputs = trace(student, row, batch)
        result = inputs.double().cpu() @ weights[:-1] + weights[-1]
        real = student.real_tokens(row, batch).cpu()
        yield inputs, target.double().cpu() - (stream.double().cpu() - result), held[:, None].expand_as(real)[real]


def _output(clf: Any, row: int) -> nn.Linear:
    return clf.projections(row).output


def _attention(clf: TransformerModel, row: int, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The stream after a row's attention, and the outputs of the row's heads."""
    with calls_of(clf.module(clf.family.reader(*clf.place(row)))) as calls:
        outputs = _outputs(clf, batch)
    ((stream, _),) = calls  # one pass of the decoder
    return stream[clf.real_tokens(row, batch)], _real(clf, row, batch, outputs[row])


def _feed_forward(clf: TransformerModel, row: int, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The stream after an encoder's layer, and the activations that W_2 reads."""
    parts = clf.family.layers[ENCODER]
    layer = clf.module(parts.modules)[row]
    with calls_of(layer.get_submodule(parts.reader)) as of_reader, calls_of(outer_map(clf, row)) as of_map:
        _outputs(clf, batch)
    (read, returned), (neurons, _) = of_reader[0], of_map[0]
    real = clf.real_tokens(row, batch)
    return (read if parts.reader else returned)[real], neurons[real]


@contextmanager
def calls_of(*modules: nn.Module) -> Generator[list[tuple[Any, Tensor]]]:
    """What these modules are given and what they return, in each call inside the block."""
    calls: list[tuple[Any, Tensor]] = []

    def keep(_: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        calls.append((inputs[0] if inputs else None, output[0] if isinstance(output, tuple) else output))

    hooks = [module.register_forward_hook(keep) for module in modules]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


@torch.inference_mode()
def _outputs(clf: TransformerModel, batch: dict[str, Any]) -> list[Tensor]:
    """Per row of the grid [B, h, Q, d]."""
    call = clf.call(keep_outputs=True)
    with gpu_products(clf.device):
        clf.forward(batch, call)
    return call.outputs


def _real(clf: TransformerModel, row: int, batch: dict[str, Any], outputs: Tensor) -> Tensor:
    return outputs.transpose(1, 2).flatten(2)[clf.real_tokens(row, batch)]


def _batches(clf: Any, data: Dataset) -> list[tuple[dict[str, Any], Tensor]]:
    """Each batch, and which of its sentences are held out [B]."""
    encodings = encode_data(clf, data)
    held = torch.tensor(held_out(encodings))
    lengths = [max(len(e), len(e.target or ())) for e in encodings]
    return [(clf.collate([encodings[i] for i in index]), held[index]) for index in batches(lengths, BATCH_TOKENS)]


CHUNK_TOKENS = 4096


@dataclass
class Stream:
    """Hidden states of the whole sample before one layer of one model."""

    clf: Classifier
    stages: PostNormStages
    chunks: list[Chunk]
    hidden: list[Tensor]

    @classmethod
    def begin(cls, clf: Classifier, encodings: list[Encoding]) -> Stream:
        chunks = pack([len(e) for e in encodings], CHUNK_TOKENS)
        stages = _stages(clf)
        return cls(clf, stages, chunks, [stages.embed(c, encodings) for c in chunks])

    def outputs(self, layer: int, i: int) -> Tensor:
        """The heads' outputs of a chunk, side by side: [N, W]."""
        return self.stages.context(layer, self.hidden[i], self.chunks[i])

    def entry(self, layer: int, i: int) -> Tensor:
        """The residual stream that the attention's output is added to: [N, D]."""
        return self.stages.entry(layer, self.hidden[i], self.chunks[i])

    def between(self, layer: int, i: int, outputs: Tensor) -> Tensor:
        """What enters a layer's feed-forward block, and is added to its result: [N, D]."""
        return self.stages.between(layer, self.entry(layer, i), outputs, self.clf.gates(None))

    def attended(self, layer: int, outputs: Tensor) -> Tensor:
        """W_O and its bias over the heads' outputs: [N, D]."""
        return _through(self.clf.projections(layer).output, outputs)

    def renew(self) -> None:
        """Take up weights that were solved."""
        self.stages = _stages(self.clf)

    def end(self, layer: int, i: int, between: Tensor) -> None:
        """Compute the hidden states after a layer."""
        self.hidden[i] = self.stages.end(layer, between, self.stages.neurons(layer, between))

    def pass_layer(self, layer: int, outputs: list[Tensor]) -> None:
        """Compute the hidden states after a layer, with its present weights."""
        self.renew()
        for i in range(len(self.chunks)):
            self.end(layer, i, self.between(layer, i, outputs[i]))


def _through(matrix: nn.Linear, inputs: Tensor) -> Tensor:
    return nn.functional.linear(inputs, matrix.weight.float(), matrix.bias.float())


def rebuild(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    solve: Solve,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, Any]:
    """Solve W_O of each layer of ``small`` in turn (edited in place), and W_2 where neurons are gone.

    The target of a layer includes the errors that earlier layers left in the residual stream. Returns the squared
    error before and after, as a share of the squared target: on the sample, on its held-out texts, and there for each
    map, with the ridge that was chosen (None: the map stays as it was) and the largest weight.
    """
    sums = np.zeros((2, 3))  # of fitted and of held-out rows: squared error before and after, squared target
    maps = []
    layers = text_layers if has_fast_stages(full) else pass_layers
    with gpu_products(full.device):
        for part in layers(full, small, data, progress, cancel):
            old = weights_of(part.matrix)
            new, ridge = solved(solve, old, part.rows, part.size)
            set_weights(part.matrix, new)
            errors = np.array([[m.error(old), m.error(new), m.energy] for m in part.rows])
            sums += errors
            weight, of_map = {"before": largest(old), "after": largest(new)}, {"layer": part.layer, "map": part.name}
            maps.append({**of_map, "ridge": ridge, "largest": weight, "held_out": shares(errors[1])})
    return {**shares(sums.sum(axis=0)), "held_out": shares(sums[1]), "maps": maps}


def shares(sums: Iterable[float]) -> dict[str, float]:
    """The squared error before and after, as shares of the squared target, of these three sums."""
    before, after, energy = map(float, sums)
    return {"before": before / energy, "after": after / energy} if energy else {"before": 0.0, "after": 0.0}


def text_layers(
    full: Classifier, small: Classifier, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Iterator[Part]:
    """The parts of each layer, in turn. The caller may change a part's map of ``small`` before the next one."""
    encodings = encode_data(full, data)
    teacher, student = Stream.begin(full, encodings), Stream.begin(small, encodings)
    chunks, less = range(len(teacher.chunks)), narrowed(full, small)
    of_texts = held_out(encodings)
    held = [torch.tensor([of_texts[text] for text in c.texts()]) for c in teacher.chunks]
    for layer in tracked(range(full.num_layers), progress, cancel):
        last = layer + 1 == full.num_layers
        if layer == teacher.stages.last:  # the first tokens alone
            held = [rows[c.first_rows()] for rows, c in zip(held, teacher.chunks, strict=True)]
        theirs, mine = ([s.outputs(layer, i) for i in chunks] for s in (teacher, student))
        pairs = (
            (mine[i], teacher.entry(layer, i) + teacher.attended(layer, theirs[i]) - student.entry(layer, i), held[i])
            for i in chunks
        )
        yield Part(layer, "W_O", small.projections(layer).output, small.head_size, split_moments(pairs))
        if last and layer not in less:
            return
        student.renew()
        of_teacher, of_student = (
            [s.between(layer, i, outputs[i]) for i in chunks] for s, outputs in ((teacher, theirs), (student, mine))
        )
        if layer in less:
            fed = split_moments(_fed(teacher, student, layer, of_teacher, of_student, held))
            yield Part(layer, "W_2", outer_map(small, layer), 1, fed)
            student.renew()
        for i in chunks if not last else ():
            teacher.end(layer, i, of_teacher[i])
            student.end(layer, i, of_student[i])


def _stages(clf: Classifier) -> PostNormStages:
    """The stages that show what lies between two layers."""
    stages = stages_for(clf, torch.float32)
    assert isinstance(stages, PostNormStages)  # other families are refused before
    return stages


def _fed(
    teacher: Stream, student: Stream, layer: int, of_teacher: list[Tensor], of_student: list[Tensor], held: list[Tensor]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(activations of the neurons left [N, I], the target of W_2 and its bias [N, D], held out [N])."""
    matrix = outer_map(teacher.clf, layer)
    for theirs, mine, rows in zip(of_teacher, of_student, held, strict=True):
        target = theirs + _through(matrix, teacher.stages.neurons(layer, theirs)) - mine
        yield student.stages.neurons(layer, mine), target, rows

"""The moments of ``streams`` from whole passes, for models that headviz does not run layer by layer.

Only real tokens count. In a translation model, which is teacher-forced, an encoder row counts the tokens of the source,
a cross or decoder row those of the reference. Maps are fitted in the order in which they run, each with those before it
already solved.

Shapes: B texts, Q queries, h heads kept, d head size, N real tokens of a batch, W what a map reads, D hidden size.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...evaluation.plain import BATCH_TOKENS, batches, encode_data
from ...heads import ENCODER
from ...models.feed_forward import narrowed, outer_map
from ...progress import tracked
from .moments import Moments, Part, held_out, moments, split_moments, weights_of

if TYPE_CHECKING:
    from ...models.base import TransformerModel
    from ...progress import Cancel, Progress
    from ...tasks import Dataset

# (model, row, batch) -> the stream to which a map's result was added [N, D], and what the map read [N, W]
See = Callable[["TransformerModel", int, dict[str, Any]], tuple[Tensor, Tensor]]
Map = tuple[str, Callable[[Any, int], nn.Linear], int, See]  # its name, where it is, inputs of a head or neuron


def pass_moments(
    full: TransformerModel, data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Moments]:
    """Second moments of every row's head outputs in the full model."""
    total: list[Moments] | None = None
    for batch, _ in tracked(_batches(full, data), progress, cancel):
        outputs = [_real(full, row, batch, o) for row, o in enumerate(_outputs(full, batch))]
        found = [moments([(o, o[:, :0])], _output(full, row).bias is not None) for row, o in enumerate(outputs)]
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
    assert total is not None
    return total


def pass_layers(
    full: TransformerModel, small: TransformerModel, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Iterator[Part]:
    """``streams.text_layers`` for these models: W_O of the rows in the order of running, W_2 where neurons are gone."""
    # hooks read the sums: on copies, because the models may be in use elsewhere
    teacher, student = (_copy(clf) for clf in (full, small))
    given, less = _batches(full, data), narrowed(full, small)
    steps = range(full.num_layers)
    rows = steps if full.order is None else [full.order.row(step) for step in steps]
    for row in tracked(rows, progress, cancel):
        maps: list[Map] = [("W_O", _output, small.head_size, _attention)]
        if row in less:
            maps.append(("W_2", outer_map, 1, _feed_forward))
        for name, matrix, size, see in maps:
            theirs, ours = matrix(student, row), matrix(small, row)
            pairs = _pairs(teacher, student, row, theirs, see, given, cancel)
            yield Part(row, name, ours, size, split_moments(pairs, ours.bias is not None))
            theirs.weight, theirs.bias = ours.weight, ours.bias


def _pairs(
    teacher: TransformerModel,
    student: TransformerModel,
    row: int,
    matrix: nn.Linear,
    see: See,
    given: Sequence[tuple[dict[str, Any], Tensor]],
    cancel: Cancel | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(what the student's map reads [N, W], its wanted result with the bias [N, D], held out [N]) of each batch."""
    weights = torch.from_numpy(weights_of(matrix))
    for batch, held in tracked(given, cancel=cancel):
        wanted, _ = see(teacher, row, batch)
        own, inputs = see(student, row, batch)
        result = inputs.double().cpu() @ weights[:-1] + weights[-1]
        real = student.real_tokens(row, batch).cpu()
        yield inputs, wanted.double().cpu() - (own.double().cpu() - result), held[:, None].expand_as(real)[real]


def _output(clf: Any, row: int) -> nn.Linear:
    output: nn.Linear = clf.projections(row).output
    return output


def _attention(clf: TransformerModel, row: int, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The stream after a row's attention, and the outputs of the row's heads."""
    with _seen(clf.module(clf.family.reader(*clf.place(row)))) as seen:
        outputs = _outputs(clf, batch)
    ((stream, _),) = seen  # one pass of the decoder
    return stream[clf.real_tokens(row, batch)], _real(clf, row, batch, outputs[row])


def _feed_forward(clf: TransformerModel, row: int, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The stream after an encoder's layer, and the activations that W_2 reads."""
    parts = clf.family.layers[ENCODER]
    layer = clf.module(parts.modules)[row]
    with _seen(layer.get_submodule(parts.reader)) as whole, _seen(outer_map(clf, row)) as fed:
        _outputs(clf, batch)
    (read, returned), (neurons, _) = whole[0], fed[0]
    real = clf.real_tokens(row, batch)
    return (read if parts.reader else returned)[real], neurons[real]


@contextmanager
def _seen(module: nn.Module) -> Generator[list[tuple[Any, Tensor]]]:
    """What a module is given and what it returns, in each call inside the block."""
    seen: list[tuple[Any, Tensor]] = []

    def keep(_: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        seen.append((inputs[0] if inputs else None, output[0] if isinstance(output, tuple) else output))

    handle = module.register_forward_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()


@torch.inference_mode()
def _outputs(clf: TransformerModel, batch: dict[str, Any]) -> list[Tensor]:
    """Per row of the grid [B, h, Q, d]."""
    call = clf.call(keep_outputs=True)
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


def _copy(clf: TransformerModel) -> TransformerModel:
    return dataclasses.replace(clf, model=copy.deepcopy(clf.model))

"""The moments of ``streams`` for translation models: teacher-forced, stack by stack, real tokens only.

An encoder row counts the tokens of the source, a cross or decoder row those of the reference. Rows are fitted in the
order in which they run, each with the rows before it already solved.

Shapes: B sentences, Q queries, h heads kept, d head size, N real tokens of a batch, W = h·d, D hidden size.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...evaluation.plain import BATCH_TOKENS, batches, encode_data
from ...progress import tracked
from .moments import Moments, Part, held_out, moments, split_moments, weights_of

if TYPE_CHECKING:
    from ...models.base import TransformerModel
    from ...progress import Cancel, Progress
    from ...tasks import Dataset


def sentence_moments(
    full: TransformerModel, data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Moments]:
    """Second moments of every row's head outputs in the full model, from whole passes, also of a classifier."""
    total: list[Moments] | None = None
    for batch, _ in tracked(_batches(full, data), progress, cancel):
        outputs = [_real(full, row, batch, o) for row, o in enumerate(_outputs(full, batch))]
        found = [moments([(o, o[:, :0])], _constant(full, row)) for row, o in enumerate(outputs)]
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
    assert total is not None
    return total


def sentence_layers(
    full: TransformerModel, small: TransformerModel, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Iterator[Part]:
    """``streams.text_layers`` for translation models: W_O of the rows in the order of running."""
    # hooks read the sums: on copies, because the models may be in use elsewhere
    teacher, student = (_copy(clf) for clf in (full, small))
    given = _batches(full, data)
    assert full.order is not None  # every translation model has one
    for row in tracked(map(full.order.row, range(full.num_layers)), progress, cancel):
        theirs, ours = student.projections(row).output, small.projections(row).output
        pairs = _pairs(teacher, student, row, given, cancel)
        yield Part(row, "W_O", ours, small.head_size, split_moments(pairs, _constant(small, row)))
        theirs.weight, theirs.bias = ours.weight, ours.bias


def _pairs(
    teacher: TransformerModel,
    student: TransformerModel,
    row: int,
    given: Sequence[tuple[dict[str, Any], Tensor]],
    cancel: Cancel | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(outputs of the kept heads [N, W], the wanted result of W_O and its bias [N, D], held out [N]) of each batch."""
    weights = torch.from_numpy(weights_of(student.projections(row).output))
    for batch, held in tracked(given, cancel=cancel):
        wanted, _ = _sum(teacher, row, batch)
        own, outputs = _sum(student, row, batch)
        attended = outputs.double().cpu() @ weights[:-1] + weights[-1]
        real = student.real_tokens(row, batch).cpu()
        yield outputs, wanted.double().cpu() - (own.double().cpu() - attended), held[:, None].expand_as(real)[real]


def _sum(clf: TransformerModel, row: int, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The stream after a row's attention [N, D], and the outputs of the row's heads [N, W]."""
    stack, layer = clf.place(row)
    seen: list[Tensor] = []
    reader = clf.module(clf.family.reader(stack, layer))
    handle = reader.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        outputs = _outputs(clf, batch)
    finally:
        handle.remove()
    (stream,) = seen  # one pass of the decoder
    return stream[clf.real_tokens(row, batch)], _real(clf, row, batch, outputs[row])


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


def _constant(clf: TransformerModel, row: int) -> bool:
    return clf.projections(row).output.bias is not None


def _copy(clf: TransformerModel) -> TransformerModel:
    return dataclasses.replace(clf, model=copy.deepcopy(clf.model))

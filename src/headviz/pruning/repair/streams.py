"""Run the full and the pruned model side by side, layer by layer, on the same sample.

For each layer this gives the outputs of the pruned model's heads, and the attention output that would make the
residual stream after it equal to the full model's. Texts are packed, so there is no padding. Where the logits depend
on the first token only, the last layer uses only those rows.

Shapes: N rows of a chunk, D hidden size, h heads kept, d head size, W = h·d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...evaluation.plain import encode_data
from ...models.fast.packing import Chunk, pack
from ...models.fast.stages import Stages, stages_for
from ...progress import tracked
from .moments import Moments, moments, set_weights, weights_of
from .sentence_streams import sentence_layers

if TYPE_CHECKING:
    from ...models.classifier import Classifier, Encoding
    from ...progress import Cancel, Progress
    from ...tasks import Dataset

CHUNK_TOKENS = 4096
Solve = Callable[[np.ndarray, Moments], np.ndarray]  # W_O and a layer's moments -> the new W_O


@dataclass
class Stream:
    """Hidden states of the whole sample before one layer of one model."""

    clf: Classifier
    stages: Stages
    chunks: list[Chunk]
    hidden: list[Tensor]

    @classmethod
    def begin(cls, clf: Classifier, encodings: list[Encoding]) -> Stream:
        chunks = pack([len(e) for e in encodings], CHUNK_TOKENS)
        stages = stages_for(clf, torch.float32)
        return cls(clf, stages, chunks, [stages.embed(c, encodings) for c in chunks])

    def outputs(self, layer: int, i: int) -> Tensor:
        """The heads' outputs of a chunk, side by side: [N, W]."""
        return self.stages.context(layer, self.hidden[i], self.chunks[i])

    def entry(self, layer: int, i: int) -> Tensor:
        """The residual stream that the attention's output is added to: [N, D]."""
        return self.stages.entry(layer, self.hidden[i], self.chunks[i])

    def attended(self, layer: int, outputs: Tensor) -> Tensor:
        """W_O and its bias over the heads' outputs: [N, D]."""
        matrix = self.clf.projections(layer).output
        return torch.nn.functional.linear(outputs, matrix.weight.float(), matrix.bias.float())

    def pass_layer(self, layer: int, outputs: list[Tensor]) -> None:
        """Compute the hidden states after a layer, with its present weights."""
        self.stages = stages_for(self.clf, torch.float32)
        gates = self.clf.gates(None)
        for i in range(len(self.chunks)):
            self.hidden[i] = self.stages.finish(layer, self.entry(layer, i), outputs[i], gates)


def rebuild(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    solve: Solve,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, float]:
    """Solve W_O of each layer of ``small`` in turn (edited in place); ``solve(W_O, moments)`` gives the new one.

    The target of a layer includes the errors that earlier layers left in the residual stream. Returns the squared
    error on the sample before and after, as a share of the squared target.
    """
    total = {"before": 0.0, "after": 0.0, "energy": 0.0}

    if len(full.stacks) > 1:
        layers = sentence_layers(full, small, data, progress, cancel)  # type: ignore[arg-type]
    else:
        layers = text_layers(full, small, data, progress, cancel)
    for layer, m in layers:
        weights = weights_of(small, layer)
        total["energy"] += m.energy
        total["before"] += m.error(weights)
        new = solve(weights, m)
        set_weights(small, layer, new)
        total["after"] += m.error(new)
    return {k: total[k] / total["energy"] if total["energy"] else 0.0 for k in ("before", "after")}


def text_layers(
    full: Classifier, small: Classifier, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Iterator[tuple[int, Moments]]:
    """Each layer with its moments, in turn. The caller may change ``small``'s W_O of the layer before the next one."""
    encodings = encode_data(full, data)
    teacher, student = Stream.begin(full, encodings), Stream.begin(small, encodings)
    for layer in tracked(range(full.num_layers), progress, cancel):
        theirs = [teacher.outputs(layer, i) for i in range(len(teacher.chunks))]
        mine = [student.outputs(layer, i) for i in range(len(student.chunks))]
        pairs = (
            (mine[i], teacher.entry(layer, i) + teacher.attended(layer, theirs[i]) - student.entry(layer, i))
            for i in range(len(mine))
        )
        yield layer, moments(pairs)
        if layer + 1 < full.num_layers:
            teacher.pass_layer(layer, theirs)
            student.pass_layer(layer, mine)

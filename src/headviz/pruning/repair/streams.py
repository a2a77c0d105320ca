"""Layer by layer through the full model and the pruned one, side by side, on the same sample.

For each layer: what the pruned model's kept heads put out, and what its attention would have to give so that the
residual stream behind it were the full model's. Padding takes no part: texts are packed. Where the logits depend on
the first token alone, the last layer counts its rows only, because no other row of it matters.

Shapes: N rows of a chunk, D hidden size, h heads kept, d head size, W = h·d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...evaluation.plain import encode_data
from ...models.base import TRANSLATION
from ...models.fast.packing import Chunk, pack
from ...models.fast.stages import Stages, stages_for
from ...progress import tracked
from .moments import Moments, moments, set_weights, weights_of
from .sentence_streams import rebuild_sentences

if TYPE_CHECKING:
    from ...models.classifier import Classifier, Encoding
    from ...progress import Cancel, Progress
    from ...tasks import Dataset

CHUNK_TOKENS = 4096
Solve = Callable[[np.ndarray, Moments], np.ndarray]  # W_O and a layer's moments -> the new W_O


@dataclass
class Stream:
    """Hidden states of the whole sample in front of one layer of one model."""

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
        """Move on behind a layer, with its weights as they are now."""
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

    What is wanted of a layer includes what the layers before it have left wrong in the residual stream. Returns the
    squared error on the sample before and after, as a share of what the attention outputs should have been.
    """
    total = {"before": 0.0, "after": 0.0, "energy": 0.0}

    def fit(layer: int, m: Moments) -> None:
        weights = weights_of(small, layer)
        total["energy"] += m.energy
        total["before"] += m.error(weights)
        new = solve(weights, m)
        set_weights(small, layer, new)
        total["after"] += m.error(new)

    _fit_layers(full, small, data, fit, progress, cancel)
    return {k: total[k] / total["energy"] if total["energy"] else 0.0 for k in ("before", "after")}


def _fit_layers(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    fit: Callable[[int, Moments], None],
    progress: Progress | None,
    cancel: Cancel | None,
) -> None:
    """Call ``fit(layer, moments)`` for each layer in turn; it may change ``small``'s W_O of that layer."""
    if full.kind == TRANSLATION:
        rebuild_sentences(full, small, data, fit, progress, cancel)  # type: ignore[arg-type]
        return
    encodings = encode_data(full, data)
    teacher, student = Stream.begin(full, encodings), Stream.begin(small, encodings)
    for layer in tracked(range(full.num_layers), progress, cancel):
        theirs = [teacher.outputs(layer, i) for i in range(len(teacher.chunks))]
        mine = [student.outputs(layer, i) for i in range(len(student.chunks))]
        pairs = (
            (mine[i], teacher.entry(layer, i) + teacher.attended(layer, theirs[i]) - student.entry(layer, i))
            for i in range(len(mine))
        )
        fit(layer, moments(pairs))
        if layer + 1 < full.num_layers:
            teacher.pass_layer(layer, theirs)
            student.pass_layer(layer, mine)

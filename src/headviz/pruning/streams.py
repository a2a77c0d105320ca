"""Layer by layer through the full model and the pruned one, side by side, on the same sample.

For each layer: what the pruned model's kept heads put out, and what its attention would have to give so that the
residual stream behind it were the full model's. Padding takes no part: texts are packed. Where the logits depend on
the first token alone, the last layer counts its rows only, because no other row of it matters.

Shapes: N rows of a chunk, D hidden size, h heads kept, d head size, W = h·d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..errors import Cancelled
from ..evaluation import encode_data
from ..models.packing import Chunk, pack
from ..models.stages import Stages, stages_for

if TYPE_CHECKING:
    from ..evaluation import Cancel, Progress
    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset

CHUNK_TOKENS = 4096
RIDGE = 1e-3  # of the mean squared head output: keeps directions the sample hardly shows as they are

Wanted = Callable[[Tensor, Tensor], None]  # (kept heads' outputs [N, W], wanted attention output [N, D])


@dataclass(frozen=True)
class Moments:
    """Second moments over the rows of a layer, in float64: all that least squares needs."""

    rows: int
    outer: np.ndarray  # [W + 1, W + 1]: outputs with a constant 1 behind them
    cross: np.ndarray  # [W + 1, D]
    energy: float  # Σ ‖wanted‖²

    def error(self, weights: np.ndarray) -> float:
        """Σ ‖wanted − outputs·weights‖² for weights [W + 1, D], the last row being the bias."""
        fit = float(np.sum(weights * self.cross))
        own = float(np.sum(weights * (self.outer @ weights)))
        return max(0.0, self.energy - 2 * fit + own)


def moments(pieces: Iterator[tuple[Tensor, Tensor]]) -> Moments:
    """Accumulate (outputs [N, W], wanted [N, D])."""
    outer = cross = None
    rows, energy = 0, 0.0
    for outputs, wanted in pieces:
        x = torch.cat([outputs, outputs.new_ones(len(outputs), 1)], dim=1).double()
        y = wanted.double()
        outer = x.T @ x if outer is None else outer + x.T @ x
        cross = x.T @ y if cross is None else cross + x.T @ y
        energy += float((y * y).sum())
        rows += len(x)
    assert outer is not None
    assert cross is not None
    return Moments(rows, outer.cpu().numpy(), cross.cpu().numpy(), energy)


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
    fit: Callable[[int, Moments], None],
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> None:
    """Call ``fit(layer, moments)`` for each layer in turn; it may change ``small``'s W_O of that layer.

    What is wanted of a layer includes what the layers before it have left wrong in the residual stream.
    """
    encodings = encode_data(full, data)
    teacher, student = Stream.begin(full, encodings), Stream.begin(small, encodings)
    for layer in range(full.num_layers):
        if cancel is not None and cancel():
            raise Cancelled
        theirs = [teacher.outputs(layer, i) for i in range(len(teacher.chunks))]
        mine = [student.outputs(layer, i) for i in range(len(student.chunks))]
        pairs = (
            (
                mine[i],
                teacher.entry(layer, i) + teacher.attended(layer, theirs[i]) - student.entry(layer, i),
            )
            for i in range(len(mine))
        )
        fit(layer, moments(pairs))
        if layer + 1 < full.num_layers:
            teacher.pass_layer(layer, theirs)
            student.pass_layer(layer, mine)
        if progress is not None:
            progress(layer + 1, full.num_layers)


def weights_of(clf: Classifier, layer: int) -> np.ndarray:
    """W_O with its bias as the last row: [W + 1, D], float64."""
    matrix = clf.projections(layer).output
    return torch.cat([matrix.weight.T, matrix.bias[None]]).detach().double().cpu().numpy()


def set_weights(clf: Classifier, layer: int, weights: np.ndarray) -> None:
    """The inverse of ``weights_of``, for a classifier that belongs to the caller alone."""
    matrix = clf.projections(layer).output
    new = torch.from_numpy(weights).to(matrix.weight)
    matrix.weight = torch.nn.Parameter(new[:-1].T.contiguous(), requires_grad=False)
    matrix.bias = torch.nn.Parameter(new[-1].contiguous(), requires_grad=False)

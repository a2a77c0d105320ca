"""Run the full and the pruned model side by side, layer by layer, on the same sample.

For each layer this gives the outputs of the pruned model's heads, and the attention output that would make the
residual stream after it equal to the full model's; and the same for the neurons of a feed-forward block that has lost
some. Texts are packed, so there is no padding. Where the logits depend on the first token only, the last layer uses
only those rows.

Shapes: N rows of a chunk, D hidden size, h heads kept, d head size, W = h·d.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ...evaluation.plain import encode_data
from ...models.fast.packing import Chunk, pack
from ...models.fast.post_norm import PostNormStages
from ...models.fast.stages import is_fast, stages_for
from ...models.feed_forward import narrowed, outer_map
from ...progress import tracked
from .moments import Part, held_out, set_weights, split_moments, weights_of
from .passes import pass_layers
from .ridge import Solve, largest, solved

if TYPE_CHECKING:
    from ...models.classifier import Classifier, Encoding
    from ...progress import Cancel, Progress
    from ...tasks import Dataset

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
    layers = text_layers if is_fast(full) else pass_layers
    for part in layers(full, small, data, progress, cancel):
        old = weights_of(part.matrix)
        new, ridge = solved(solve, old, part.rows, part.size)
        set_weights(part.matrix, new)
        found = np.array([[m.error(old), m.error(new), m.energy] for m in part.rows])
        sums += found
        weight = {"before": largest(old), "after": largest(new)}
        maps.append(
            {"layer": part.layer, "map": part.name, "ridge": ridge, "largest": weight, "held_out": _shares(found[1])}
        )
    return {**_shares(sums.sum(axis=0)), "held_out": _shares(sums[1]), "maps": maps}


def _shares(sums: np.ndarray) -> dict[str, float]:
    before, after, energy = map(float, sums)
    return {"before": before / energy, "after": after / energy} if energy else {"before": 0.0, "after": 0.0}


def text_layers(
    full: Classifier, small: Classifier, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Iterator[Part]:
    """The parts of each layer, in turn. The caller may change a part's map of ``small`` before the next one."""
    encodings = encode_data(full, data)
    teacher, student = Stream.begin(full, encodings), Stream.begin(small, encodings)
    chunks, less = range(len(teacher.chunks)), narrowed(full, small)
    out = held_out(encodings)
    held = [torch.tensor([out[text] for text in c.texts()]) for c in teacher.chunks]
    for layer in tracked(range(full.num_layers), progress, cancel):
        last = layer + 1 == full.num_layers
        if last:  # the first tokens alone
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
        whole, part = (
            [s.between(layer, i, outputs[i]) for i in chunks] for s, outputs in ((teacher, theirs), (student, mine))
        )
        if layer in less:
            fed = split_moments(_fed(teacher, student, layer, whole, part, held))
            yield Part(layer, "W_2", outer_map(small, layer), 1, fed)
            student.renew()
        for i in chunks if not last else ():
            teacher.end(layer, i, whole[i])
            student.end(layer, i, part[i])


def _stages(clf: Classifier) -> PostNormStages:
    """The stages that show what lies between two layers."""
    found = stages_for(clf, torch.float32)
    assert isinstance(found, PostNormStages)  # other families are refused before
    return found


def _fed(
    teacher: Stream, student: Stream, layer: int, whole: list[Tensor], part: list[Tensor], held: list[Tensor]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(activations of the neurons left [N, I], the wanted result of W_2 and its bias [N, D], held out [N])."""
    matrix = outer_map(teacher.clf, layer)
    for theirs, mine, rows in zip(whole, part, held, strict=True):
        wanted = theirs + _through(matrix, teacher.stages.neurons(layer, theirs)) - mine
        yield student.stages.neurons(layer, mine), wanted, rows

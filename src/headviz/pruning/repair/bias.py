"""Bias compensation: the mean output of the removed heads is added to W_O's bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.plain import encode_data
from ...models.fast.stages import is_fast
from ...progress import tracked
from .moments import Moments, moments, set_weights, weights_of
from .passes import pass_moments
from .streams import Stream

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...progress import Cancel, Progress
    from ...tasks import Dataset


def compensate(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    memory: dict[Any, Any],
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, float]:
    """Add the removed heads' mean output, through W_O, to the bias of each layer of ``small`` (edited in place).

    Means are taken in the full model, once for all masks. Returns the squared error of the attention outputs on the
    sample, before and after, as a share of their squared size, each layer with the full model's inputs.
    """
    key = ("bias", full.digest, data.digest)
    if key not in memory:
        for old in [k for k in memory if isinstance(k, tuple) and k[0] == "bias"]:
            del memory[old]
        memory[key] = output_moments(full, data, progress, cancel)
    before = after = energy = 0.0
    for layer, m in enumerate(memory[key]):
        gone = small.present.off_in(layer)
        weights = weights_of(full.projections(layer).output)
        energy += float(np.sum(weights[:-1] * (m.outer[:-1, :-1] @ weights[:-1])))
        if not gone:
            continue
        lost = np.zeros_like(weights)  # the part of W_O that was cut out
        for head in gone:
            rows = slice(head * full.head_size, (head + 1) * full.head_size)
            lost[rows] = weights[rows]
        mean = (m.outer[-1] / m.rows) @ lost  # [D]; the last row of the moments is the sum of the outputs
        error = float(np.sum(lost * (m.outer @ lost)))
        before += error
        after += max(0.0, error - m.rows * float(mean @ mean))
        matrix = small.projections(layer).output
        kept = weights_of(matrix)
        kept[-1] += mean
        set_weights(matrix, kept)
    return {"before": before / energy if energy else 0.0, "after": after / energy if energy else 0.0}


def output_moments(
    full: Classifier, data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Moments]:
    """Second moments of every layer's head outputs in the full model."""
    if not is_fast(full):
        return pass_moments(full, data, progress, cancel)
    stream = Stream.begin(full, encode_data(full, data))
    found = []
    for layer in tracked(range(full.num_layers), progress, cancel):
        outputs = [stream.outputs(layer, i) for i in range(len(stream.chunks))]
        found.append(moments((o, o[:, :0]) for o in outputs))
        if layer + 1 < full.num_layers:
            stream.pass_layer(layer, outputs)
    return found

"""The derivative of each example's loss by the gates of all heads and neurons, at gates of 1 (Kwon et al. 2022).

Shapes: n examples, L layers, H heads, B examples of a batch, h heads present, T tokens, d head size, I neurons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...attribution.integration import TOKENS_AT_ONCE, gradients
from ...attribution.walk import Walk
from ...evaluation.dispatch import gold_answers
from ...evaluation.plain import batches, encode_data
from ...models.fast.linear import products
from ...models.feed_forward import neurons, outer_map
from ...progress import tracked
from ...scores.gradients import moves, summed_loss

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...progress import Cancel, Progress
    from ...tasks import Dataset


@dataclass(frozen=True, eq=False)
class Gradients:
    """One row per example."""

    heads: np.ndarray  # [n, L, H], 0 for heads that the model does not have
    neurons: tuple[np.ndarray, ...]  # of each layer [n, I]


class _Inputs(TorchFunctionMode):
    """Remembers what certain linear maps are given. The model and other threads are not affected."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        super().__init__()
        self.place = {id(w): i for i, w in enumerate(weights)}
        self.seen: list[Tensor] = [torch.empty(0)] * len(weights)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is torch.nn.functional.linear and len(args) > 1 and id(args[1]) in self.place:
            self.seen[self.place[id(args[1])]] = args[0]
        return func(*args, **(kwargs or {}))


def gate_gradients(
    clf: Classifier,
    data: Dataset,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Gradients:
    """One forward and one backward pass serve all heads and neurons."""
    _, gold = gold_answers(clf, data, label_order)
    assert gold is not None
    encodings = encode_data(clf, data)
    sizes = neurons(clf)
    heads = np.zeros((len(data), clf.num_layers, clf.num_heads))
    found = tuple(np.zeros((len(data), size), np.float32) for size in sizes)
    weights = [outer_map(clf, layer).weight for layer in range(len(sizes))]
    groups = list(batches([len(e) for e in encodings], TOKENS_AT_ONCE))
    for index in tracked(groups, progress, cancel, size=len):
        walk = Walk(clf, [encodings[i] for i in index], [None] * len(index), None)
        call = clf.call(keep_outputs=True)
        with torch.enable_grad(), products(clf.device), _Inputs(weights) as inputs:
            logits = walk.choose(clf.forward(walk.rows(walk.end.clone().requires_grad_(True)), call))
            every = [*call.outputs, *inputs.seen]
            slopes = gradients(summed_loss(clf, logits, gold[index]), every)
        # a gate multiplies its value, so the derivative by it is the value times its own derivative
        moved = [*moves(clf, call.outputs), *(value.detach() for value in inputs.seen)]
        parts = [(value * slope).cpu() for value, slope in zip(moved, slopes, strict=True)]
        for layer in range(clf.num_layers):
            kept = list(clf.present.kept_in(layer))
            heads[np.ix_(index, [layer], kept)] = parts[layer].sum(dim=(2, 3)).double().numpy()[:, None]
            found[layer][index] = parts[clf.num_layers + layer].sum(dim=1).float().numpy()
    return Gradients(heads, found)

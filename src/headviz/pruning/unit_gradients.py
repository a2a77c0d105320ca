"""What a head or a neuron is worth: the gradient of the loss by a gate on it, example by example (Kwon 2022)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..attribution.integration import TOKENS_AT_ONCE, gradients
from ..attribution.walk import Walk
from ..evaluation.dispatch import gold_answers
from ..evaluation.plain import batches, encode_data
from ..models.fast.linear import products
from ..models.feed_forward import neurons, outer_map
from ..progress import tracked
from ..scores.gradients import moves, summed_loss
from .options import GOLD

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

SOFT = 8.0  # the temperature that softens confident answers, so that all examples weigh about the same


@dataclass(frozen=True, eq=False)
class Gradients:
    """Of the loss by the gates of all units, one row per example."""

    heads: np.ndarray  # [n, L, H], 0 for heads that the model does not have
    neurons: tuple[np.ndarray, ...]  # of each layer [n, I]
    to_mean: Gradients | None = None  # where a closed gate leaves a unit's mean, which a bias can stand for
    means: tuple[np.ndarray, ...] = ()  # of the heads that each layer has [h, d], then of its neurons [I, 1]


class _Inputs(TorchFunctionMode):
    """Remembers what certain linear maps are given. The model and other threads are not affected."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        super().__init__()
        self.place = {id(w): i for i, w in enumerate(weights)}
        self.values: list[Tensor] = [torch.empty(0)] * len(weights)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is torch.nn.functional.linear and len(args) > 1 and id(args[1]) in self.place:
            self.values[self.place[id(args[1])]] = args[0]
        return func(*args, **(kwargs or {}))


def unit_gradients(
    clf: Classifier,
    data: Dataset,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    loss: str = GOLD,
) -> Gradients:
    """One forward and one backward pass serve all heads and neurons.

    The loss is that of the gold answers, or that of answers which have moved at random: then the squares measure how
    far the model's own answers move, whatever the labels are.
    """
    _, gold = gold_answers(clf, data, label_order)
    assert gold is not None
    encodings = encode_data(clf, data)
    sizes = neurons(clf)
    layers = range(clf.num_layers)
    sums = [_Sums(len(data), len(clf.present.kept_in(layer)), clf.head_size) for layer in layers]
    sums += [_Sums(len(data), size, 1) for size in sizes]
    weights = [outer_map(clf, layer).weight for layer in range(len(sizes))]
    for index in tracked(list(batches([len(e) for e in encodings], TOKENS_AT_ONCE)), progress, cancel, size=len):
        chosen = [encodings[i] for i in index]
        walk = Walk(clf, chosen, [None] * len(index), None)
        call = clf.call(keep_outputs=True)
        with torch.enable_grad(), products(clf.device), _Inputs(weights) as inputs:
            logits = walk.choose(clf.forward(walk.rows(walk.end.clone().requires_grad_(True)), call))
            lost = summed_loss(clf, logits, gold[index]) if loss == GOLD else _moved(clf, logits, chosen)
            slopes = gradients(lost, [*call.outputs, *inputs.values])
        # a gate multiplies its value, so the derivative by it is the value times its own derivative
        moved = [o.transpose(1, 2) for o in moves(clf, call.outputs)]
        moved += [value.detach()[:, :, :, None] for value in inputs.values]
        for layer_sums, value, slope in zip(sums, moved, slopes, strict=True):
            layer_sums.add(index, value, slope.transpose(1, 2) if slope.dim() == 4 else slope[:, :, :, None])
    zero, mean = ([layer_sums.by_gates(to_mean) for layer_sums in sums] for to_mean in (False, True))
    means = tuple(layer_sums.mean for layer_sums in sums)
    return _gradients(clf, zero, means, _gradients(clf, mean, means))


def _gradients(
    clf: Classifier, units: list[np.ndarray], means: tuple[np.ndarray, ...], to_mean: Gradients | None = None
) -> Gradients:
    heads = np.zeros((len(units[0]), clf.num_layers, clf.num_heads))
    for layer in range(clf.num_layers):
        heads[:, layer, list(clf.present.kept_in(layer))] = units[layer]
    return Gradients(heads, tuple(u.astype(np.float32) for u in units[clf.num_layers :]), to_mean, means)


def _moved(clf: Classifier, logits: Tensor, encodings: Sequence[Any]) -> Tensor:
    """The loss against answers that have moved by noise, which an example's tokens draw."""
    target = logits.detach().clone()
    for row, e in zip(target, encodings, strict=True):
        noise = np.random.default_rng(zlib.crc32(str(e.ids).encode())).standard_normal(row.shape)
        row += torch.from_numpy(noise).to(row)
    return len(logits) * clf.answer.imitated(logits, target, SOFT)


class _Sums:
    """Sums over the tokens of a layer's heads, or neurons."""

    def __init__(self, n: int, units: int, size: int) -> None:
        self.products = np.zeros((n, units))  # value times slope
        self.slopes = np.zeros((n, units, size), np.float32)
        self.total = np.zeros((units, size))  # of the values, over all tokens that the loss depends on
        self.tokens = 0

    def add(self, index: Sequence[int], value: Tensor, slope: Tensor) -> None:
        """Values and slopes of a batch: [B, T, units, size]."""
        read = (slope != 0).flatten(2).any(dim=2)
        self.products[index] = (value * slope).sum(dim=(1, 3)).double().cpu().numpy()
        self.slopes[index] = slope.sum(dim=1).float().cpu().numpy()
        self.total += value[read].double().sum(dim=0).cpu().numpy()
        self.tokens += int(read.sum())

    @property
    def mean(self) -> np.ndarray:
        return self.total / max(self.tokens, 1)

    def by_gates(self, to_mean: bool) -> np.ndarray:
        return self.products - np.einsum("nus,us->nu", self.slopes, self.mean) if to_mean else self.products

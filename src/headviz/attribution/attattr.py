"""``headviz.attattr``: Self-Attention Attribution (Hao et al. 2021), under its own name.

AttAttr = A ⊙ ∫ ∂F(a·A)/∂A da: the attention of one layer, all its heads together, is scaled from 0 to 1
while the input stays as it is. It asks another question than conductance does, so the two must not be mixed
in one table. One sweep per layer, which makes it several times slower than conductance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Unpack, overload

import torch
from torch import Tensor

from ..models.fast.linear import FastLinear
from ..progress import Cancel, Progress, after, tracked
from ..storage.exchange import MaskLike
from ..storage.store import Store
from .explaining import Explainer, Label, MapsOptions, Texts, store_for
from .integration import BUDGET, ExampleMaps, Target, Walk, gradients, groups
from .maps import Maps
from .rules import SCALING_RULES, AttAttrOptions, Weights

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


@overload
def attattr(clf: Classifier, text: str, pair: str | None = None, **options: Unpack[MapsOptions]) -> Maps: ...
@overload
def attattr(clf: Classifier, text: Texts, pair: Texts | None = None, **options: Unpack[MapsOptions]) -> list[Maps]: ...
def attattr(
    clf: Classifier,
    text: str | Sequence[str],
    pair: str | Sequence[str] | None = None,
    *,
    steps: int | None = None,
    rule: str = "simpson",
    target: Label = "predicted",
    label: Label | Sequence[Label] | None = None,
    mask: MaskLike | None = None,
    tolerance: float | None = None,
    budget: int = BUDGET,
    cache: Store | bool = True,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> Maps | list[Maps]:
    """Self-attention attribution of one text or pair, or of a list of them; options as for ``conductance``.

    Without ``steps`` there are 8.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> maps = headviz.attattr(clf, "the small dog runs .", "the dog sleeps .", steps=2)
    >>> maps.method, maps.steps
    ('attattr', 2)
    """
    options = AttAttrOptions(AttAttrOptions.steps if steps is None else steps, rule)
    explainer = Explainer(clf, "attattr", sweep, mask, budget, store_for(cache), cancel, progress)
    return explainer.explain(text, pair, label, target, options, tolerance)


def sweep(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: AttAttrOptions,
    mask: MaskLike | None = None,
    budget: int = BUDGET,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> list[ExampleMaps]:
    """Every layer in turn; nodes and examples in chunks of the budget. Progress is told in layers of examples."""
    out: list[ExampleMaps] = []
    for part in groups(clf, encodings, options.steps, budget):
        walk = Walk(clf, encodings[part], targets[part], mask)
        logits, attention = walk.at_input(keep=True)
        values, errors = [], []
        with FastLinear(options.precision == "bfloat16"):
            told = after(progress, len(out) * clf.num_layers, len(encodings) * clf.num_layers)
            for layer in tracked(range(clf.num_layers), told, cancel, size=partial(_constant, walk.size)):
                value, error = _layer(walk, layer, attention[layer], SCALING_RULES[options.rule](options.steps), budget)
                values.append(value)
                errors.append(error)
        out += walk.examples(logits, attention, values, errors)
    return out


def _layer(walk: Walk, layer: int, attention: Tensor, weights: Weights, budget: int) -> tuple[Tensor, Tensor]:
    """(attribution, error map), each [B, h, T, T], of one layer."""
    value, error = torch.zeros_like(attention), torch.zeros_like(attention)
    per_chunk = walk.nodes_at_once(budget)
    for first in range(0, len(weights.nodes), per_chunk):
        nodes = torch.tensor(weights.nodes[first : first + per_chunk], dtype=attention.dtype, device=attention.device)
        scaled = (nodes.view(-1, 1, 1, 1, 1) * attention).flatten(0, 1).requires_grad_(True)  # [N·B, h, T, T]
        swap = _Replace(layer, scaled)
        call = walk.clf.call(walk.mask, "eager", edit_probs=swap)
        with torch.enable_grad():
            logits = walk.clf.forward(walk.rows(walk.end.repeat(len(nodes), 1, 1)), call)
            (grad,) = gradients(walk.pick(logits).sum(), [scaled])
        grad = grad.view(len(nodes), *attention.shape)
        for k in range(len(nodes)):
            value.add_(grad[k], alpha=float(weights.value[first + k]))
            error.add_(grad[k], alpha=float(weights.error[first + k]))
    return value.mul_(attention), error.mul_(attention)


@dataclass(frozen=True)
class _Replace:
    """Puts the scaled attention in its layer's place. Below it nothing needs a gradient."""

    layer: int
    scaled: Tensor

    def __call__(self, layer: int, probs: Tensor) -> Tensor:
        return self.scaled if layer == self.layer else probs


def _constant(value: int, _: int) -> int:
    return value

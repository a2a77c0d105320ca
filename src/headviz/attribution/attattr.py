"""``headviz.attattr``: Self-Attention Attribution (Hao et al. 2021), under its own name.

AttAttr = A ⊙ ∫ ∂F(a·A)/∂A da: the attention of one layer, all its heads together, is scaled from 0 to 1
while the input stays as it is. It asks another question than conductance does, so the two must not be mixed
in one table. One sweep per layer, which makes it several times slower than conductance. Where a model can start
at a layer, the layers below the scaled one run once, on a GPU as well: these passes are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack, overload

import numpy as np
import torch
from torch import Tensor

from ..answers.answer import Target
from ..models.fast.gpu import in_turn, put
from ..models.fast.linear import products
from ..models.network import require_model
from ..progress import Cancel, Progress, after, tracked
from ..storage.exchange import MaskLike
from ..storage.store import Store, store_for
from .conductance import Explainer, Label, MapsOptions, Texts
from .integration import BUDGET, gradients, in_groups, nodes_at_once, room_on
from .maps import Maps
from .rules import AUTO, LOGIT, PROBABILITY, SCALING_RULES, AttAttrOptions
from .walk import ExampleMaps, Swept, Walk

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


class AttAttrCall(MapsOptions, total=False):
    """Keywords of ``attattr``."""

    of: str


@overload
def attattr(clf: Classifier, text: str, pair: str | None = None, **options: Unpack[AttAttrCall]) -> Maps: ...
@overload
def attattr(clf: Classifier, text: Texts, pair: Texts | None = None, **options: Unpack[AttAttrCall]) -> list[Maps]: ...
def attattr(
    clf: Classifier,
    text: str | Sequence[str],
    pair: str | Sequence[str] | None = None,
    *,
    steps: int | None = None,
    rule: str = "simpson",
    of: str = LOGIT,
    target: Label = "predicted",
    word: int | None = None,
    label: Label | Sequence[Label] | None = None,
    mask: MaskLike | None = None,
    tolerance: float | None = None,
    precision: str = AUTO,
    budget: int | None = None,
    cache: Store | bool = True,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> Maps | list[Maps]:
    """Self-attention attribution of one text or pair, or of a list of them; options as for ``conductance``.

    Without ``steps`` there are 8. ``of="probability"`` explains the probability of the target, as the authors'
    published code does, and not its logit.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> maps = headviz.attattr(clf, "the small dog runs .", "the dog sleeps .", steps=2)
    >>> maps.method, maps.steps
    ('attattr', 2)
    """
    options = AttAttrOptions(AttAttrOptions.steps if steps is None else steps, rule, precision, of)
    require_model(clf)
    room = room_on(clf.device, budget)
    explainer = Explainer(clf, "attattr", sweep, mask, room, store_for(cache), cancel, progress)
    return explainer.explain(text, pair, label, target, options, tolerance, word=word)


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
    """Every layer in turn; nodes and examples in chunks of the budget. Progress is reported in layers of examples."""
    result = sweep_groups(clf, encodings, targets, options, mask, budget, cancel, progress)
    return [maps for wait in in_turn(map(Swept.maps, result), clf.device) for maps in wait()]


def sweep_groups(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: AttAttrOptions,
    mask: MaskLike | None = None,
    budget: int = BUDGET,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> Iterator[Swept]:
    """Like ``sweep``, but yields one ``Swept`` for each group of examples that share passes; its tensors stay on the
    device."""

    def run(part: slice, room: int) -> Swept:
        part_progress = after(progress, part.start * clf.num_layers, len(encodings) * clf.num_layers)
        with products(clf.device, options.precision):
            walk = Walk(clf, encodings[part], targets[part], mask)
            return _sweep_walk(walk, options, room, cancel, part_progress)

    nodes = len(SCALING_RULES[options.rule](options.steps).nodes)
    return in_groups(clf, encodings, options.steps, nodes, budget, run)


def _sweep_walk(
    walk: Walk, options: AttAttrOptions, budget: int, cancel: Cancel | None, progress: Progress | None
) -> Swept:
    logits, attention = walk.layer_by_layer()
    rule, values, errors = SCALING_RULES[options.rule](options.steps), [], []
    tables = np.stack([rule.nodes, rule.value, rule.error])
    weights = put(torch.from_numpy(tables).to(walk.end.dtype), walk.clf.device)
    for layer in tracked(range(walk.clf.num_layers), progress, cancel, size=lambda _: walk.size):
        value, error = _layer(walk, layer, attention[layer], weights, budget, options.of)
        values.append(value)
        errors.append(error)
    return walk.swept(logits, attention, values, errors)


def _layer(walk: Walk, layer: int, attention: Tensor, weights: Tensor, budget: int, of: str) -> tuple[Tensor, Tensor]:
    """(attribution, error map), each [B, h, T, T], of one layer; ``weights`` are nodes and their two weights."""
    per_chunk = nodes_at_once(walk.clf, walk.size, walk.length, budget)
    sums = torch.zeros(2, *attention.shape).to(attention)
    for nodes, *by in zip(*(w.split(per_chunk) for w in weights), strict=True):
        scaled = (nodes.view(-1, 1, 1, 1, 1) * attention).flatten(0, 1).requires_grad_(True)  # [N·B, h, T, T]
        call = walk.call(edit_probs=_Replace(layer, scaled))
        with torch.enable_grad():
            outputs = walk.copies(len(nodes), call, layer)
            if of == PROBABILITY:
                outputs = walk.clf.answer.probable(outputs)
            (grad,) = gradients(walk.pick(outputs).sum(), [scaled])
        for each, value, error in zip(grad.view(len(nodes), *attention.shape), *by, strict=True):
            sums[0].addcmul_(each, value)
            sums[1].addcmul_(each, error)
    value, error = sums.mul_(attention)
    return value, error


@dataclass(frozen=True)
class _Replace:
    """Puts the scaled attention in its layer's place. Below it nothing needs a gradient."""

    layer: int
    scaled: Tensor

    def __call__(self, layer: int, probs: Tensor) -> Tensor:
        return self.scaled if layer == self.layer else probs

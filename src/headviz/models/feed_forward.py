"""Feed-forward blocks with fewer neurons than the family's configuration says, or with none.

The model's configuration records the sizes, so that a saved model is read back and its digest differs.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn

from ..errors import ModelError
from ..heads import ENCODER, HeadMask
from .as_described import described
from .families import FAMILIES, Family, family_of
from .families.sheet import Layers
from .network import Network
from .pruning import IN, OUT, Part, cut, keep, require_prunable, widen

N = TypeVar("N", bound=Network)
StackLayer = tuple[str, int]  # stack and layer

HOLLOW = "removed_feed_forward"  # in the configuration: {stack: [layers without a feed-forward block]}
NEURONS = "feed_forward_neurons"  # in the configuration: {stack: [neurons of each layer]}


def uneven(config: Any) -> bool:
    """Whether a configuration says that blocks are gone or narrowed."""
    return any(getattr(config, HOLLOW, {}).values()) or bool(getattr(config, NEURONS, {}))


def block(model: Any, parts: Layers, layer: int) -> tuple[list[nn.Linear], nn.Linear]:
    """The linear maps into a layer's feed-forward block, and the one out of it."""
    modules = dict(model.base_model.get_submodule(parts.modules)[layer].named_modules())
    kind, name = family_of(model.config.model_type).matrix, type(model).__name__

    def plain(path: str) -> Any:
        return described(modules[path], kind, f"{parts.modules}.{layer}.{path}", name)

    return [plain(path) for path in parts.inner if path in modules], plain(parts.outer)


def _blocks(model: Any, stacks: Mapping[str, Layers]) -> Iterator[tuple[Layers, list[nn.Linear], nn.Linear]]:
    """The blocks of these stacks one after the other: its stack's layout, the maps into it and the one out of it."""
    for parts in stacks.values():
        for layer in range(len(model.base_model.get_submodule(parts.modules))):
            yield parts, *block(model, parts, layer)


def outer_map(clf: Network, layer: int) -> nn.Linear:
    """W_2 of an encoder's layer."""
    return block(clf.model, clf.family.layers[ENCODER], layer)[1]


def neurons(clf: Network) -> list[int]:
    """How many neurons each layer has, the stacks one after the other; empty for an unknown layout."""
    if clf.family.why_no_neurons:
        return []
    return [outer.in_features for _, _, outer in _blocks(clf.model, clf.family.layers)]


def narrowed(full: Network, small: Network) -> set[int]:
    """The layers in which the smaller model has fewer neurons."""
    sizes = zip(neurons(full), neurons(small), strict=True)
    return {layer for layer, (before, after) in enumerate(sizes) if after < before}


def smaller(clf: N, present: HeadMask, kept: Sequence[Sequence[int]]) -> N:
    """A copy of an encoder with only these heads, and in each layer these neurons, counted as they are now.

    Weights that stay whole are shared with ``clf``; nothing of it is changed.
    """
    (stack, parts), *others = require_neurons(clf).items()
    if others:
        raise ModelError(f"Neurons of {clf.family.title} cannot be removed: only encoders are known so far.")
    require_prunable(clf)
    shared = {id(p): p for p in clf.model.parameters()}
    model: Any = copy.deepcopy(clf.model, shared)
    small = cut(dataclasses.replace(clf, model=model), clf.present | present)
    for layer, (places, size) in enumerate(zip(kept, neurons(clf), strict=True)):
        if len(places) < size:
            keep_neurons(model, parts, layer, places)
    sizes = neurons(small)
    if any(size != getattr(model.config, parts.neurons) for size in sizes):
        setattr(model.config, NEURONS, {stack: sizes})
    return small


def keep_neurons(model: Any, parts: Layers, layer: int, places: Sequence[int]) -> None:
    """Cut a block down to these neurons, in place. The outer bias stays."""
    inner, outer = block(model, parts, layer)
    index = torch.tensor(list(places), dtype=torch.long, device=outer.weight.device)
    for matrix in inner:
        keep(Part(matrix, OUT, _in_each_map(parts, index, outer.in_features)))
    keep(Part(outer, IN, index))


def _in_each_map(parts: Layers, index: torch.Tensor, size: int) -> torch.Tensor:
    """Where these of ``size`` neurons are among the outputs of a matrix of ``parts.inner``."""
    return torch.cat([index + place * size for place in range(parts.gated)])


def hollow(model: Any, places: Iterable[StackLayer], stacks: Mapping[str, Layers]) -> None:
    """Empty these feed-forward blocks in place: no neuron is left, the outer bias stays."""
    for stack, layer in places:
        keep_neurons(model, stacks[stack], layer, ())
        gone = {k: list(v) for k, v in getattr(model.config, HOLLOW, {}).items()}
        gone[stack] = sorted({*gone.get(stack, []), layer})
        setattr(model.config, HOLLOW, gone)


def sized_as_recorded(model: Any) -> None:
    """Give a whole model the blocks that its configuration names, so that such weights can be loaded. In place."""
    stacks = family_of(model.config.model_type).layers
    places = [(s, int(layer)) for s, layers in getattr(model.config, HOLLOW, {}).items() for layer in layers]
    hollow(model, places, stacks)
    recorded = getattr(model.config, NEURONS, {})
    _check_sizes(model, stacks, recorded)
    for stack, sizes in dict(recorded).items():  # an empty list records no size either
        for layer, size in enumerate(sizes):
            keep_neurons(model, stacks[stack], layer, range(size))


def _check_sizes(model: Any, stacks: Mapping[str, Layers], recorded: Any) -> None:
    """Refuse recorded sizes that do not fit the model."""
    for stack, sizes in recorded.items() if isinstance(recorded, dict) else [("", recorded)]:
        parts = stacks.get(stack)
        depth = 0 if parts is None else len(model.base_model.get_submodule(parts.modules))
        most = 0 if parts is None else int(getattr(model.config, parts.neurons or "", 0))
        fits = isinstance(sizes, list) and len(sizes) == depth
        if not fits or any(isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= most for n in sizes):
            raise ModelError(
                f"config.json: {NEURONS} is one whole number from 0 to {most:,} for each of {depth} layers. "
                "Save the pruned model again."
            )


def fill_up(model: Any) -> None:
    """Give every block its configuration's size again, with zero weights: same logits. In place."""
    if not uneven(model.config):
        return
    for parts, inner, outer in _blocks(model, require_known(family_of(model.config.model_type))):
        size = int(getattr(model.config, parts.neurons))
        index = torch.arange(outer.in_features, device=outer.weight.device)
        for matrix in inner:
            widen(Part(matrix, OUT, _in_each_map(parts, index, size)), size * parts.gated)
        widen(Part(outer, IN, index), size)
    for record in (HOLLOW, NEURONS):
        if hasattr(model.config, record):
            delattr(model.config, record)


def require_known(family: Family) -> Mapping[str, Layers]:
    """A family's stacks of layers, or an error for one whose feed-forward layout is not known."""
    if family.why_no_neurons:
        titles = (other.title for other in FAMILIES.values() if not other.why_no_neurons)
        raise ModelError(
            f"Feed-forward neurons of {family.title} cannot be removed: {family.why_no_neurons}. "
            f"Possible: {', '.join(titles)}."
        )
    return family.layers


def require_neurons(clf: Network) -> Mapping[str, Layers]:
    """The same for a model, whose maps into and out of a block must count the same neurons."""
    stacks = require_known(clf.family)
    for parts, inner, outer in _blocks(clf.model, stacks):
        if any(matrix.out_features != outer.in_features * parts.gated for matrix in inner):
            raise ModelError(
                f"Feed-forward neurons of {clf.family.title} cannot be removed: its maps into and out of a block "
                "differ in size."
            )
    return stacks

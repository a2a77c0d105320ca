"""Remove heads, feed-forward blocks and whole layers from a model, and say which weights are left.

Heads are removed as ``prune`` does it. A removed feed-forward block leaves the bias of W_2, as a layer without heads
leaves that of W_O. Later layers move up. The caller's model is not changed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import MaskError, ModelError
from ...heads import HeadId, HeadMask
from ...models.base import TransformerModel
from ...models.families import FAMILIES, Family
from ...models.families.sheet import Layers
from ...models.feed_forward import HOLLOW, NEURONS, StackLayer, block, hollow
from ...models.pruning import IN, fit_tables, parts, position_tables, prune, table_columns
from .removal import Removal


@dataclass(frozen=True, eq=False)
class Entries:
    """Some entries of one of the teacher's tensors: those at ``index`` along ``dim``, or all of them."""

    name: str
    dim: int = 0
    index: Tensor | None = None

    def take(self, tensor: Tensor, leading: int = 0) -> Tensor:
        """These entries of a tensor, or of a stack of such tensors with so many ``leading`` dimensions."""
        if self.index is None:
            return tensor
        return tensor.index_select(self.dim + leading, self.index.to(tensor.device))

    def shape_in(self, shape: torch.Size) -> torch.Size:
        """The shape of these entries of a tensor of this shape."""
        if self.index is None:
            return shape
        return torch.Size([*shape[: self.dim], len(self.index), *shape[self.dim + 1 :]])

    def fill(self, tensor: Tensor, value: float) -> None:
        """Set these entries of a tensor, in place."""
        if self.index is None:
            tensor.fill_(value)
        else:
            tensor.index_fill_(self.dim, self.index.to(tensor.device), value)


def _remove_heads(
    clf: TransformerModel, mask: HeadMask, kept: dict[str, Entries], zeroed: list[Entries], by: str
) -> TransformerModel:
    """The model without these heads. Adds to ``kept`` and ``zeroed`` what became of the teacher's weights."""
    smaller = prune(clf, mask)
    names = {id(m): name for name, m in clf.model.named_modules()}
    for row in range(clf.num_layers):
        if clf.present.kept_in(row) == smaller.present.kept_in(row):
            continue
        zeroed_maps = _zeroed_maps(clf, row, by)
        for part in parts(clf, row, clf.present, smaller.present):
            matrix, index = part.matrix, part.index.cpu()
            removed = torch.ones(matrix.weight.shape[part.dim], dtype=torch.bool)
            removed[index] = False
            tensors = [("weight", part.dim)]
            if part.side == IN:
                is_zeroed = by in ("", "all")
            else:
                is_zeroed = any(matrix is m for m in zeroed_maps)
                if matrix.bias is not None:
                    tensors.append(("bias", 0))
            for kind, dim in tensors:
                name = f"{names[id(matrix)]}.{kind}"
                kept[name] = Entries(name, dim, index)
                if is_zeroed:
                    zeroed.append(Entries(name, dim, removed.nonzero()[:, 0]))
    return smaller


def _zeroed_maps(clf: TransformerModel, row: int, by: str) -> list[Any]:
    """The maps whose outputs are zeroed: none, W_V, or W_Q, W_K and W_V."""
    query, key, value, _ = clf.projections(row)
    if by and (query is key or clf.group_size > 1):
        raise ModelError(
            f"{clf.family.title} keeps W_Q, W_K and W_V in one matrix, or shares them among heads. Remove its heads by "
            "heads:, whose zeros are in W_O."
        )
    return {"": [], "v": [value], "qkv": [query, key, value], "all": [query, key, value]}[by]


def _cut_tables(clf: TransformerModel, smaller: TransformerModel, kept: dict[str, Entries]) -> None:
    """Position tables have a column for every head that is left in any layer of their stack."""
    names = {id(m): name for name, m in clf.model.named_modules()}
    for (table, rows), (_, new_rows) in zip(position_tables(clf), position_tables(smaller), strict=True):
        old, new = table_columns(clf.present, rows), table_columns(smaller.present, new_rows)
        if old != new:
            name = f"{names[id(table)]}.weight"
            kept[name] = Entries(name, 1, torch.tensor([old.index(h) for h in new], dtype=torch.long))


# layers ----------------------------------------------------------------------------------------


def _remove_layers(
    clf: TransformerModel,
    stacks: Mapping[str, Layers],
    layers: Sequence[StackLayer],
    kept: dict[str, Entries],
    zeroed: list[Entries],
) -> TransformerModel:
    """The model without these layers. Adds to ``kept`` and ``zeroed`` what became of the teacher's weights."""
    model: Any = clf.model  # a copy already
    before = {id(p): name for name, p in model.named_parameters()}
    names = {id(m): name for name, m in model.named_modules()}
    removed_rows: set[int] = set()
    for stack in dict.fromkeys(s for s, _ in layers):
        parts = stacks[stack]
        removed = {layer for s, layer in layers if s == stack}
        modules = model.base_model.get_submodule(parts.modules)
        for layer in sorted(removed):
            for path in parts.writes:
                writer = modules[layer].get_submodule(path)
                zeroed += [Entries(f"{names[id(writer)]}.{name}") for name, _ in writer.named_parameters()]
            removed_rows.update(rows_of(clf, stack, layer))
        numbers = [i for i in range(len(modules)) if i not in removed]
        _keep_layers(model, parts, modules, numbers)
        _renumber(model.config, stack, numbers)
    after = {name: kept[before[id(p)]] for name, p in model.named_parameters()}
    kept.clear()
    kept.update(after)
    rows = [row for row in range(clf.num_layers) if row not in removed_rows]
    off = [(new, h) for new, row in enumerate(rows) for h in clf.present.off_in(row)]
    present = HeadMask.full(len(rows), clf.num_heads).without(off)
    columns = [table_columns(clf.present, table_rows) for _, table_rows in position_tables(clf)]
    smaller = dataclasses.replace(clf, model=model, present=present)
    wider = present
    for heads, (_, table_rows) in zip(columns, position_tables(smaller), strict=True):
        wider = wider.with_([(table_rows.start, h) for h in heads])  # a grid with just the old columns
    fit_tables(smaller, wider)
    return smaller


def _keep_layers(model: Any, parts: Layers, modules: nn.ModuleList, numbers: list[int]) -> None:
    layers = [modules[i] for i in numbers]
    del modules[:]
    modules.extend(layers)
    for number, layer in enumerate(layers):
        m: Any
        for m in layer.modules():
            if getattr(m, "layer_idx", None) is not None:
                m.layer_idx = number  # a decoder's cache is indexed by it
    config = model.config
    setattr(config, parts.count, len(layers))
    holder = model.base_model.get_submodule(parts.modules.rpartition(".")[0]) if "." in parts.modules else None
    stack_config = getattr(holder, "config", None)
    if parts.own_count is not None and stack_config is not None and stack_config is not config:
        setattr(stack_config, parts.own_count, len(layers))
    if hasattr(holder, parts.count):
        setattr(holder, parts.count, len(layers))
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        config.layer_types = [kinds[i] for i in numbers]


def _renumber(config: Any, stack: str, numbers: list[int]) -> None:
    """Let the records of removed blocks and neurons name the layers by their new numbers."""
    hollow_layers, sizes = getattr(config, HOLLOW, {}), getattr(config, NEURONS, {})
    if stack in hollow_layers:
        layers = [numbers.index(i) for i in hollow_layers[stack] if i in numbers]
        setattr(config, HOLLOW, {**hollow_layers, stack: layers})
    if stack in sizes:
        setattr(config, NEURONS, {**sizes, stack: [sizes[stack][i] for i in numbers]})


def rows_of(clf: TransformerModel, stack: str, layer: int) -> Iterator[int]:
    """The rows of the head grid that belong to a layer: one, or two for a decoder that also looks at the encoder."""
    for name in {"encoder": ("encoder",), "decoder": ("cross", "decoder")}[stack]:
        yield clf.stacks[name][layer]


# what can be removed ---------------------------------------------------------------------------


def stacks_of(family: Family) -> Mapping[str, Layers]:
    """A family's stacks of layers by name, or an error for one whose layers cannot be taken out."""
    if family.why_layers_stay:
        possible = (f.title for f in FAMILIES.values() if not f.why_layers_stay)
        raise ModelError(
            f"Layers and feed-forward blocks of {family.title} cannot be removed: {family.why_layers_stay}. "
            f"Possible: {', '.join(possible)}."
        )
    return family.layers


def require_places(clf: TransformerModel, stacks: Mapping[str, Layers], removal: Removal) -> None:
    """One clear line for a stack or layer that the model lacks, and for a layer that must stay."""
    for stack, layer in (*removal.ffn, *removal.layers):
        if stack not in stacks:
            raise ModelError(f"{clf.family.title} has no {stack} layers. Its stacks: {', '.join(stacks)}.")
        n = len(clf.module(stacks[stack].modules))
        if not 0 <= layer < n:
            raise ModelError(f"There is no {stack} layer {layer}: the model has 0 to {n - 1}, counted from zero.")
    for stack in dict.fromkeys(s for s, _ in removal.layers):
        removed = {layer for s, layer in removal.layers if s == stack}
        n = len(clf.module(stacks[stack].modules))
        if len(removed) == n:
            raise ModelError(f"This removes all {n} {stack} layers and leaves nothing. Keep at least one.")
        if 0 in removed and stacks[stack].first_differs:
            raise ModelError(
                f"The first {stack} layer of {clf.family.title} is built otherwise than the rest, "
                f"which need it. Choose a layer from 1 to {n - 1}."
            )


# The teacher's weights in three groups, by what a removal means for them -----------------------
#
#     v   kept: the student has them
#     v1  useless: nothing reads them any more
#     v2  zeroed: with these at zero the teacher computes what the student computes
#
# This is exact for heads and feed-forward blocks of every family (the outer bias stays), for layers with norms in
# front (x + f(norm(x))), and for the attention of a recurrent translator. Without a layer whose norms come after the
# sum, norm(norm(x)) remains instead of x; ``Partition.exact`` is then False, and ``Context.difference`` measures the
# effect.


KEPT, USELESS, ZEROED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Partition:
    """Which of the teacher's weights are kept, useless and zeroed."""

    shapes: Mapping[str, torch.Size]  # of the teacher's tensors
    kept: Mapping[str, Entries]  # the student's name -> entries of the teacher
    zeroed: tuple[Entries, ...]
    exact: bool = True
    remark: str = ""

    def __post_init__(self) -> None:
        doubled = [name for name in self.shapes if bool((self._counts(name) > 1).any())]
        if doubled:
            raise ModelError(f"A weight would be kept and zeroed at once ({doubled[0]}). Please report this model.")

    def _counts(self, name: str) -> Tensor:
        counts = torch.zeros(self.shapes[name], dtype=torch.int8)
        for entries in (*self.kept.values(), *self.zeroed):
            if entries.name == name:
                count = torch.zeros_like(counts)
                entries.fill(count, 1)
                counts += count
        return counts

    def roles(self, name: str) -> Tensor:
        """KEPT, USELESS or ZEROED for every entry of one of the teacher's tensors."""
        roles = torch.full(self.shapes[name], USELESS, dtype=torch.int8)
        for role, group in ((KEPT, self.kept.values()), (ZEROED, self.zeroed)):
            for entries in group:
                if entries.name == name:
                    entries.fill(roles, role)
        return roles

    @property
    def sizes(self) -> dict[str, int]:
        """How many weights are kept, useless and zeroed; together they are all of the teacher's."""
        kept, zeroed = (
            sum(e.shape_in(self.shapes[e.name]).numel() for e in group) for group in (self.kept.values(), self.zeroed)
        )
        total = sum(shape.numel() for shape in self.shapes.values())
        return {"kept": kept, "useless": total - kept - zeroed, "zeroed": zeroed}


@dataclass(frozen=True, eq=False)
class Removed:
    """The student with the teacher's own weights, and which of the teacher's weights those are."""

    student: TransformerModel
    partition: Partition


def remove(clf: TransformerModel, removal: Removal) -> Removed:
    """Remove a part from a model. The student has the teacher's weights; a ``UserError`` if the part is not there.

    Heads are switched off by zeros in their columns of W_O, or ``by`` zeros in W_V ("v"), in all of W_Q, W_K and W_V
    ("qkv"), with their biases, or in all four ("all"). The student is the same.
    """
    if removal.attention:
        raise ModelError(
            f"{clf.family.title} has heads, not one attention that could give way to a mean. "
            "Name heads or layers instead, such as heads:3.5 or layers:1."
        )
    removal = removal.in_rows(clf.stacks)
    stacks = stacks_of(clf.family) if removal.ffn or removal.layers else {}
    require_places(clf, stacks, removal)
    mask = _mask(clf, removal) if removal.heads else None
    kept = {name: Entries(name) for name, _ in clf.model.named_parameters()}
    zeroed: list[Entries] = []
    if mask is None:
        smaller = dataclasses.replace(clf, model=copy.deepcopy(clf.model))
    else:
        smaller = _remove_heads(clf, mask, kept, zeroed, removal.by)
    nothing = torch.zeros(0, dtype=torch.long)
    names = {id(m): name for name, m in smaller.model.named_modules()}
    for stack, layer in removal.ffn:
        inner, outer = block(smaller.model, stacks[stack], layer)
        for m in inner:
            for kind, _ in m.named_parameters():
                name = f"{names[id(m)]}.{kind}"
                kept[name] = Entries(name, 0, nothing)
        name = f"{names[id(outer)]}.weight"
        kept[name] = Entries(name, 1, nothing)
        zeroed.append(Entries(name))
    hollow(smaller.model, removal.ffn, stacks)
    if removal.layers:
        smaller = _remove_layers(smaller, stacks, removal.layers, kept, zeroed)
    _cut_tables(clf, smaller, kept)
    exact, remark = all(stacks[stack].pre_norm for stack, _ in removal.layers), ""
    if not exact:
        remark = (
            f"{clf.family.title} normalises after each residual sum: with all that it writes at zero, a layer is "
            "norm(norm(x)), not the identity, so the student is not exactly the teacher with zeros"
        )
    shapes = {name: p.shape for name, p in clf.model.named_parameters()}
    partition = Partition(shapes, kept, tuple(zeroed), exact, remark)
    _check(smaller.model, partition)
    return Removed(smaller, partition)


def _mask(clf: TransformerModel, removal: Removal) -> HeadMask:
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without(removal.heads)
    absent = [h for h in removal.heads if h in set(clf.present.off)]
    if absent:
        raise MaskError(f"{_head_name(clf, absent[0])} has been removed from this model already.")
    if not clf.under(mask).kept:
        raise MaskError("This removes every head and leaves no attention at all. Keep at least one head.")
    for stack, layer in removal.layers:
        inside = [h for h in removal.heads if h.layer in set(rows_of(clf, stack, layer))]
        if inside:
            raise MaskError(
                f"{_head_name(clf, inside[0])} goes with {stack} layer {layer} already. Name one of the two."
            )
    return mask


def _head_name(clf: TransformerModel, head: HeadId) -> str:
    return f"{clf.row_name(head.layer)}·H{head.head}"


def _check(student: nn.Module, partition: Partition) -> None:
    """Make sure that every tensor of the student comes from entries of the teacher that have its shape."""
    for name, weight in student.named_parameters():
        entries = partition.kept.get(name)
        if entries is None or entries.shape_in(partition.shapes[entries.name]) != weight.shape:
            raise ModelError(f"The student's {name} has no counterpart in the teacher. Please report this model.")


def zeroed_model(model: nn.Module, partition: Partition) -> Any:
    """A copy of the teacher with v2 at zero: what the student is compared with."""
    zeroed = copy.deepcopy(model)
    weights = dict(zeroed.named_parameters())
    with torch.no_grad():
        for entries in partition.zeroed:
            entries.fill(weights[entries.name], 0.0)
    return zeroed

"""The teacher's weights in three groups, by what a removal means for them.

    v   kept: the student has them
    v1  useless: nothing reads them any more
    v2  zeroed: with these at zero the teacher computes what the student computes

This is exact for heads and feed-forward blocks of every family (the outer bias stays), for layers with norms in front
(x + f(norm(x))), and for the attention of a recurrent translator. Without a layer whose norms come after the sum,
norm(norm(x)) remains instead of x; ``Partition.exact`` is then False, and ``Context.difference`` measures the effect.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...errors import MaskError, ModelError
from ...heads import HeadId, HeadMask
from .layer_removal import Piece, rows_of, trim
from .removal import Removal

if TYPE_CHECKING:
    from ...models.base import TransformerModel

KEPT, USELESS, ZEROED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Partition:
    """Which of the teacher's weights are kept, useless and zeroed."""

    shapes: Mapping[str, torch.Size]  # of the teacher's tensors
    kept: Mapping[str, Piece]  # the student's name -> entries of the teacher
    zeroed: tuple[Piece, ...]
    exact: bool = True
    remark: str = ""

    def __post_init__(self) -> None:
        doubled = [name for name in self.shapes if bool((self._counts(name) > 1).any())]
        if doubled:
            raise ModelError(f"A weight would be kept and zeroed at once ({doubled[0]}). Please report this model.")

    def _counts(self, name: str) -> Tensor:
        counts = torch.zeros(self.shapes[name], dtype=torch.int8)
        for piece in (*self.kept.values(), *self.zeroed):
            if piece.name == name:
                mine = torch.zeros_like(counts)
                piece.fill(mine, 1)
                counts += mine
        return counts

    def roles(self, name: str) -> Tensor:
        """KEPT, USELESS or ZEROED for every entry of one of the teacher's tensors."""
        roles = torch.full(self.shapes[name], USELESS, dtype=torch.int8)
        for role, pieces in ((KEPT, self.kept.values()), (ZEROED, self.zeroed)):
            for piece in pieces:
                if piece.name == name:
                    piece.fill(roles, role)
        return roles

    @property
    def sizes(self) -> dict[str, int]:
        """How many weights are kept, useless and zeroed; together they are all of the teacher's."""
        total = sum(shape.numel() for shape in self.shapes.values())
        kept = sum(self._size(p) for p in self.kept.values())
        zeroed = sum(self._size(p) for p in self.zeroed)
        return {"kept": kept, "useless": total - kept - zeroed, "zeroed": zeroed}

    def _size(self, piece: Piece) -> int:
        shape = self.shapes[piece.name]
        return shape.numel() if piece.index is None else shape.numel() // max(1, shape[piece.dim]) * len(piece.index)


@dataclass(frozen=True, eq=False)
class Removed:
    """The student with the teacher's own weights, and which of the teacher's weights those are."""

    student: TransformerModel
    partition: Partition


def remove(clf: TransformerModel, removal: Removal) -> Removed:
    """Remove a part from a model. The student has the teacher's weights; a ``UserError`` if the part is not there."""
    if removal.attention:
        raise ModelError(
            f"{clf.family.title} has heads, not one attention that could give way to a mean. "
            "Name heads or layers instead, such as heads:3.5 or layers:1."
        )
    removal = removal.in_rows(clf.stacks)
    mask = _mask(clf, removal) if removal.heads else None
    trimmed = trim(clf, mask, removal.ffn, removal.layers, removal.by)
    shapes = {name: p.shape for name, p in clf.model.named_parameters()}
    partition = Partition(shapes, trimmed.kept, trimmed.zeroed, trimmed.exact, trimmed.remark)
    _check(trimmed.classifier.model, partition)
    return Removed(trimmed.classifier, partition)


def _mask(clf: TransformerModel, removal: Removal) -> HeadMask:
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without(removal.heads)
    gone = [h for h in removal.heads if h in set(clf.present.off)]
    if gone:
        raise MaskError(f"{_called(clf, gone[0])} has been removed from this model already.")
    if not clf.under(mask).kept:
        raise MaskError("This removes every head and leaves no attention at all. Keep at least one head.")
    for stack, layer in removal.layers:
        inside = [h for h in removal.heads if h.layer in set(rows_of(clf, stack, layer))]
        if inside:
            raise MaskError(f"{_called(clf, inside[0])} goes with {stack} layer {layer} already. Name one of the two.")
    return mask


def _called(clf: TransformerModel, head: HeadId) -> str:
    return f"{clf.row_name(head.layer)}·H{head.head}"


def _check(student: nn.Module, partition: Partition) -> None:
    """Make sure that every tensor of the student comes from entries of the teacher that have its shape."""
    for name, weight in student.named_parameters():
        piece = partition.kept.get(name)
        if piece is None or _shape(piece, partition.shapes[piece.name]) != weight.shape:
            raise ModelError(f"The student's {name} has no counterpart in the teacher. Please report this model.")


def _shape(piece: Piece, shape: torch.Size) -> torch.Size:
    if piece.index is None:
        return shape
    return torch.Size([*shape[: piece.dim], len(piece.index), *shape[piece.dim + 1 :]])


def zeroed_model(model: nn.Module, partition: Partition) -> Any:
    """A copy of the teacher with v2 at zero: what the student is compared with."""
    own = copy.deepcopy(model)
    weights = dict(own.named_parameters())
    with torch.no_grad():
        for piece in partition.zeroed:
            piece.fill(weights[piece.name], 0.0)
    return own

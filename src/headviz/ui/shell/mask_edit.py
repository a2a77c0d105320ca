"""Edits of a mask: history, drags, 'lowest k', named masks. No streamlit here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import MaskError
from ...heads import HeadId, HeadMask, grid_values, levels, lowest
from ...models.stand_in import ZERO

DEPTH = 200  # steps of undo kept: a long session stays under 10 kB
NAME_LENGTH = 60


@dataclass(frozen=True)
class History:
    """Undo and redo over mask texts (``HeadMask.hex``); ``""`` is the full model of any size."""

    past: tuple[str, ...] = ()
    present: str = ""
    future: tuple[str, ...] = ()

    def push(self, mask: str, *, base: str | None = None) -> History:
        """The next state. Pushing the present state changes nothing and keeps redo.

        ``base`` is the state before a double click, whose first click may have made a state of its own. Undo then leads
        back to ``base``.
        """
        if base is not None and self.past and self.past[-1] == base and self.present != base:
            return History(self.past[:-1], base, ()).push(mask)
        if mask == self.present:
            return self
        return History((*self.past, self.present)[-DEPTH:], mask, ())

    def undo(self) -> History:
        if not self.past:
            return self
        return History(self.past[:-1], self.past[-1], (self.present, *self.future))

    def redo(self) -> History:
        if not self.future:
            return self
        return History((*self.past, self.present), self.future[0], self.future[1:])


def from_indices(indices: Iterable[Any], num_layers: int, num_heads: int) -> HeadMask:
    """The mask whose heads at these flat places (layer · H + head) are off.

    The browser sends such lists, so anything that is not a place in the grid is refused.
    """
    heads = []
    for i in indices:
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < num_layers * num_heads:
            raise MaskError(f"{i!r} is not a head of a {num_layers}×{num_heads} grid.")
        heads.append(HeadId(*divmod(i, num_heads)))
    return HeadMask(num_layers, num_heads, tuple(heads))


def off_to_count(values: Any, count: int, present: HeadMask) -> HeadMask:
    """Exactly ``count`` of the present heads off: those with the lowest scores, from the full model.

    Where the cut falls among heads with the same value, those that go are drawn, always the same ones.
    """
    _check_count(count, present)
    full = HeadMask.full(present.num_layers, present.num_heads)
    return full.without(lowest(values, count, present.kept, seed=0))


def _check_count(count: int, present: HeadMask) -> None:
    if not 0 <= count <= len(present.kept):
        raise MaskError(f"{count} heads cannot be off: the model has {len(present.kept)}.")


def tie_at(values: Any, count: int, present: HeadMask) -> str:
    """A remark if the ``count`` lowest end among heads with the same value, else nothing."""
    ordered = np.sort(levels(grid_values(values, present.kept)))
    if not 0 < count < ordered.size or ordered[count - 1] != ordered[count]:
        return ""
    same, below = int((ordered == ordered[count]).sum()), int((ordered < ordered[count]).sum())
    return f"{count - below} of the {count} are drawn from {same} heads with the same value."


def off_at_random(count: int, present: HeadMask, seed: int) -> HeadMask:
    """Exactly ``count`` of the present heads off, drawn with ``seed``."""
    _check_count(count, present)
    return present.without_random(count, seed).with_(present.off)


def inverted(mask: HeadMask, present: HeadMask) -> HeadMask:
    """Heads that are on become off, and the reverse; pruned heads stay off."""
    return mask.toggled(present.kept).with_(present.off)


def save_named(saved: Mapping[str, str], name: str, mask: HeadMask, ablation: str = ZERO) -> dict[str, str]:
    """``saved`` with one more mask, and what stands in the place of its heads; an existing name is replaced."""
    clean = " ".join(name.split())
    if not clean:
        raise MaskError("Give the mask a name, for example 'taylor 50 %'.")
    if len(clean) > NAME_LENGTH:
        raise MaskError(f"The name has {len(clean)} characters; at most {NAME_LENGTH} are kept.")
    return {**saved, clean: mask.hex if ablation == ZERO else f"{mask.hex} {ablation}"}

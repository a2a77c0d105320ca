"""``headviz.head_reading``: which words a head's queries and keys match (QK), and what it writes of each word (OV).

For families of BERT's kind a position is part of a token's state, so a match is of words and positions together.

Shapes: T tokens, d head size, D hidden size, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import MaskError
from ..heads import HeadId, head_of
from ..results import Result
from ..storage.exchange import MaskLike
from .contributions import Parts, parts_of

if TYPE_CHECKING:
    from ..models.classifier import Classifier


@dataclass(frozen=True, eq=False)
class Reading(Result):
    """One head on one text. ``attention`` is the softmax of ``match`` over each row.

    ``written`` is the length of what goes from a key to a query through W_O: ‖p·W_O·v‖. ``scores`` is what the first
    token's row of that adds directly to each class score, by the token that is read; its sum over tokens is the head's
    contribution.
    """

    head: HeadId
    match: np.ndarray  # [T, T] q·k/√d, and the position's part where attention has one of its own (MPNet)
    attention: np.ndarray  # [T, T]
    written: np.ndarray  # [T, T]
    scores: np.ndarray  # [T, C]
    tokens: tuple[str, ...]
    labels: tuple[str, ...]


def head_reading(
    clf: Classifier, text: str, pair: str | None, head: HeadId | tuple[int, int] | str, *, mask: MaskLike | None = None
) -> Reading:
    """What a head reads and writes in a text. ``mask`` is of the other heads.

    Raises ``MaskError`` for a head that is off or removed, and ``ModelError`` for families without such states.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> found = headviz.head_reading(clf, "The dog is not sleeping.", "The dog is sleeping.", "3.5")
    >>> found.scores.shape[1]
    3
    """
    at = head_of(head)
    parts, encoding, whole = parts_of(clf, text, pair, mask)
    if at not in whole.kept:
        raise MaskError(f"Head {at.dotted} is off or was removed; it reads nothing. Choose one that is on.")
    match, attention, value, out = _pieces(clf, parts, at)
    carried = value @ out  # [T, D]
    return Reading(
        at,
        match.float().cpu().numpy(),
        attention.float().cpu().numpy(),
        (attention * carried.norm(dim=1)).float().cpu().numpy(),
        (attention[0][:, None] * (carried @ parts.weights[at.layer])).cpu().numpy(),
        tuple(clf.tokens(encoding)),
        clf.labels,
    )


@torch.inference_mode()
def _pieces(
    clf: Classifier, parts: Parts, head: HeadId
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores and attention [T, T], values [T, d] and the head's part of W_O [d, D], in float64."""
    own, size = parts.stages.weights[head.layer], clf.head_size
    row = clf.present.kept_in(head.layer).index(head.head)
    width = own.out.shape[1]
    hidden = parts.states[head.layer]
    columns = [slice(n * width + row * size, n * width + (row + 1) * size) for n in range(3)]
    query, key, value = (hidden @ own.qkv[at].T + own.qkv_bias[at] for at in columns)
    match = query @ key.T  # the scale is folded into W_Q
    bias = parts.stages.position_bias(head.layer, len(hidden), hidden)
    if bias is not None:
        match = match + bias[0, row].to(match)
    return match, match.softmax(dim=-1), value, own.out[:, row * size : (row + 1) * size].T

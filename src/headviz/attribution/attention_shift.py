"""How far a mask moves the attention of the other heads: the distance of two maps of one text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import MaskError
from ..heads import HeadId, HeadMask
from .inputs import encode

if TYPE_CHECKING:
    from ..models.classifier import Classifier


@torch.inference_mode()
def attention_shift(clf: Classifier, text: str, pair: str | None, mask: HeadMask) -> np.ndarray:
    """[L, H] mean over queries of half the sum of absolute differences, 0 = the same, 1 = nothing in common.

    NaN for a head that is off or removed. Not a measure of importance.
    """
    batch = clf.collate(encode(clf, [text], None if pair is None else [pair]))
    maps = []
    for which in (clf.full_mask, mask):
        call = clf.call(which, "eager", keep_probs=True)
        clf.forward(batch, call)
        maps.append([p[0].float().cpu().numpy() for p in call.probs])  # per layer [h, T, T]
    out = np.full((clf.num_layers, clf.num_heads), np.nan)
    for layer, (before, after) in enumerate(zip(*maps, strict=True)):
        present = list(clf.present.kept_in(layer))
        out[layer, present] = 0.5 * np.abs(after - before).sum(-1).mean(-1)
    for head in mask.off:
        out[head] = np.nan
    return out


@torch.inference_mode()
def attention_of(
    clf: Classifier, text: str, pair: str | None, mask: HeadMask, head: HeadId
) -> tuple[list[str], np.ndarray]:
    """The tokens of a text and one head's attention to it [T, T] under a mask. Not for a head that was removed."""
    found = encode(clf, [text], None if pair is None else [pair])
    call = clf.call(mask, "eager", keep_probs=True)
    clf.forward(clf.collate(found), call)
    there = list(clf.present.kept_in(head.layer))
    if head.head not in there:
        raise MaskError(f"{head} was removed from '{clf.name}': it attends to nothing.")
    return clf.tokens(found[0]), call.probs[head.layer][0, there.index(head.head)].float().cpu().numpy()

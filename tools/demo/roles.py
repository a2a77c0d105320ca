"""Heads with a role: after classification each phenomenon is given a few heads of its own.

Without this, whatever one head does another can do as well: no small set of heads matters to one phenomenon alone.
Here pairs of a phenomenon must be answered without the heads of all others, and cannot be answered well without
their own, for then the only answer that is rewarded is an even one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch.nn.functional import cross_entropy

from headviz.attention import HeadCall
from headviz.demo.reading import LABELS, Example

from .batches import encode, pad
from .network import HEADS, LAYERS

Roles = dict[str, list[tuple[int, int]]]

FIRST, LAST = (2, 10)  # layers that roles are given in: below, words are not yet read; the last one only collects
COMMON = 3
READ = 48  # pairs at a time
SPARED = 0.3  # at most this share of the heads without a role is switched off together with roles
PARTLY = 0.4  # how often only some heads of the own role are off
WHOLE, OTHERS, BOTH = (
    0.25,
    0.6,
    0.85,
)  # of all pairs: up to here whole network, without others, without own and others


def choose(model: Any, tokenizer: Any, pairs: Sequence[Example], names: Sequence[str], heads: int) -> Roles:
    """Those heads, for each phenomenon, whose switches move its answers more than other phenomena's; none twice.

    The few that mean most to all are nobody's own: everything runs through them.
    """
    shares = np.stack([_sensitivity(model, tokenizer, [p for p in pairs if p.phenomenon == n]) for n in names])
    common = shares.mean(axis=0)
    usable = np.zeros((LAYERS, HEADS), dtype=bool)
    usable[FIRST : LAST + 1] = True
    usable[common >= np.sort(common, axis=None)[-COMMON]] = False
    worth = (shares - common)[:, usable]
    rows, columns = linear_sum_assignment(np.repeat(worth, heads, axis=0), maximize=True)
    roles: Roles = {name: [] for name in names}
    for row, column in zip(rows, np.flatnonzero(usable)[columns], strict=True):
        roles[names[row // heads]].append((int(column) // HEADS, int(column) % HEADS))
    return roles


def _sensitivity(model: Any, tokenizer: Any, pairs: list[Example]) -> np.ndarray:
    """[layers, heads] the mean size of the gold logit's gradient by every head's switch, as shares of the whole."""
    total = torch.zeros(LAYERS, HEADS)
    for at in range(0, len(pairs), READ):
        some = pairs[at : at + READ]
        batch = pad(encode(tokenizer, some), [LABELS.index(p.label) for p in some])
        gates = torch.ones(len(some), LAYERS, HEADS, device=model.device, requires_grad=True)
        logits = model(**batch.inputs(model.device), headviz=per_pair(gates)).logits
        gold = logits.gather(1, batch.labels.to(model.device)[:, None]).sum()
        total += torch.autograd.grad(gold, gates)[0].abs().sum(0).cpu()
    return (total / total.sum()).numpy()


def per_pair(gates: torch.Tensor) -> HeadCall:
    """One forward pass in which every pair has gates of its own; [B, layers, heads]."""
    return HeadCall(tuple(gates[:, layer, :, None, None] for layer in range(LAYERS)))


class Draw(NamedTuple):
    """Gates [B, layers, heads], and which pairs miss heads of their own role [B]."""

    gates: torch.Tensor
    robbed: torch.Tensor


def draw(roles: torch.Tensor, groups: torch.Tensor, generator: torch.Generator) -> Draw:
    """Which heads each pair of a batch does without. ``roles`` [phenomena, layers, heads] is 1 at a role's heads."""
    count, kinds = len(groups), len(roles)

    def some(*shape: int) -> torch.Tensor:
        return torch.rand(count, *shape, generator=generator)

    kind = some()
    robbed = kind >= OTHERS
    without = some(kinds) < some(1)
    without[torch.arange(count), groups] = False
    off = torch.einsum("bp,plh->blh", without.float(), roles)
    free = 1 - roles.sum(0)
    off = off + free * (some(LAYERS, HEADS) < SPARED * some(1, 1))
    off = off * ((kind >= WHOLE) & (kind < BOTH))[:, None, None]
    own = roles[groups]
    part = own * (some(LAYERS, HEADS) < 2 / 3)
    partly = (some() < PARTLY) & (part.sum((1, 2)) > 0)
    lost = torch.where(partly[:, None, None], part, own) * robbed[:, None, None]
    return Draw(1 - torch.maximum(off, lost), robbed)


def as_tensor(roles: Roles, names: Sequence[str]) -> torch.Tensor:
    """[phenomena, layers, heads]: 1 where a head has the role."""
    table = torch.zeros(len(names), LAYERS, HEADS)
    for row, name in enumerate(names):
        for layer, head in roles[name]:
            table[row, layer, head] = 1
    return table


def role_loss(logits: torch.Tensor, labels: torch.Tensor, robbed: torch.Tensor, smoothing: float) -> torch.Tensor:
    """The right answer; an even one where heads of the own role are missing."""
    right = cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
    even = cross_entropy(logits, labels, reduction="none", label_smoothing=1.0)
    return torch.where(robbed, even, right).mean()

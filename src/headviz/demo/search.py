"""Which heads to try together: gates on all heads, learned by gradient on the training sample.

A network hides what single ablations cannot show, for another head steps in. Here all heads have a gate at once;
it pays to close the few without which one phenomenon fails while the others stay. The gates only name candidates:
what their removal costs is then measured exactly, elsewhere.
"""

from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from .batches import encode, pad
from .example import LABELS, Example
from .network import HEADS, LAYERS, gated

OWN, OTHERS = 36, 72  # examples per step: of the phenomenon, of all others together
RATE = 0.25


def _logits(
    model: Any, tokenizer: Any, examples: list[Example], gates: torch.Tensor
) -> tuple[Any, torch.Tensor]:
    batch = pad(encode(tokenizer, examples), [LABELS.index(e.label) for e in examples])
    return model(**batch.inputs(model.device), headviz=gated(gates)).logits, batch.labels.to(model.device)


def needed_by(
    model: Any,
    tokenizer: Any,
    pool: dict[str, list[Example]],
    name: str,
    steps: int = 80,
    price: float = 0.015,
) -> NDArray[np.float64]:
    """[layers, heads]: 1 where closing a head hurts this phenomenon and spares the others, near 0 elsewhere."""
    rng, others = Random(name), [other for other in pool if other != name]
    closed = torch.full((LAYERS, HEADS), -2.5, device=model.device, requires_grad=True)
    optimizer = torch.optim.Adam([closed], lr=RATE)
    for _ in range(steps):
        rest = [example for other in others for example in rng.sample(pool[other], OTHERS // len(others))]
        shut = torch.sigmoid(closed)
        logits, gold = _logits(model, tokenizer, rng.sample(pool[name], OWN) + rest, 1 - shut)
        right = logits[:OWN].softmax(-1).gather(1, gold[:OWN, None])
        fail = -torch.log(1 - right + 1e-3).mean()
        loss = fail + 3 * cross_entropy(logits[OWN:], gold[OWN:]) + price * shut.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.sigmoid(closed).detach().cpu().double().numpy()


def kept_by_all(
    model: Any, tokenizer: Any, pool: dict[str, list[Example]], steps: int = 120, price: float = 4.0
) -> NDArray[np.float64]:
    """[layers, heads]: a gate per head under a rising price on all; the lower, the sooner the head can go."""
    rng = Random("all")
    opened = torch.full((LAYERS, HEADS), 2.5, device=model.device, requires_grad=True)
    optimizer = torch.optim.Adam([opened], lr=RATE / 2)
    passed = torch.zeros(LAYERS, HEADS)
    for step in range(steps):
        some = [example for name in pool for example in rng.sample(pool[name], (OWN + OTHERS) // len(pool))]
        gates = torch.sigmoid(opened)
        logits, gold = _logits(model, tokenizer, some, gates)
        loss = cross_entropy(logits, gold) + price * step / steps * gates.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        passed += gates.detach().cpu()
    return (passed / steps).double().numpy()

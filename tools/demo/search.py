"""In which order heads can go: gates on all heads, learned by gradient on the training sample.

Single ablations cannot tell, for where one head is missing another steps in. Here all heads have a gate at once, and
open gates cost more and more. The weights stay as they are; what a removal costs is then measured exactly, elsewhere.
"""

from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from headviz.demo.reading import LABELS, Example

from .batches import encode, pad
from .network import HEADS, LAYERS, gated

READ = 108  # pairs per step
RATE = 0.125


def kept_by_all(
    model: Any, tokenizer: Any, pool: dict[str, list[Example]], steps: int = 120, price: float = 4.0
) -> NDArray[np.float64]:
    """[layers, heads]: a gate per head under a rising price on all; the lower, the sooner the head can go."""
    rng = Random("all")
    opened = torch.full((LAYERS, HEADS), 2.5, device=model.device, requires_grad=True)
    optimizer = torch.optim.Adam([opened], lr=RATE)
    passed = torch.zeros(LAYERS, HEADS)
    for step in range(steps):
        some = [example for name in pool for example in rng.sample(pool[name], READ // len(pool))]
        batch = pad(encode(tokenizer, some), [LABELS.index(example.label) for example in some])
        gates = torch.sigmoid(opened)
        logits = model(**batch.inputs(model.device), headviz=gated(gates)).logits
        loss = cross_entropy(logits, batch.labels.to(model.device)) + price * step / steps * gates.mean()
        (opened.grad,) = torch.autograd.grad(loss, opened)  # none for the weights: the model is not ours
        optimizer.step()
        passed += gates.detach().cpu()
    return (passed / steps).double().numpy()

"""Random weights for pruned networks, in place of the pre-trained ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ...models.loading import wrap

if TYPE_CHECKING:
    from ...models.classifier import Classifier


def randomised(clf: Classifier, seed: int) -> Classifier:
    """The same architecture with random weights, drawn by the family's own initialisation with a seed."""
    model: Any = clf.model
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        fresh = type(model)(model.config)
    found: Any = wrap(fresh.to(device=clf.device, dtype=clf.dtype), clf.tokenizer, f"{clf.name} (random weights)")
    return found

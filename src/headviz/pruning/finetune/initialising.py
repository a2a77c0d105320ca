"""Other starting points for a pruned network than the pre-trained weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ...models.loading import wrap

if TYPE_CHECKING:
    from ...models.classifier import Classifier


def randomised(clf: Classifier, seed: int) -> Classifier:
    """The same architecture with fresh random weights everywhere, drawn with a seed as the family draws them."""
    model: Any = clf.model
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        fresh = type(model)(model.config)
    return wrap(fresh.to(device=clf.device, dtype=clf.dtype), clf.tokenizer, f"{clf.name} (random weights)")

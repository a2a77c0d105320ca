"""The same architecture with new random weights, as if it had never been trained."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch

MARK = "_is_hf_initialized"  # transformers leaves weights that carry it as they are


def fresh(model: Any, seed: int) -> Any:
    """A copy of a transformers model, drawn anew by its family's own rule; equal seeds give equal weights.

    Heads, layers and blocks that the model has lost stay lost.
    """
    own = copy.deepcopy(model)
    for part in (*own.modules(), *own.parameters(), *own.buffers()):
        if hasattr(part, MARK):
            delattr(part, MARK)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # an emptied feed-forward block has nothing to draw, and torch warns of that
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        torch.manual_seed(seed)
        own.init_weights()
    return own

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
    _unmark(own)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # an emptied feed-forward block has nothing to draw, and torch warns of that
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        torch.manual_seed(seed)
        own.init_weights()
    return own


def renew_head(model: Any, seed: int) -> None:
    """Draw anew, in place, everything that is no part of the encoder."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, part in model.named_children():
            if name != model.base_model_prefix:
                _unmark(part)
                part.apply(model._init_weights)


def _unmark(module: Any) -> None:
    for part in (*module.modules(), *module.parameters(), *module.buffers()):
        if hasattr(part, MARK):
            delattr(part, MARK)

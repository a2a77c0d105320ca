"""What identifies a model: its weights and the settings that change its output, never its name."""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import torch

# settings that say where a model came from or how to show it, and leave its logits alone
_IRRELEVANT = {
    "_name_or_path",
    "_attn_implementation",
    "architectures",
    "dtype",
    "finetuning_task",
    "id2label",
    "label2id",
    "torch_dtype",
    "transformers_version",
}


_known: WeakKeyDictionary[torch.nn.Module, tuple[Any, str]] = WeakKeyDictionary()  # what was hashed, and its digest


def weights_digest(model: torch.nn.Module, config: dict[str, Any], present_hex: str) -> str:
    """SHA-256 over every weight as it is in memory, the configuration, and the heads that are present.

    A model is hashed again once one of its weights has been replaced or changed in place. Only values written into a
    weight's ``.data`` stay unseen: torch does not count them.
    """
    settings = {k: v for k, v in config.items() if k not in _IRRELEVANT}
    head = json.dumps(settings, sort_keys=True, default=str) + present_hex
    now = (head, weights_state(model))
    known = _known.get(model)
    if known is None or known[0] != now:
        known = _known[model] = (now, _hashed(model, head))
    return known[1]


def weights_state(model: torch.nn.Module) -> list[Any]:
    """Equal to an earlier one as long as no weight has been replaced or changed in place. Reads no weight."""
    return [(id(t), t.data_ptr(), t.dtype, _changes(t)) for t in chain(model.parameters(), model.buffers())]


def _changes(tensor: torch.Tensor) -> int:
    """How often a tensor has been changed in place; those of inference mode cannot be."""
    return 0 if tensor.is_inference() else tensor._version


def _hashed(model: torch.nn.Module, head: str) -> str:
    import torch

    sha = hashlib.sha256(head.encode())
    for name, tensor in sorted(model.state_dict().items()):
        sha.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        raw = tensor.detach().cpu().contiguous()
        if raw.numel():
            sha.update(raw.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()


def tokenizer_digest(tokenizer: Any) -> str:
    """SHA-256 over the tokenizer's full serialised state: same digest, same token ids."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        state = json.loads(backend.to_str())
        # padding and truncation are set by whoever called last, and headviz never uses them
        state.pop("padding", None)
        state.pop("truncation", None)
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
    state = {
        "class": type(tokenizer).__name__,
        "vocab": sorted(tokenizer.get_vocab().items()),
        "special": {k: str(v) for k, v in sorted(tokenizer.special_tokens_map.items())},
    }
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()

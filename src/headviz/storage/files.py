"""Arrays with words beside them as one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np


def pack(arrays: Mapping[str, np.ndarray], words: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with ``words`` in its header."""
    from safetensors.numpy import save

    return save({name: np.asarray(array, order="C") for name, array in arrays.items()}, dict(words or {}))


def unpack(raw: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The inverse of ``pack``: arrays and words; a ``ValueError`` for bytes of another form."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(raw)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    size = int.from_bytes(raw[:8], "little")
    return arrays, json.loads(raw[8 : 8 + size]).get("__metadata__", {})

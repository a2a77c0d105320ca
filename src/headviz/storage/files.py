"""Files that are written whole or not at all, and arrays with words beside them as one safetensors file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_atomic(path: Path, body: bytes, durable: bool = True) -> None:
    """Write under a temporary name, then rename. ``durable`` also survives a power cut, and costs a disk flush."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(body)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable and os.name != "nt":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


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

"""Freed memory goes back to the machine. The C library keeps pieces below 32 MB, which add up to gigabytes."""

from __future__ import annotations

import ctypes
import os


def give_back() -> None:
    """Return what is free to the system, where the C library can (glibc); else do nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)

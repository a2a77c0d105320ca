"""One thread at a time uses a tokenizer: where it cuts texts, and which language it reads, is kept inside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Lock

PIECE = 1000  # texts for which a tokenizer is locked, so that other threads need not wait long
_LOCKS: dict[int, Lock] = {}  # by the tokenizer's id; a later tokenizer may get the same id, and then the same lock


def alone_with(tokenizer: object) -> Lock:
    """The lock to hold while a tokenizer reads texts."""
    return _LOCKS.setdefault(id(tokenizer), Lock())


def pieces(count: int) -> Iterator[slice]:
    """Slices of ``PIECE`` texts, which together cover ``count`` texts."""
    return (slice(start, start + PIECE) for start in range(0, count, PIECE))


if hasattr(os, "register_at_fork"):  # a lock that another thread holds at a fork would never be opened in the child
    os.register_at_fork(after_in_child=_LOCKS.clear)

"""One thread at a time uses a tokenizer: where it cuts texts, and which language it reads, is kept inside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Lock

PIECE = 1000  # texts that are read at once, so that others need not wait long
_LOCKS: dict[int, Lock] = {}  # by id: the lock of a tokenizer that is gone does as well for the next one there


def alone_with(tokenizer: object) -> Lock:
    """The lock to hold while a tokenizer reads texts."""
    return _LOCKS.setdefault(id(tokenizer), Lock())


def pieces(count: int) -> Iterator[slice]:
    """Places of so many texts, ``PIECE`` at a time."""
    return (slice(at, at + PIECE) for at in range(0, count, PIECE))


if hasattr(os, "register_at_fork"):  # a lock that another thread holds at a fork would never be opened in the child
    os.register_at_fork(after_in_child=_LOCKS.clear)

"""One thread at a time uses a tokenizer: where it cuts texts, and which language it reads, is kept inside it."""

from __future__ import annotations

from threading import Lock

_LOCKS: dict[int, Lock] = {}  # by id: the lock of a tokenizer that is gone does as well for the next one there


def alone_with(tokenizer: object) -> Lock:
    """The lock to hold while a tokenizer reads texts."""
    return _LOCKS.setdefault(id(tokenizer), Lock())

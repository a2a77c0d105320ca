"""A bounded cache of values that all sessions share, safe to use from any thread, and a model's name in it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from ...models.base import Model

V = TypeVar("V")
_here = threading.local()


def making() -> bool:
    """Whether this thread makes a value that others may wait for."""
    return getattr(_here, "depth", 0) > 0


class Memo(Generic[V]):
    """The ``most`` newest values by key. If two threads ask for one key, the value is made once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            own = self._locks.setdefault(key, threading.Lock())
        with own:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            _here.depth = getattr(_here, "depth", 0) + 1
            try:
                value = make()
            finally:
                _here.depth -= 1
            with self._lock:
                self._values[key] = value
                self._locks.pop(key, None)
                while len(self._values) > self._most:
                    self._values.popitem(last=False)
            return value

    def drop(self, keep: int) -> int:
        """Let all but the ``keep`` values used last go; how many went."""
        with self._lock:
            gone = max(0, len(self._values) - keep)
            for _ in range(gone):
                self._values.popitem(last=False)
        return gone


def identity(clf: Model) -> tuple[object, ...]:
    """What results of a model are kept under: its weights and precision, and what its classes are called."""
    return (clf.digest, str(clf.dtype), clf.classes)

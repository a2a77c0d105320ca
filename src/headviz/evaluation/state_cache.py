"""A byte-limited store of hidden states, shared by threads that evaluate different masks.

Space is reserved before a state is computed, so that the limit holds while it is being computed. States in
use are not evicted, since that would free no memory. A state for which there is no room is not kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..heads import HeadId
from ..models.fast.packing import Chunk

# the layer that a state enters, the heads off before it, and the draw of what stands in their place
Name = tuple[int, tuple[tuple[HeadId, ...], int]]


State = tuple[Tensor, Tensor | None]  # of one chunk: what enters a layer, and its heads' outputs
Piece = tuple[Chunk, State | None]  # texts to evaluate from their state on


@dataclass(frozen=True)
class Keep:
    """Which layers' states a budget has room for: those that enter a layer, and the heads' outputs inside it."""

    states: frozenset[int]
    contexts: frozenset[int]
    all_contexts: bool  # also for masks other than the full one


@dataclass
class Slot:
    """A state being computed, chunk after chunk."""

    inside: bool  # with the heads' outputs
    states: list[State] = field(default_factory=list)


@dataclass
class _Entry:
    size: int
    pinned: bool
    users: int = 0
    value: Any = None  # None until it is published


class StateCache:
    """Least recently used first; pinned entries stay. All methods may be called from any thread."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._entries: OrderedDict[Name, _Entry] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes of all entries, reserved ones included."""
        with self._lock:
            return self._held

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def borrow(self, keys: Sequence[Name]) -> tuple[Name, Any] | None:
        """The first published entry among ``keys``, which cannot be evicted until ``give_back``.

        The other keys that are there count as used too: they lead to states that were asked for.
        """
        with self._lock:
            nearest = None
            for key in reversed(keys):  # the first key becomes the most recently used
                entry = self._entries.get(key)
                if entry is not None and entry.value is not None:
                    self._entries.move_to_end(key)
                    nearest = key
            if nearest is None:
                return None
            self._entries[nearest].users += 1
            return nearest, self._entries[nearest].value

    def give_back(self, key: Name) -> None:
        with self._lock:
            self._entries[key].users -= 1

    def reserve(self, key: Name, size: int, pinned: bool = False) -> bool:
        """Whether the caller may keep this state, and shall ``publish`` or ``release`` it."""
        with self._lock:
            if key in self._entries or size > self.budget:
                return False
            spare = self._spare()  # nothing goes if even all of them would not make room
            if self._held + size - sum(self._entries[k].size for k in spare) > self.budget:
                return False
            self._drop(spare, self.budget - size)
            self._entries[key] = _Entry(size, pinned)
            self._held += size
            return True

    def halve(self) -> bool:
        """Hold half as much from now on, because the device is full: whether that has freed anything."""
        with self._lock:
            spare = self._spare()
            if spare:
                self.budget = self._held // 2
                self._drop(spare, self.budget)
            return bool(spare)

    def _spare(self) -> list[Name]:
        return [k for k, e in self._entries.items() if not e.pinned and not e.users and e.value is not None]

    def _drop(self, spare: Sequence[Name], most: int) -> None:
        """The oldest of these, until no more than ``most`` bytes are held."""
        for key in spare:
            if self._held <= most:
                break
            self._held -= self._entries.pop(key).size

    def publish(self, key: Name, value: Any) -> None:
        """Put the state into the reserved place."""
        with self._lock:
            self._entries[key].value = value

    def release(self, key: Name) -> None:
        """Give up a reserved place, as after a cancelled evaluation."""
        with self._lock:
            self._held -= self._entries.pop(key).size

    def clear(self) -> None:
        """Forget everything that nobody is using."""
        with self._lock:
            for key in [k for k, e in self._entries.items() if not e.users and e.value is not None]:
                self._held -= self._entries.pop(key).size


def halves(piece: Piece) -> list[Piece]:
    """Both halves of the texts, with their rows of the state; nothing for a single text."""
    chunk, state = piece
    parts = chunk.halves
    if state is None or not parts:
        return [(part, None) for part in parts]
    of_tokens = len(state[0]) == chunk.tokens  # or each text's first row alone
    sizes = [part.tokens if of_tokens else len(part.index) for part in parts]
    hidden, contexts = ([None] * len(parts) if t is None else t.split(sizes) for t in state)
    return [(part, (h, c)) for part, h, c in zip(parts, hidden, contexts, strict=True)]


def joined(states: Sequence[State]) -> State:
    """A chunk's state from those of its pieces."""
    if len(states) == 1:
        return states[0]
    hidden, contexts = zip(*states, strict=True)
    return torch.cat(hidden), None if contexts[0] is None else torch.cat(contexts)


def plan(budget: int, layers: int, state: int, context: int, first_only: bool) -> Keep:
    """What to keep: the states of the full model and of one mask, then the heads' outputs inside layers.

    If the budget is too small for that, evenly spaced layers are kept: then the least has to be computed again.
    """
    inner = layers - first_only  # the first tokens' states in the last layer hardly count
    if inner == 0 or state == 0:
        return Keep(frozenset(range(layers)), frozenset(), False)
    fits = budget // (2 * state)
    if fits < inner:
        return Keep(frozenset(round((i + 1) * inner / (fits + 1)) for i in range(fits)), frozenset(), False)
    spare = budget - 2 * inner * state
    count = min(inner, spare // context) if context else inner
    return Keep(frozenset(range(inner)), frozenset(range(count)), spare >= 2 * inner * context)

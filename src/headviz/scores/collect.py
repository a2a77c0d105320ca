"""Per-example values of a sweep: read from the cache, or computed and kept.

Examples are taken in the order of their content's digest. That order is as good as random, so the first few are a fair
sample. It does not depend on the order of the data.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import plugins
from ..models.fast.gpu import halves, in_turn, runs_by_itself, split_when_full
from ..progress import Cancel, Progress, tracked
from ..storage.store import Entry, Store, make_key
from .chunk import Chunk, Tables, filled_part, reference_part
from .score import SWEEPS, Run

if TYPE_CHECKING:
    from ..models.classifier import Classifier

FIRST = 4  # examples after which a first, rough table can be shown
GPU_FIRST, GPU_WINDOW = 64, 512  # examples among which a GPU finds enough of similar length for its large passes
_AHEAD = 2  # chunks whose statistics may wait while the next ones are computed


class Collector:
    """The values of one sweep over one data set. ``rows[name][i]`` belongs to example i once ``done[i]`` is true."""

    def __init__(self, examples: Chunk, sweep: str, store: Store | None, plugin_part: Mapping[str, str]) -> None:
        self.examples, self.store = examples, store
        self.sweep = SWEEPS[sweep]
        if runs_by_itself(examples.clf.device):
            self.sweep = replace(self.sweep, window=max(self.sweep.window, GPU_WINDOW))
        self.rows: Tables = {}
        self.done = np.zeros(len(examples.encodings), dtype=bool)
        settings = {name: getattr(examples.options, name) for name in self.sweep.settings} | dict(plugin_part)
        if self.sweep.by_gates:
            settings |= filled_part(examples.clf)
        digest = examples.clf.digest  # it looks at every weight
        self._positions: dict[str, list[int]] = {}  # by key: equal examples are computed once
        for i in range(len(self.done)):
            self._positions.setdefault(self._key(i, settings, digest), []).append(i)
        self.order = sorted(self._positions)

    def finished(self) -> np.ndarray:
        """Positions of the measured examples, by digest: sums must not depend on the order of the data."""
        return np.array([i for key in self.order for i in self._positions[key] if self.done[i]], dtype=np.int64)

    def _key(self, i: int, settings: dict, digest: str) -> str:
        examples = self.examples
        encoding, clf = examples.encodings[i], examples.clf
        gold = None if examples.gold is None else examples.gold[i].tolist()
        if encoding.target is not None:  # the reference of a sentence to translate
            settings = {**settings, "reference": encoding.target}
        key = make_key(
            "values",
            sweep=self.sweep.name,
            version=self.sweep.version,
            weights=digest,
            tokenizer=clf.tokenizer_digest,
            dtype=str(clf.dtype),
            mask=examples.mask.hex,
            target=examples.targets[i] if self.sweep.uses_target else None,
            gold=gold if self.sweep.uses_gold else None,
            **encoding.key_parts,
            **settings,
        )
        return key + reference_part(clf, examples.data, encoding, i) if self.sweep.reads_references else key

    def run(self, progress: Progress | None = None, cancel: Cancel | None = None) -> Iterator[int]:
        """Gives the number of finished examples after each window: 4, 8, 16, 32, 64, then a window more each time."""
        if progress is not None:
            progress(0, len(self.done))
        for window in windows(len(self.order), self.sweep.window):
            missing = [key for key in self.order[window] if not self._stored(key)]
            if progress is not None:
                progress(int(self.done.sum()), len(self.done))
            self._compute(missing, progress, cancel)
            yield int(self.done.sum())

    def measure(self, which: slice, progress: Progress | None = None, cancel: Cancel | None = None) -> Tables:
        """The values of some whole windows, computed in the same batches as by ``run``: a row for each example."""
        keys, before = self.order[which], int(self.done.sum())
        part_progress = None if progress is None else _since(before, len(keys), progress)
        for window in windows(len(self.order), self.sweep.window):
            if which.start <= window.start < which.stop:
                missing = [key for key in self.order[window] if not self.done[self._positions[key][0]]]
                self._compute(missing, part_progress, cancel)
        index = [self._positions[key][0] for key in keys]
        return {name: table[index] for name, table in self.rows.items()} if keys else {}

    def add(self, which: slice, tables: Tables) -> None:
        """Add what ``measure`` returned, here or elsewhere."""
        for i, key in enumerate(self.order[which]):
            self._add(key, {name: table[i] for name, table in tables.items()})

    def _stored(self, key: str) -> bool:
        """Whether the cache has this example's tables, which are then added."""
        entry = None if self.store is None else self.store.get(key)
        if entry is None or any(name not in entry.arrays for name in self.examples.rows):
            return False
        self._add(key, entry.arrays)
        return True

    def _add(self, key: str, tables: Tables) -> None:
        index = self._positions[key]
        for name, table in tables.items():
            if name not in self.rows:
                self.rows[name] = np.full((len(self.done), *table.shape), np.nan, table.dtype)
            lacking = [max(0, size - old) for size, old in zip(table.shape, self.rows[name].shape[1:], strict=True)]
            if any(lacking):  # a text with more words than those before it
                padding = [(0, 0), *((0, size) for size in lacking)]
                self.rows[name] = np.pad(self.rows[name], padding, constant_values=np.nan)
            area: Any = tuple(map(slice, table.shape))
            for i in index:
                self.rows[name][i, *area] = table
        self.done[index] = True

    def _compute(self, keys: list[str], progress: Progress | None, cancel: Cancel | None) -> None:
        """Chunks of similar length; statistics run with the next chunk, in a thread, where a core can be spared."""
        if not keys:
            return
        keys = sorted(keys, key=lambda key: (len(self.examples.encodings[self._positions[key][0]]), key))
        chunk = replace(self.examples.subset([self._positions[key][0] for key in keys]), cancel=cancel)
        run: Run = plugins.function(self.sweep.run)
        parts = tracked(plugins.function(self.sweep.split)(chunk), cancel=cancel)

        def passes(part: slice) -> tuple[list[str], Sequence[Callable[[], Tables]]]:
            """Keys, and what remains to be done for each of them."""
            return keys[part], run(chunk.subset(range(len(keys))[part]))

        passed = split_when_full(parts, passes, lambda part: halves(slice(part.start, min(part.stop, len(keys)))))
        if not (self.sweep.spare_core and can_spare_core(chunk.clf)):
            for part_keys, finishers in in_turn(passed, chunk.clf.device):
                self._keep(part_keys, _finish(finishers), progress)
            return
        waiting: list[tuple[list[str], Future[list[Tables]]]] = []
        with room_for_statistics(), ThreadPoolExecutor(1, "headviz-statistics") as pool:
            try:
                for part_keys, finishers in passed:
                    waiting.append((part_keys, pool.submit(_finish, finishers)))
                    while len(waiting) > _AHEAD:
                        part_keys, future = waiting.pop(0)
                        self._keep(part_keys, future.result(), progress)
            finally:  # what was computed is kept, also when it is cancelled
                for part_keys, future in waiting:
                    self._keep(part_keys, future.result(), progress)

    def _keep(self, keys: list[str], tables: list[Tables], progress: Progress | None) -> None:
        """One transaction per chunk: after a crash, whole chunks are there or missing.

        Tables that an entry has already stay in it: a GPU computes only those that are asked for.
        """
        if self.store is not None:
            there = (self.store.get(key) for key in keys)
            stored = ({} if entry is None else dict(entry.arrays) for entry in there)
            self.store.put_many((k, Entry(old | t)) for k, old, t in zip(keys, stored, tables, strict=True))
        for key, table in zip(keys, tables, strict=True):
            self._add(key, table)
        if progress is not None:
            progress(int(self.done.sum()), len(self.done))


def windows(examples: int, size: int) -> Iterator[slice]:
    """What is measured together: 4, 4, 8, 16, … examples, and from ``size`` on always ``size``.

    Where many are taken together, as on a GPU, the first 64 take it as long as the first 4.
    """
    start, count = 0, FIRST if size < GPU_WINDOW else GPU_FIRST
    while start < examples:
        yield slice(start, min(start + count, examples))
        start += count
        count = min(start, size)


def _since(before: int, total: int, progress: Progress) -> Callable[[int, int], None]:
    """Counts a part's own examples; equal ones may make it more than there are keys."""
    return lambda done, _: progress(min(done - before, total), total)


def _finish(finishers: Sequence[Callable[[], Tables]]) -> list[Tables]:
    return [finish() for finish in finishers]


FEW_THREADS = range(2, 4)  # of which none can be spared
WIDE = 256  # entries of a layer's heads from which on the passes take most of the time
_lock = threading.Lock()
_users = 0
_before = 1


def can_spare_core(clf: Classifier) -> bool:
    """Whether the model's passes lose less by one thread fewer than by waiting for the statistics."""
    if runs_by_itself(clf.device):
        return False
    narrow = clf.num_heads * clf.head_size < WIDE
    return narrow or clf.device.type != "cpu" or torch.get_num_threads() not in FEW_THREADS


@contextmanager
def room_for_statistics() -> Iterator[None]:
    """Nests and may be entered by several threads; the last one out restores the number of threads."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = torch.get_num_threads()
            torch.set_num_threads(max(1, _before - 1))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                torch.set_num_threads(_before)

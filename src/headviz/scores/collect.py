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
from ..answers.answer import Target
from ..heads import HeadMask
from ..models.fast.gpu import in_turn, runs_by_itself
from ..progress import Cancel, Progress, tracked
from ..storage.store import Entry, Store, make_key
from .chunk import Chunk, Tables, filled_part, reference_part
from .score import SWEEPS, Run

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset

FIRST = 4  # examples after which a first, rough table can be shown
GPU_FIRST, GPU_WINDOW = 64, 512  # examples among which a GPU finds enough of similar length for its large passes
_AHEAD = 2  # chunks whose statistics may wait while the next ones are computed


class Collector:
    """The values of one sweep over one data set. ``rows[name][i]`` belongs to example i once ``done[i]`` is true."""

    def __init__(
        self,
        clf: Classifier,
        data: Dataset,
        sweep: str,
        options: object,
        mask: HeadMask,
        encodings: list[Encoding],
        targets: list[Target],
        gold: np.ndarray | None,
        store: Store | None,
        budget: int,
        more: Mapping[str, str] | None = None,  # what the keys must hold besides
        label_order: Sequence[str] | str | None = None,
        rows: tuple[str, ...] = (),  # the tables that will be read
    ) -> None:
        self.sweep = SWEEPS[sweep]
        if runs_by_itself(clf.device):
            self.sweep = replace(self.sweep, window=max(self.sweep.window, GPU_WINDOW))
        self.chunk = Chunk(
            clf, mask, encodings, targets, gold, data, options, budget, label_order=label_order, rows=rows
        )
        self.store = store
        self.rows: Tables = {}
        self.done = np.zeros(len(data), dtype=bool)
        settings = {name: getattr(options, name) for name in self.sweep.settings} | dict(more or {})
        digest = clf.digest  # it looks at every weight
        keys = [self._key(sweep, i, settings, digest) for i in range(len(data))]
        self._twins: dict[str, list[int]] = {}  # equal examples are computed once
        for i, key in enumerate(keys):
            self._twins.setdefault(key, []).append(i)
        self.order = sorted(self._twins)

    def finished(self) -> np.ndarray:
        """Positions of the measured examples, by digest: sums must not depend on the order of the data."""
        return np.array([i for key in self.order for i in self._twins[key] if self.done[i]], dtype=np.int64)

    def _key(self, sweep: str, i: int, settings: dict, digest: str) -> str:
        c = self.chunk
        e = c.encodings[i]
        gold = None if c.gold is None else c.gold[i].tolist()
        reference = e.target  # of a sentence to translate
        if reference is not None:
            settings = {**settings, "reference": reference}
        if self.sweep.by_gates:
            settings = {**settings, **filled_part(c.clf)}
        key = make_key(
            "values",
            sweep=sweep,
            version=self.sweep.version,
            weights=digest,
            tokenizer=c.clf.tokenizer_digest,
            dtype=str(c.clf.dtype),
            mask=c.mask.hex,
            target=c.targets[i] if self.sweep.uses_target else None,
            gold=gold if self.sweep.uses_gold else None,
            **e.key_parts,
            **settings,
        )
        return key + reference_part(c.clf, c.data, e, i) if self.sweep.reads_references else key

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
        step_progress = None if progress is None else _since(before, len(keys), progress)
        for window in windows(len(self.order), self.sweep.window):
            if which.start <= window.start < which.stop:
                self._compute([k for k in self.order[window] if not self._known(k)], step_progress, cancel)
        places = [self._twins[key][0] for key in keys]
        return {name: table[places] for name, table in self.rows.items()} if keys else {}

    def place(self, which: slice, tables: Tables) -> None:
        """Take in what ``measure`` gave, here or elsewhere."""
        for i, key in enumerate(self.order[which]):
            self._place(key, {name: table[i] for name, table in tables.items()})

    def _known(self, key: str) -> bool:
        return bool(self.done[self._twins[key][0]])

    def _stored(self, key: str) -> bool:
        entry = None if self.store is None else self.store.get(key)
        if entry is None or any(name not in entry.arrays for name in self.chunk.rows):
            return False
        self._place(key, entry.arrays)
        return True

    def _place(self, key: str, tables: Tables) -> None:
        index = self._twins[key]
        for name, table in tables.items():
            if name not in self.rows:
                self.rows[name] = np.full((len(self.done), *table.shape), np.nan, table.dtype)
            more = [max(0, now - had) for now, had in zip(table.shape, self.rows[name].shape[1:], strict=True)]
            if any(more):  # a text with more words than those before it
                wide = [(0, 0), *((0, by) for by in more)]
                self.rows[name] = np.pad(self.rows[name], wide, constant_values=np.nan)
            place: Any = tuple(map(slice, table.shape))
            for i in index:
                self.rows[name][i, *place] = table
        self.done[index] = True

    def _compute(self, keys: list[str], progress: Progress | None, cancel: Cancel | None) -> None:
        """Chunks of similar length; statistics run with the next chunk, in a thread, where a core can be spared."""
        if not keys:
            return
        keys = sorted(keys, key=lambda key: (len(self.chunk.encodings[self._twins[key][0]]), key))
        chunk = self._chunk([self._twins[key][0] for key in keys], cancel)
        run: Run = plugins.function(self.sweep.run)
        parts = tracked(plugins.function(self.sweep.split)(chunk), cancel=cancel)
        if not (self.sweep.spare_core and can_spare_core(chunk.clf)):
            begun = ((keys[part], run(chunk.part(part))) for part in parts)
            for done, rest in in_turn(begun, chunk.clf.device):
                self._keep(done, _finish(rest), progress)
            return
        waiting: list[tuple[list[str], Future[list[Tables]]]] = []
        with room_for_statistics(), ThreadPoolExecutor(1, "headviz-statistics") as pool:
            try:
                for part in parts:
                    waiting.append((keys[part], pool.submit(_finish, run(chunk.part(part)))))
                    while len(waiting) > _AHEAD:
                        done, future = waiting.pop(0)
                        self._keep(done, future.result(), progress)
            finally:  # what was computed is kept, also when it is cancelled
                for done, future in waiting:
                    self._keep(done, future.result(), progress)

    def _chunk(self, index: list[int], cancel: Cancel | None) -> Chunk:
        c = self.chunk
        return replace(
            c,
            encodings=[c.encodings[i] for i in index],
            targets=[c.targets[i] for i in index],
            gold=None if c.gold is None else c.gold[index],
            data=c.data.subset(index),
            cancel=cancel,
        )

    def _keep(self, keys: list[str], tables: list[Tables], progress: Progress | None) -> None:
        """One transaction per chunk: after a crash, whole chunks are there or missing."""
        if self.store is not None:
            self.store.put_many((k, Entry(t)) for k, t in zip(keys, tables, strict=True))
        for key, table in zip(keys, tables, strict=True):
            self._place(key, table)
        if progress is not None:
            progress(int(self.done.sum()), len(self.done))


def windows(examples: int, size: int) -> Iterator[slice]:
    """What is measured together: 4, 4, 8, 16, … examples, and from ``size`` on always ``size``.

    Where many are taken together, as on a GPU, the first 64 take it as long as the first 4.
    """
    start, now = 0, FIRST if size < GPU_WINDOW else GPU_FIRST
    while start < examples:
        yield slice(start, min(start + now, examples))
        start += now
        now = min(start, size)


def _since(before: int, total: int, progress: Progress) -> Callable[[int, int], None]:
    """Counts a part's own examples; equal ones may make it more than there are keys."""
    return lambda done, _: progress(min(done - before, total), total)


def _finish(rest: Sequence[Callable[[], Tables]]) -> list[Tables]:
    return [finish() for finish in rest]


FEW = range(2, 4)  # threads of which none can be spared
WIDE = 256  # entries of a layer's heads from which on the passes take most of the time
_lock = threading.Lock()
_users = 0
_before = 1


def can_spare_core(clf: Classifier) -> bool:
    """Whether the model's passes lose less by one thread fewer than by waiting for the statistics."""
    if runs_by_itself(clf.device):
        return False
    narrow = clf.num_heads * clf.head_size < WIDE
    return narrow or clf.device.type != "cpu" or torch.get_num_threads() not in FEW


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

"""Every test of this folder has an empty registry, and leaves no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headviz.runs.process import kill
from headviz.runs.record import CARRIED
from headviz.runs.registry import Registry
from headviz.runs.states import ACTIVE


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("HEADVIZ_RUNS_AT_ONCE", raising=False)
    monkeypatch.delenv("HEADVIZ_DASK", raising=False)


@pytest.fixture
def registry(own_home: None) -> Iterator[Registry]:
    """An empty registry; workers still there at the end of a test are ended."""
    made = Registry()
    yield made
    if made.path.exists():
        for record in made.records(states=["queued"]):
            if record.executor != CARRIED:
                made.apply(record.id, "cancel")
        for record in made.records(states=sorted(ACTIVE)):
            if record.worker:
                kill(record.worker)

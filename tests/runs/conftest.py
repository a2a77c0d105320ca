"""Every test of this folder has an empty registry, and leaves no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headviz.runs.registry import Registry
from support.running import end_workers


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
    end_workers(made)

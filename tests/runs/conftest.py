"""Every test of this folder has an empty registry, knows rehearsals, and leaves no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headviz import plugins
from headviz.runs.registry import Registry
from support import rehearsal
from support.running import end_workers


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("HEADVIZ_RUNS_AT_ONCE", raising=False)
    monkeypatch.delenv("HEADVIZ_DASK", raising=False)


@pytest.fixture(autouse=True)
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and in other processes that load what the environment names."""
    rehearsal.load()
    monkeypatch.setenv(plugins.FILES, rehearsal.__file__)


@pytest.fixture
def registry(own_home: None) -> Iterator[Registry]:
    """An empty registry; workers still there at the end of a test are ended."""
    made = Registry()
    yield made
    end_workers(made)

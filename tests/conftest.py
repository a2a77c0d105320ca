"""Shared by all tests: one thread per process, no hub, a cache folder of their own, workers that start at once."""

import gc
import os
import sys
from collections.abc import Generator, Iterator
from functools import cache
from itertools import count
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("HEADVIZ_NICENESS", "0")  # the workers of runs do not wait for the tests beside them

import pytest

from headviz.runs import process, queue
from support import forked, rooms

HOMES = count()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A file that imports a room which is missing here is not collected."""
    if rooms.MISSING and collection_path.suffix == ".py" and rooms.needed_to_import(collection_path) & rooms.MISSING:
        return True
    return None


@pytest.hookimpl(trylast=True)  # those that are left
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that needs a room which is missing here is skipped."""
    for item in items if rooms.MISSING else ():
        if absent := rooms.needed_by_test(item) & rooms.MISSING:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(sorted(absent))}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """After collection, before the first test: what is imported stays, and need not be walked at each collection."""
    hands_out = session.config.getoption("numprocesses", None)  # xdist's controller runs no test itself
    if session.config.option.collectonly or hands_out or sys.platform != "linux":
        return (yield)
    gc.collect()
    gc.freeze()
    made = forked.begin()
    queue.spawn = forked.spawn
    collect, asked = gc.collect, count(1)
    # Streamlit asks after each page, accelerate after each training: a walk through all that a session holds
    gc.collect = lambda generation=2: 0 if next(asked) % 20 else collect(generation)
    try:
        return (yield)
    finally:
        gc.collect = collect
        queue.spawn = process.spawn
        forked.end(made)


@pytest.fixture
def real_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this test begin as they do for a user: each worker is a new Python process."""
    monkeypatch.setattr(queue, "spawn", process.spawn)


@pytest.fixture(scope="session")
def scanned_once() -> Iterator[None]:
    """Streamlit's AppTest reads the metadata of every installed package at each run: here once for all runs."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def own_home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the developer's own cache."""
    home = homes / str(next(HOMES))
    home.mkdir()
    monkeypatch.setenv("HEADVIZ_HOME", str(home))

"""Shared by all tests: one thread per process, no hub, a cache folder of their own."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the developer's own cache."""
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path_factory.mktemp("home")))

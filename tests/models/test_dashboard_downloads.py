"""In a dashboard's process: what is whole in the hub's cache is opened, anything else waits for a press."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from headviz.errors import ModelError, NotDownloaded
from headviz.models.hub import locate
from headviz.storage.paths import wait_for_press


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of ``someone/x`` in a hub's cache, and a process that waits for a press."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--someone--x" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (tmp_path / "models--someone--x" / "refs").mkdir()
    (tmp_path / "models--someone--x" / "refs" / "main").write_text("abc")
    wait_for_press()
    yield folder
    wait_for_press(None)


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        ([], False),
        (["config.json"], False),
        (["config.json", "pytorch_model.bin"], False),
        (["model.safetensors"], False),
        (["config.json", "model.safetensors"], True),
        (["config.json", "model.safetensors.index.json"], False),
        (["config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"], False),
        (["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], True),
    ],
)
def test_a_broken_off_download_is_not_taken_for_the_model(files: list[str], whole: bool, snapshot: Path) -> None:
    for name in files:
        (snapshot / name).touch()
    if whole:
        assert locate("someone/x") == snapshot
        return
    with pytest.raises(NotDownloaded, match="someone/x"):
        locate("someone/x")


def test_a_press_says_what_the_hub_lacks(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotDownloaded) as caught:
        locate("someone/x")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(snapshot))
    with pytest.raises(ModelError, match="no weights as safetensors"):
        caught.value.fetch()
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (type(again), str(again), again.parameters) == (NotDownloaded, str(caught.value), {"name": "someone/x"})

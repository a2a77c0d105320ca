"""What tests of exported models share: no measuring for seconds, and one file for models of equal weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from headviz.pruning import latency


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "SECONDS", 0.0)
    monkeypatch.setattr(latency, "PAIRS_SECONDS", 0.0)


@pytest.fixture(scope="session")
def written_files() -> dict[tuple[Any, ...], Path]:
    return {}


@pytest.fixture
def written_once(
    written_files: dict[tuple[Any, ...], Path],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    no_waiting: None,
) -> None:
    """Writing a file takes seconds: a model that was written before has a copy."""
    from headviz.pruning import export

    real = export.export_onnx

    def export_onnx(clf: Any, file: Path, head_mask: bool = False) -> Path:
        key = (type(clf.model).__name__, clf.digest, head_mask)
        if key not in written_files:
            written_files[key] = real(clf, tmp_path_factory.mktemp("written") / "model.onnx", head_mask)
        return Path(shutil.copy(written_files[key], file))

    monkeypatch.setattr(export, "export_onnx", export_onnx)

"""The Dockerfile is read, and an image is built where a builder answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.test_site import script

ROOT = Path(__file__).resolve().parents[2]
steps = script(ROOT / "tools/container_steps.py")


def docker(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    """A docker of our own, first on the path, which notes what it is asked."""
    said = folder / "said"
    (folder / "docker").write_text(f'#!/bin/sh\necho "$*" >> {said}\n{body}\n')
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.setattr(steps.time, "sleep", lambda _: None)
    return said


def test_an_image_is_built_started_asked_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = docker(tmp_path, monkeypatch, '[ "$1" = run ] && echo abc; exit 0')
    assert steps.main() == 0
    lines = said.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["info", "build", "run", "exec", "exec", "rm"]
    assert "8501/_stcore/health" in lines[3]
    assert "exec abc headviz evaluate" in lines[4]


def test_an_image_that_is_not_well_fails_and_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = docker(tmp_path, monkeypatch, 'case "$*" in run*) echo abc;; *health*) exit 1;; esac')
    assert steps.main() == 1
    assert said.read_text().splitlines()[-1] == "rm -f abc"


def test_a_client_without_a_server_is_no_builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker(tmp_path, monkeypatch, "exit 1")
    (tmp_path / "podman").symlink_to(tmp_path / "docker")
    assert steps.builder() is None

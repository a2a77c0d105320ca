"""What the container installs is named by hash and digest."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_lock_has_the_listed_versions_and_a_hash_of_every_file() -> None:
    entries = re.split(r"\n(?=\w)", text("requirements.lock").partition("\n")[2])
    locked = dict(re.match(r"([\w.-]+)==(\S+)", entry).groups() for entry in entries)  # type: ignore[union-attr]
    listed = dict(re.findall(r"^([\w-]+)==(\S+)", text("requirements.txt"), flags=re.M))
    assert {name: locked[name.replace("_", "-")].removesuffix("+cpu") for name in listed} == listed
    assert not [entry for entry in entries if "--hash=sha256:" not in entry]
    assert not [name for name in locked if name.startswith(("nvidia", "cuda"))]


def test_images_are_named_by_digest() -> None:
    images = re.findall(r"^FROM (\S+)", text("Dockerfile"), flags=re.M)
    images += re.findall(r"^\s+image: (\S+)", text("compose.yaml"), flags=re.M)
    assert len(images) == 2
    assert not [image for image in images if not DIGEST.search(image)]


def test_the_image_installs_nothing_else() -> None:
    installs = [line for line in text("Dockerfile").splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-deps" in installs[1]
    assert "--no-build-isolation" in installs[1]

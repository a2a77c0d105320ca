"""Packing: what is written is written again to the byte."""

from pathlib import Path

import pytest

from tools.demo import ship


def test_packing_data_twice_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship, "PER_PHENOMENON", dict.fromkeys(ship.PER_PHENOMENON, 3))
    monkeypatch.setattr(ship, "COUNTED_PAIRS", 500)
    monkeypatch.setattr(ship, "MANY", 200)
    monkeypatch.setattr(ship, "MINIMAL", 2)
    monkeypatch.setattr(ship.translations, "SHIPPED", {"train": 60, "dev": 28})
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        ship.write_data(tmp_path / name, 0.5)
        ship.write_translations(tmp_path / name / "translation")
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        written.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert len(written[0]) == 10

"""Plugin files for tests, and headviz's tables as they were before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headviz import plugins
from headviz.pruning.algorithms import ALGORITHMS
from headviz.scores import SCORES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCORE = (EXAMPLES / "my_score.py").read_text(encoding="utf-8")


@pytest.fixture
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test starts without plugins, and leaves headviz's tables as they were."""
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.setattr(plugins, "_refused", {})
    before = [(table, dict(table)) for table in (SCORES, ALGORITHMS)]
    yield
    for table, entries in before:
        table.clear()
        table.update(entries)


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file

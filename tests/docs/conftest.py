"""The study's page and its cells, from the folder of the measurements."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCH))
    import findings_page

    yield findings_page
    for name in [n for n in sys.modules if n.startswith(("findings", "study_", "pictures"))]:
        sys.modules.pop(name, None)

"""The table of masked fine-tuning is what its file says, and its interval covers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("masked_tuning")
    for name in ("masked_tuning", "study_cells", "study_plans"):
        sys.modules.pop(name, None)


def test_the_table_is_what_the_file_says(bench: ModuleType) -> None:
    found, page = bench.read(), bench.PAGE.read_text(encoding="utf-8")
    assert page.split(bench.BEGIN)[1].split(bench.END)[0].strip() == bench.table(found)
    assert {(c["way"], c["seed"]) for c in found["cells"]} == {(w, s) for w in bench.WAYS for s in bench.SEEDS}
    for cell in found["cells"]:
        right = bench._right(cell, found["n"])
        assert len(right) == found["n"]
        assert cell["accuracy"] == pytest.approx(right.mean())


def test_an_interval_over_seeds_and_examples_covers(bench: ModuleType) -> None:
    """Both drawn from many: with three seeds, whether the seeds differ or not."""
    rng, inside = np.random.default_rng(0), []
    for spread in (0.0, 0.02):
        for _ in range(300):
            seeds, examples = rng.normal(0, spread, 3)[:, None], rng.normal(0, 0.2, 200)[None, :]
            _, low, high = bench.over_seeds_and_examples(seeds + examples + rng.normal(0, 0.3, (3, 200)))
            inside.append(low <= 0 <= high)
    assert 0.93 <= np.mean(inside) <= 0.995
    assert bench.over_seeds_and_examples(np.zeros((3, 100))) == (0.0, -0.03, 0.03)

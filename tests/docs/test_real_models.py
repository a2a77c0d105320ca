"""The table of real encoders on docs/families.md is what the recorded file says."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_real_models_is_the_recorded_one() -> None:
    spec = importlib.util.spec_from_file_location("real_models", ROOT / "bench/real_models.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    read = json.loads(bench.JSON.read_text(encoding="utf-8"))
    page = bench.PAGE.read_text(encoding="utf-8")
    assert page.split(bench.BEGIN)[1].split(bench.END)[0].strip() == bench.table(read)
    assert set(bench.ROWS) <= set(read["models"]["minilm"]) & set(read["models"]["mpnet"])

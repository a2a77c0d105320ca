"""The first page must not wait for torch: it is drawn without importing it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
from streamlit.testing.v1 import AppTest
from headviz.demo import DATA

app = AppTest.from_file("app.py", default_timeout=120).run()
assert not app.exception, app.exception
assert [t.value for t in app.title] == ["Heads"]
assert not app.error, [e.value for e in app.error]
heavy = sorted({"torch", "transformers", "captum", "sklearn"} & set(sys.modules))
assert not heavy, heavy
print("light")
"""


def test_the_first_page_is_drawn_before_torch_is_there(tmp_path: Path) -> None:
    from headviz.demo import DATA

    if not (DATA / "finetuned" / "config.json").is_file():
        pytest.skip("the demo model is not in this checkout")
    env = {**os.environ, "HEADVIZ_HOME": str(tmp_path), "HEADVIZ_WARM": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("light")

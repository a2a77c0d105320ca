"""The first grid must not wait for torch: it is drawn before that is imported, and Scores never imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.loaded import loaded_by

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
from streamlit.testing.v1 import AppTest
from headviz.ui.shell import show

def heavy():
    return sorted({"torch", "transformers", "captum", "sklearn"} & set(sys.modules))

drawn, real = [], show.head_grid
def noted(key, *given, **more):
    drawn.append((key, heavy()))
    real(key, *given, **more)
show.head_grid = noted
app = AppTest.from_file("app.py", default_timeout=120)
app.switch_page("pages/scores.py").run()
assert not heavy(), heavy()
app.switch_page("pages/workbench.py").run()
assert not app.exception, app.exception
assert [t.value for t in app.title] == ["Workbench"]
assert not app.error, [e.value for e in app.error]
first = drawn[[key for key, _ in drawn].index("bench_cost")]
assert first == ("bench_cost", []), first
print("light")
"""


WIDGET = '''
import sys
from streamlit.testing.v1 import AppTest
page = """from headviz.ui.widgets import component
component("tools")(key="link", data={"kind": "link", "rows": [1]})"""
app = AppTest.from_string(page).run()
assert not app.exception, app.exception
assert "pandas" not in sys.modules
'''


def test_a_widget_does_not_import_pandas() -> None:
    """Streamlit imports it to look for tables in what a widget gets: half a second before the first grid."""
    done = subprocess.run([sys.executable, "-c", WIDGET], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_the_first_grid_is_drawn_before_torch_is_there(tmp_path: Path) -> None:
    from headviz.demo import DATA

    if not (DATA / "finetuned" / "config.json").is_file():
        pytest.skip("the demo model is not in this checkout")
    env = {**os.environ, "HEADVIZ_HOME": str(tmp_path), "HEADVIZ_WARM": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("light")


def test_no_page_loads_torch_before_it_needs_it() -> None:
    """Parts of pages import at their top; what loads torch or pandas they import in the functions that need it."""
    folder = ROOT / "src" / "headviz" / "ui"
    modules = [".".join(("headviz.ui", *p.relative_to(folder).with_suffix("").parts)) for p in folder.rglob("*.py")]
    code = "from importlib import import_module\n" + "\n".join(f"import_module({name!r})" for name in modules)
    assert loaded_by(code, "torch", "transformers", "pandas", "captum", "sklearn") == []

"""Threads that need transformers for the first time at once: one loads it, the others wait, no page fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.marks import seeds

ROOT = Path(__file__).resolve().parents[2]

# what different threads of a dashboard import first: every one of them reaches another part of transformers
THREADS = """
import importlib, os, random, sys, threading
import headviz, numpy  # as in every dashboard, before it has threads
sys.setswitchinterval(1e-5)
names = ["attention", "models.kinds", "extras.translation.translator", "pruning.trainer",
         "extras.translation.evaluation", "scores.scoring"]
random.Random(int(sys.argv[1])).shuffle(names)
gate, wrong = threading.Barrier(len(names)), []

def go(name):
    gate.wait()
    try:
        module = importlib.import_module(f"headviz.{name}")
        if name == "models.kinds":
            module.auto_class("classification")
        if name == "attention":
            with module.quiet():
                pass
    except Exception as error:
        wrong.append(f"{name}: {error!r}")

threads = [threading.Thread(target=go, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong or "all loaded", flush=True)
os._exit(0)
"""

PAGE = """
import os, random, sys
from streamlit.testing.v1 import AppTest
from headviz.ui.shell import frame, loaders
from support.page import switch

sys.setswitchinterval(1e-5)
page = random.Random(int(sys.argv[1])).choice([*frame.PAGES])
app = AppTest.from_file("app.py", default_timeout=240)
app.query_params["model"], app.query_params["task"] = sys.argv[2], "demo"
loaders.warm_up()
switch(app, page).run()
wrong = [e.value for e in (*app.exception, *app.error) if "failed here" in e.value or e in app.exception]
print(wrong or "drawn", flush=True)
os._exit(0)
"""


def said(script: str, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return (done.stdout.strip().splitlines() or [done.stderr[-2000:]])[-1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1), range(1, 10)))
def test_threads_that_load_transformers_at_once_all_get_it(seed: int) -> None:
    assert said(THREADS, str(seed)) == "all loaded"


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1), range(1, 10)))
def test_a_page_drawn_while_the_background_loads_transformers_does_not_fail(
    seed: int, studio_folder: Path, tmp_path: Path
) -> None:
    more = {"HEADVIZ_WARM": "1", "HEADVIZ_HOME": str(tmp_path), "HEADVIZ_ROOTS": str(studio_folder)}
    assert said(PAGE, str(seed), str(studio_folder / "model"), **more) == "drawn"

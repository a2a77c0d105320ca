"""The rooms of ``headviz.extras``: light, behind the plugins' door, and each can be deleted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import headviz
from headviz import plugins
from headviz.extras import ROOMS
from support.loaded import loaded_by

ROOT = Path(__file__).resolve().parents[1]

# room -> Python that asks for what it brings: each line is refused with a sentence that names the room
ASKED = {
    "analyses": """
        main_refused(["roles", "--model", "demo", "--task", "demo"])
        main_refused(["analyse", "redundant", "--model", "demo", "--task", "demo"])
        headviz.interactions
    """,
    "translation": """
        headviz.Translator
        headviz.translate
        from headviz.models.kinds import wanted_kind; wanted_kind({"model_type": "marian"}, "m", None, False)
        headviz.load(rnn)
        headviz.load_task("demo-translation")
        main_refused(["stacks", "--model", "demo"])
    """,
    "distillation": """
        main_refused(["distill", "--model", "demo"])
        headviz.distil
        headviz.DistillationPlan
        from headviz.runs import service; service.start("distill", {})
    """,
    "tickets": """
        main_refused(["transfer", "spec.json"])
        headviz.transfer
    """,
    "scores": """
        import headviz.scores; headviz.scores.catalogue.score_named("gim")
        main_refused(["score", "--model", "demo", "--task", "demo", "--score", "shapley"])
        main_refused(["run", "start", "--model", "demo", "--task", "demo", "--algorithm", "gates-causal"])
    """,
    "cluster": """
        from headviz.runs.kinds import check; check("dask")
        from headviz.cli import main; main_refused(["run", "start", "--kind", "score", "--executor", "dask"])
    """,
}
# fast tests of the rest
REST = ("tests/test_heads.py", "tests/test_errors.py", "tests/runs/test_states.py", "tests/runs/test_registry.py")
HELPERS = """
import pkgutil, sys, tempfile, warnings
from pathlib import Path
from importlib import import_module
import headviz
from headviz.cli import main

rnn = Path(tempfile.mkdtemp())
(rnn / "rnn.json").write_text("{}")

def main_refused(words):
    import contextlib, io
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        status = main(words)
    assert status == 2, (status, told.getvalue())
    raise ValueError(told.getvalue())
"""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_declares_what_the_list_of_rooms_names(room: str) -> None:
    module = import_module(f"headviz.extras.{room}")
    declared = {
        group: [getattr(entry, table.key) for entry in table.declared_in(module)]
        for group, table in plugins.TABLES.items()
        if hasattr(module, table.declared)
    }
    if hasattr(module, "NAMES"):
        declared["names"] = list(module.NAMES)
    assert declared == {group: list(names) for group, names in ROOMS[room].items()}
    for group, names in declared.items():
        if group == "names":
            assert set(names) <= set(headviz.__all__)
            continue
        assert set(names) <= set(plugins.TABLES[group].entries())


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_light_until_it_is_used(room: str) -> None:
    assert loaded_by(f"import headviz.extras.{room}", "torch", "transformers", "streamlit", "distributed") == []


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_without_a_room_the_rest_works_and_says_what_is_missing(room: str, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src/headviz", tmp_path / "headviz", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors")
    )
    shutil.rmtree(tmp_path / "headviz/extras" / room)
    asked = [line.strip() for line in ASKED[room].strip().splitlines()]
    brought = ROOMS[room].get("names", ())
    code = (
        HELPERS
        + f"BROUGHT = {brought!r}\n"
        + """
assert not set(BROUGHT) & set(headviz.__all__)
for found in pkgutil.walk_packages(headviz.__path__, "headviz."):
    if not found.name.endswith("__main__"):
        import_module(found.name)
"""
    )
    for line in asked:
        code += f"""
try:
    {line}
except (Exception, SystemExit) as error:
    print("refused:", " ".join(str(error).split()))
else:
    print("not refused:", {line!r})
"""
    done = run(tmp_path, [sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    told = re.findall(r"^(refused|not refused): (.*)$", done.stdout, re.M)
    assert len(told) == len(asked)
    assert not [line for how, line in told if how != "refused" or f"headviz.extras.{room}" not in line]
    done = run(tmp_path, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *REST])
    assert done.returncode == 0, done.stdout[-3000:]


def run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=280)

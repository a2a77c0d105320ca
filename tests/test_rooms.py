"""The rooms of ``headviz.extras``: light, behind the plugins' door, and each can be deleted."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import headviz
from headviz import plugins
from headviz.extras import ROOMS
from support import forked, rooms, without_room
from support.forked import Nursery
from support.loaded import loaded_by
from support.marks import some_in_ci

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
        from headviz.models.kinds import kind_to_load; kind_to_load({"model_type": "marian"}, "m", None, False)
        headviz.load(rnn)
        headviz.load("demo-translation")
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
        from headviz.runs.kinds import check_executor; check_executor("dask")
        from headviz.cli import main; main_refused(["run", "start", "--kind", "score", "--executor", "dask"])
    """,
}
# quick tests of the rest, which run without each room; all others are collected
REST = (
    *("tests/test_errors.py", "tests/test_wrong_calls.py", "tests/runs/test_states.py", "tests/scores/test_scoring.py"),
    *("tests/models/test_model_loading.py", "tests/evaluation/test_comparison.py", "tests/pruning/test_algorithms.py"),
)


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


@pytest.mark.parametrize("room", some_in_ci(ROOMS, (), ("scores",)))
@pytest.mark.timeout(900)
def test_without_a_room_the_rest_works_and_says_what_is_missing(room: str, tmp_path: Path) -> None:
    copy = tmp_path / room
    shutil.copytree(ROOT / "src/headviz", copy / "headviz", ignore=shutil.ignore_patterns("__pycache__", "data"))
    (copy / "headviz/demo/data").symlink_to(ROOT / "src/headviz/demo/data")
    shutil.rmtree(copy / "headviz/extras" / room)
    asked = [line.strip() for line in ASKED[room].strip().splitlines()]
    words = [str(copy), json.dumps(asked), json.dumps(ROOMS[room].get("names", ())), *REST]
    log = tmp_path / f"{room}.txt"
    with Nursery(without_room.NEEDED) as nursery:
        env = {**os.environ, "PYTHONPATH": str(copy)}
        forked.module("support.without_room", words, env, log, nursery.address).wait(600)
    printed = log.read_text()
    answers = re.findall(r"^(refused|not refused): (.*)$", printed, re.M)
    assert len(answers) == len(asked), printed[-3000:]
    assert not [line for how, line in answers if how != "refused" or f"headviz.extras.{room}" not in line]
    assert re.search(r"^\d+ passed\b", printed, re.M), printed[-3000:]


def test_the_rooms_that_a_test_needs_are_read_from_its_code(tmp_path: Path) -> None:
    file = tmp_path / "test_mixed.py"
    file.write_text(
        "import headviz\n"
        "CALLS = {'a': lambda: made(), 'b': lambda: 1}\n"
        "def made():\n    from headviz.extras.scores import shapley\n    return shapley\n"
        "def both(name):\n    return CALLS[name]\n"
        "def named():\n    return headviz.distil, 'stacks'\n"
        "def perhaps(table):\n    if 'gim' in table:\n        made()\n"
    )
    assert not rooms.needed_to_import(file)
    needed = {name: rooms.needed_by(file, name) for name in ("made", "both", "named", "perhaps")}
    assert needed == {
        "made": {"scores"},
        "both": {"scores"},
        "named": {"distillation", "translation"},
        "perhaps": set(),
    }
    assert not rooms.needed_by(file, "both", frozenset("b"))
    file = tmp_path / "test_whole.py"
    file.write_text("from support.translation_plans import pairs\nDATA = pairs(3, 'dev')\n")
    assert rooms.needed_to_import(file) == {"translation"}

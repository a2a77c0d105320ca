"""CONTRIBUTING's recipes are true: its code blocks are added to a copy of the sources, and what they add works."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEADER = re.compile(r"# (\S+\.py)(?:, (in|above) (\w+))?\n")
# tests that run over a table, and what a recipe's entry is called in their names
CONTRACTS = {
    "taylor-log": ("scores/test_scoring.py", "scores/test_parts.py"),
    "highest-first": (
        "pruning/test_resume.py",
        "pruning/test_score_parts.py",
        "runs/test_jobs.py",
        "runs/test_faults.py",
    ),
    "stars": ("answers",),
    "roc_bert": ("models/test_family_contract.py",),
    "whole-layer": ("docs/test_command_schema.py", "ui/test_analyses_section.py"),
    "every_command": ("docs/test_command_schema.py",),
    "layers-plain": ("pages/test_pages.py",),
}
CODE = shutil.ignore_patterns("__pycache__", "data")

# runs in the copy and prints what it finds as JSON
WORKS = """
import contextlib, io, json, sys
from pathlib import Path
import headviz
from headviz.cli import main
from headviz.display.table import PLACES
from headviz.pruning import PruningPlan
from headviz.pruning.context import open_context
from headviz.pruning.job import run_plan
from headviz.runs.reading import Row
from headviz.runs.tables import sweep_table
from support.real_runs import folders, options
from support.tiny import tiny_folder

place = Path(sys.argv[1])
made = folders(place / "real")
TASK = ["--task", "custom", "--data", made["data"], "--text-columns", "text,pair", "--label-column", "label"]

def said(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        status = main([*words])
        assert status == 0, words
    return out.getvalue()

(place / "asked").mkdir()
(place / "asked" / "dev.tsv").write_text("question\\tlabel\\na dog runs\\tyes\\na cat sleeps\\tno\\n")
asked = headviz.load_task("yes-no", data=place / "asked")

def half_off(algorithm):
    plan = PruningPlan.from_dict(options(made, algorithm, step=0.5, until=0.5))
    *_, state = run_plan(plan, open_context(plan, place / algorithm))
    return headviz.HeadMask.from_hex(state.records[-1].mask, 2, 4).off

model = ["--model", made["model"], *TASK, "--limit", "20"]
found = {
    "package": headviz.__file__,
    "help": said("score", "--help"),
    "score": json.loads(said("score", *model[:-2], "--score", "taylor-log", "--samples", "8", "--no-cache", "--json")),
    "task": [asked.gold.tolist(), list(asked.task.metrics)],
    "off": [half_off("highest-first"), half_off("one-importance")],
    "analysis": json.loads(said("analyse", "whole-layer", *model, "--figure", str(place / "page.html"), "--json")),
    "view": said("analyse", "whole-layer", *model),
    "figure": (place / "page.html").is_file(),
    "column": [(t := sweep_table([Row("t", "a", "s", 0.5, "accuracy", 0.5, None, 2, 1)])).titles(p)[-1] for p in PLACES]
    + [t.for_files()[1][0][-1]],
}
starred = place / "stars"
starred.mkdir()
(starred / "dev.tsv").write_text("text\\tpair\\tstars\\na dog\\ta cat\\t3.5\\nthe cat\\ta dog\\t0\\n")
tiny_folder(place / "one", labels=("value",))
found["stars"] = json.loads(said("evaluate", "--model", str(place / "one"), "--task", "custom", "--data", str(starred),
    "--text-columns", "text,pair", "--label-column", "stars", "--job", "stars", "--json"))["metrics"]
print(json.dumps(found, default=str))
"""


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.S)


def add(block: str, tree: Path) -> None:
    """Put a block where its first line says."""
    header = HEADER.match(block)
    assert header, f"no place is given for:\n{block}"
    file, body = tree / header[1], block[header.end() :]
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if not text:
        file.write_text(body, encoding="utf-8")
        return
    imports = re.match(r"((?:from|import) .*\n)*", body)
    assert imports
    lines, rest = text.splitlines(), body[imports.end() :].strip("\n").splitlines()
    where = len(lines)
    if header[2]:
        table: Any = next(node for node in ast.parse(text).body if header[3] in names(node))
        where = table.lineno - 1
        if isinstance(table, ast.ClassDef):
            where = max(n.end_lineno or 0 for n in table.body if isinstance(n, ast.AnnAssign))
            rest = [f"    {line}" for line in rest]
        elif header[2] == "in":
            where = next(n.end_lineno for n in ast.walk(table.value) if isinstance(n, ast.Tuple)) - 1
    lines[where:where] = ["", *rest, ""] if header[2] != "in" else rest
    if header[2] == "in" and not isinstance(table, ast.ClassDef) and not lines[where - 1].rstrip().endswith(("(", ",")):
        lines[where - 1] += ","
    last = max(n.end_lineno or 0 for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom))
    lines[last:last] = imports[0].splitlines()
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {t.id for t in targets if isinstance(t, ast.Name)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with every block of CONTRIBUTING added."""
    tree = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", tree / "src", ignore=CODE)
    data = Path("src", "headviz", "demo", "data")
    (tree / data).symlink_to(ROOT / data)
    shutil.copytree(ROOT / "pages", tree / "pages")
    for name in ("tests", "docs", "examples"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "browser", "recorded"))
    for name in ("app.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tree / name)
    (tree / "tools").mkdir()
    for block in blocks():
        add(block, tree)
    return tree


def call(tree: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree / "tests")])}
    done = subprocess.run(
        [sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def found(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("place")
    answer: dict[str, Any] = json.loads(call(tree, "-c", WORKS, str(place)).splitlines()[-1])
    assert answer["package"] == str(tree / "src/headviz/__init__.py")
    return answer


def test_every_kind_of_addition_has_its_block() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = text.split("## Adding something")[1].split("\n## ")[0].split("\n### ")[1:]
    assert [s.splitlines()[0].split()[-1] for s in sections] == [
        "score", "algorithm", "task", "answer", "family", "analysis", "page", "option", "column"
    ]  # fmt: skip
    assert all("```python" in s for s in sections)


@pytest.mark.slow
def test_the_score_is_offered_and_computed(found: dict[str, Any]) -> None:
    assert "taylor-log" in "".join(found["help"].split())
    values = found["score"]["values"]
    assert found["score"]["score"] == "taylor-log"
    assert all(v > 0 for row in values for v in row)


@pytest.mark.slow
def test_the_algorithm_runs(found: dict[str, Any]) -> None:
    """Half of the heads go, and they are those that removing the lowest first leaves."""
    highest, lowest = ({tuple(head) for head in off} for off in found["off"])
    assert len(highest) == len(lowest) == 4
    assert not highest & lowest


@pytest.mark.slow
def test_the_task_is_read(found: dict[str, Any]) -> None:
    assert found["task"] == [[1, 0], ["accuracy", "f1"]]


@pytest.mark.slow
def test_the_answer_is_evaluated(found: dict[str, Any]) -> None:
    assert list(found["stars"]) == ["within_one"]
    assert found["stars"]["within_one"] in (0, 0.5, 1)


@pytest.mark.slow
def test_the_analysis_runs_and_is_shown(found: dict[str, Any]) -> None:
    assert found["analysis"]["analysis"] == "whole-layer"
    assert len(found["analysis"]["costs"]) == 2
    assert re.search(r"needs the heads of layer [01] most\.", found["view"])
    assert found["figure"]


@pytest.mark.slow
def test_the_column_is_in_every_place(found: dict[str, Any]) -> None:
    assert found["column"] == ["in all"] * 5 + [3]


@pytest.mark.slow
def test_the_tables_name_what_was_added(tree: Path) -> None:
    call(tree, "docs/readme_tables.py")
    text = (tree / "docs/tables.md").read_text(encoding="utf-8")
    for name in ("`taylor-log`", "`highest-first`", "`analyse whole-layer`", "RoCBERT"):
        assert name in text


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_contract_tests_run_over_what_was_added(tree: Path) -> None:
    """All of them, for each table that a recipe adds to."""
    files = sorted({f"tests/{file}" for of_name in CONTRACTS.values() for file in of_name})
    chosen = " or ".join(CONTRACTS)
    out = call(tree, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:xdist", *files, "-k", chosen)
    for name, of_name in CONTRACTS.items():
        for file in of_name:
            assert re.search(rf"tests/{file}.*{name}.*PASSED", out), (name, file, out[-2000:])

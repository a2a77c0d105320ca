"""Code in documents runs: Python blocks from top to bottom, and every command line is one that the parser takes."""

from __future__ import annotations

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import headviz
from headviz import cli
from headviz.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
PLACES = {"MODEL": "demo", "TASK": "demo", "DATA": "", "BASE": "demo", "DIR": "folder", "ID": "0123abcd", "…": ""}


def blocks(name: str, kind: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, flags=re.M | re.S)


def lines(name: str) -> list[str]:
    """The lines of a document's command blocks that call headviz."""
    result = []
    for block in blocks(name, "(?:bash|sh|console)?"):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            line = re.sub(r"^\$ ", "", line.strip())
            if line.startswith(("headviz ", "pipx run headviz ", "uvx ")):
                result.append(re.sub(r"^(pipx run|uvx)( --[\w-]+ \w+)* ", "", line))
    return result


def parsed(line: str) -> None:
    """Whether ``headviz`` takes these words."""
    words = [w for word in shlex.split(line, comments=True)[1:] if (w := PLACES.get(word, word))]
    name = words[0]
    if name not in cli.COMMANDS:
        assert name in ("demo", "demo-translation") or "/" in name or name.startswith("--"), line
        return
    module = import_module(cli.COMMANDS[name].module)
    parser = cli._Parser(prog=f"headviz {name}", allow_abbrev=False)
    module.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    parser.parse_args(cli._plugin_files(name, words[1:])[1])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_line_is_taken(name: str) -> None:
    wrong = []
    for line in lines(name):
        try:
            parsed(line)
        except (UserError, SystemExit) as said:
            wrong.append(f"{line}: {said}")
    assert not wrong, "\n".join(wrong)


# a block marked "py" needs a package or a place that the tests do not have: it is read and not run
@pytest.mark.parametrize("name", [n for n in DOCUMENTS if blocks(n, "py(?:thon)?")])
def test_every_python_block_is_python(name: str) -> None:
    for block in blocks(name, "py(?:thon)?"):
        ast.parse(block)


FEWER = {
    "dev_limit=300": "dev_limit=20",
    '"one-importance", samples=40': '"one-importance", score="taylor", samples=12',
    "limit=200": "limit=60",
    "batch=32, length=32": "batch=4, length=16",
}  # the same calls, of fewer examples, by the quickest score


@pytest.mark.slow
@pytest.mark.timeout(900)  # minutes on a slow machine
@pytest.mark.parametrize("name", [n for n in DOCUMENTS if blocks(n, "python")])
def test_python_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load = headviz.load_task
    monkeypatch.setattr(headviz, "load_task", lambda *words, **more: load(*words, **{"limit": 60, **more}))
    space: dict[str, object] = {"__name__": "document"}
    for block in blocks(name, "python"):
        for many, few in FEWER.items():
            block = block.replace(many, few)
        exec(compile(block, name, "exec"), space)

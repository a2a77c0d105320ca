"""Plugin files for tests, and headviz's tables as they were before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headviz import plugins

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCORE = (EXAMPLES / "my_score.py").read_text(encoding="utf-8")

TASK = """
from headviz.tasks import Task
from headviz.tasks.catalogue import Source

FILES = {"train": ("", "train"), "dev": ("", "dev")}
PAIR = Source(local_columns=("text", "pair"), splits=FILES)
TASKS = [Task("follows", "Does it follow?", ("entailment", "neutral", "contradiction"), ("accuracy",), PAIR)]
"""
FAMILY = """
from headviz.models.families.bert import bert_like

TINY = {"max_depth": 3, "tag_pad_id": 0, "subs_pad_id": 0}
FAMILIES = [bert_like("MarkupLM", "markuplm", tiny=TINY)]
"""
ANALYSIS = """
from dataclasses import dataclass

from headviz.analyses.analysis import Analysis, Option
from headviz.display.table import Table
from headviz.display.table import View
from headviz.results import Result


@dataclass(frozen=True)
class Counted(Result):
    heads: int
    times: int


def run(given):
    return Counted(given.clf.present.size, given.option("times"))


def figure(found):
    from plotly.graph_objects import Bar, Figure

    return Figure(Bar(y=[found.heads]))


def view(found):
    rows = [[found.heads, found.heads * found.times]]
    return View(f"It has {found.heads} heads.", (Table("counted", ("heads", "times"), rows, "Counted."),))


TIMES = Option("times", 2, "factor", least=1)
MINE = Analysis("counting", "Counting", "How many heads?", "counts", "no one", run, figure, view, options=(TIMES,))
ANALYSES = [MINE]
"""


@pytest.fixture
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test starts without plugins, and leaves headviz's tables as they were."""
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.setattr(plugins, "_refused", {})
    tables = [table.entries() for table in plugins.TABLES.values()]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def forget() -> None:
    """As a new process would start: no plugin is loaded, and none of their names is there."""
    for plugin in plugins.loaded():
        plugins._remove(plugin)


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file

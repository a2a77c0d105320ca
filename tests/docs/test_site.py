"""The documentation: whole, offline, and with nothing private in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

import headviz
from headviz.analyses.grades import FILE, Recorded, read
from headviz.demo import DATA
from headviz.scores import SCORES
from tools.demo import grades

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def script(path: Path) -> ModuleType:
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_public_name() -> None:
    page = script(DOCS / "site_pages.py").reference()
    named = [line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)$", page, re.M)]
    assert sorted(named) == sorted(set(headviz.__all__) - {"__version__"})


def test_links_between_documents_lead_somewhere() -> None:
    site = script(DOCS / "site_pages.py")
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.suffix != ".py"} | set(site.PAGES)
    pages.add("reference.md")
    pages |= {page.replace(".ipynb", ".md") for page in pages}
    for path in [*DOCS.glob("*.md"), *ROOT.glob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", link) or link.endswith(".png"):  # the strict build looks for pictures
                continue
            there = (path.parent / link).resolve()
            known = there.is_relative_to(DOCS) and there.relative_to(DOCS).as_posix() in pages
            assert there.exists() or known, f"{path.name}: {link}"


def test_the_gallery_is_its_commands() -> None:
    gallery = script(DOCS / "gallery.py")
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == gallery.page(), "run: python docs/gallery.py"
    for name in gallery.FIGURES:
        text = (DOCS / "gallery" / f"{name}.html").read_text(encoding="utf-8")
        assert "Plotly.newPlot" in text
        assert not re.findall(r'(?:src|href)="(?!plotly\.min\.js)', text)


def test_notebooks_have_run_and_keep_nothing_private() -> None:
    run = script(DOCS / "notebooks" / "run.py")
    books = sorted((DOCS / "notebooks").glob("*.ipynb"))
    assert {path.stem for path in books} >= {"labels", "tokens", "span", "rank", "vector"}
    for path in books:
        assert not run.private(path)
        text = path.read_text(encoding="utf-8")
        assert '"output_type": "error"' not in text
        assert '"text/html"' in text
        assert len(text) < 500_000


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a id="here" href="b.html#there">b</a><a href="#here">a</a><img src=c.png>')
    (tmp_path / "b.html").write_text('<h2 id="else"><a href="a.html#here">a</a><a href="https://x.org/y">y</a></h2>')
    assert script(ROOT / "tools/try_wheel.py").dead_links(tmp_path) == ["a.html: b.html#there", "a.html: c.png"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (DOCS / "notebooks").glob("*.ipynb")))
def test_notebooks_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process and on a part of the data; ``docs/notebooks/run.py`` takes a kernel and all of them."""
    shells = pytest.importorskip("IPython.core.interactiveshell")
    load = headviz.load_task
    monkeypatch.setattr(headviz, "load_task", lambda *words, **more: load(*words, **{**more, "limit": 80}))
    monkeypatch.setenv("PLOTLY_RENDERER", "plotly_mimetype")
    monkeypatch.chdir(DOCS / "notebooks")
    shell = shells.InteractiveShell()
    for cell in json.loads(Path(f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and "skip-execution" not in cell["metadata"].get("tags", ()):
            shell.run_cell("".join(cell["source"])).raise_error()


@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_outside(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    try_wheel = script(ROOT / "tools" / "try_wheel.py")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 25
    assert not {link for page in pages for link in try_wheel.loaded_from_outside(page.read_text(encoding="utf-8"))}
    assert not try_wheel.dead_links(tmp_path / "site")
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 50_000


# the page of scores: written from the recorded grades and the catalogue -----------------------------


def recorded() -> Recorded:
    return read(json.loads((DATA / FILE).read_text(encoding="utf-8")))


def test_the_page_is_what_the_recorded_grades_and_the_catalogue_say() -> None:
    assert grades.PAGE.read_text(encoding="utf-8") == "\n".join(grades.page(recorded())) + "\n"


def test_every_score_is_graded() -> None:
    assert {g.score for g in recorded().grades} == set(SCORES)

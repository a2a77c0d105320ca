"""What people take away from a run: titles and names of classes in it are texts, never markup, formulas or paths."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headviz.reports.run_report import FORMATS
from headviz.runs import reading
from headviz.runs.step_models import zip_model
from headviz.storage.tables import csv_cell
from support import studio
from support.recorded_runs import Runs, pruning

pytestmark = pytest.mark.slow
HOST = "host.example"
TITLE = (
    f'=HYPERLINK("http://{HOST}") ../../x/<img src=http://{HOST}/x onerror=alert(1)> \\input{{/etc/passwd}} '
    f"![x](http://{HOST}/x.png) </script><script>alert(1)</script>"
)
LABELS = [f"=cmd|' /C calc'!A0 <b>{i}</b> ../../{i}" for i in range(3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and data whose classes have such names."""
    place = tmp_path_factory.mktemp("studio")
    config = studio.make_model(place / "model") / "config.json"
    result = json.loads(config.read_text())
    names = [result["id2label"][str(i)] for i in range(3)]
    result["id2label"] = {str(i): name for i, name in enumerate(LABELS)}
    result["label2id"] = {name: i for i, name in enumerate(LABELS)}
    config.write_text(json.dumps(result))
    studio.make_data(place / "data", 48)
    for path in (place / "data").iterdir():
        rows = list(csv.reader(io.StringIO(path.read_text())))
        at = rows[0].index("label")
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [*row[:at], LABELS[names.index(row[at])], *row[at + 1 :]] if k else row for k, row in enumerate(rows)
            )
    return place


class Tags(HTMLParser):
    """Tags of a page, and the values of attributes that load, lead or act."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.acts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.acts += [v or "" for k, v in attrs if k in ("src", "href", "srcset", "action") or k.startswith("on")]


def test_reports_and_the_zip_file_of_a_run(folder: Path, tmp_path: Path) -> None:
    run = Runs().put("done", "prune", pruning(folder), title=TITLE, owner=TITLE)
    view = reading.show(run)
    made = {form: write(view) for form, write in FORMATS.items()}
    page = Tags(made[".html"])
    assert not page.tags & {"img", "iframe", "object", "embed", "form", "a", "b"}
    assert not [a for a in page.acts if HOST in a or "alert" in a]
    assert "<script>alert" not in made[".html"]
    assert r"\input{" not in made[".tex"]
    assert json.loads(made[".json"])["title"] == TITLE
    check_cells(made[".csv"])
    file = zip_model(run, tmp_path / "out" / f"headviz-{run}-seed0-step1.zip")
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            assert re.fullmatch(rf"{file.stem}(/\w[\w.-]*)+", entry.filename), entry.filename
            assert entry.external_attr >> 28 in (0, 8)  # a plain file, no link
            body = archive.read(entry)
            assert not re.match(rb"\x80[\x02-\x05]", body)  # no pickle
            if entry.filename.endswith(".csv"):
                check_cells(body.decode())


def check_cells(text: str) -> None:
    """No cell would be run by a spreadsheet."""
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert len(cells) > 10
    assert not [cell for cell in cells if csv_cell(cell) != cell and not number(cell)]


def number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

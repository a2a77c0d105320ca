"""Runs and analyses of the demo that come with it, so that no page is empty on a first visit.

``tools/demo/record.py`` makes them. They are shown as recorded; runs stay behind the user's own, an analysis until the
user runs it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ...analyses import grades
from ...analyses.catalogue import ANALYSES, result_type
from ...demo import DATA
from ...runs.reading import RunView, WorkerReport
from ...runs.record import from_row
from ...storage.exchange import restored

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


SHAPE = (12, 12)  # the demo's layers × heads


@dataclass(frozen=True)
class Recorded:
    """A recorded run, and the command, version and day it was made with."""

    view: RunView
    command: str
    version: str
    date: str

    @property
    def sentence(self) -> str:
        return f"Recorded on {self.date} with headviz {self.version} as an example."

    @property
    def views(self) -> tuple[RunView, ...]:
        """The run and those that are part of it."""
        return (self.view, *self.view.children)


@cache
def _all() -> tuple[Recorded, ...]:
    path = DATA / "recorded.json"
    if not path.is_file():
        return ()
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return tuple(Recorded(_view(run["run"]), run["command"], run["version"], run["date"]) for run in runs)


def _view(packed: dict[str, Any]) -> RunView:
    return RunView(
        record=from_row(packed["record"]),
        state=packed["state"],
        steps=tuple(packed["steps"]),
        baseline=tuple(packed["baseline"]),
        progress=WorkerReport(),
        log=(),
        outcome=packed["outcome"],
        children=tuple(map(_view, packed["children"])),
    )


def of(run_id: str) -> Recorded | None:
    """The recorded run of this id, or the one that it is part of."""
    return next((run for run in _all() if any(view.record.id == run_id for view in run.views)), None)


def view_of(run_id: str) -> RunView | None:
    """A recorded run as it is read everywhere; None for a run of the user's."""
    return next((view for run in _all() for view in run.views if view.record.id == run_id), None)


def views() -> list[RunView]:
    """The recorded runs."""
    return [run.view for run in _all()]


@dataclass(frozen=True)
class RecordedAnalysis:
    """The result of an analysis, and the command, version and day it was made with."""

    result: Any
    command: str
    version: str
    date: str

    @property
    def sentence(self) -> str:
        return f"Recorded on {self.date} with headviz {self.version}, of the unpruned model."


@cache
def _analyses() -> dict[str, dict[str, Any]]:
    path = DATA / "analyses.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def role_names() -> dict[str, list[Any]]:
    """What each of the demo's heads looks at, with its share of attention."""
    names: dict[str, list[Any]] = _analyses().get("roles", {}).get("names", {})
    return names


def analysis(name: str, clf: Classifier, data: Dataset, on_demo: bool = False) -> RecordedAnalysis | None:
    """The recorded result of an analysis of exactly these weights and data; the demo's grades are of a part of them."""
    if name == "grade" and on_demo and (graded := grades.recorded()):
        return RecordedAnalysis(graded.grades, graded.command, graded.version, graded.date)
    record = _analyses().get(name)
    if record is None or (record["digest"], record["data"]) != (clf.digest, data.digest):
        return None
    result = restored(result_type(ANALYSES[name]), record["result"], (clf.num_layers, clf.num_heads))
    return RecordedAnalysis(result, record["command"], record["version"], record["date"])

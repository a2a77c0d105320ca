"""What comes with the demo: recorded runs on pages that would be empty, until there are runs of the user's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.demo import DATA
from headviz.ui.pages.runs import listing
from headviz.ui.shell import recorded
from support.page import DEMO, texts


@pytest.mark.slow
@pytest.mark.usefixtures("home", "recorded_runs")
def test_first_visits_are_not_empty(open_page: Callable[..., Any]) -> None:
    shown = texts(open_page("runs", **DEMO))
    assert "Recorded on" in shown
    assert "headviz run start --model demo" in shown
    assert "of the heads can go" in shown
    # of one's own model it would be wrong
    other = r"This run is of the demo. The open model, [\w/]+, has no part in its figures."
    assert "This run is of" not in shown
    assert re.search(other, texts(open_page("runs")))
    (distilled,) = (run.record.id for run in recorded.views() if run.record.kind == "distill")
    app = open_page("runs", **DEMO, run=distilled)
    assert not app.exception
    shown = texts(app)
    assert "headviz distill --model demo" in shown
    assert "a start from the teacher" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("home", "recorded_runs")
def test_every_recorded_run_can_be_looked_at(open_page: Callable[..., Any]) -> None:
    for run in recorded.views():
        for one in (run, *run.children[:2]):
            app = open_page("runs", **DEMO, run=one.record.id)
            assert not app.exception
            assert not list(app.error)
            assert "Recorded on" in texts(app)
            assert not [b for b in app.button if b.label in ("Resume", "Cancel")]


@pytest.mark.slow
@pytest.mark.usefixtures("recorded_runs")
def test_recorded_runs_stay_behind_the_users_own(runs: Any, studio_folder: Path) -> None:
    from support.recorded_runs import kinds

    runs.put("done", *kinds(studio_folder)["pruning"])
    shown = [recorded.of(run.record.id) is not None for run in listing.overview()]
    assert shown == [False] + [True] * len(recorded.views())


def filled(value: Any) -> Any:
    """A result without empty texts: older records lack some of these fields."""
    if isinstance(value, dict):
        return {k: filled(v) for k, v in value.items() if v != ""}
    return [filled(v) for v in value] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.usefixtures("recorded_runs")
def test_every_recorded_analysis_is_read_back_and_says_how_it_was_made() -> None:
    import headviz
    from headviz.analyses.catalogue import ANALYSES

    clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=500)
    for name, made in json.loads((DATA / "analyses.json").read_text(encoding="utf-8")).items():
        found = recorded.analysis(name, clf, data)
        assert found is not None, name  # of the weights and the data that ship
        again = json.loads(found.result.to_json())
        if name == "roles":
            del again["heads"]  # the same once more, by head
        assert filled(again) == filled({k: v for k, v in made["result"].items() if k != "analysis"}), name
        assert ANALYSES[name].view(found.result).finding
        assert found.command.startswith(f"{ANALYSES[name].line} ")
        assert found.date in found.sentence
    assert recorded.analysis("ablation", clf, headviz.load_task("demo", limit=20)) is None


@pytest.mark.usefixtures("recorded_runs")
def test_an_analysis_that_is_recorded_needs_no_click(open_page: Callable[..., Any]) -> None:
    app = open_page("analyses", **DEMO, analysis="redundant")
    assert not app.exception
    shown = texts(app)
    assert "Recorded on" in shown
    assert "headviz analyse redundant --model demo" in shown
    assert [b.label for b in app.button if b.key == "run_redundant"] == ["Run it here"]


def test_recorded_costs_have_the_intervals_of_every_other_page() -> None:
    import headviz

    recording = json.loads((DATA / "analyses.json").read_text(encoding="utf-8"))["ablation"]["result"]
    clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=500)
    evaluator = headviz.evaluator_of(clf, data)
    for layer, head in ((8, 0), (4, 10), (0, 0)):
        change = evaluator.compare(clf.present.without([(layer, head)])).primary
        assert recording["values"][layer][head] == pytest.approx(-change.delta, rel=1e-3)
        assert recording["interval_low"][layer][head] == pytest.approx(-change.interval_high, rel=1e-3)
        assert recording["interval_high"][layer][head] == pytest.approx(-change.interval_low, rel=1e-3)

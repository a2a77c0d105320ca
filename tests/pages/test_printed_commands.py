"""What a page prints as the same in Python or on the command line gives the numbers of the page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headviz.analyses.catalogue import ANALYSES, result_type
from headviz.answers import ANSWERS
from headviz.cli import main
from headviz.heads import HeadId, HeadMask
from headviz.storage.exchange import restored
from support.marks import seeds
from support.page import DEMO, texts
from support.recorded_runs import press

SHAPE = (3, 4)
OFF = HeadMask.full(*SHAPE).without([(0, 0), (1, 1), (2, 3)])
NAMES = [a.name for a in ANALYSES.values() if not a.page and a.fits(ANSWERS["class"])]
LONG = ["cross-dataset"]  # on the demo
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def view(small: dict[str, str], small_folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An address, and a folder of its own for what commands write."""
    home.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(home)
    return {**small, "limit": "45", "seed": "3", "base": str(small_folder / "steps"), "mask": OFF.hex}


def printed(app: Any) -> tuple[str, str]:
    """The Python and the command."""
    assert not app.exception
    python, command = [c.value for c in app.code][-2:]
    return python, command


def ran(command: str, capsys: Capture) -> Any:
    capsys.readouterr()
    assert main([*shlex.split(command.replace("\\\n", " "))[1:], "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def executed(python: str, capsys: Capture) -> tuple[dict[str, Any], str]:
    """The names that the code makes, and what it prints."""
    capsys.readouterr()
    names: dict[str, Any] = {}
    exec(compile(python, "recipe", "exec"), names)
    return names, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", seeds([n for n in NAMES if n not in LONG], LONG))
def test_analyses(open_page: Callable[..., Any], view: dict[str, str], name: str, capsys: Capture) -> None:
    shape = SHAPE
    if name == "cross-dataset":  # the small data have one dev set
        shape = (12, 12)
        view = {**DEMO, "limit": "4"}
    app = press(open_page("analyses", **view, analysis=name), f"run_{name}")
    python, command = printed(app)
    theirs = ran(command, capsys)
    ours = json.loads(executed(python, capsys)[1])
    assert without_seconds(ours) == without_seconds({k: v for k, v in theirs.items() if k != "analysis"})
    analysis = ANALYSES[name]
    shown = analysis.view(restored(result_type(analysis), theirs, shape))
    assert shown.finding.replace("*", "") in texts(app).replace("*", "")


def without_seconds(found: Any) -> Any:
    if isinstance(found, dict):
        return {k: without_seconds(v) for k, v in found.items() if k != "seconds"}
    return [without_seconds(v) for v in found] if isinstance(found, list) else found


@pytest.mark.slow
def test_heads(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    app = press(
        open_page("scores", **view, score="taylor", samples="24", head="1.2", beside="magnitude"),
        "compute_fine-tuned_taylor",
    )
    python, command = printed(app)
    theirs = ran(command, capsys)
    scores = executed(python, capsys)[0]["scores"]
    np.testing.assert_allclose(np.array(theirs["values"], dtype=float), scores.values, rtol=1e-4)
    assert theirs["samples"] == 24
    ranked = scores.ranked()
    place = ranked.index(HeadId(1, 2)) + 1
    assert f"rank {place} of {len(ranked)}" in texts(app)


@pytest.mark.slow
def test_head(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    from headviz.ui.pages.head import verdict

    app = open_page("head", **view, head="1.2")
    python, command = printed(app)
    ran(command, capsys)
    maps, theirs = executed(python, capsys)[0]["maps"], np.load("maps.npz")
    for attention, attribution in ((maps.attention, maps.attribution), (theirs["attention"], theirs["attribution"])):
        assert verdict(HeadId(1, 2), attention[1, 2], attribution[1, 2]) in texts(app)


@pytest.mark.slow
def test_masklab(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    app = open_page("masklab", **view)
    python, command = printed(app)
    shown = {m.label: m.value for m in app.metric}["accuracy"].replace("\\", "")
    assert f"{ran(command, capsys)['metrics']['accuracy']:.3f}" == shown
    assert f"{eval(executed(python, capsys)[1], {'nan': None})['accuracy']:.3f}" == shown


def test_compare(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    app = open_page("compare", **view, a="the cat sleeps", b="a cat sleeps")
    python, command = printed(app)
    assert "clf.labels" in python
    theirs = ran(command, capsys)
    _, out = executed(python, capsys)
    label, share = max(theirs["probabilities"].items(), key=lambda item: item[1])
    assert f"{label} {share:.3f}" in texts(app)
    assert label in out
    assert f"{share:.4f}" in out


DONOR = {"a": "the cat sleeps", "b": "a cat sleeps", "donor": "a dog sees the cat", "donor_pair": "a cat sleeps"}


@pytest.mark.slow
def test_patching_and_paths(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    app = open_page("compare", **view, **DONOR, tab="Patching")
    python, command = printed(app)
    assert json.loads(executed(python, capsys)[1])["effect"] == ran(command, capsys)["effect"]
    app = press(app, "paths")
    python, command = printed(app)
    theirs = ran(command, capsys)["paths"]
    assert json.loads(executed(python, capsys)[1])["edges"] == theirs["edges"]
    table = next(d.value for d in app.dataframe if "path" in d.value)
    assert list(table["share of the way"]) == [e["effect"] for e in theirs["edges"]]


@pytest.mark.slow
def test_explanations(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    app = open_page("compare", **view, a="the cat sleeps", b="a cat sleeps", tab="Explanations")
    python, command = printed(app)
    theirs = ran(command, capsys)
    assert json.loads(executed(python, capsys)[1])["values"] == theirs["values"]
    table = next(d.value for d in app.dataframe if "deletion" in d.value)
    assert list(table["deletion"]) == [theirs["areas"][m]["deletion"] for m in theirs["methods"]]


def test_data(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    app = open_page("data", **view)
    python, command = printed(app)
    assert f"{ran(command, capsys)['n']} examples" in texts(app) + " ".join(str(s.value) for s in app.subheader)
    assert len(executed(python, capsys)[0]["data"]) == 45


@pytest.mark.slow
def test_distil(open_page: Callable[..., Any], view: dict[str, str], capsys: Capture) -> None:
    from headviz.extras.distillation.pages.results import finding

    app = open_page("runs", **view, new="distill")
    app = next(i for i in app.number_input if i.label == "Training steps").set_value(4).run()
    app = next(i for i in app.text_input if i.key == "distil_seeds").set_value("0,1").run()
    python, command = printed(app)
    theirs = ran(command, capsys)
    ours = executed(python.replace("'student'", "'other'"), capsys)[0]["result"]
    assert theirs["teacher"]["metrics"] == ours["teacher"]["metrics"]
    assert [s["metrics"] for s in theirs["students"]] == [s["metrics"] for s in ours["students"]]
    assert finding(theirs, "accuracy") == finding(ours, "accuracy")  # the page's sentence


@pytest.mark.slow
def test_runs(
    open_page: Callable[..., Any],
    view: dict[str, str],
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command of a first run, and the command that the page prints for that run."""
    from headviz.pruning.baselines import finding

    monkeypatch.undo()  # runs really start
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    monkeypatch.setenv("HEADVIZ_ROOTS", str(Path(view["model"]).parent))
    monkeypatch.setattr("headviz.ui.shell.recorded._all", lambda: ())
    first = ran(f"{printed(open_page('runs', **view, score='magnitude'))[1]} --wait", capsys)
    app = open_page("runs", **view, run=first["id"])
    again = ran(f"{printed(app)[1]} --wait", capsys)
    told = [[(s["sparsity"], s["mask"], s["metrics"]) for s in run["steps"]] for run in (first, again)]
    assert told[0] == told[1]
    assert finding(again["steps"], "accuracy").split(";")[0] in texts(app)

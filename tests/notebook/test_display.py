"""What notebooks show: small, escaped, without an outside address, and the numbers of the result."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headviz
from headviz import HeadMask, HeadScores
from headviz.analyses import grades
from headviz.analyses.pruning_curve import pruning_curves
from headviz.answers.comparison import Comparison, Delta
from headviz.notebook import display
from headviz.notebook.display import MOST_CELLS
from headviz.runs import reading
from headviz.tasks import Dataset
from support import studio
from support.recorded_runs import Runs, pruning
from support.tiny import tiny_classifier

HOSTILE = "<script src=//x>&\"'"


def scores(values: np.ndarray) -> HeadScores:
    nothing = np.full_like(values, np.nan)
    mask = HeadMask.full(*values.shape)
    return HeadScores("taylor", values, nothing, values - 1, values + 1, 7, 0, nothing, 0.8, mask, {})


@cache
def shown() -> dict[str, Any]:
    """One result of each kind, from a tiny model."""
    clf = tiny_classifier()
    task = headviz.load_task("demo", limit=2).task
    texts = ("a dog sleeps", "the cat is awake", "no bird sings", HOSTILE) * 5
    data = Dataset(task, "dev", texts, texts, np.arange(20) % 3, slices=("one", HOSTILE) * 10)
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without([(0, 1)])
    evaluator = headviz.evaluator_of(clf, data)
    delta = Delta("accuracy", 20, 0.9, 0.8, -0.2, -0.01, 0.03)
    return {
        "mask": mask,
        "scores": headviz.score_heads(clf, data, score="magnitude"),
        "maps": headviz.conductance(clf, "a dog sleeps", HOSTILE, steps=2, cache=False),
        "tokens": headviz.token_attributions(clf, "a dog sleeps", HOSTILE, steps=2),
        "patching": headviz.patch(clf, ("a dog sleeps", "a cat"), ("a cat sleeps", "a dog")),
        "evaluation": headviz.evaluate(clf, data, mask=mask),
        "delta": delta,
        "comparison": Comparison((delta,), None, None, None, ()),
        "paired": headviz.paired([0, 1] * 9, [0, 1] * 9, [1, 1] * 9),
        "data": data,
        "curves": pruning_curves(evaluator, {"random": np.random.default_rng(0).random(mask.array().shape)}, step=0.5),
        "ablation": headviz.ablate(evaluator),
    }


KINDS = ("mask scores maps tokens patching evaluation delta comparison paired data curves ablation").split()


def check(html: str) -> None:
    assert len(html) < 45_000
    assert "<script" not in html
    assert not re.search(r"(src|href|url)\s*[=(]|https?:|@import", html.replace("src=//x", ""))
    assert "as text" in html
    assert not re.search(r"\bnan\b", html)
    assert not re.search(r"color:\s*(#000|#fff|black|white)\b", html)  # else it cannot be read on one of two pages


@pytest.mark.parametrize("kind", KINDS)
def test_the_html_is_small_escaped_and_asks_for_nothing(kind: str) -> None:
    check(shown()[kind]._repr_html_())


def test_a_printed_result_is_the_text_that_a_notebook_has() -> None:
    """``print(evaluator.compare(mask))`` wrote every field of a dataclass, arrays and all."""
    first = str(shown()["comparison"]).splitlines()[0]
    assert first == "accuracy changes by −10.0 points [−20.0, −1.0], p = 0.030: a clear loss."
    for kind in ("scores", "evaluation", "paired", "curves", "ablation"):
        said = str(shown()[kind])
        assert escape(said) in shown()[kind]._repr_html_()
        assert said == said.strip()
        assert "\n\n\n" not in said


def test_the_numbers_are_the_results() -> None:
    values = np.array([[0.25, -0.5], [np.nan, 1.0]])
    html = scores(values)._repr_html_()
    assert "L0·H0 0.25</title>" in html
    assert "L1·H0 –</title>" in html
    assert html.count("<path") == 4
    assert html.index("L1·H1 1<") > 0
    metric = shown()["evaluation"].metrics["accuracy"]
    assert f"{metric:.4f}" in shown()["evaluation"]._repr_html_()
    assert "changes by −10.0 points [−20.0, −1.0]" in shown()["comparison"]._repr_html_()
    fig = scores(values).plot()
    assert np.array_equal(fig.data[0].z, values, equal_nan=True)


def test_a_large_grid_is_cut_and_says_so() -> None:
    html = HeadMask.full(200, 100)._repr_html_()
    assert html.count("<path") == MOST_CELLS**2
    assert f"The first {MOST_CELLS}×{MOST_CELLS} heads" in html


def test_maps_of_one_head() -> None:
    maps = shown()["maps"]
    assert np.array_equal(maps.plot(head="0.1", what="attention").data[0].z, maps.attention[0, 1])
    assert np.allclose(maps.plot().data[0].z, np.abs(maps.attribution).sum((2, 3)))
    with pytest.raises(headviz.UserError, match="does not exist"):
        maps.plot(head=(99, 0))
    with pytest.raises(headviz.UserError, match="not 'colour'"):
        maps.plot(what="colour")


def kept(kind: str, folder: Path) -> Any:
    """A finished run, or the grades that come with the demo."""
    if kind == "grades":
        return grades.recorded().grades
    studio.make_model(folder / "model", layers=2, heads=2)
    studio.make_data(folder / "data")
    return reading.show(Runs().put("done", "prune", pruning(folder), title=HOSTILE))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "says"), [("grades", "attattr-max"), ("run", "unpruned model")])
def test_runs_and_grades_show_themselves(kind: str, says: str, tmp_path: Path) -> None:
    result = kept(kind, tmp_path)
    check(result._repr_html_())
    assert says in result._repr_html_()
    assert result.plot().to_dict()["data"]


def test_every_analysis_shows_its_own_result() -> None:
    """The result's type is what ``run`` says it returns; otherwise it would be shown field by field."""
    from headviz.analyses.catalogue import ANALYSES, result_type

    for analysis in ANALYSES.values():
        assert display.made_by(object.__new__(result_type(analysis))) is analysis

"""The analyses of the table on their page. ``test_printed_commands`` compares what they show with other ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.analyses.catalogue import ANALYSES
from headviz.answers import ANSWERS
from headviz.heads import HeadMask
from support.marks import some_in_ci
from support.page import texts

RUN_HERE = [a.name for a in ANALYSES.values() if not a.page and a.fits(ANSWERS["class"])]
# what the small model's view has not
MISSING = {
    "cross-dataset": "one dev set only",
    "dynamics": "Name a folder with checkpoints",
    "grade": "Grading needs at least 40 examples",
}
OFF = HeadMask.full(3, 4).without([(0, 0), (1, 1), (2, 3)])


def press_run(open_page: Callable[..., Any], name: str, address: dict[str, str]) -> Any:
    app = open_page("analyses", **address, analysis=name)
    assert not app.exception
    return app.button(key=f"run_{name}").click().run()


@pytest.mark.slow
@pytest.mark.parametrize("name", some_in_ci(RUN_HERE, [], MISSING))
def test_an_analysis_runs_and_says_what_it_shows(
    open_page: Callable[..., Any], small: dict[str, str], name: str
) -> None:
    app = press_run(open_page, name, {**small, "mask": OFF.hex, "limit": "30"})
    assert not app.exception
    errors = [str(e.value) for e in app.error]
    if name in MISSING:
        assert any(MISSING[name] in e for e in errors), errors
        return
    assert not errors
    assert ANALYSES[name].question in texts(app)
    assert any(str(c.value).startswith("Source") for c in app.caption)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ablation", "stacks"])
def test_stacks_are_named_and_points_are_points(
    open_page: Callable[..., Any], translator: dict[str, str], name: str
) -> None:
    app = press_run(open_page, name, {**translator, "limit": "2"})
    assert not app.exception
    assert not app.error
    if name == "ablation":
        (table,) = [d.value for d in app.dataframe if "cost" in d.value.columns]
        assert {t.split()[0] for t in table["head"]} == {"encoder", "cross", "decoder"}
        assert table["cost"].abs().max() <= 100


def test_data_without_kinds_say_what_to_do(open_page: Callable[..., Any], small: dict[str, str]) -> None:
    app = open_page("analyses", **small, groups="", analysis="by-slice")
    assert not app.exception
    assert any("Name a column of kinds" in str(i.value) for i in app.info)
    assert not any(b.key == "run_by-slice" for b in app.button)


def test_pages_that_explain_a_number_send_translations_on(
    open_page: Callable[..., Any], translator: dict[str, str]
) -> None:
    app = open_page("head", **translator)
    assert not app.exception
    assert app.info
    assert app.button(key="classifier_again")


@pytest.mark.slow
def test_a_translation_model_goes_through_the_other_pages(
    open_page: Callable[..., Any], translator: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    mask = HeadMask.full(8, 4).without([(3, 1), (6, 2)]).hex
    lab = open_page("masklab", **translator, mask=mask)
    assert not lab.exception
    assert not lab.error
    metrics = {m.label: m for m in lab.metric}
    assert metrics["BLEU"].delta.endswith("points") or metrics["BLEU"].delta == "unchanged"
    pair = open_page("compare", **translator, mask=mask, a="a dog sleeps .")
    assert not pair.exception
    (table,) = [d.value for d in pair.dataframe if list(d.value.columns) == ["model", "translation"]]
    capsys.readouterr()
    exec(pair.code[-1].value, {})
    assert repr([table["translation"].iloc[-1]]) in capsys.readouterr().out
    bench = open_page("workbench", **translator, mask=mask, a="a dog sleeps .")
    assert not bench.exception
    assert sum(m.value.startswith("#### ") for m in bench.markdown) == 2  # before and after
    heads = open_page("scores", **translator)
    score = next(s for s in heads.selectbox if s.label == "Score")
    assert not [o for o in score.options if o.startswith(("conductance", "attattr"))]


@pytest.mark.slow
def test_the_translation_demo_is_one_click_away_and_back(open_page: Callable[..., Any]) -> None:
    app = open_page("analyses", mask="fff" * 3 + "f0f" + "fff" * 8, a="mine", limit="20")
    app.button(key="translation_demo").click().run()
    assert not app.exception
    assert not app.error
    now = dict(app.query_params.items())
    assert now["model"] == "demo-translation"
    assert now.get("task", "demo-translation") == "demo-translation"  # left out where it is the model's own
    assert not {"mask", "a", "data", "columns"} & set(now)
    assert any(s.value == "One head off" for s in app.subheader)

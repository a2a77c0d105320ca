"""Every page, cold and by deep link, in every state that can be reached without a browser."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from headviz.ui.shell.frame import PAGES
from support.marks import some_in_ci
from support.page import DEMO, texts

FILES = [*PAGES]
TITLES = {name: page.title for name, page in PAGES.items()}
OFF = "fff" * 3 + "f0f" + "fff" * 8  # four heads of layer 3 off

STATES: list[dict[str, str]] = [
    {},
    {"mask": OFF, "head": "3.5", "example": "7", "present": "1"},
    {"a": "the dog sleeps .", "b": "a cat runs", "mask": OFF},
    {"a": "", "b": "only a pair"},
    {"a": "<script>alert(1)</script> **bold** $x$", "b": "=cmd()"},
    {"head": "99.99", "mask": "zz", "example": "100000", "score": "nonsense", "limit": "-4", "steps": "x"},
    {"a": "dog " * 2500, "b": "cat"},
    {"a": "qqq", "b": "zzz"},
]
FIRST = [STATES[i] for i in (0, 1, 4, 5)]  # as it opens, by link, hostile, wrong


def shown_errors(app: Any) -> list[str]:
    return [str(e.value) for e in app.error]


@pytest.mark.parametrize(
    ("page", "more"),
    some_in_ci(list(product(FILES, STATES)), product(FILES, FIRST), product(["head", "compare"], STATES)),
    ids=lambda part: part if isinstance(part, str) else "-".join(part) or "plain",
)
def test_no_page_fails_in_any_state(open_page: Callable[..., Any], page: str, more: dict[str, str]) -> None:
    app = open_page(page, **more)
    assert not app.exception
    assert not [e for e in shown_errors(app) if "failed here" in e], shown_errors(app)
    assert TITLES[page] in [t.value.replace("\\", "") for t in app.title]


@pytest.mark.slow
@pytest.mark.parametrize("page", FILES)
def test_the_translation_demo_opens_everywhere(open_page: Callable[..., Any], page: str) -> None:
    app = open_page(page, **{**DEMO, "model": "demo-translation", "task": "demo-translation"}, limit="4")
    assert not app.exception
    assert not shown_errors(app)


@pytest.mark.slow
@pytest.mark.parametrize("page", [name for name, page in PAGES.items() if not page.without_data])
@pytest.mark.parametrize(("model", "task"), [("demo-translation", "demo"), ("demo", "demo-translation")])
def test_a_model_and_data_of_different_jobs_get_a_way_out_and_no_answer(
    open_page: Callable[..., Any], page: str, model: str, task: str
) -> None:
    app = open_page(page, **{**DEMO, "model": model, "task": task}, limit="4")
    assert not app.exception
    assert len(shown_errors(app)) == 1
    shipped = app.button(key="take_task")
    assert not [b for b in app.button if b.key in ("undo", "compute_costs")]  # nothing to answer with
    shipped.click().run()
    assert app.query_params.get("task", model) in (model, [model])
    assert not shown_errors(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "more", "said"),
    [
        ("masklab", {"model": "/nowhere/at/all"}, "outside the allowed folders"),
        ("compare", {"model": "no such model!"}, "not a hub id"),
        ("scores", {"task": "nonsense"}, "Unknown task 'nonsense'"),
        ("data", {"data": "/etc"}, "outside the allowed folders"),
        ("head", {"columns": "premise,nonsense"}, "nonsense"),
        ("analyses", {"data": "upload-nope"}, "The upload 'upload-nope' is not on this machine"),
        ("masklab", {"data": "gone"}, "There is no folder or file 'gone'"),
        ("runs", {"model": "/nowhere/at/all"}, "outside the allowed folders"),
    ],
)
def test_a_wrong_source_is_said_in_one_line_at_once(
    open_page: Callable[..., Any], page: str, more: dict[str, str], said: str
) -> None:
    app = open_page(page, **more)
    assert not app.exception
    found = [e.replace("\\", "") for e in shown_errors(app)]
    assert any(said in e for e in found), found
    assert not [e for e in found if "failed here" in e or "Traceback" in e], found
    assert not [b for b in app.button if b.label.startswith("Compute")]


@pytest.mark.slow
@pytest.mark.parametrize("page", FILES)
def test_the_address_holds_the_whole_view(open_page: Callable[..., Any], page: str, address: dict[str, str]) -> None:
    more = {"mask": OFF, "head": "3.5", "example": "7", "a": "the dog sleeps", "b": "a cat runs", "count": "20"}
    app = open_page(page, **more)
    assert dict(app.query_params.items()) == {**address, **more}


def test_a_head_that_the_model_has_not_is_said_at_once(open_page: Callable[..., Any]) -> None:
    app = open_page("scores", head="99.9")
    assert not app.exception
    assert any("99.9" in str(w.value).replace("\\", "") for w in app.warning)
    assert not any("99.9" in str(w.value).replace("\\", "") for w in app.run().warning)


@pytest.mark.slow
def test_where_all_heads_are_on_a_first_mask_is_one_click_away(
    open_page: Callable[..., Any], small: dict[str, str]
) -> None:
    from headviz.demo import card_figures
    from headviz.heads import HeadMask

    app = open_page("compare", **DEMO, limit="20")
    assert not app.exception
    label = app.button(key="first_mask").label.replace("\\", "")
    (heads,) = [r["heads"] for r in card_figures()["heads"]["sets"] if f"{r['phenomenon']} needs" in label]
    app.button(key="first_mask").click().run()
    assert not app.exception
    off = HeadMask.from_hex(app.session_state["headviz"].view.mask, 12, 12).off
    assert {h.dotted for h in off} == set(heads)
    assert not any(b.key == "first_mask" for b in app.button)
    app = open_page("compare", **small, score="random")  # another model, which has no scores yet
    app.button(key="first_mask").click().run()
    assert len(HeadMask.from_hex(app.session_state["headviz"].view.mask, 3, 4).off) == 2


def test_the_demos_abilities_are_shown_and_no_other_models(open_page: Callable[..., Any]) -> None:
    from headviz.demo import PHENOMENA, card_figures

    app = open_page("data", model="demo", task="demo", data="")
    assert not app.exception
    assert "What its heads do" in [s.value for s in app.subheader]
    (table,) = [t.value for t in app.dataframe if "ability" in t.value]
    assert list(table["ability"]) == list(PHENOMENA)
    costs = [100 * row["cost"] for row in card_figures()["heads"]["sets"]]
    assert list(table["costs it, points"]) == costs
    for other in (open_page("data"), open_page("data", model="demo")):  # another model; the demo on other data
        assert not other.exception
        assert "What its heads do" not in [s.value for s in other.subheader]


@pytest.mark.slow
def test_a_model_of_other_classes_is_said_before_anything_is_measured(
    open_page: Callable[..., Any], studio_folder: Path
) -> None:
    from support.tiny import tiny_folder

    place = str(tiny_folder(studio_folder / "two", labels=("no", "yes")))
    said = "'custom' has 3 classes (contradiction, entailment, neutral), but the model only has 2 (no, yes)"
    assert said in texts(open_page("data", model=place))
    assert not open_page("data").warning
    assert said in texts(open_page("compare", model=place))
    assert said not in texts(open_page("compare", model=place, a="the dog sleeps .", b="a cat runs"))


@pytest.mark.slow
def test_a_text_too_long_for_a_link_stays_until_it_is_loaded_anew(open_page: Callable[..., Any]) -> None:
    long = "the dog sleeps " * 200
    app = open_page("compare", a=long, b="a cat runs")
    assert "".join(app.query_params["long"]) == "a"
    assert "a" not in app.query_params
    assert "A link holds 1,500 characters" in texts(app)
    app.run()
    assert "A link holds 1,500 characters" in texts(app)  # it is still there
    assert not app.warning
    again = open_page("compare", b="a cat runs", long="a")
    assert again.warning[0].value.startswith("The first text is longer than")


@pytest.mark.slow
def test_a_link_may_list_the_heads_that_are_off(open_page: Callable[..., Any]) -> None:
    from headviz.heads import HeadMask

    app = open_page("masklab", off="4.10,7.0")
    assert not app.exception
    assert not app.warning
    now = dict(app.query_params.items())
    assert "off" not in now
    assert [h.dotted for h in HeadMask.from_hex(now["mask"], 12, 12).off] == ["4.10", "7.0"]
    assert "2 of 144 off" in texts(app)
    wrong = open_page("masklab", off="40.10")
    assert any("All heads are on now" in w.value for w in wrong.warning)


@pytest.mark.slow
def test_a_shipped_model_brings_the_task_that_fits_it() -> None:
    import headviz
    from headviz.ui.pages.data import fitting_task
    from headviz.ui.shell.view import View

    translator = headviz.load("demo-translation")
    change = fitting_task(View(model="demo-translation", task="demo", limit=20, a="mine"), translator)
    assert (change["task"], change["example"], change["data"], change["a"]) == ("demo-translation", 0, "", "")
    assert fitting_task(View(model="demo-translation", task="demo-translation", limit=20), translator) == {}
    change = fitting_task(View(model="demo", task="demo-translation", limit=20), headviz.load("demo"))
    assert change["task"] == "demo"
    assert fitting_task(View(model="a/hub-model", task="demo"), translator) == {}


@pytest.mark.slow
def test_the_mask_lab_says_what_stands_in_a_heads_place(open_page: Callable[..., Any], small: dict[str, str]) -> None:
    """The choice is in the link, the sentence says it, and a switch shows what hangs on it."""
    app = open_page("masklab", **small, off="0.1,1.0,2.3", ablation="mean:32")
    assert not app.exception
    assert app.query_params["ablation"] == "mean:32"
    said = texts(app)
    assert "In the place of a head that is off stands its mean output over all tokens of the reference (32 " in said
    assert any("--ablation mean --reference 32" in str(c.value) for c in app.code)
    app = next(t for t in app.toggle if t.key == "compare_stand_ins").set_value(True).run()
    assert not app.exception
    said = texts(app)
    assert "whatever stands in the heads' place" in said or "points with these " in said


@pytest.mark.slow
def test_one_head_shows_what_it_reads_and_writes(open_page: Callable[..., Any], small: dict[str, str]) -> None:
    app = open_page("head", **small, writes="1", head="1.2")
    assert not app.exception
    assert "L1·H2 itself adds" in texts(app)
    assert "What it writes (OV)" in texts(app)


def test_a_link_that_lists_the_heads_of_a_step_has_changed_nothing(open_page: Callable[..., Any]) -> None:
    app = open_page("compare", **DEMO, off="8.0", story="1", a="Bruno is richer than Alice.")
    assert "1 of 4 · One head turns an answer." in texts(app)


@pytest.mark.slow
def test_an_imported_mask_brings_what_stands_in_the_place_of_its_heads(open_page: Callable[..., Any]) -> None:
    from headviz.heads import HeadMask
    from headviz.storage.exchange import mask_json

    app = open_page("masklab", limit="12")
    mask = HeadMask.full(12, 12).without([(0, 1), (3, 5)])
    next(t for t in app.text_area if t.key == "pasted").set_value(mask_json(mask, ablation="mean:8"))
    app = next(b for b in app.button if b.key == "use_pasted").click().run()
    assert not app.exception
    view = app.session_state["headviz"].view
    assert (view.mask, view.ablation) == (mask.hex, "mean:8")

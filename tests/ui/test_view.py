"""The address bar: what goes in comes out, and nonsense is said."""

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from headviz.storage.paths import START
from headviz.ui.shell.view import FIELDS, LONGEST_TEXT, SHOWN_BY, View, from_address, link_path, to_address

FULL = replace(
    View(),
    model="a/b c",
    task="mnli",
    score="taylor",
    head="3.5",
    mask="0f",
    example=7,
    a="é ‹b› & =?",
    b="x",
    present=True,
    special=False,
    limit=0,
)


def test_a_view_survives_the_address() -> None:
    assert from_address(to_address(FULL)) == (FULL, [])
    assert to_address(View()) == {}


def test_without_a_model_an_address_is_about_what_the_server_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(START, "model=%2Fm&task=sst2&data=%2Fd")
    own = replace(View(), model="/m", task="sst2", data="/d", example=0)
    assert from_address({}) == (own, [])
    assert from_address({"off": "4.10"}) == (replace(own, mask="4.10"), [])
    assert from_address({"task": "mrpc"}) == (replace(View(), model="/m", task="mrpc", example=0), [])
    assert from_address({"model": "demo"}) == (View(), [])
    shown, (complaint,) = from_address({"model": "/m", "example": "abc"})
    assert shown.example == 0
    assert complaint.endswith("; 0 is shown.")
    for view in (own, View(), replace(View(), model="demo-translation", task="demo-translation"), FULL):
        assert to_address(view)["model"] == view.model  # a link opens the same in any dashboard
        assert from_address(to_address(view)) == (view, [])
        assert from_address(dict(parse_qsl(urlsplit(link_path("workbench", view)).query)))[0].model == view.model


@pytest.mark.parametrize("started", ["", "model=demo", "model=demo&task=demo"])
def test_a_dashboard_of_the_demo_leaves_the_demo_out_of_its_links(
    started: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(START, started)
    assert (to_address(View()), link_path("workbench", View())) == ({}, "/")


def test_long_texts_stay_out_of_the_address() -> None:
    view = replace(View(), a="x" * (LONGEST_TEXT + 1), b="short")
    assert to_address(view) == {"b": "short", "long": "a"}
    seen, (said,) = from_address(to_address(view))
    assert seen == replace(View(), b="short")
    assert said.startswith("The first text is longer than the 1,500 characters that a link can hold")
    both = replace(view, b="y" * (LONGEST_TEXT + 1))
    assert to_address(both) == {"long": "a,b"}
    assert len(from_address(to_address(both))[1]) == 2
    assert link_path("compare", view) == "/compare?b=short&long=a"
    assert link_path("scores", view) == "/scores"
    assert from_address({"long": "mask,<b>"}) == (View(), [])


@pytest.mark.parametrize(
    ("name", "text"), [("example", "-1"), ("example", "x"), ("present", "yes"), ("mass", "5"), ("limit", "1e9")]
)
def test_nonsense_is_said_and_the_default_stands(name: str, text: str) -> None:
    view, complaints = from_address({name: text, "head": "3.5"})
    assert view == replace(View(), head="3.5")
    assert len(complaints) == 1
    assert name in complaints[0]


def test_unknown_parameters_are_named() -> None:
    seen, said = from_address({"utm_source": "x", "heads": "3.5"})
    assert seen == View()
    assert ["utm_source" in said[0], "Did you mean" in said[0], "Did you mean 'head'?" in said[1]] == [
        True,
        False,
        True,
    ]


def test_a_link_to_the_analysis_of_harmful_heads_shows_the_ablation_which_lists_them() -> None:
    view, complaints = from_address({"analysis": "harmful"})
    assert (view.analysis, complaints) == ("ablation", [])


def test_the_translation_demo_comes_with_its_task() -> None:
    seen, said = from_address({"model": "demo-translation"})
    assert (seen.task, said) == ("demo-translation", [])
    assert to_address(seen) == {"model": "demo-translation"}
    other = replace(seen, task="demo")  # asked for on purpose
    assert from_address(to_address(other)) == (other, [])


def test_a_path_leads_back_to_the_page_alone() -> None:
    view = replace(View(), example=7, a="a & b", mask="0f", run="r1", analysis="speed")
    assert link_path("compare", view) == "/compare?mask=0f&example=7&a=a+%26+b"
    assert link_path("runs", view) == "/runs?mask=0f&run=r1"
    assert link_path("workbench", View()) == "/"
    query = dict(parse_qsl(urlsplit(link_path("compare", view)).query))
    assert from_address(query) == (replace(View(), example=7, a="a & b", mask="0f"), [])


CHOSEN: dict[str, dict[str, Any]] = {  # what a reader chooses on each page
    "workbench": {"head": "3.5", "a": "x", "grid": "score", "ability": "negation"},
    "scores": {"head": "3.5", "score": "taylor", "samples": 9, "weights": "pre-trained", "side": "bands"},
    "head": {"head": "3.5", "a": "x", "target": "neutral", "steps": 4, "arrows": "A→B", "mass": 80, "picture": "arcs"},
    "masklab": {"mask": "0f", "score": "taylor", "count": 7},
    "compare": {"a": "x", "b": "y", "other": "m", "tokens": True, "shift": True, "head": "3.5"},
    "analyses": {"analysis": "redundant", "select": "same", "orders": "random", "slice": "number", "count": 7},
    "runs": {"run": "r1", "step": 3, "tab": "One example", "numbers": False, "new": "distill", "layers": "3"},
    "data": {"base": "m", "samples": 9, "tab": "Upload"},
}


@pytest.mark.parametrize("page", SHOWN_BY)
def test_a_pages_link_brings_back_what_was_chosen_there(page: str) -> None:
    view = replace(View(), **CHOSEN[page])
    query = dict(parse_qsl(urlsplit(link_path(page, view)).query))
    assert from_address(query) == (view, [])


def test_the_pages_say_which_fields_they_show() -> None:
    from headviz.ui.shell.frame import PAGES

    assert set(SHOWN_BY) <= {*PAGES}
    assert link_path("another", replace(View(), head="1.2", run="r1")) == "/another?head=1.2&run=r1"
    assert frozenset().union(*SHOWN_BY.values()) == set(FIELDS) - {"present"}

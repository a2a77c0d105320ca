"""The first page: what a head's removal does to a pair and to the data, seen before and after the click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headviz.heads import HeadMask
from support.page import DEMO, texts

ALL = {**DEMO, "limit": "0"}
FEW = {**DEMO, "limit": "20"}
NEGATION = {"a": "The dog is not sleeping.", "b": "The dog is sleeping."}


@pytest.mark.slow
def test_hovering_tells_what_switching_off_does(
    open_page: Callable[..., Any], drawn: dict[str, dict[str, Any]]
) -> None:
    """The tooltips of both grids, for every head, against each head's own mask; and the bar says the same."""
    import headviz
    from headviz.display.sentences import from_to

    app = open_page("workbench", **FEW, **NEGATION)
    app.run()
    assert not app.exception
    said = drawn["bench_cost"]["tips"]["a click"]
    assert drawn["bench_score"]["tips"]["a click"] == said
    clf = headviz.load("demo")
    batch = clf.collate(clf.encode([NEGATION["a"]], [NEGATION["b"]]))
    full = clf.logits(batch)[0].softmax(-1).tolist()
    for head in list(clf.full_mask.kept)[::7]:
        now = clf.logits(batch, clf.full_mask.without([head]))[0].softmax(-1).tolist()
        assert said[head.layer][head.head] == from_to(clf.labels, full, now)
    app = open_page("workbench", **FEW, **NEGATION, off="4.10")
    assert said[4][10] in texts(app)
    assert "1 of 144 off" in texts(app)
    assert "examples are answered right; with all heads" in texts(app)


@pytest.mark.slow
def test_cost_is_that_of_all_dev_examples(open_page: Callable[..., Any], drawn: dict[str, dict[str, Any]]) -> None:
    """The recorded table against a slow one of one head: the mean log-probability of the right answer that is lost."""
    import headviz

    assert not open_page("workbench", **ALL).exception
    clf, dev = headviz.load("demo"), headviz.load_task("demo", split="dev")
    assert "2,600 dev examples" in drawn["bench_cost"]["look"].name

    def right(mask: HeadMask | None) -> float:
        logits = headviz.evaluate(clf, dev, mask=mask).logits.astype(np.float64)
        chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return float(chances[np.arange(len(dev)), dev.gold].mean())

    lost = right(None) - right(clf.full_mask.without([(4, 10)]))
    assert drawn["bench_cost"]["values"][4, 10] == pytest.approx(lost, abs=1e-5)


@pytest.mark.slow
def test_a_model_without_recorded_costs_toggles_at_once_and_fills_in(
    open_page: Callable[..., Any], small: dict[str, str], drawn: dict[str, dict[str, Any]]
) -> None:
    app = open_page("workbench", **small, limit="24")
    assert not app.exception
    assert drawn["bench_cost"]["values"] is None
    assert drawn["bench_cost"]["on_edit"] is not None
    from headviz.ui.shell import jobs

    job = jobs.find(("dev", *app.session_state["headviz"].view.source, "ablation-loss"))
    assert job is not None
    assert job.finished.wait(120)
    assert not job.error
    app.run()
    assert np.isfinite(drawn["bench_cost"]["values"]).all()
    assert "24" in drawn["bench_cost"]["look"].name


@pytest.mark.slow
def test_an_ability_lights_its_heads_and_one_click_switches_them_off(
    open_page: Callable[..., Any], drawn: dict[str, dict[str, Any]]
) -> None:
    from headviz.ui.parts import abilities
    from headviz.ui.shell.view import View

    app = open_page("workbench", **DEMO, limit="200", ability="negation")
    assert not app.exception
    ability = abilities.listed(View())["negation"]
    assert drawn["bench_cost"]["marks"] == ability.heads
    assert f"loses {ability.lost:.0f} of 100 answers about negation" in texts(app)
    assert "adds nothing" not in texts(app)
    assert "the rest adds nothing" in texts(open_page("workbench", **DEMO, limit="200", ability="role-swap"))
    examples = [b for b in app.button if (b.key or "").startswith("ability_example")]
    assert len(examples) == 3
    app = examples[0].click().run()
    app.button(key="ability_off").click().run()
    assert not app.exception
    view = app.session_state["headviz"].view
    assert HeadMask.from_hex(view.mask, 12, 12).off == tuple(ability.heads)
    assert "Without" in texts(app)
    app.button(key="undo").click().run()
    assert not app.session_state["headviz"].view.mask


@pytest.mark.slow
def test_the_chosen_head_has_a_panel_with_its_switch(open_page: Callable[..., Any]) -> None:
    app = open_page("workbench", **FEW, **NEGATION, head="4.10")
    assert not app.exception
    assert "Looks most from" in texts(app)
    assert "With all heads it looks most" not in texts(app)
    app.button(key="panel_toggle").click().run()
    assert [h.dotted for h in HeadMask.from_hex(app.session_state["headviz"].view.mask, 12, 12).off] == ["4.10"]
    assert "With all heads it looks most" in texts(app)  # the maps are those of the model without a mask


@pytest.mark.slow
def test_a_report_and_a_presentation_have_the_text_and_its_answers(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from headviz.ui.shell import show

    reports: list[list[tuple[str, Any, str]]] = []
    real = show.report_button

    def noted(*about: Any) -> None:
        reports.append(show._parts().copy())
        real(*about)

    monkeypatch.setattr(show, "report_button", noted)
    app = open_page("workbench", **FEW, **NEGATION, head="4.10", mask="4.10")
    assert not app.exception
    tables = {parts[1][0][0]: parts for parts in reports[-1] if parts[0] == "table"}
    assert NEGATION["a"] in tables["class"][2]
    assert len(tables["class"][1][1]) == 3  # a row for each class
    assert "head" in tables
    assert sum("dev examples" in str(content) for kind, content, _ in reports[-1] if kind == "finding") == 1
    shown = texts(open_page("workbench", **FEW, **NEGATION, present="1"))
    assert NEGATION["a"] in shown
    assert NEGATION["b"] in shown


def test_words_that_occur_twice_have_names_of_their_own() -> None:
    from headviz.ui.pages.workbench import numbered

    assert numbered(["a", "dog", "a"]) == ["a 1", "dog", "a 2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "text"),
    [
        *((page, ("", "The dog is sleeping.")) for page in ("workbench", "masklab", "scores", "compare", "head")),
        *((page, ("💩", "💩")) for page in ("workbench", "analyses", "compare", "head")),
    ],
)
def test_the_bar_of_the_mask_is_on_every_page_also_without_an_answer(
    open_page: Callable[..., Any], page: str, text: tuple[str, str]
) -> None:
    """The whole page was an error while one of the two fields was empty."""
    app = open_page(page, **FEW, a=text[0], b=text[1], off="4.10")
    assert not app.exception
    assert not app.error
    assert "1 of 144 off" in texts(app)
    app.button(key="all_on").click().run()
    assert not app.session_state["headviz"].view.mask


@pytest.mark.slow
def test_an_answer_near_chance_and_unknown_words_are_named(open_page: Callable[..., Any]) -> None:
    said = texts(open_page("workbench", **FEW, a="qwertz zzz the", b="blorp the"))
    assert "near chance" in said
    assert "qwertz" in said


@pytest.mark.slow
def test_a_large_model_says_what_it_takes_and_offers_bfloat16_by_one_click(
    open_page: Callable[..., Any], small: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from headviz.evaluation import evaluator

    app = open_page("workbench", **small)
    assert not [b for b in app.button if b.key == "other_precision"]
    monkeypatch.setattr(evaluator, "is_large", lambda clf: True)
    monkeypatch.setattr(evaluator, "bfloat16_here", lambda device: True)
    app.run()
    assert "A large model: its weights take 0.0 GiB" in texts(app)
    app.button(key="other_precision").click().run()
    assert app.query_params["dtype"] == "bfloat16"
    assert "3×4 heads in bfloat16" in texts(app)
    app.button(key="other_precision").click().run()
    assert "dtype" not in app.query_params


@pytest.mark.parametrize("page", ["workbench", "masklab"])
def test_what_a_gpu_computed_in_is_named_and_float32_is_one_click_away(
    open_page: Callable[..., Any], small: dict[str, str], monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    from headviz.evaluation import evaluator

    monkeypatch.setattr(evaluator, "fastest", lambda *_: "tf32")
    monkeypatch.setattr(evaluator, "has_tf32", lambda device: True)
    app = open_page(page, **small, off="0.0", limit="17")  # examples that no other test has evaluated on a processor
    assert "Computed in TF32" in texts(app)
    app.button(key="exact").click().run()
    assert app.query_params["dtype"] == "float32"
    assert "Computed in TF32" not in texts(app)
    assert "3×4 heads in float32" in texts(app)

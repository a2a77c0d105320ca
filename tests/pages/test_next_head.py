"""*What if one more head goes?* colours the board by the answer, until the mask changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.ui.pages.masklab import board


@pytest.mark.slow
def test_the_board_shows_what_one_more_head_costs(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[dict[str, Any]] = []
    real = board.show.head_grid

    def noted(key: str, present: Any, values: Any, **more: Any) -> None:
        drawn.append({"values": values, **more})
        real(key, present, values, **more)

    monkeypatch.setattr(board.show, "head_grid", noted)
    app = open_page("masklab", off="0.1", limit="15")
    assert drawn[-1]["look"].name != "cost of one more head, points"
    app = next(b for b in app.button if b.key == "ask_what_if").click().run()
    assert not app.exception
    assert drawn[-1]["look"].name == "cost of one more head, points"
    assert drawn[-1]["look"].scale.loss
    assert drawn[-1]["values"][0, 1] != drawn[-1]["values"][0, 1]  # off already
    assert set(drawn[-1]["tips"]) == {"one more head costs", "95 %"}
    next(b for b in app.button if b.key == "all_on").click().run()
    assert drawn[-1]["look"].name != "cost of one more head, points"


@pytest.mark.slow
def test_without_any_head_none_more_can_go(open_page: Callable[..., Any]) -> None:
    app = open_page("masklab", off="1.2", limit="15")  # a mask of its own: an answer is kept as long as the process
    assert any(b.key == "ask_what_if" for b in app.button)
    app = open_page("masklab", mask="0" * 36, limit="15")
    assert not app.exception
    assert not any(b.key == "ask_what_if" for b in app.button)


@pytest.mark.parametrize(("page", "score"), [("masklab", "magnitude"), ("scores", "ablation")])
def test_a_chosen_order_stays_chosen(open_page: Callable[..., Any], page: str, score: str) -> None:
    app = open_page(page, model="demo", task="demo", data="", columns="", label="", groups="", beside=score)
    assert not app.exception
    assert not [w.value for w in app.warning if "does not exist here" in w.value]
    assert app.session_state["headviz"].view.order == score
    assert app.run().session_state["headviz"].view.beside == score


def test_a_link_with_an_unknown_score_says_what_is_shown_and_nothing_false(open_page: Callable[..., Any]) -> None:
    demo = {"model": "demo", "task": "demo", **dict.fromkeys(("data", "columns", "label", "groups"), "")}
    app = open_page("masklab", **demo, beside="nosuch", limit="15")
    assert not app.exception
    assert any("'nosuch' does not exist here; the usual one is shown" in w.value.replace("\\", "") for w in app.warning)
    assert app.session_state["headviz"].view.order == "attattr-max"

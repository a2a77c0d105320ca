"""*What if one more head goes?* colours the board by the answer, until the mask changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.page import DEMO, texts

COST = "cost of one more head, points"


@pytest.mark.slow
def test_the_board_shows_what_one_more_head_costs(
    open_page: Callable[..., Any], small: dict[str, str], drawn: dict[str, dict[str, Any]]
) -> None:
    app = open_page("masklab", **small, off="0.1", limit="15")
    assert drawn["board"]["look"].name != COST
    app.button(key="ask_what_if").click().run()
    assert not app.exception
    assert drawn["board"]["look"].name == COST
    assert drawn["board"]["look"].scale.loss
    values = np.array(drawn["board"]["values"])
    assert np.argwhere(np.isnan(values)).tolist() == [[0, 1]]  # off already
    assert "one more head costs" in drawn["board"]["tips"]
    app.button(key="all_on").click().run()
    assert drawn["board"]["look"].name != COST


@pytest.mark.slow
def test_without_any_head_none_more_can_go(open_page: Callable[..., Any], small: dict[str, str]) -> None:
    app = open_page(
        "masklab", **small, off="1.2", limit="15"
    )  # a mask of its own: an answer is kept as long as the process
    assert any(b.key == "ask_what_if" for b in app.button)
    app = open_page("masklab", **small, mask="000", limit="15")
    assert not app.exception
    assert not any(b.key == "ask_what_if" for b in app.button)


@pytest.mark.parametrize(("page", "score"), [("masklab", "magnitude"), ("scores", "ablation")])
def test_a_chosen_order_stays_chosen(open_page: Callable[..., Any], page: str, score: str) -> None:
    app = open_page(page, **DEMO, beside=score)
    assert not app.exception
    assert not [w.value for w in app.warning if "does not exist here" in w.value]
    assert app.session_state["headviz"].view.order == score
    assert app.run().session_state["headviz"].view.beside == score


def test_a_link_with_an_unknown_score_says_what_is_shown_and_nothing_false(open_page: Callable[..., Any]) -> None:
    app = open_page("masklab", **DEMO, beside="nosuch", limit="15")
    assert not app.exception
    assert "'nosuch' does not exist here; the usual one is shown" in texts(app)
    assert app.session_state["headviz"].view.order == "attattr-max"

"""Whoever sees a map alone reads beside it what its colours mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headviz.display.figures import heads, maps
from headviz.extras.tickets.transfer_figure import Square, kept_map

SQUARE, WORDS = np.array([[0.5, -0.1], [0.2, 0.0]]), ["a", "b"]
MADE: dict[str, Any] = {
    "match": lambda: maps.matrix(SQUARE, WORDS, WORDS, "match", True),
    "attention": lambda: maps.layer(np.abs(SQUARE)[None], ["L0·H0"], "attention", False, 0),
    "attribution": lambda: maps.steps([("step 1", SQUARE)], WORDS, "attribution", True),
    "points above chance": lambda: heads.relation_map(SQUARE.reshape(1, 2, 2), WORDS),
    "cost, points": lambda: heads.marked_map(SQUARE, SQUARE - 1, SQUARE + 1, SQUARE > 1, WORDS, WORDS, "clear"),
    "taylor": lambda: heads.head_map(SQUARE, "taylor"),
    "interaction, loss": lambda: heads.pair_map(SQUARE, WORDS, "interaction, loss"),
    "lost or gained": lambda: kept_map([[Square(0.5)]], ["mask"], ["target"]),
}


@pytest.mark.parametrize("title", MADE)
def test_a_map_has_a_titled_colour_bar(title: str) -> None:
    bar = MADE[title]().data[0].colorbar
    assert (bar.title.text, bar.title.side) == (title, "right")


def test_attributions_of_tokens_have_one_too() -> None:
    assert maps.token_rows([("tokens", "yes", SQUARE[0])], WORDS).data[0].colorbar.title.text == "attribution"

"""What a screen reader hears of a figure: what it is about, not how it is drawn."""

from __future__ import annotations

import numpy as np

from headviz.attribution.maps import Arc
from headviz.display.figures import maps
from headviz.display.figures.style import in_words


def test_maps_of_many_heads_are_named_and_give_their_values_not_their_colours() -> None:
    layer = np.array([[[0.0, 0.25]], [[0.5, 1.0]]])
    rows = in_words(maps.head_maps(layer, ["L0·H0", "L0·H1"], "attention", False, chosen=1))
    assert [name for name, _ in rows] == ["L0·H0", "L0·H1"]
    assert rows[1][1].endswith("from 0.5 to 1")


def test_a_connection_is_two_tokens_and_a_value() -> None:
    rows = in_words(maps.arcs([Arc(0, 1, 0.75)], ["a", "dog"], ["a", "dog"], signed=False))
    assert rows == [("a → dog", "0.75")]

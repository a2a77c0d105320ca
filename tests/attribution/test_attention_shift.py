"""How far attention moves under a mask, against the maps that the explanation gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headviz
from headviz.attribution.maps import positions, strongest
from headviz.attribution.text_under_mask import attention_of, attention_shift
from headviz.errors import MaskError
from headviz.heads import HeadId, HeadMask
from support.tiny import tiny_classifier

TEXT, PAIR = "the dog sleeps", "a cat runs"


@pytest.fixture(scope="module")
def clf() -> Any:
    return tiny_classifier("bert", layers=3, heads=4, spread=0.6)


def test_it_is_half_the_distance_of_the_two_maps(clf: Any) -> None:
    mask = HeadMask.full(3, 4).without([(0, 1), (1, 3)])
    before = headviz.conductance(clf, TEXT, PAIR, steps=2).attention
    after = headviz.conductance(clf, TEXT, PAIR, steps=2, mask=mask).attention
    result = attention_shift(clf, TEXT, PAIR, mask)
    for layer in range(3):
        for head in range(4):
            if HeadId(layer, head) in mask.off:
                assert np.isnan(result[layer, head])
                continue
            moved = 0.5 * np.abs(after[layer, head] - before[layer, head]).sum(axis=-1).mean()
            assert result[layer, head] == pytest.approx(moved, abs=1e-5)
    assert np.nanmax(result[0]) == 0  # nothing before the first layer changes
    assert np.nanmax(result[2]) > 1e-4


def test_one_heads_map_is_the_one_that_is_explained(clf: Any) -> None:
    mask = HeadMask.full(3, 4).without([(0, 1)])
    for which in (HeadMask.full(3, 4), mask):
        maps = headviz.conductance(clf, TEXT, PAIR, steps=2, mask=which)
        tokens, values = attention_of(clf, TEXT, PAIR, which, HeadId(2, 1))
        assert tokens == list(maps.tokens)
        assert np.allclose(values, maps.attention[2, 1], atol=1e-5)


def test_a_pruned_model_keeps_its_heads_names(clf: Any) -> None:
    off = HeadMask.full(3, 4).without([(2, 0)])
    small = headviz.prune(clf, off)
    _, values = attention_of(small, TEXT, PAIR, small.full_mask, HeadId(2, 1))
    assert np.allclose(values, attention_of(clf, TEXT, PAIR, off, HeadId(2, 1))[1], atol=1e-5)
    with pytest.raises(MaskError, match=r"L2·H0 was removed"):
        attention_of(small, TEXT, PAIR, small.full_mask, HeadId(2, 0))


# selecting connections for pictures -----------------------------------------------------------------


TYPES = (0, 0, 0, 0, 1, 1, 1)
SPECIAL = (True, False, False, True, False, False, True)


@pytest.mark.parametrize(
    ("part", "show", "rows", "columns"),
    [
        ("all", True, [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]),
        ("all", False, [1, 2, 4, 5], [1, 2, 4, 5]),
        ("A→B", False, [1, 2], [4, 5]),
        ("B→A", True, [4, 5, 6], [0, 1, 2, 3]),
        ("B→B", False, [4, 5], [4, 5]),
    ],
)
def test_parts_of_a_pair(part: str, show: bool, rows: list[int], columns: list[int]) -> None:
    assert positions(TYPES, SPECIAL, part, show) == (rows, columns)


def test_strongest_is_the_fewest_that_hold_the_mass() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(7, 5))
    for mass in (0.1, 0.5, 0.7, 1.0):
        result = strongest(matrix, mass, most=1000)
        sizes = np.sort(np.abs(matrix).ravel())[::-1]
        total = sizes.sum()
        assert sum(abs(a.value) for a in result) >= mass * total - 1e-9
        assert sizes[: len(result) - 1].sum() < mass * total
        assert all(matrix[a.query, a.key] == a.value for a in result)

"""Which values tie, and how: the same for every place that orders heads."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from headviz import HeadMask
from headviz.heads import in_lowest, in_order, levels, lowest, ordered, tied

NAN = float("nan")


def test_heads_that_tie_are_drawn_from_the_seed_and_unmeasured_ones_come_last() -> None:
    values = [[0.5, 0.1, NAN], [0.1, -1.0, 0.1]]
    heads = list(HeadMask.full(2, 3).heads())
    result = {tuple(lowest(values, 4, heads, seed=seed)) for seed in range(100)}
    assert {order[0] for order in result} == {(1, 1)}
    assert {order[1:] for order in result} == set(permutations([(0, 1), (1, 0), (1, 2)]))
    assert {lowest(values, 6, heads, seed=seed)[-1] for seed in range(9)} == {(0, 2)}
    assert lowest(values, 4, heads, seed=3) == lowest(values, 4, heads[::-1], seed=3)
    assert lowest(values, 4, heads, seed=None) == [(1, 1), (0, 1), (1, 0), (1, 2)]  # as older plans have it


def test_heads_stay_in_every_layer() -> None:
    heads = list(HeadMask.full(2, 2).heads())
    assert lowest([[0.0, 0.1], [0.2, 0.3]], 3, heads, keep_per_layer=1, seed=0) == [(0, 0), (1, 0)]


def test_heads_that_are_left_keep_their_order_when_others_have_gone() -> None:
    """A run that goes on step by step removes what one cut would have removed."""
    values, full = np.zeros((4, 5)), HeadMask.full(4, 5)
    whole = ordered(values, full.kept, 7)
    assert ordered(values, full.without(whole[:9]).kept, 7) == whole[9:]


@pytest.mark.parametrize("largest", [1.0, 1e-6, 1e9])
def test_costs_that_are_equal_in_mathematics_tie(largest: float) -> None:
    n = 408
    costs = np.array([[(k + 100) / n - 100 / n, k / n, 1 - (n - k) / n] for k in (1, 7, 12)])
    assert len(np.unique(costs)) > 3  # floats do not see it
    assert tied((largest * costs).ravel()) == 9
    assert levels(largest * costs.ravel()).tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert tied([0.1, 0.1 + 1e-9, np.inf, -np.inf, NAN, NAN]) == 0
    assert tied([np.inf, np.inf, 0.0, -0.0]) == 4
    assert tied([]) == 0


def test_every_head_that_ties_goes_equally_often_whatever_its_layer() -> None:
    """By place the first layers went: the same table with its layers in another order gave another distribution."""
    values = np.ones((4, 3))
    values[2, 0], values[0, 2] = 0.0, 2.0
    layers, full, draws = [2, 3, 0, 1], HeadMask.full(4, 3), 2000
    gone = np.zeros((2, 4, 3))
    for at, table in enumerate((values, values[layers])):
        for seed in range(draws):
            for head in lowest(table, 6, full.kept, seed=(seed, at)):
                gone[at][head] += 1 / draws
    expected = in_lowest(values.ravel(), 6).reshape(4, 3)
    assert set(np.round(expected.ravel(), 9)) == {0.0, 0.5, 1.0}
    error = 4 * np.sqrt(0.25 / draws)
    np.testing.assert_allclose(gone[0], expected, atol=error)
    np.testing.assert_allclose(gone[1], expected[layers], atol=error)


@pytest.mark.parametrize("values", [[1, 1, 1, 2, 0], [3, 3, 1, 1, 2], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5]])
def test_the_chance_to_be_among_the_lowest_is_the_mean_over_all_orders(values: list[float]) -> None:
    for count in range(6):
        kept = [np.isin(range(5), sorted(order, key=lambda i: values[i])[:count]) for order in permutations(range(5))]
        np.testing.assert_allclose(in_lowest(values, count), np.mean(kept, axis=0))


def test_many_rows_are_as_each_alone_and_unmeasured_values_are_last_by_place() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (50, 9)).astype(float)
    rows[rng.random(rows.shape) < 0.2] = NAN
    for row, result in zip(rows, in_lowest(rows, 4), strict=True):
        np.testing.assert_array_equal(result, in_lowest(row, 4))
        assert result.sum() == pytest.approx(4)
    assert in_order("abcd", [NAN, 1, NAN, 0], seed=5) == ["d", "b", "a", "c"]

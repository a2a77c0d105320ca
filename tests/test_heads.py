"""HeadId, HeadMask and the order in which heads are removed."""

import os
import pickle
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headviz import HeadId, HeadMask
from headviz.errors import MaskError
from headviz.heads import in_lowest, in_order, levels, lowest, ordered, parse_heads, tied
from support.loaded import loaded_by


@st.composite
def masks(draw: st.DrawFn) -> HeadMask:
    layers, heads = draw(st.integers(1, 7)), draw(st.integers(1, 9))
    every = [(i, j) for i in range(layers) for j in range(heads)]
    return HeadMask.full(layers, heads).without(draw(st.lists(st.sampled_from(every), unique=True)))


@given(masks())
def test_hex_round_trip(mask: HeadMask) -> None:
    assert HeadMask.from_hex(mask.hex, mask.num_layers, mask.num_heads) == mask


@given(masks())
def test_hex_is_the_documented_bit_order(mask: HeadMask) -> None:
    size = mask.num_layers * mask.num_heads
    number = 0
    for layer in range(mask.num_layers):
        for head in range(mask.num_heads):
            if HeadId(layer, head) not in mask.off:
                number |= 1 << (size - 1 - (layer * mask.num_heads + head))
    assert int(mask.hex, 16) == number
    assert len(mask.hex) == (size + 3) // 4


def test_hex_of_known_masks() -> None:
    assert HeadMask.full(12, 12).hex == "f" * 36
    assert HeadMask.full(12, 12).without([(0, 0)]).hex == "7" + "f" * 35
    assert HeadMask.full(12, 12).without([(11, 11)]).hex == "f" * 35 + "e"
    assert HeadMask.full(1, 5).hex == "1f"  # five bits, left-padded to two digits


@given(masks())
def test_array_and_inversion_agree(mask: HeadMask) -> None:
    assert HeadMask.from_array(mask.array()) == mask
    assert np.array_equal(mask.inverted().array(), ~mask.array())
    assert mask.inverted().inverted() == mask
    assert set(mask.kept) | set(mask.off) == set(mask.heads())
    assert HeadMask.only(mask.num_layers, mask.num_heads, mask.kept) == mask


def test_equal_masks_are_one_key() -> None:
    a = HeadMask.full(2, 3).without([(1, 2), (0, 1)])
    b = HeadMask.full(2, 3).without([(0, 1)]).without([(1, 2), (1, 2)])
    assert a == b
    assert hash(a) == hash(b)
    assert {a: 1}[b] == 1
    with pytest.raises(AttributeError):
        a.off = ()  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(a)) == a  # noqa: S301  processes may pass masks on


def test_toggle_and_back() -> None:
    mask = HeadMask.full(3, 3).without([(0, 0)])
    assert mask.toggled([(0, 0), (1, 1)]).off == ((1, 1),)
    assert mask.with_([(0, 0)]).is_full
    assert (mask | HeadMask.full(3, 3).without([(2, 2)])).off == ((0, 0), (2, 2))


def test_sparsity_is_the_share_of_heads_that_are_off() -> None:
    assert HeadMask.full(2, 4).without([(0, 0), (1, 1)]).sparsity == 0.25
    assert HeadMask.full(2, 4).sparsity == 0


@pytest.mark.parametrize("bad", [(12, 0), (0, 12), (-1, 0)])
def test_a_head_that_does_not_exist(bad: tuple[int, int]) -> None:
    with pytest.raises(MaskError, match=r"does not exist: layers are 0 to 11, heads 0 to 11"):
        HeadMask.full(12, 12).without([bad])


@pytest.mark.parametrize("bad", ["", "xyz", "f" * 35, "f" * 37, "-" + "f" * 35])
def test_a_broken_hex_mask(bad: str) -> None:
    with pytest.raises(MaskError, match="36 hexadecimal digits"):
        HeadMask.from_hex(bad, 12, 12)


def test_a_hex_mask_with_bits_beyond_the_grid() -> None:
    with pytest.raises(MaskError):
        HeadMask.from_hex("3f", 1, 5)


def test_masks_of_different_grids_do_not_mix() -> None:
    with pytest.raises(MaskError, match="12×12"):
        HeadMask.full(12, 12) | HeadMask.full(6, 12)


def test_reading_heads() -> None:
    assert parse_heads("3.5, 7.0,L1.H2,L0·H0") == [(3, 5), (7, 0), (1, 2), (0, 0)]
    assert parse_heads("") == []
    assert str(HeadId(3, 5)) == "L3·H5"
    with pytest.raises(MaskError, match=r"Write layer\.head"):
        parse_heads("3-5")


def test_reading_heads_of_stacks() -> None:
    stacks = {"encoder": range(3), "cross": range(3, 5), "decoder": range(5, 7)}
    assert parse_heads("0.1,encoder.2.0, cross.1.5,Decoder:0.3", stacks) == [(0, 1), (2, 0), (4, 5), (5, 3)]
    with pytest.raises(MaskError, match=r"no stack 'cross'\. Its stacks: encoder\."):
        parse_heads("cross.0.1", {"encoder": range(12)})
    with pytest.raises(MaskError, match=r"Head cross\.2\.0 does not exist: layers of 'cross' are 0 to 1"):
        parse_heads("cross.2.0", stacks)
    with pytest.raises(MaskError, match="is not a head"):
        parse_heads("cross.1", stacks)
    with pytest.raises(MaskError, match="is not a head"):
        parse_heads("cross.0.1")


def test_random_removal_is_seeded_and_takes_only_heads_that_are_on() -> None:
    mask = HeadMask.full(4, 4).without([(0, 0)])
    assert mask.without_random(5, seed=1) == mask.without_random(5, seed=1)
    assert mask.without_random(5, seed=1) != mask.without_random(5, seed=2)
    assert len(mask.without_random(15).off) == 16
    with pytest.raises(MaskError):
        mask.without_random(16)


def test_import_is_light() -> None:
    assert loaded_by("import headviz; headviz.HeadMask.full(2, 2).hex", "torch", "transformers", "numpy") == []


def test_on_a_mac_what_mps_lacks_runs_on_the_processor() -> None:
    ask = "import sys, os; sys.platform = 'darwin'; import headviz; print(os.environ['PYTORCH_ENABLE_MPS_FALLBACK'])"
    for chosen in ({}, {"PYTORCH_ENABLE_MPS_FALLBACK": "0"}):
        answer = subprocess.run(
            [sys.executable, "-c", ask], env={**os.environ, **chosen}, capture_output=True, text=True
        )
        assert answer.stdout.strip() == chosen.get("PYTORCH_ENABLE_MPS_FALLBACK", "1"), answer.stderr


def test_heads_are_taken_as_people_write_them():
    mask = HeadMask.full(12, 12)
    for several in ([(3, 5), (7, 0)], ["3.5", "L7·H0"], "3.5,7.0", np.array([[3, 5], [7, 0]]), (HeadId(3, 5), [7, 0])):
        assert mask.without(several).off == (HeadId(3, 5), HeadId(7, 0))
    assert mask.without("3.5").with_(["3.5"]) == mask.toggled("3.5").toggled([(3, 5)]) == mask


@pytest.mark.parametrize("wrong", [[(3,)], (3, 5), [3.5], ["three"], [(1, 2, 3)], [("a", "b")], 5, [None]])
def test_what_is_no_head_is_said_in_one_line(wrong):
    with pytest.raises(MaskError, match="Write"):
        HeadMask.full(12, 12).without(wrong)


def test_what_is_no_mask_is_said_in_one_line():
    with pytest.raises(MaskError, match=r"HeadMask\.full"):
        HeadMask.full(2, 2) | [(1, 1)]


def test_the_heads_of_a_layer_are_kept_or_off() -> None:
    mask = HeadMask.full(2, 4).without([(1, 0), (1, 2)])
    assert mask.kept_in(0) == (0, 1, 2, 3)
    assert (mask.kept_in(1), mask.off_in(1)) == ((1, 3), (0, 2))


# which values tie, and how: the same for every place that orders heads ------------------------------


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

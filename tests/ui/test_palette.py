"""Colours say what the values say."""

import itertools

import pytest

from headviz.display.figures.style import Scale, colour, scale_for
from headviz.ui.widgets.grid import decimals


def light(hexcode: str) -> float:
    return sum(w * int(hexcode[i : i + 2], 16) for w, i in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))


def test_diverging_scales_are_symmetric_about_zero() -> None:
    scale = scale_for([-0.2, 0.9, float("nan")])
    assert (scale.lo, scale.hi, scale.diverging) == (-0.9, 0.9, True)


def test_sequential_scales_start_at_zero() -> None:
    assert scale_for([2.0, 5.0]) == Scale(0.0, 5.0, False)
    assert scale_for([0.0, 0.0]) == Scale(0.0, 1.0, False)
    assert scale_for([float("nan")]) == Scale(0.0, 1.0, False)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_larger_values_stand_out_more(dark: bool, sign: int) -> None:
    scale = Scale(-1.0, 1.0, True)
    lights = [light(colour(scale, sign * v / 10, dark=dark)) for v in range(11)]
    steps = [b - a for a, b in itertools.pairwise(lights)]
    assert all(s > 0 for s in steps) if dark else all(s < 0 for s in steps)


def test_both_signs_are_told_apart_without_hue_at_the_ends_only_by_hue() -> None:
    scale = Scale(-1.0, 1.0, True)
    assert colour(scale, 1.0) != colour(scale, -1.0)
    assert colour(scale, 7.0) == colour(scale, 1.0)


@pytest.mark.parametrize(
    ("values", "places"),
    [([2.6, 3.1, 2.4, 12.0], 1), ([14.0, 18.0, 31.0], 0), ([120.0, 3.0, 4.0], 0), ([0.31, 0.2], 2), ([3.1, 0.2], 1)],
)
def test_a_grid_has_decimals_that_tell_its_values_apart(values: list[float], places: int) -> None:
    assert decimals(scale_for(values), values) == places

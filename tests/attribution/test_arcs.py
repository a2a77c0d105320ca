"""Selecting connections for pictures."""

import numpy as np
import pytest

from headviz.attribution.maps import positions, strongest

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

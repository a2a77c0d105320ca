"""The demo's controls: the page is made from its file, and what is said of heads' maps is what was made."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headviz.heads import HeadId
from study import controls


def test_the_page_is_made_from_its_file() -> None:
    assert controls.PAGE.read_text(encoding="utf-8") == controls.page(json.loads(controls.FILE.read_text()))


def test_a_lead_counts_examples_and_orders() -> None:
    """Orders that differ widen it, and so do examples; equal orders on equal draws have no lead at all."""
    rng = np.random.default_rng(0)
    by_example = rng.normal(size=2001) / 10
    same = np.tile(0.5 + by_example, (3, 1))
    assert controls.ahead(same, same) == pytest.approx([0, 0, 0])
    apart = same + np.array([[-0.2], [0.0], [0.2]])
    _, low, high = controls.ahead(apart, same)
    assert high - low > 0.3
    better, low, high = controls.ahead(same + 0.4, apart)
    assert better == pytest.approx(0.4)
    assert 0 < low < 0.4 < high


def test_a_growth_counts_random_orders_and_examples() -> None:
    """Orders that change by different amounts widen it; those that change alike, as the scored ones do, leave none."""
    rng = np.random.default_rng(0)
    by_example = rng.normal(size=2001) / 100
    level, apart = np.tile(0.5 + by_example, (3, 1)), np.array([[-0.2], [0.0], [0.2]])
    assert controls.growth((level, level), (level + 0.1, level + 0.1)) == pytest.approx([0, 0, 0])
    mean, low, high = controls.growth((level, level), (level + 0.1, level + apart))
    assert mean == pytest.approx(0.1)
    assert low < 0 < 0.2 < high
    mean, low, high = controls.growth((level, level + apart), (level + 0.1, level + apart))
    assert [mean, low, high] == pytest.approx([0.1] * 3)


def test_equal_time_is_equal() -> None:
    """The demo's sample ends at 2,600 examples, and of a hundred most of the time is the start."""
    seconds = json.loads(controls.FILE.read_text())["equal_time"]["seconds"]
    for score in ("taylor", "gim"):
        assert np.mean(seconds[f"{score}, equal time"]) == pytest.approx(np.mean(seconds["gates"]), rel=0.2)
    drawn = [controls.many(300, seed) for seed in (0, 0, 1)]
    assert drawn[0].texts == drawn[1].texts != drawn[2].texts
    assert min(np.bincount(drawn[0].labels)) > 80


def test_maps_of_heads_that_stay_are_compared_at_the_same_iterations() -> None:
    """Here all maps grow less alike, and heads that stay are alike by .1 more; iteration 3 has none that go."""
    stay, go = ([HeadId(1, i) for i in part] for part in (range(4), range(4, 8)))
    rows = [(step, head, True, 0.9 - step / 10) for step in (1, 2, 3) for head in stay]
    rows += [(step, head, False, 0.8 - step / 10) for step in (1, 2) for head in go]
    known = controls._of_maps(rows)
    assert known["difference"] == pytest.approx([0.1, 0.1, 0.1])
    assert known["by_iteration"][2] == [3, pytest.approx(0.6), None]

"""The swap test of correlations: it depends on no scale, keeps its level, and finds a loss."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import headviz
from headviz.answers.number import NumberAnswers
from headviz.statistics import resampling
from support.marks import all_in_ci, seeds


def answers(n: int, before: float, after: float, seed: int = 0, tails: str = "normal") -> tuple[NDArray, ...]:
    """Gold values and two models' answers of these true correlations, whose errors are shared in part."""
    rng = np.random.default_rng(seed)
    draw = rng.normal if tails == "normal" else lambda size: rng.standard_t(3, size) / np.sqrt(3)
    gold, shared, one, other = (draw(size=n) for _ in range(4))
    errors = (np.sqrt(0.6) * shared + np.sqrt(0.4) * own for own in (one, other))
    return gold, *(r * gold + np.sqrt(1 - r * r) * e for r, e in zip((before, after), errors, strict=True))


def told(gold: NDArray, before: NDArray, after: NDArray, metric: str) -> tuple[float, ...]:
    found = headviz.paired(gold, before, after, metric)
    return found.difference, found.low, found.high, found.p


LINES = {"smaller and moved": lambda x: 4 + 0.1 * x, "tiny": lambda x: -300 + 1e-6 * x, "huge": lambda x: 1e9 * x + 7}


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
@pytest.mark.parametrize("line", all_in_ci(LINES.values(), [LINES["tiny"]]))
def test_the_scale_of_the_answers_changes_nothing(metric: str, line) -> None:
    """Pearson .85 to .79: p was .0004, and .50 for the same answers with a tenth of the spread around another mean."""
    gold, before, after = answers(200, 0.85, 0.74, seed=3)
    here = told(gold, before, after, metric)
    assert here[2] < 0
    assert here[3] < 0.02
    for one in (told(gold, before, line(after), metric), told(gold, line(before), after, metric)):
        assert one == pytest.approx(here, rel=1e-6)


@pytest.mark.parametrize("change", [np.exp])
def test_any_rising_function_leaves_spearman_as_it_is(change) -> None:
    gold, before, after = answers(150, 0.8, 0.7, seed=1)
    here = told(gold, before, after, "spearman")
    assert told(gold, change(before), after, "spearman") == pytest.approx(here, rel=1e-9)
    assert told(gold, before, change(after), "spearman") == pytest.approx(here, rel=1e-9)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_the_same_answers_on_another_scale_are_the_same(metric: str) -> None:
    gold, before, _ = answers(90, 0.8, 0.8)
    found = headviz.paired(gold, before, 3 + 0.2 * before, metric)
    same = headviz.paired(gold, before, before, metric)
    assert (found.difference, found.p) == (pytest.approx(0, abs=1e-12), 1.0)
    assert (found.low, found.high) == pytest.approx((same.low, same.high), abs=1e-9)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_answers_that_are_one_value_follow_nothing(metric: str) -> None:
    gold, before, _ = answers(60, 0.8, 0.8)
    lost, won = told(gold, before, np.full(60, 0.3), metric), told(gold, np.full(60, 0.1), before, metric)
    r = NumberAnswers(gold, before).measure(before, metric)
    assert (lost[0], won[0]) == (pytest.approx(-r), pytest.approx(r))
    assert lost[2] < -0.5 < 0.5 < won[1]
    assert max(lost[3], won[3]) < 0.001
    assert np.isnan(told(np.full(60, 0.1), before, gold, metric)).all()


CASES = seeds([("pearson", "normal")], [("spearman", "t3")])


@pytest.mark.parametrize("case", CASES)
def test_with_all_answers_moved_the_interval_excludes_zero_about_as_often_as_the_test(case: tuple[str, str]) -> None:
    """With 100 examples the test rejected in .45 of such sets, and the interval excluded zero in none."""
    (metric, tails), rejected, clear = case, 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        draw = rng.normal if tails == "normal" else lambda size, rng=rng: rng.standard_t(3, size)
        gold = rng.normal(size=100)
        before = 0.85 * gold + 0.53 * draw(size=100)
        after = before + 0.25 * draw(size=100)
        low, high, p = NumberAnswers(gold, before).uncertainty(after, metric, 1, 0.95)
        rejected, clear = rejected + (p <= 0.05), clear + (low > 0 or high < 0)
    assert rejected > 10
    assert 0.4 * rejected < clear <= rejected + 5


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_zero_is_excluded_only_where_the_test_rejects(metric: str) -> None:
    """The clear changes are losses and gains alike; each has a p of at most .05."""
    clear = 0
    for seed in range(24):
        gold, before, after = answers(150, *((0.85, 0.77) if seed % 2 else (0.77, 0.85)), seed=seed)
        found = headviz.paired(gold, before, 5 + after / 30, metric)
        if found.low > 0 or found.high < 0:
            clear += 1
            assert found.p <= 0.05
            assert (found.low > 0) == (found.difference > 0)
    assert clear > 6


def rejections(count: int, n: int, metric: str, tails: str, after: float = 0.85, scale: float = 0.1) -> float:
    found = (answers(n, 0.85, after, seed, tails) for seed in range(count))
    return np.mean([resampling.regression_swap_p(g, f, 4 + scale * m, metric, 1) <= 0.05 for g, f, m in found])


@pytest.mark.slow
@pytest.mark.parametrize("metric", seeds(["pearson"], ["spearman"]))
def test_it_keeps_its_level_and_finds_a_loss(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models of one true correlation and two scales, 1,500 data sets a case: two sd of a share of 5 % are 1.1 %."""
    monkeypatch.setattr(resampling, "SWAPS", 199)
    for n in (30, 100):
        assert 0.035 < rejections(1500, n, metric, "normal") < 0.065
        assert 0.03 < rejections(1500, n, metric, "t3") < 0.075  # of small samples with such tails it rejects more
    power = [rejections(400, 200, metric, "normal", 0.79, scale) for scale in (1.0, 0.1)]
    assert power[0] == pytest.approx(power[1], abs=0.01)
    assert power[0] > 0.6

"""Intervals of a difference: by hand, against finite differences, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import headviz
from headviz.statistics.intervals import (
    SLOPES,
    accuracy_intervals,
    class_intervals,
    correlation_interval,
    interval_of_series,
)
from headviz.statistics.resampling import Joint, joint_counts, of_tables
from headviz.statistics.significance import mcnemar


def test_many_tables_at_once_equal_one_by_one() -> None:
    rng = np.random.default_rng(1)
    worse, better = rng.integers(0, 200, (12, 12)), rng.integers(0, 100, (12, 12))
    low, high = accuracy_intervals(worse, better, 500)
    assert (low[3, 7], high[3, 7]) == accuracy_intervals(worse[3, 7], better[3, 7], 500)
    tables = rng.integers(0, 30, (5, 3, 3, 3))
    low, high = class_intervals(Joint.of(tables), "matthews")
    assert (low[2], high[2]) == pytest.approx(class_intervals(Joint.of(tables[2]), "matthews"), rel=1e-12)


@pytest.mark.parametrize("metric", SLOPES)
def test_slopes_equal_finite_differences(metric: str) -> None:
    table = np.random.default_rng(2).integers(3, 40, (3, 3)).astype(float)
    value, slope = SLOPES[metric](table)
    assert float(value) == pytest.approx(float(of_tables(metric, table)))
    for cell in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[cell] = 1e-5
        either = [float(of_tables(metric, table + sign * step)) for sign in (1, -1)]
        assert slope[cell] == pytest.approx((either[0] - either[1]) / 2e-5, rel=1e-5, abs=1e-9)


def test_a_class_that_nobody_names_changes_nothing() -> None:
    """The place for answers that are none of the classes widens no interval while it is empty."""
    joint = np.random.default_rng(3).integers(1, 30, (2, 2, 2))
    wider = np.zeros((3, 3, 3), dtype=np.int64)
    wider[:2, :2, :2] = joint
    assert class_intervals(Joint.of(wider), "f1") == pytest.approx(class_intervals(Joint.of(joint), "f1"))


@pytest.mark.parametrize(("metric", "level"), [*((metric, 0.95) for metric in SLOPES), ("matthews", 0.99)])
def test_the_interval_is_that_over_every_cell(metric: str, level: float) -> None:
    """Written out over all (gold, full answer, masked answer), of which only those that occur are kept."""
    rng = np.random.default_rng(9)
    for _ in range(30):
        gold, full, masked = rng.integers(0, 4, 60), rng.integers(-1, 3, 60), rng.integers(-1, 5, 60)
        cells = joint_counts(gold, full, masked, 5)
        joint = np.zeros((6, 6, 6))
        np.add.at(joint, cells[:3], cells.counts)
        g, f, m = np.ogrid[:6, :6, :6]
        asked, by_full, by_masked = (joint.sum(axis=axes) > 0 for axes in ((1, 2), (0, 2), (0, 1)))
        asked[:2] |= metric == "f1"
        occurs = asked | by_full | by_masked
        changed = ((f == g) != (m == g)) & asked[g] & occurs[f] & occurs[m]
        more = joint + 0.75 * (scipy.special.ndtri((1 + level) / 2) / scipy.special.ndtri(0.975)) ** 2 * changed
        before, of_full = SLOPES[metric](more.sum(axis=2))
        after, of_masked = SLOPES[metric](more.sum(axis=1))
        variance = (more * (of_masked[:, None, :] - of_full[:, :, None]) ** 2).sum()
        half = scipy.special.ndtri((1 + level) / 2) * np.sqrt(variance)
        seen = of_tables(metric, joint.sum(axis=1)) - of_tables(metric, joint.sum(axis=2))
        low, high = class_intervals(cells, metric, level)
        wanted = max(-2.0, min(after - before - half, seen)), min(2.0, max(after - before + half, seen))
        assert (float(low), float(high)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("metric", SLOPES)
def test_no_interval_has_no_width(metric: str) -> None:
    """283 of 6,000 small calls said [0, 0]: F1 where all gold labels are 1, or none is."""
    rng = np.random.default_rng(6)
    defined = 0
    for _ in range(250):
        n, classes = int(np.exp(rng.uniform(0, np.log(2000)))), int(rng.integers(2, 4))
        gold = np.full(n, rng.integers(classes)) if rng.random() < 0.6 else rng.integers(0, classes, n)
        full, masked = gold, gold
        if rng.random() < 0.5:
            full = np.where(rng.random(n) < rng.choice([0.01, 0.2, 1]), rng.integers(-1, classes, n), gold)
        if rng.random() < 0.5:
            masked = np.where(rng.random(n) < rng.choice([0.01, 0.2, 1]), rng.integers(-1, classes, n), full)
        joint = joint_counts(gold, full, masked, classes)
        before, after = (of_tables(metric, joint.table(said)) for said in (joint.full, joint.masked))
        change = float(after - before)
        if np.isnan(change):
            continue
        worse, better = ((full == gold) & (masked != gold)).sum(), ((full != gold) & (masked == gold)).sum()
        ends = accuracy_intervals(worse, better, n) if metric == "accuracy" else class_intervals(joint, metric)
        assert ends[1] - ends[0] > 1 / n, (n, joint)  # NaN fails, too
        defined += 1
    assert defined > 50


@pytest.mark.parametrize("metric", ["f1", "matthews"])
def test_an_interval_holds_its_own_difference_and_stays_possible(metric: str) -> None:
    rng = np.random.default_rng(5)
    most = 2 if metric == "matthews" else 1
    for n in rng.integers(2, 9, 100):
        gold, full, masked = rng.integers(0, 2, (3, n))
        result = headviz.paired(gold, full, masked, metric)
        if np.isfinite([result.low, result.difference]).all():
            assert result.low <= result.difference + 1e-12
            assert result.difference <= result.high + 1e-12
            assert -most <= result.low
            assert result.high <= most


def test_one_class_for_all_is_no_proof() -> None:
    """The interval was [0, 0], so that "any loss" was excluded."""
    result = headviz.paired([1] * 100, [1] * 100, [1] * 100, "f1")
    assert (result.low, result.high) == pytest.approx((-0.0167, 0.0167), abs=1e-4)
    never = headviz.paired([0] * 100, [0, 1] * 50, [1, 0] * 50, "f1")  # 100 flips, and F1 is 0 on both sides
    assert never.low < -0.05 < 0.05 < never.high


def _joint(rate: float, only: int | None) -> NDArray:
    """Shares of gold, before, after: seven in ten right, every change a right answer lost."""
    joint = np.zeros((2, 2, 2))
    for gold, share in ((0, 0.68), (1, 0.32)):
        lost = rate / 0.7 if only is None else rate / 0.7 / share * (gold == only)
        joint[gold, gold, 1 - gold] = share * 0.7 * lost
        joint[gold, gold, gold] = share * 0.7 * (1 - lost)
        joint[gold, 1 - gold, 1 - gold] = share * 0.3
    return joint


@pytest.mark.parametrize(("n", "rate", "only"), [(50, 0.02, 1), (100, 0.005, 0), (500, 0.005, 1), (2000, 0.1, None)])
@pytest.mark.parametrize("metric", SLOPES)
def test_the_truth_is_held_as_often_as_said(metric: str, n: int, rate: float, only: int | None) -> None:
    joint = _joint(rate, only)
    truth = float(SLOPES[metric](joint.sum(axis=1))[0] - SLOPES[metric](joint.sum(axis=2))[0])
    drawn = np.random.default_rng(4).multinomial(n, joint.ravel(), size=4000).reshape(-1, 2, 2, 2)
    if metric == "accuracy":
        low, high = accuracy_intervals(drawn[:, 0, 0, 1] + drawn[:, 1, 1, 0], np.zeros(4000), n)
    else:
        low, high = class_intervals(Joint.of(drawn), metric)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("places", [None, 1], ids=["all different", "ties"])
def test_the_difference_of_rank_correlations_is_held_where_the_highest_fall(places: int | None) -> None:
    """With ranks taken as fixed numbers .87 of the intervals held it, with ever so many examples."""
    rng = np.random.default_rng(7)

    def draw(n: int) -> tuple[NDArray, NDArray, NDArray]:
        gold = rng.normal(size=n)
        before = gold + 0.5 * rng.normal(size=n)
        drawn = (gold, before, np.where(gold > 0.5, gold - 4, before))
        return drawn if places is None else tuple(np.round(x, places) for x in drawn)  # type: ignore[return-value]

    gold, before, after = (scipy.stats.rankdata(x) for x in draw(400_000))
    truth = np.corrcoef(gold, after)[0, 1] - np.corrcoef(gold, before)[0, 1]
    held = [low <= truth <= high for low, high in (correlation_interval(*draw(400), ranked=True) for _ in range(600))]
    assert 0.93 <= np.mean(held) <= 0.975


def test_what_one_example_moves_in_a_rank_correlation() -> None:
    """Against the correlation with a little more of each example: weighted ranks, ties by half."""
    rng = np.random.default_rng(8)
    gold, full = np.round(rng.normal(size=(2, 40)), 1)
    masked = np.where(gold > 0.3, gold - 2, full)

    def weighted(weight: NDArray, x: NDArray, y: NDArray) -> float:
        below = lambda z: np.array([weight @ ((z < v) + 0.5 * (z == v)) for v in z])  # noqa: E731
        a, b = below(x), below(y)
        a, b = a - weight @ a, b - weight @ b
        return float(weight @ (a * b) / np.sqrt((weight @ a**2) * (weight @ b**2)))

    def change(weight: NDArray) -> float:
        return weighted(weight, gold, masked) - weighted(weight, gold, full)

    moved = []
    for i in range(40):
        either = []
        for step in (1e-5, -1e-5):
            weight = np.full(40, (1 - step) / 40)
            weight[i] += step
            either.append(change(weight))
        moved.append((either[0] - either[1]) / 2e-5)
    low, high = correlation_interval(gold, full, masked, ranked=True)
    without = change(np.full(40, 1 / 40))
    assert (low + high) / 2 == pytest.approx(without)
    second, fourth = np.sum(np.square(moved)), np.sum(np.power(moved, 4))
    wide = scipy.special.stdtrit(3 + 0.9 * second**2 / fourth, 0.975)
    least = wide * np.sqrt(second) / 40  # what is added for changes that were not seen is on top
    assert least * (1 - 1e-9) <= (high - low) / 2 <= 1.2 * least


def test_heavy_tails_are_covered() -> None:
    """With two degrees of freedom .88 of the intervals held the truth."""
    rng = np.random.default_rng(9)

    def draw(n: int) -> tuple[NDArray, NDArray, NDArray]:
        gold, (errors, noise) = rng.normal(size=n), rng.standard_t(2, (2, n))
        before = 0.85 * gold + 0.53 * errors
        return gold, before, before + 0.6 * noise

    truths = []
    for _ in range(5):  # one outlier in 200,000 moves it
        gold, before, after = draw(200_000)
        truths.append(np.corrcoef(gold, after)[0, 1] - np.corrcoef(gold, before)[0, 1])
    truth = np.median(truths)
    held = [low <= truth <= high for low, high in (correlation_interval(*draw(200)) for _ in range(600))]
    assert np.mean(held) >= 0.93


def test_heavy_tails_of_a_close_fit_are_covered() -> None:
    """Errors and noise with three degrees of freedom at r .97: without a limit .86 of the intervals held the truth."""
    rng = np.random.default_rng(10)

    def draw(n: int) -> tuple[NDArray, NDArray, NDArray]:
        gold, (errors, noise) = rng.normal(size=n), rng.standard_t(3, (2, n))
        before = 0.97 * gold + np.sqrt(1 - 0.97**2) * errors
        return gold, before, before + 0.3 * noise

    gold, before, after = draw(1_000_000)
    truth = np.corrcoef(gold, after)[0, 1] - np.corrcoef(gold, before)[0, 1]
    held = [low <= truth <= high for low, high in (correlation_interval(*draw(500)) for _ in range(600))]
    assert np.mean(held) >= 0.93


def test_timings_that_resemble_those_before_them_have_wider_intervals() -> None:
    """A t interval over twelve such draws held their mean in 47 %."""
    rng = np.random.default_rng(0)
    for correlation, least in ((0.0, 0.92), (0.5, 0.9), (0.8, 0.8)):
        series = rng.normal(size=(1000, 12))
        for at in range(1, 12):
            series[:, at] *= np.sqrt(1 - correlation**2)
            series[:, at] += correlation * series[:, at - 1]
        held = [low <= 0 <= high for _, low, high in map(interval_of_series, series)]
        assert np.mean(held) >= least
    mean, low, high = interval_of_series([1.0, 2.0, 3.0, 10.0])
    assert mean == pytest.approx(4.0)
    assert (low + high) / 2 == pytest.approx(4.0)
    assert np.isnan(interval_of_series([1.0])[1])


# the bound on a loss of accuracy: what it agrees with ----------------------------------------------


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 5000), st.sampled_from([0.9, 0.95, 0.999]))
def test_zero_is_excluded_where_and_only_where_mcnemar_rejects(worse: int, better: int, n: int, level: float) -> None:
    n = max(n, worse + better)
    low, high = accuracy_intervals(worse, better, n, level)
    p = mcnemar(worse, better)
    assert bool((low > 0) | (high < 0)) == bool(p <= 1 - level)
    assert -1 <= low <= (better - worse) / n <= high <= 1
    assert float(low) == -float(accuracy_intervals(better, worse, n, level)[1])


@pytest.mark.parametrize(("worse", "n"), [(0, 1), (0, 500), (3, 10), (4, 408), (10, 10), (30, 40_000)])
def test_without_a_mended_answer_it_is_that_of_clopper_and_pearson(worse: int, n: int) -> None:
    limit = stats.binomtest(worse, n).proportion_ci(0.95, "exact").high
    assert float(accuracy_intervals(worse, 0, n)[0]) == pytest.approx(-limit, rel=1e-4)


@pytest.mark.parametrize(("worse", "better", "n"), [(1, 1, 10), (5, 1, 98), (3, 11, 500), (2, 1, 3), (90, 70, 2000)])
def test_the_bound_is_the_quantile_that_defines_it(worse: int, better: int, n: int) -> None:
    """S and T drawn one by one; together they are a Dirichlet distribution."""
    rng = np.random.default_rng(0)
    t, s = rng.beta(worse + 1, better, 400_000), rng.beta(worse + better + 1, max(n - worse - better, 1e-9), 400_000)
    drawn = np.quantile(s * (2 * t - 1), [0.974, 0.976])
    assert drawn[0] < -float(accuracy_intervals(worse, better, n)[0]) < drawn[1]

"""Whole comparisons: every metric's delta against plain resampling, slices, undefined metrics, JSON."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import matthews_corrcoef

import headviz
from headviz.answers.number import NumberAnswers
from headviz.answers.one_class import ClassAnswers
from headviz.statistics import resampling
from headviz.statistics.significance import holm
from support.metrics import metric_of_rows


def answered(gold, full, classes):
    return ClassAnswers(gold, full, classes) if classes else NumberAnswers(gold, full)


def _classes(n: int = 200, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, classes, n)
    full = np.where(rng.random(n) < 0.85, gold, rng.integers(0, classes, n))
    masked = np.where(rng.random(n) < 0.75, full, rng.integers(0, classes, n))
    return gold, full, masked


def _of(name: str, gold: np.ndarray, said: np.ndarray) -> float:
    return float(metric_of_rows(name, gold[None], said[None])[0])


def _numbers(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=n)
    full = gold + rng.normal(size=n) * 0.5
    return gold, full, full + rng.normal(size=n) * 0.4


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews", "pearson", "spearman"])
def test_interval_is_near_that_of_resampling_the_examples(name: str) -> None:
    regression = name in resampling.REGRESSION_METRICS
    gold, full, masked = _numbers() if regression else _classes()
    result = answered(gold, full, 0 if regression else 2).deltas([masked], name)[0]
    rng = np.random.default_rng(7)
    i = rng.integers(0, len(gold), (4000, len(gold)))
    drawn = metric_of_rows(name, gold[i], masked[i]) - metric_of_rows(name, gold[i], full[i])
    low, high = np.quantile(drawn, [0.025, 0.975])
    width = high - low
    assert result.delta == pytest.approx(_of(name, gold, masked) - _of(name, gold, full))
    # the examples added in each direction make it wider, a correlation's more than a table's
    slack = (0.3 if regression else 0.12) * width + 1 / len(gold)
    assert result.interval_low == pytest.approx(low, abs=slack)
    assert result.interval_high == pytest.approx(high, abs=slack)


@pytest.mark.parametrize("name", ["f1", "matthews", "pearson", "spearman"])
def test_swap_test_equals_swapping_the_examples(name: str) -> None:
    regression = name in resampling.REGRESSION_METRICS
    gold, full, masked = _numbers(60, 3) if regression else _classes(60, seed=3)
    result = answered(gold, full, 0 if regression else 2).deltas([masked], name)[0]
    if regression:  # on a scale of their own
        full, masked = (stats.zscore(stats.rankdata(x) if name == "spearman" else x) for x in (full, masked))
    rng = np.random.default_rng(5)
    seen = abs(_of(name, gold, masked) - _of(name, gold, full))
    swap = rng.random((3000, len(gold))) < 0.5
    a, b = np.where(swap, full, masked), np.where(swap, masked, full)
    golds = np.broadcast_to(gold, swap.shape)
    apart = np.abs(metric_of_rows(name, golds, a) - metric_of_rows(name, golds, b))
    hits = np.sum(apart >= seen - 1e-12)
    assert result.p_value == pytest.approx((1 + hits) / 3001, abs=0.035)


@pytest.mark.parametrize("name", ["matthews", "pearson", "spearman"])
def test_a_mask_that_leaves_one_answer_is_the_largest_harm_and_stays_in_the_family_of_tests(name: str) -> None:
    """Its correlation had no value, so the worst of all heads dropped out of Holm's correction."""
    gold, full, masked = _classes() if name == "matthews" else _numbers()
    one = np.full_like(gold, 1 if name == "matthews" else 0.1)
    deltas = answered(gold, full, 2 if name == "matthews" else 0).deltas([one, full.copy(), masked], name)
    assert (deltas[0].masked, deltas[0].undefined) == (0.0, "")
    assert deltas[0].delta == pytest.approx(-deltas[0].full)
    assert deltas[0].interval_low < deltas[0].delta < deltas[0].interval_high < 0
    assert holm([d.p_value for d in deltas])[0] < 0.01


@pytest.mark.parametrize("name", ["f1", "matthews", "pearson", "spearman"])
def test_a_metric_without_a_value_has_no_interval_of_no_change(name: str) -> None:
    """The same constant answer before and after: nothing was measured, so nothing stayed the same."""
    regression = name in resampling.REGRESSION_METRICS
    gold = np.full(9, 0.5) if regression else np.zeros(40, int) if name == "matthews" else np.array([0, 2] * 20)
    constant = np.full(len(gold), 0.5 if regression else 0)
    result = answered(gold, constant, 0 if regression else 3).deltas([constant.copy()], name)[0]
    assert np.isnan([result.delta, result.interval_low, result.interval_high, result.p_value]).all()
    positive = "no example is, or is predicted to be, of the positive class"
    one_label = "every gold label is the same"
    assert result.undefined == {"f1": positive}.get(name, one_label)
    plain = result.to_dict()
    assert [plain[k] for k in ("delta", "interval_low", "interval_high", "p_value")] == [None] * 4


def test_swaps_without_a_metric_do_not_make_a_difference_look_rarer() -> None:
    """Half of all swaps leave one side with a single class; the p value is the share among the others."""
    gold = np.array([1, 0, 0, 1, 0, 1])
    full, masked = np.array([1, 0, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 0, 1])
    result = ClassAnswers(gold, full, 2).deltas([masked], "matthews")[0]
    # by hand: both keep one right answer, so delta = 0 and every swap that has a metric is as extreme
    assert (result.delta, result.p_value) == (0.0, 1.0)


def test_an_answer_that_is_no_class_is_never_right() -> None:
    gold, full, masked = _classes()
    masked[:5] = -1
    result = ClassAnswers(gold, full, 2).compare(masked, ["accuracy", "matthews"])
    assert result.primary.masked == np.mean(masked == gold)
    assert result.deltas[1].masked == pytest.approx(matthews_corrcoef(gold, masked))
    assert result.confusion_full is not None
    assert result.confusion_masked is not None
    assert result.confusion_full.shape == result.confusion_masked.shape == (2, 3)


def test_slices_are_compared_one_by_one() -> None:
    gold, full, masked = _classes(90, 3)
    names = ["negation", "number", "order"] * 30
    result = ClassAnswers(gold, full, 3).compare(masked, ["accuracy"], names)
    assert [d.name for d in result.slices] == ["negation", "number", "order"]
    for part in result.slices:
        at = np.flatnonzero(np.array(names) == part.name)
        alone = ClassAnswers(gold[at], full[at], 3).deltas([masked[at]], "accuracy")[0]
        assert (part.n, part.delta, part.interval_low, part.p_value) == (
            30,
            alone.delta,
            alone.interval_low,
            alone.p_value,
        )


def test_bleus_interval_and_test_agree() -> None:
    """The resampled changes lay between -16.0 and -0.7 where p was .063."""
    from headviz.extras.translation.sentence import TextAnswers

    rng = np.random.default_rng(6)
    words = "the a dog cat saw ran old red in house".split()
    references = [" ".join(rng.choice(words, 9)) for _ in range(40)]
    full = [" ".join(rng.permutation(r.split())) if rng.random() < 0.3 else r for r in references]
    masked = [
        " ".join(rng.permutation(r.split())) if rng.random() < 0.35 else f
        for r, f in zip(references, full, strict=True)
    ]
    (result,) = TextAnswers(np.array(references, dtype=object), np.array(full, dtype=object)).deltas(
        [np.array(masked, dtype=object)], "bleu"
    )
    assert result.p_value > 0.05
    assert result.interval_low == pytest.approx(-16.0, abs=0.1)
    assert result.interval_high == 0


# the swap test of correlations: it depends on no scale, keeps its level, and finds a loss -----------


def answers(n: int, before: float, after: float, seed: int = 0, tails: str = "normal") -> tuple[NDArray, ...]:
    """Gold values and two models' answers of these true correlations, whose errors are shared in part."""
    rng = np.random.default_rng(seed)
    draw = rng.normal if tails == "normal" else lambda size: rng.standard_t(3, size) / np.sqrt(3)
    gold, shared, one, other = (draw(size=n) for _ in range(4))
    errors = (np.sqrt(0.6) * shared + np.sqrt(0.4) * own for own in (one, other))
    return gold, *(r * gold + np.sqrt(1 - r * r) * e for r, e in zip((before, after), errors, strict=True))


def told(gold: NDArray, before: NDArray, after: NDArray, metric: str) -> tuple[float, ...]:
    result = headviz.paired(gold, before, after, metric)
    return result.difference, result.low, result.high, result.p


@pytest.mark.parametrize(("metric", "other"), [("pearson", lambda x: -300 + 1e-6 * x), ("spearman", np.exp)])
def test_the_scale_of_the_answers_changes_nothing(metric: str, other) -> None:
    """Pearson .85 to .79: p was .0004, and .50 for the same answers with a tenth of the spread around another mean."""
    gold, before, after = answers(120, 0.85, 0.7, seed=3)
    here = told(gold, before, after, metric)
    assert here[2] < 0
    assert here[3] < 0.02
    assert told(gold, before, other(after), metric) == pytest.approx(here, rel=1e-6)
    assert told(gold, other(before), after, metric) == pytest.approx(here, rel=1e-6)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_answers_that_are_one_value_follow_nothing(metric: str) -> None:
    gold, before, _ = answers(60, 0.8, 0.8)
    lost, won = told(gold, before, np.full(60, 0.3), metric), told(gold, np.full(60, 0.1), before, metric)
    r = NumberAnswers(gold, before).measure(before, metric)
    assert (lost[0], won[0]) == (pytest.approx(-r), pytest.approx(r))
    assert lost[2] < -0.5 < 0.5 < won[1]
    assert max(lost[3], won[3]) < 0.001
    assert np.isnan(told(np.full(60, 0.1), before, gold, metric)).all()


@pytest.mark.slow
def test_with_all_answers_moved_the_interval_excludes_zero_about_as_often_as_the_test() -> None:
    """With 100 examples the test rejected in .45 of such sets, and the interval excluded zero in none."""
    rejected, clear = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        gold, errors, moved = rng.normal(size=(3, 100))
        before = 0.85 * gold + 0.53 * errors
        low, high, p = NumberAnswers(gold, before).uncertainty(before + 0.25 * moved, "pearson", 1, 0.95)
        rejected, clear = rejected + (p <= 0.05), clear + (low > 0 or high < 0)
    assert rejected > 3
    assert 0.4 * rejected < clear <= rejected + 3


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "r", "noise"), [("pearson", 0.97, 0.1), ("spearman", 0.99, 0.05)])
def test_a_small_loss_of_a_high_correlation_is_seen_by_both(metric: str, r: float, noise: float) -> None:
    """All answers move by less than a tenth of their spread, which is much of the errors that the model has."""
    rng, rejected, clear = np.random.default_rng(0), 0, 0
    for _ in range(8):
        gold = rng.normal(size=300)
        before = r * gold + np.sqrt(1 - r * r) * rng.normal(size=300)
        low, high, p = NumberAnswers(gold, before).uncertainty(before + noise * rng.normal(size=300), metric, 1, 0.95)
        rejected, clear = rejected + (p <= 0.05), clear + (high < 0)
        assert high - low < 0.1
    assert rejected > 2
    assert clear > 0.6 * rejected


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_a_gain_does_not_exclude_exchanges_that_nobody_saw(metric: str) -> None:
    """Unseen exchanges lower a correlation, so a small gain of answers that hardly move keeps room for a loss."""
    rng = np.random.default_rng(0)
    after = 0.97 * (gold := rng.normal(size=300)) + 0.24 * rng.normal(size=300)
    before = after + 0.1 * rng.normal(size=300)
    gain, loss = (
        NumberAnswers(gold, x).uncertainty(y, metric, None, 0.95) for x, y in ((before, after), (after, before))
    )
    assert gain[0] < 0 < gain[1]
    assert loss[1] < 0
    assert loss[0] == pytest.approx(-gain[1], rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_zero_is_excluded_only_where_the_test_rejects(metric: str) -> None:
    """The clear changes are losses and gains alike; each has a p of at most .05."""
    clear = 0
    for seed in range(8):
        gold, before, after = answers(100, *((0.85, 0.74) if seed % 2 else (0.74, 0.85)), seed=seed)
        result = headviz.paired(gold, before, 5 + after / 30, metric)
        if result.low > 0 or result.high < 0:
            clear += 1
            assert result.p <= 0.05
            assert (result.low > 0) == (result.difference > 0)
    assert clear > 2


def rejections(count: int, n: int, metric: str, tails: str, after: float = 0.85, scale: float = 0.1) -> float:
    """The share of data sets in which the test rejects."""
    result = (answers(n, 0.85, after, seed, tails) for seed in range(count))
    return np.mean([resampling.regression_swap_p(g, f, 4 + scale * m, metric, 1) <= 0.05 for g, f, m in result])


@pytest.mark.slow
def test_it_keeps_its_level_and_finds_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models of one true correlation and two scales, 500 data sets a case: two sd of a share of 5 % are 1.9 %."""
    monkeypatch.setattr(resampling, "SWAPS", 199)
    for tails in ("normal", "t3"):
        assert 0.03 < rejections(500, 30, "pearson", tails) < 0.075
    power = [rejections(100, 200, "pearson", "normal", 0.79, scale) for scale in (1.0, 0.1)]
    assert power[0] == pytest.approx(power[1], abs=0.01)
    assert power[0] > 0.6

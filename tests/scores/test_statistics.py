"""Means, intervals and stability against plain loops and against their meaning."""

import warnings

import numpy as np
import pytest
from scipy import stats

from headviz.scores.statistics import draw, layer_normed, mean, stability, total

ON = np.ones((2, 3), bool)


def per_example(n=30, seed=0):
    per = np.random.default_rng(seed).normal(size=(n, 2, 3)) + np.arange(6).reshape(2, 3)
    per[3, 0, 1] = np.nan
    per[:, 1, 2] = np.nan
    return per


def test_mean_and_interval():
    per = per_example()
    s = mean(per)
    for i in range(2):
        for j in range(3):
            known = per[:, i, j][~np.isnan(per[:, i, j])]
            assert s.undefined[i, j] == 30 - len(known)
            if len(known) == 0:
                assert np.isnan([s.values[i, j], s.stderr[i, j], s.low[i, j], s.high[i, j]]).all()
                continue
            assert s.values[i, j] == pytest.approx(known.mean())
            assert s.stderr[i, j] == pytest.approx(stats.sem(known))
            low, high = stats.t.interval(0.95, len(known) - 1, known.mean(), stats.sem(known))
            assert (s.low[i, j], s.high[i, j]) == pytest.approx((low, high))


def test_examples_of_one_unit_count_once():
    """Each example three times tells no more than once; units of other sizes are those of a ratio's linear part."""
    per = per_example()
    once, thrice = mean(per), mean(np.repeat(per, 3, axis=0), np.repeat(np.arange(30), 3))
    for name in ("values", "stderr", "low", "high"):
        np.testing.assert_allclose(getattr(thrice, name), getattr(once, name))
    assert thrice.rows == 30
    counts = draw(30)[:5]
    np.testing.assert_allclose(thrice.resample(counts), once.resample(counts))
    units = np.random.default_rng(1).integers(0, 8, 30)
    x = per[:, 0, 0]
    off = np.array([(x[units == unit] - x.mean()).sum() for unit in np.unique(units)])
    assert mean(per, units).stderr[0, 0] == pytest.approx(np.sqrt(8 / 7 * (off**2).sum()) / 30)


def test_total():
    per = per_example()[:, :1, :1]
    assert total(per).values == pytest.approx(np.nansum(per, axis=0))
    assert total(per).stderr == pytest.approx(len(per) * mean(per).stderr)


def test_layer_norm_leaves_out_what_is_off():
    s = mean(np.abs(per_example()))
    on = ON.copy()
    on[0, 0] = False
    n = layer_normed(s, on)
    assert np.nansum(n.values[0, 1:] ** 2) == pytest.approx(1)
    ratio = n.values / s.values
    assert ratio[0, 0] == pytest.approx(ratio[0, 1]) == pytest.approx((n.stderr / s.stderr)[0, 2])
    zeros = layer_normed(mean(np.zeros((4, 2, 3))), ON)
    assert (zeros.values == 0).all()


def test_a_resample_is_the_mean_of_the_drawn_examples():
    per = per_example(7)[:, :, :2]
    s = layer_normed(mean(np.abs(per)), ON[:, :2])
    counts = draw(7)[:5]
    for row, got in zip(counts, s.resample(counts), strict=True):
        index = np.repeat(np.arange(7), row.astype(int))
        np.testing.assert_allclose(got, layer_normed(mean(np.abs(per[index])), ON[:, :2]).values)


@pytest.mark.parametrize(("apart", "shared"), [(0.0, 0.0), (0.1, 5.0), (0.5, 0.0), (2.0, 5.0)])
def test_stability_is_what_another_sample_says(apart, shared):
    """The estimate against truth: the mean overlap of pairs of independent samples, from chance to certainty."""
    rng = np.random.default_rng(1)
    on = np.ones((10, 10), bool)
    heads = apart * rng.normal(size=(10, 10))

    def sample():
        noise = rng.normal(size=(40, 10, 10)) + shared * rng.normal(size=(40, 1, 1))  # as examples differ
        return mean(heads + noise)

    lowest = [set(np.argsort(sample().values.ravel())[:20]) for _ in range(80)]
    truth = np.mean([len(a & b) / 20 for a, b in zip(lowest[::2], lowest[1::2], strict=True)])
    told = np.mean([stability(sample(), on) for _ in range(20)])
    assert told == pytest.approx(truth, abs=0.06)


def test_a_few_huge_heads_do_not_hide_how_settled_the_others_are():
    rng = np.random.default_rng(2)
    on = np.ones((10, 10), bool)
    heads = np.where(np.arange(100) < 10, 1000.0, np.arange(100) / 10).reshape(10, 10)

    def sample():
        return mean(heads * (1 + rng.normal(size=(40, 10, 10))))  # as large as the values themselves

    lowest = [set(np.argsort(sample().values.ravel())[:20]) for _ in range(80)]
    truth = np.mean([len(a & b) / 20 for a, b in zip(lowest[::2], lowest[1::2], strict=True)])
    assert truth > 0.7
    assert np.mean([stability(sample(), on) for _ in range(20)]) == pytest.approx(truth, abs=0.06)


def test_resamples_without_any_value_do_not_count():
    per = np.full((2, 5, 10), np.nan)
    per[0] = np.arange(50).reshape(5, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # half of the draws take only the example without values
        assert stability(mean(per), np.ones((5, 10), bool)) == 1

"""Vectorised correlations against scipy's, one head at a time."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from headviz.scores import map_values
from headviz.scores.map_values import correlated, correlations


def padded(a, b):
    """The same rows among others' padding: every second entry is none of theirs, and anything may stand there."""
    size = a.shape[1]
    rng = np.random.default_rng(size)
    there = np.zeros((len(a), 2 * size + 1), bool)
    there[:, rng.permutation(2 * size + 1)[:size]] = True
    tables = []
    for own in (a, b):
        whole = rng.choice(np.array([0, 1, -5, 1e9], own.dtype), there.shape)
        whole[there] = own.ravel()
        tables.append(torch.from_numpy(whole))
    return {name: v.numpy() for name, v in correlated(*tables, valid=torch.from_numpy(there)).items()}


WAYS = {"processor": correlations, "padded": padded}
SCIPY = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}


def oracle(name, a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([SCIPY[name](x.astype(float), y.astype(float)).statistic for x, y in zip(a, b, strict=True)])


def tables(size, dtype):
    """Heads with and without ties, constant ones, both zeros, tiny and huge numbers."""
    rng = np.random.default_rng(size)
    a, b = rng.normal(size=(2, 14, size)).astype(dtype)
    a[3:8] = np.round(a[3:8])
    b[6:10] = np.round(2 * b[6:10])
    b[0] = 0
    a[1] = 0.1
    a[2, : size // 2] = -0.0
    a[2, size // 2 :] = 0.0
    a[10] *= 1e-25
    b[11] *= 1e12
    a[12] = b[12]
    a[13] = -b[13]
    return a, b


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 3, 9, 100, 625])
def test_equal_to_scipy(size, dtype):
    a, b = tables(size, dtype)
    together = correlations(a, b)
    there = padded(a, b)
    assert list(there) == list(together)
    for name in SCIPY:
        np.testing.assert_allclose(together[name], oracle(name, a, b), atol=1e-11, err_msg=name)
        np.testing.assert_allclose(there[name], together[name], atol=1e-12, err_msg=name)
    for name in ("spearman", "pearson"):
        np.testing.assert_array_equal(correlations(a, b, (name,))[name], together[name])


@pytest.mark.parametrize("entries", [1, 30, 10**9])
def test_some_rows_are_taken_at_a_time(entries, monkeypatch):
    a, b = tables(9, np.float32)
    expected = correlations(a, b)
    monkeypatch.setattr(map_values, "ROWS_AT_ONCE", entries)
    result = padded(a, b)
    for name in SCIPY:
        np.testing.assert_allclose(result[name], expected[name], atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_more_connections_than_sixteen_bits(way):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 70_000)).astype(np.float32)
    b = (a + rng.normal(size=a.shape)).astype(np.float32)
    b[1] = np.round(b[1], 1)
    result = WAYS[way](a, b)
    for name in SCIPY:
        np.testing.assert_allclose(result[name], oracle(name, a, b), atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_numbers(data):
    size = data.draw(st.integers(2, 40))
    numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3, width=32).map(lambda x: round(x, 3)))
    a, b = (data.draw(arrays(np.float32, (3, size), elements=numbers.map(np.float32))) for _ in range(2))
    for way, of in WAYS.items():
        result = of(a, b)
        for name in ("spearman", "kendall"):
            np.testing.assert_allclose(result[name], oracle(name, a, b), atol=1e-9, err_msg=f"{name}, {way}")


@pytest.mark.parametrize("way", WAYS)
def test_a_constant_map_has_no_correlation(way):
    a, b = np.full((1, 9), 0.1, np.float32), np.arange(9, dtype=np.float32)[None]
    one = np.ones((1, 1), np.float32)
    for maps in ((a, b), (b, a), (one, one)):
        assert all(np.isnan(v).all() for v in WAYS[way](*maps).values())


@pytest.mark.parametrize("way", WAYS)
def test_a_map_with_an_unknown_value_has_no_correlation(way):
    a, b = np.random.default_rng(0).normal(size=(2, 4, 9)).astype(np.float32)
    a[0, 3] = b[1, 8] = a[2] = np.nan
    for name, values in WAYS[way](a, b).items():
        np.testing.assert_array_equal(np.isnan(values), [True, True, True, False], err_msg=name)


def test_on_a_device_whose_mean_is_not_exact_a_constant_map_has_no_correlation(monkeypatch):
    """CUDA's is the sum times 1/M: a constant row may differ from it by a last bit."""
    size = 7**2
    a = np.random.default_rng(0).normal(size=(1, size)).astype(np.float32)
    constant = np.full_like(a, 0.1)
    monkeypatch.setattr(torch.Tensor, "mean", lambda x, dim, keepdim: x.sum(dim, keepdim=keepdim) * (1 / size))
    ranks = torch.full((1, size), (size - 1) / 2, dtype=torch.float64)
    assert (ranks - ranks.mean(dim=1, keepdim=True)).any()
    for maps in ((a, constant), (constant, a), (constant, constant)):
        assert all(np.isnan(v).all() for v in correlations(*maps).values())


@pytest.mark.parametrize("way", WAYS)
def test_no_heads(way):
    none = np.zeros((0, 25), np.float32)
    assert all(v.shape == (0,) for v in WAYS[way](none, none).values())

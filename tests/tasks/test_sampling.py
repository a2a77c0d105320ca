"""Draws: balanced, in the length band, seeded, blind to the order of the file, and reported."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headviz.answers.number import quintiles
from headviz.errors import OptionError, TaskError
from headviz.tasks import TASKS, Dataset, LengthFilter, sample, text_lengths
from headviz.tasks.sampling import limited, proportional


def _data(n: int = 900, seed: int = 0, shares: tuple[float, ...] = (0.6, 0.3, 0.1)) -> Dataset:
    rng = np.random.default_rng(seed)
    texts = tuple(" ".join(["w"] * int(k)) + f" id{i}" for i, k in enumerate(rng.integers(1, 40, n)))
    labels = rng.choice(3, size=n, p=shares)
    slices = tuple("ab"[i % 2] for i in range(n))
    return Dataset(TASKS["demo"], "train", texts, ("pair words",) * n, labels, slices, "phenomenon")


def _scores(n: int = 500) -> Dataset:
    rng = np.random.default_rng(1)
    return Dataset(TASKS["stsb"], "train", tuple(f"t{i}" for i in range(n)), ("x",) * n, rng.uniform(0, 5, n))


def test_balanced_and_in_the_band() -> None:
    data = _data()
    some = sample(data, 90, length_filter="quantile")
    assert some.report is not None
    assert some.class_counts() == some.report.per_class == {"entailment": 30, "neutral": 30, "contradiction": 30}
    lengths = text_lengths(data)
    low, high = np.quantile(lengths, [0.25, 0.75])
    assert some.report.band == (low, high)
    inside = [low <= n <= high for n in lengths]
    assert {lengths[data.texts.index(t)] for t in some.texts} <= {n for n, i in zip(lengths, inside, strict=True) if i}
    assert some.report.dropped == inside.count(False)
    assert some.report.too_short == sum(n < low for n in lengths)
    assert some.report.too_long == sum(n > high for n in lengths)
    assert some.report.short == {}
    assert some.report.unit == "words"
    usual = sample(data, 20)
    assert list(usual.class_counts().values()) == [7, 7, 6]  # what is left over goes to the first classes
    assert usual.report is not None
    assert (usual.report.band, usual.report.dropped, usual.report.length_filter.kind) == (None, 0, "none")
    narrow = sample(data, 90, length_filter=LengthFilter("quantile", low=0.1, high=0.5)).report
    assert narrow is not None
    assert narrow.band == tuple(np.quantile(lengths, [0.1, 0.5]))


def test_file_order_is_kept() -> None:
    data = _data()
    where = [data.texts.index(t) for t in sample(data, 100).texts]
    assert where == sorted(where)
    assert len(set(where)) == len(where)


@pytest.mark.parametrize("draw", [lambda d: sample(d, 90), lambda d: d.subset(limited(d, 90, 0))])
def test_same_examples_whatever_the_order_of_the_file(draw) -> None:
    data = _data()
    shuffled = data.subset(np.random.default_rng(5).permutation(len(data)))
    assert set(draw(data)) == set(draw(shuffled))


def test_seed_decides() -> None:
    data = _data()
    assert sample(data, 90, seed=3) == sample(data, 90, seed=3)
    drawn = [set(sample(data, 90, seed=s).texts) for s in range(4)]
    assert all(drawn[0] != other for other in drawn[1:])


def test_a_larger_draw_contains_the_smaller() -> None:
    data = _data()
    assert set(sample(data, 60).texts) < set(sample(data, 120).texts)


def test_every_example_is_equally_likely() -> None:
    data = Dataset(TASKS["rte"], "train", tuple(f"t{i}" for i in range(40)), None, [0, 1] * 20)
    hits = np.zeros(40)
    for seed in range(400):
        for text in sample(data, 10, seed=seed, length_filter=None).texts:
            hits[int(text[1:])] += 1
    # each is drawn with p = 1/4: 100 ± 8.7; five standard deviations either way
    assert hits.sum() == 4000
    assert hits.min() > 100 - 5 * 8.7
    assert hits.max() < 100 + 5 * 8.7


def test_a_class_that_falls_short_is_told_and_the_rest_not_stretched() -> None:
    data = _data(shares=(0.7, 0.3, 0.0))
    some = sample(data, 300, length_filter=None)
    assert some.class_counts() == {"entailment": 100, "neutral": 100, "contradiction": 0}
    assert some.report is not None
    assert some.report.short == {"contradiction": 100}
    assert some.report.drawn == 200
    assert "too few examples: contradiction lacks 100" in some.report.text()


def test_std_band() -> None:
    data = _data()
    lengths = text_lengths(data)
    some = sample(data, 90, length_filter=LengthFilter("std", width=0.5))
    assert some.report is not None
    spread = 0.5 * np.sqrt(((lengths - lengths.mean()) ** 2).mean())
    assert some.report.band == pytest.approx((lengths.mean() - spread, lengths.mean() + spread))
    assert sample(data, 90, length_filter="std").report.band == pytest.approx(  # type: ignore[union-attr]
        (lengths.mean() - 2 * spread, lengths.mean() + 2 * spread)
    )


def test_lengths_given_or_counted_by_a_tokenizer() -> None:
    data = _data(60)

    def tokenizer(texts: list[str], pairs: list[str] | None, truncation: bool, verbose: bool) -> dict:
        assert not truncation
        assert not verbose  # a text that the model would cut is no news here
        return {"input_ids": [[0] * (len(t) + len(p) + 3) for t, p in zip(texts, pairs or texts, strict=True)]}

    expected = [len(t) + len("pair words") + 3 for t in data.texts]
    assert text_lengths(data, tokenizer).tolist() == expected
    by_tokenizer, by_numbers = (sample(data, 30, 0, "quantile", lengths) for lengths in (tokenizer, expected))
    assert by_tokenizer == by_numbers
    assert by_tokenizer.report == by_numbers.report
    assert by_tokenizer.report is not None
    assert by_tokenizer.report.unit == "tokens"
    with pytest.raises(TaskError, match="3 lengths were given for 60 examples"):
        sample(data, 30, 0, "quantile", [1, 2, 3])


def test_regression_balances_over_fifths_of_the_label() -> None:
    data = _scores()
    some = sample(data, 100, length_filter=None)
    assert some.report is not None
    assert list(some.report.per_class.values()) == [20] * 5
    edges = np.quantile(data.gold, [0.2, 0.4, 0.6, 0.8])
    assert np.bincount(np.searchsorted(edges, some.gold)).tolist() == [20] * 5


def test_ties_share_a_fifth() -> None:
    groups = quintiles(np.array([0.0] * 50 + [5.0] * 30 + list(np.linspace(1, 4, 20))))
    assert len(set(groups[:50])) == len(set(groups[50:80])) == 1
    assert sorted(set(groups)) == list(range(groups.max() + 1))
    assert quintiles(np.ones(9)).tolist() == [0] * 9


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=3), st.integers(1, 500), min_size=1, max_size=8), st.data())
def test_proportional_shares(counts: dict[str, int], draw: st.DataObject) -> None:
    total = draw.draw(st.integers(0, sum(counts.values())))
    share = proportional(counts, total)
    assert sum(share.values()) == total
    for key, count in counts.items():
        assert 0 <= share[key] <= count
        assert abs(share[key] - total * count / sum(counts.values())) < 1


def test_limit_is_stratified_by_label_then_slice() -> None:
    data = _data()
    some = data.subset(limited(data, 90, 0))
    for (name, all_of), few in zip(data.class_counts().items(), some.class_counts().values(), strict=True):
        assert abs(few - 0.1 * all_of) < 1, name
    assert abs(some.slice_counts()["a"] - 45) <= 3
    unlabelled = dataclasses.replace(data, labels=None, slices=None)
    assert len(limited(unlabelled, 90, 0)) == 90
    assert len(limited(_scores(), 50, 0)) == 50


@pytest.mark.parametrize("n", [0, -5, 1.5, True])
def test_a_bad_size_is_refused(n: object) -> None:
    with pytest.raises(OptionError, match="from 1 up"):
        sample(_data(20), n)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "quantiles"}, "Unknown length filter 'quantiles'.*quantile, std, none"),
        ({"low": 0.8, "high": 0.2}, "low < high"),
        ({"low": -0.1}, "0 ≤ low"),
        ({"width": 0}, "positive number"),
        ({"width": float("nan")}, "positive number"),
    ],
)
def test_a_bad_filter_is_refused(options: dict, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        LengthFilter(**options)
    with pytest.raises(OptionError, match="Unknown length filter 'kwantile'"):
        sample(_data(20), 5, length_filter="kwantile")


def test_nothing_to_draw_from() -> None:
    with pytest.raises(TaskError, match="no gold labels"):
        sample(dataclasses.replace(_data(20), labels=None), 5)
    with pytest.raises(TaskError, match="is empty"):
        sample(_data(20).subset([]), 5)
    two_lengths = Dataset(TASKS["rte"], "train", ("a", "b c d e"), None, [0, 1])
    with pytest.raises(TaskError, match="Widen the band"):
        sample(two_lengths, 2, length_filter=LengthFilter("quantile", low=0.4, high=0.6))


def test_what_is_left_over_goes_to_the_largest_remainders():
    assert proportional({"a": 3, "b": 1, "c": 1}, 3) == {"a": 2, "b": 1, "c": 0}

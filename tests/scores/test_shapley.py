"""Shapley values of heads: by all coalitions, by orders, what they sum to, truncation, interruption."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
import torch

from headviz import HeadMask
from headviz.errors import Cancelled, OptionError
from headviz.extras.scores import shapley
from headviz.scores.scoring import Scoring, score_heads
from support.analysed import learnt
from support.plain import evaluate
from support.scored_data import made
from support.tiny import tiny_classifier


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert", layers=2)


@pytest.fixture(scope="module")
def data():
    return learnt(40, wrong=0.05).data


def accuracy(clf, data, mask):
    return evaluate(clf, data, mask).metrics["accuracy"]


def test_few_heads_are_exact_by_all_32_coalitions(clf, data):
    """Against the metric of each of the 32 masks, evaluated one by one, and Shapley's weights written out."""
    data = data.subset(range(16))
    mask = HeadMask.only(2, 4, [(0, 0), (0, 2), (0, 3), (1, 1), (1, 2)])
    on = {bits: [h for i, h in enumerate(mask.kept) if bits >> i & 1] for bits in range(32)}
    worth = {bits: accuracy(clf, data, HeadMask.only(2, 4, heads)) for bits, heads in on.items()}
    result = score_heads(clf, data, "shapley", mask=mask, cache=False).values
    for place, head in enumerate(mask.kept):
        bit, value = 1 << place, 0.0
        for others in (b for b in range(32) if not b & bit):
            size = others.bit_count()
            value += factorial(size) * factorial(4 - size) / factorial(5) * (worth[others | bit] - worth[others])
        assert result[head] == pytest.approx(value, abs=1e-12)
    assert np.nansum(result) == pytest.approx(worth[31] - worth[0])


def test_orders_average_to_the_exact_values(clf, data, monkeypatch):
    """Three heads have six orders; taking them all is exact."""
    mask = HeadMask.full(2, 4).without([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)])
    exact = score_heads(clf, data, "shapley", mask=mask, cache=False).values
    whole = Scoring(clf, data, "shapley", mask=mask, cache=False).sample()
    worth = shapley.worth_of(whole, None)
    every = [shapley.one_order(whole, worth, list(order), 0.0) for order in permutations(whole.heads)]
    np.testing.assert_allclose(np.mean(every, axis=0), exact, atol=1e-12)
    monkeypatch.setattr(shapley, "MOST_HEADS", 0)
    drawn = score_heads(clf, data, "shapley", mask=mask, permutations=60, tolerance=0.0, cache=False)
    on = mask.array()
    assert ((drawn.interval_low <= exact + 1e-9) & (exact <= drawn.interval_high + 1e-9))[on].all()
    assert np.isnan(drawn.values[~on]).all()


def test_every_order_sums_to_the_whole_even_where_it_ends_early(data):
    clf = tiny_classifier("bert")
    whole = Scoring(clf, data, "shapley", cache=False).sample()
    asked = []
    worth = shapley.worth_of(whole, None)

    def counted(mask):
        asked.append(mask)
        return worth(mask)

    total = accuracy(clf, data, None) - accuracy(clf, data, HeadMask.full(3, 4).without(whole.heads))
    for tolerance in (0.0, 0.2):
        asked.clear()
        one = shapley.one_order(whole, counted, list(whole.heads), tolerance)
        assert one.sum() == pytest.approx(total)
        lengths = len(asked)
    assert lengths < 14


def test_a_head_that_does_nothing_is_worth_nothing_and_equal_heads_are_worth_the_same(data):
    clf = tiny_classifier("bert", layers=2, seed=3)
    places = clf.projections(0)
    with torch.no_grad():
        places.output.weight[:, :8] = 0  # the first head reaches nothing
        for name in ("query", "key", "value"):
            part = getattr(places, name)
            part.weight[16:24], part.bias[16:24] = part.weight[8:16].clone(), part.bias[8:16].clone()
        places.output.weight[:, 16:24] = places.output.weight[:, 8:16].clone()
    mask = HeadMask.only(2, 4, [(0, 0), (0, 1), (0, 2), (1, 3)])
    result = score_heads(clf, data, "shapley", mask=mask, cache=False).values
    assert result[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert result[0, 1] == pytest.approx(result[0, 2])


def test_stopped_in_the_middle_it_goes_on_to_the_same_bits(data, tmp_path, monkeypatch):
    monkeypatch.setattr("headviz.scores.whole.KEEP_SECONDS", 0.0)
    clf = tiny_classifier("bert")
    few = data.subset(range(12))
    expected = score_heads(clf, few, "shapley", permutations=4, cache=False).values
    place = tmp_path / "state"
    asked = iter(range(10**6))
    with pytest.raises(Cancelled):
        score_heads(clf, few, "shapley", permutations=4, cache=False, checkpoint=place, cancel=lambda: next(asked) > 20)
    assert place.is_file()
    again = score_heads(clf, few, "shapley", permutations=4, cache=False, checkpoint=place)
    assert again.values.tobytes() == expected.tobytes()


def test_other_options_begin_anew_with_the_same_checkpoint(data, tmp_path, monkeypatch):
    monkeypatch.setattr("headviz.scores.whole.KEEP_SECONDS", 0.0)
    clf, few, place = tiny_classifier("bert"), data.subset(range(12)), tmp_path / "state"
    score_heads(clf, few, "shapley", permutations=3, cache=False, checkpoint=place)
    wanted = {"permutations": 3, "seed": 5}
    result = score_heads(clf, few, "shapley", **wanted, cache=False, checkpoint=place).values
    assert result.tobytes() == score_heads(clf, few, "shapley", **wanted, cache=False).values.tobytes()


def test_options_out_of_range_are_refused(clf):
    for wrong in ({"permutations": 1}, {"tolerance": 1.0}, {"metric": "bleu"}):
        with pytest.raises(OptionError):
            score_heads(clf, made(6), "shapley", cache=False, **wrong)

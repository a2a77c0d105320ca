"""How often the criterion of tickets passes a real loss, and the test with a margin: checked by simulation."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from headviz.errors import OptionError
from headviz.extras.tickets.winning import Ticket, false_win_rate, highest_within, margin_test, ticket, wins


@pytest.mark.parametrize(("seeds", "loss"), [(2, 1.0), (10, 1.0), (3, 0.0), (3, 2.5)])
def test_the_rate_of_false_wins_is_that_of_simulated_trainings(seeds, loss):
    rng, cases = np.random.default_rng(0), 10_000
    full = rng.normal(0.8, 0.01, (cases, seeds))
    pruned = rng.normal(0.8 - loss * 0.01, 0.01, (cases, seeds))
    passed = np.mean([wins(f.mean(), p.mean(), p.std(ddof=1)) for f, p in zip(full, pruned, strict=True)])
    assert false_win_rate(seeds, loss) == pytest.approx(passed, abs=4 * np.sqrt(0.25 / cases))


def test_the_margin_test_is_a_paired_t_test_against_the_margin():
    full, pruned = [0.80, 0.82, 0.81, 0.84], [0.79, 0.83, 0.80, 0.82]
    result = margin_test(full, pruned, 2.0, "accuracy")
    change = 100 * (np.array(pruned) - np.array(full))
    expected = ttest_1samp(change, -2.0, alternative="greater")
    assert result.difference == pytest.approx(change.mean())
    assert result.p == pytest.approx(expected.pvalue)
    assert result.excludes == pytest.approx(-expected.confidence_interval(0.95).low)
    assert result.within == (result.p < 0.05) == (result.excludes < 2.0)
    assert margin_test(full, pruned, 20.0, "accuracy").within
    bleu = margin_test(*([100 * v for v in values] for values in (full, pruned)), 2.0, "bleu")
    assert bleu.excludes == pytest.approx(result.excludes)  # BLEU comes in points already


def test_a_loss_as_large_as_the_margin_passes_in_no_more_than_5_per_cent():
    rng, cases = np.random.default_rng(1), 2000
    full = rng.normal(0.8, 0.01, (cases, 3))
    pruned = full - 0.02 + rng.normal(0, 0.008, (cases, 3))
    passed = [margin_test(f, p, 2.0, "accuracy").within for f, p in zip(full, pruned, strict=True)]
    assert 0.035 < np.mean(passed) < 0.065


def test_what_cannot_be_told():
    assert margin_test([0.8], [0.8], 2.0, "accuracy") is None
    same = margin_test([0.8, 0.8, 0.8], [0.8, 0.8, 0.8], 2.0, "accuracy")
    assert (same.difference, same.excludes, same.within) == (0.0, None, None)
    for margin in (0.0, -1.0, float("nan")):
        with pytest.raises(OptionError, match="points above 0"):
            margin_test([0.8, 0.9], [0.8, 0.9], margin, "accuracy")


def test_the_highest_sparsity_within_the_margin_ends_the_first_unbroken_run():
    good, bad = [0.80, 0.81, 0.82, 0.81], [0.70, 0.79, 0.74, 0.60]
    full = [0.80, 0.80, 0.82, 0.80]
    result = [ticket(s, full, own) for s, own in ((0.1, good), (0.2, good), (0.3, bad), (0.4, good))]
    assert [t.within.within for t in result] == [True, True, False, True]
    assert highest_within(result[::-1]).sparsity == 0.2
    assert highest_within(result[2:]) is None
    assert highest_within([Ticket(0.1, 0.8, None, 0.8, None, 1, None)]) is None

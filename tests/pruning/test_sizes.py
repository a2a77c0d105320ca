"""The arithmetic of steps, against literal transcriptions of METHODS' sentences."""

from itertools import pairwise

import numpy as np
import pytest

from headviz.errors import OptionError
from headviz.pruning import plan


@pytest.mark.parametrize("total", [8, 12, 72, 144, 384])
@pytest.mark.parametrize("step", [0.125, 0.1, 0.2, 0.25, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("until", [0.1, 0.3, 0.5, 0.9, 1.0])
def test_cumulative_sizes_are_rounded_multiples_up_to_the_first_that_reaches_the_target(total, step, until):
    if step * total < 1:
        pytest.skip("refused")
    result = plan.cumulative(total, step, until)
    k = np.arange(1, len(result) + 1)
    exact = np.minimum(k * step * total, total)
    assert np.abs(np.array(result) - exact).max() <= 0.5 + 1e-9
    assert result[-1] / total >= until
    assert all(s / total < until for s in result[:-1])
    assert all(a < b for a, b in pairwise(result))


def test_decimal_steps_are_exact():
    # 3 * 0.1 is above 0.3 in binary, and 0.15 * 10 is not 1.5
    assert plan.cumulative(10, 0.1, 0.3) == [1, 2, 3]
    assert plan.cumulative(10, 0.15, 0.3) == [2, 3]


@pytest.mark.parametrize("total", [8, 72, 144])
@pytest.mark.parametrize("step", [0.001, 0.1, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("until", [0.3, 0.9, 1.0])
def test_isp_takes_its_share_of_what_is_left(total, step, until):
    expected, left = [], total
    while (total - left) / total < until:
        left -= max(1, round(step * left))
        expected.append(total - left)
    assert plan.remaining(total, step, until) == expected


@pytest.mark.parametrize("rule", [plan.cumulative, plan.remaining])
@pytest.mark.parametrize("total", [8, 12, 72, 144])
@pytest.mark.parametrize("step", [0.125, 0.2, 0.3, 1.0])
@pytest.mark.parametrize("until", [0.01, 0.3, 0.5, 0.6, 0.75, 0.8, 0.9, 1.0])
def test_the_last_step_goes_to_the_target_and_the_others_are_those_of_whole_steps(rule, total, step, until):
    result = rule(total, step, until, last=plan.TARGET)
    assert result[-1] == max(1, round(until * total))
    assert result[:-1] == [s for s in rule(total, step, until) if s < result[-1]]
    assert all(a < b for a, b in pairwise(result))


@pytest.mark.parametrize("rule", [plan.cumulative, plan.remaining])
@pytest.mark.parametrize("step", [0.1, 0.2, 0.3])
def test_a_note_says_where_whole_heads_miss_the_target_and_what_ends_there(rule, step):
    said = 0
    for until in np.arange(1, 101) / 100:
        result = rule(144, step, until)
        near = round(until * 144)
        missed = near in result and near / 144 < until
        notes = plan.beyond(144, result, until)
        assert len(notes) == missed
        if missed:
            offered = notes[0].rsplit("'", 2)[1]
            assert rule(144, step, until, last=offered)[-1] == near == result[-2]
            said += 1
    assert said


def test_keep_per_layer_caps_or_refuses():
    assert plan.cumulative(12, 0.3, 0.75, keep_per_layer=1, layers=3) == [4, 7, 9]
    with pytest.raises(OptionError, match=r"removes 11 of 12 heads, but keeping 1 per layer allows 9.*at most 0\.75"):
        plan.cumulative(12, 0.3, 0.9, keep_per_layer=1, layers=3)
    with pytest.raises(OptionError, match="at most"):
        plan.remaining(12, 0.3, 0.9, keep_per_layer=1, layers=3)
    with pytest.raises(OptionError, match="at most"):
        plan.listed(12, (0.3, 0.9), keep_per_layer=1, layers=3)
    with pytest.raises(OptionError, match="only 4 heads"):
        plan.cumulative(12, 0.3, 0.5, keep_per_layer=5, layers=3)


def test_a_step_of_less_than_a_head_is_refused():
    with pytest.raises(OptionError, match="less than one of 144 heads"):
        plan.cumulative(144, 0.001, 0.5)


def test_listed_sparsities():
    assert plan.listed(144, (0.3, 0.5, 0.7, 0.9)) == [43, 72, 101, 130]
    with pytest.raises(OptionError, match="at least one head more"):
        plan.listed(8, (0.5, 0.51))


@pytest.mark.parametrize("total", [8, 12, 72, 144, 384])
def test_what_a_refusal_offers_is_accepted(total):
    with pytest.raises(OptionError) as refused:
        plan.cumulative(total, 0.1, 1.0, keep_per_layer=1, layers=total // 4)
    offered = float(str(refused.value).split("at most ")[1].split(",")[0])
    assert plan.cumulative(total, 0.5, offered, keep_per_layer=1, layers=total // 4)[-1] == total * 3 // 4
    with pytest.raises(OptionError) as refused:
        plan.cumulative(total, 0.0001, 0.5)
    offered = float(str(refused.value).split("at least ")[1].split(",")[0])
    assert plan.cumulative(total, offered, 2 * offered)[0] == 1

"""Scores measured in parts and joined: equal to the whole in every bit."""

import random

import numpy as np
import pytest

from headviz import HeadMask
from headviz.errors import OptionError
from headviz.scores import SCORES, scoring
from headviz.scores.collect import windows
from headviz.scores.scoring import score_heads
from headviz.tasks import TASKS, Dataset
from support.scored_data import made
from support.tiny import tiny_classifier
from support.tiny_translation import SOURCES, TARGETS, tiny_translator

FAST = {"conductance": {"steps": 4}, "attattr": {"steps": 2}}
FAST_WHOLE = {name: {"steps": 3} for name in ("gates", "gates-hard", "gates-exact", "gates-causal")}
FAST_WHOLE["shapley"] = {"permutations": 2}
ONE_OF_EACH_SWEEP = {SCORES[name].needs or name: name for name in SCORES}.values()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(scoring, "PART", 16)


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert")


def fresh(clf, data, score="taylor", **options):
    return scoring.Scoring(clf, data, score, cache=False, **options)


def equal(a, b):
    """Every field, NaN equal to NaN, to the last bit."""
    left, right = a.to_dict(), b.to_dict()
    assert left.keys() == right.keys()
    for name in ("values", "stderr", "interval_low", "interval_high", "undefined_by_head"):
        assert np.asarray(getattr(a, name)).tobytes() == np.asarray(getattr(b, name)).tobytes(), name
    return left == right or str(left) == str(right)


@pytest.mark.parametrize("name", ONE_OF_EACH_SWEEP)
def test_every_score_joined_from_parts_in_any_order_equals_the_whole(clf, name):
    data = made(36)
    options = {"score": name, "mask": HeadMask.full(3, 4).without([(0, 1)])}
    options |= FAST.get(SCORES[name].needs or "", FAST_WHOLE.get(name, {}))
    number = scoring.part_count(name, len(data))
    alone = SCORES[name].without_examples or SCORES[name].needs_sample
    assert number == (1 if alone else 3)  # 4+4+8, 16, and the last 4 in 32's window
    order = list(range(number))
    random.Random(0).shuffle(order)
    result = {i: scoring.measure_part(fresh(clf, data, **options), i) for i in order}
    joined = scoring.join_parts(fresh(clf, data, **options), [result[i] for i in range(number)])
    assert equal(joined, score_heads(clf, data, cache=False, **options))


def test_sentences_to_translate_are_measured_in_parts_too():
    draw = random.Random(1)
    pairs = [tuple(" ".join(draw.choices(side, k=2)) for side in (SOURCES, TARGETS)) for _ in range(36)]
    data = Dataset(TASKS["custom-translation"], "dev", *zip(*pairs, strict=True))
    clf = tiny_translator("marian")
    result = [scoring.measure_part(fresh(clf, data), i) for i in range(scoring.part_count("taylor", 36))]
    assert len(result) == 3
    assert equal(scoring.join_parts(fresh(clf, data), result), score_heads(clf, data, "taylor", cache=False))


def test_one_scoring_measures_several_parts_without_mixing_them(clf):
    data = made(36)
    all_parts = scoring.Scoring(clf, data, "fisher", cache=False)
    for i in (2, 0, 1):
        alone, shared = scoring.measure_part(fresh(clf, data, "fisher"), i), scoring.measure_part(all_parts, i)
        assert alone.keys() == shared.keys()
        assert all(alone[k].tobytes() == shared[k].tobytes() for k in alone)


def test_parts_cover_every_example_once_and_cut_no_window():
    for n in (1, 3, 4, 5, 16, 17, 50, 200, 1000):
        cut = scoring.part_slices(n, 64)
        assert [i for c in cut for i in range(n)[c]] == list(range(n))
        edges = {w.stop for w in windows(n, 64)}
        assert all(c.stop in edges for c in cut)
        assert all(c.stop - c.start >= 16 for c in cut[:-1])


def test_parts_of_another_sample_are_refused(clf):
    data = made(36)
    result = [scoring.measure_part(fresh(clf, data), i) for i in range(3)]
    assert scoring.measure_part(fresh(clf, data), 3) == {}
    for wrong in (result[:2], [*result, result[0]], [result[1], result[2], result[0]]):
        with pytest.raises(OptionError, match="do not make up this sample"):
            scoring.join_parts(fresh(clf, data), wrong)
    with pytest.raises(OptionError, match="numbered from 0"):
        scoring.measure_part(fresh(clf, data), -1)


def test_progress_of_a_part_counts_over_the_whole_sample(clf):
    data, told = made(36), []
    all_parts = scoring.Scoring(
        clf, data, "taylor", cache=False, progress=lambda done, total: told.append((done, total))
    )
    scoring.measure_part(all_parts, 1)
    scoring.measure_part(all_parts, 2)
    assert told[-1] == (36, 36)
    assert all(0 <= done <= total for done, total in told)

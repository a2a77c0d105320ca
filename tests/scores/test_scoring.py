"""Every score of the table: invariances, what is kept, what is continued."""

import os
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

import headviz
from headviz import HeadMask, plugins
from headviz.errors import Cancelled, MaskError, OptionError, TaskError
from headviz.models.pruning import weight_of
from headviz.scores import PRESETS, SCORES, score
from headviz.scores.scoring import score_heads, score_progressive
from headviz.storage.store import Store
from headviz.tasks import Dataset
from support import forked
from support.marks import all_in_ci
from support.scored_data import made
from support.tiny import tiny_classifier

FAST = {"conductance": {"steps": 4}, "attattr": {"steps": 2}}
FAST_WHOLE = {
    "gates": {"steps": 3},
    "gates-hard": {"steps": 3},
    "gates-exact": {"steps": 3},
    "gates-causal": {"steps": 3},
    "shapley": {"permutations": 2},
}
OFF = ((0, 1), (2, 0))
EVERY = all_in_ci(
    SCORES, [name for name in ("attattr-max", "taylor", "gates", "magnitude", "random") if name in SCORES]
)


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert")


@pytest.fixture(scope="module")
def data():
    return made(12)


@pytest.fixture(autouse=True)
def few_coalitions(monkeypatch):
    """Shapley values are drawn here; ``test_shapley`` has the exact ones."""
    if "shapley" in SCORES:
        monkeypatch.setattr("headviz.extras.scores.shapley.MOST_HEADS", 4)


def options(name):
    return {"cache": False, **FAST.get(SCORES[name].needs or "", FAST_WHOLE.get(name, {}))}


# every entry of the table --------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_what_evaluation_refuses_is_scored_only_where_labels_do_not_count(clf, name):
    data = made(5)
    unknown = Dataset.of(data.texts, pairs=data.pairs, labels=[("spam", "ham")[i % 2] for i in range(len(data))])
    with pytest.raises(TaskError, match="does not know the labels"):
        headviz.evaluate(clf, unknown)
    refusal, values = "", []
    for examples in (unknown, data):
        try:
            values.append(headviz.score_heads(clf, examples, name, **options(name)).values)
        except TaskError as error:
            refusal = str(error)
    if refusal:
        assert "does not know the labels" in refusal
        assert len(values) == 1
    else:
        np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("name", EVERY)
def test_a_score_has_its_table_and_its_uncertainty(clf, data, name):
    s = score_heads(clf, data, name, **options(name))
    assert s.values.shape == s.stderr.shape == s.interval_low.shape == (3, 4)
    assert np.isfinite(s.values).all()
    assert s.settings["score"] == name
    if SCORES[name].needs_sample:
        assert s.samples == 12
    elif not SCORES[name].without_examples:
        assert s.samples == 12
        assert (s.stderr >= 0).all()
        assert ((s.interval_low <= s.values + 1e-12) & (s.values <= s.interval_high + 1e-12)).all()
        assert 0 < s.stability <= 1
    else:
        assert s.samples == 0
        assert np.isnan(s.stderr).all()
    assert s.values[s.ranked()[0]] == s.values.max()
    assert s.to_dict()["values"] == s.values.tolist()


@pytest.mark.parametrize("name", EVERY)
def test_order_batch_and_padding_do_not_matter(clf, name):
    data = made(5)
    first = score_heads(clf, data, name, **options(name))
    shuffled = data.subset(np.random.default_rng(1).permutation(len(data)))
    again = score_heads(clf, shuffled, name, **options(name))
    np.testing.assert_array_equal(again.values, first.values)
    one_by_one = score_heads(clf, data, name, **options(name), budget=1)
    np.testing.assert_allclose(one_by_one.values, first.values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one_by_one.stderr, first.stderr, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
def test_heads_that_are_off_are_nan_and_take_no_part(clf, name):
    data = made(5)
    mask = HeadMask.full(3, 4).without(OFF)
    masked = score_heads(clf, data, name, mask=mask, **options(name))
    pruned = score_heads(headviz.prune(clf, mask), data, name, **options(name))
    for s, word in ((masked, "masked"), (pruned, "removed")):
        assert np.isnan(s.values[~mask.array()]).all()
        assert np.isfinite(s.values[mask.array()]).all()
        assert any(f"2 heads {'are' if word == 'masked' else 'were'} {word}" in note for note in s.notes)
        assert s.to_dict()["values"][0][1] is None
    np.testing.assert_allclose(pruned.values, masked.values, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", EVERY)
def test_a_whole_layer_off(clf, name):
    mask = HeadMask.full(3, 4).without([(1, h) for h in range(4)])
    for model, given in ((clf, mask), (headviz.prune(clf, mask), None)):
        s = score_heads(model, made(3), name, mask=given, **options(name))
        assert np.isnan(s.values[1]).all()
        assert np.isfinite(s.values[[0, 2]]).all()


# what the formulas say ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("conductance-spearman", stats.spearmanr),
        ("conductance-kendall", stats.kendalltau),
        ("conductance-pearson", stats.pearsonr),
    ],
)
def test_conductance_scores_are_means_of_scipys_correlations(clf, name, of):
    data = made(5)
    maps = headviz.conductance(clf, list(data.texts), list(data.pairs), steps=4, cache=False)
    s = score_heads(clf, data, name, steps=4, cache=False)
    for head in clf.full_mask.heads():
        single = [of(m.attention[head].ravel(), m.attribution[head].ravel()).statistic for m in maps]
        assert s.values[head] == pytest.approx(np.mean(single), abs=2e-4)
        assert s.stderr[head] == pytest.approx(stats.sem(single), abs=2e-4)


def test_influential_rows_change_the_last_layer_only(clf):
    data = made(5)
    maps = headviz.conductance(clf, list(data.texts), list(data.pairs), steps=4, cache=False)
    every = score_heads(clf, data, steps=4, cache=False)
    some = score_heads(clf, data, steps=4, rows="influential", cache=False)
    np.testing.assert_array_equal(some.values[:2], every.values[:2])
    first_row = [stats.spearmanr(m.attention[2, 1, 0], m.attribution[2, 1, 0]).statistic for m in maps]
    assert some.values[2, 1] == pytest.approx(np.mean(first_row), abs=1e-3)


def test_an_example_without_a_correlation_is_counted(clf):
    data = made(5)
    empty = type(data)(data.task, data.split, (*data.texts, ""), (*data.pairs, ""), np.append(data.labels, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no complaint of numpy's
        # only [CLS] and [SEP]: nothing changes along the path
        s = score_heads(clf, empty, steps=4, cache=False)
    assert s.samples == 6
    assert s.undefined == 1
    assert (s.undefined_by_head == 1).all()
    assert any("undefined" in note for note in s.notes)
    np.testing.assert_allclose(s.values, score_heads(clf, data, steps=4, cache=False).values, atol=1e-6)


def test_random_is_seeded_and_magnitude_looks_at_weights(clf, data):
    a, b = (score_heads(clf, data, "random", seed=s).values for s in (1, 2))
    np.testing.assert_array_equal(a, score_heads(clf, made(3, seed=9), "random", seed=1).values)
    assert (a != b).any()
    s = score_heads(clf, data, "magnitude").values
    place = clf.projections(2)
    by_hand = place.output.weight[:, 8:16].norm() * place.value.weight[8:16].norm()
    assert s[2, 1] == pytest.approx(float(by_hand), rel=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "gpt2"])
def test_magnitude_reads_the_values_of_a_matrix_that_holds_all_three(family):
    clf = tiny_classifier(family)
    with torch.no_grad():
        weight_of(clf.projections(0).value)[-clf.num_heads * clf.head_size :] = 0
    values = score_heads(clf, made(3), "magnitude", cache=False).values
    assert (values[0] == 0).all()
    assert (values[1:] > 0).all()


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, None])
def test_what_is_no_seed_is_refused(clf, data, seed):
    for name in ("random", "gates", "shapley"):
        with pytest.raises(OptionError, match="seed is a whole number"):
            score_heads(clf, data, name, seed=seed)


def test_presets_are_the_published_choices(clf, data):
    michel = score_heads(clf, data, preset="michel-2019", cache=False)
    np.testing.assert_array_equal(
        michel.values, score_heads(clf, data, "taylor", abs_level="token", layer_norm=True, cache=False).values
    )
    for preset in PRESETS.values():
        assert preset.score in SCORES


# what is kept and continued ------------------------------------------------------------------------


def counted(monkeypatch):
    """How many examples each sweep really computes."""
    seen = []
    for name, sweep in list(score.SWEEPS.items()):

        def run(chunk, name=name, real=sweep.run):
            seen.append((name, len(chunk.encodings)))
            return plugins.function(real)(chunk)

        monkeypatch.setitem(score.SWEEPS, name, replace(sweep, run=run))
    return lambda: [sum(n for s, n in seen if s == name) for name in score.SWEEPS]


def test_a_larger_sample_computes_only_what_is_new(clf, data, tmp_path, monkeypatch):
    seen, store = counted(monkeypatch), Store(tmp_path / "store")
    small = score_heads(clf, data.subset(range(5)), steps=4, cache=store)
    assert seen()[0] == 5
    large = score_heads(clf, data, steps=4, cache=store)
    assert seen()[0] == 12
    fresh = score_heads(clf, data, steps=4, cache=False)
    np.testing.assert_allclose(large.values, fresh.values, atol=1e-6)
    assert small.samples == 5


def test_one_sweep_serves_every_conductance_score(clf, data, tmp_path, monkeypatch):
    seen, store = counted(monkeypatch), Store(tmp_path / "store")
    for name in SCORES:
        if SCORES[name].needs == "conductance":
            for rows in ("all", "influential"):
                score_heads(clf, data, name, steps=4, rows=rows, cache=store)
    for level in ("example", "token", "batch", "signed"):
        score_heads(clf, data, "taylor", abs_level=level, cache=store)
    score_heads(clf, data, "fisher", cache=store)
    assert seen() == [12, 0, 12] + [0] * (len(score.SWEEPS) - 3)


def test_equal_examples_are_computed_once_and_count_twice(clf, monkeypatch):
    data = made(4)
    twice = data.subset([0, 1, 1, 2, 3, 1])
    seen = counted(monkeypatch)
    s = score_heads(clf, twice, steps=4, cache=False)
    assert seen()[0] == 4
    single = [score_heads(clf, data.subset([i]), steps=4, cache=False).values for i in (0, 1, 1, 2, 3, 1)]
    np.testing.assert_allclose(s.values, np.mean(single, axis=0), atol=1e-6)


def test_cancelling_keeps_what_is_done(clf, data, tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    done = []
    with pytest.raises(Cancelled):
        score_heads(
            clf, data, steps=4, cache=store, progress=lambda n, _: done.append(n), cancel=lambda: max(done) >= 4
        )
    kept = store.usage().kinds["values"]
    assert 4 <= kept < 12
    seen = counted(monkeypatch)
    score_heads(clf, data, steps=4, cache=store)
    assert seen()[0] == 12 - kept


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the process is forked")
def test_killed_in_the_middle_it_continues_to_identical_values(clf, tmp_path):
    store = Store(tmp_path / "store")
    running = forked.module("scores.long_sweep", [str(store.folder)], dict(os.environ), tmp_path / "log")
    while store.usage().kinds.get("values", 0) < 8:
        assert running.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.01)
    running.kill()
    running.wait(60)
    assert 8 <= store.usage().kinds["values"] < 40
    data = made(40)
    continued = score_heads(clf, data, steps=16, cache=store)
    straight = score_heads(clf, data, steps=16, cache=False)
    np.testing.assert_array_equal(continued.values, straight.values)
    np.testing.assert_array_equal(continued.stderr, straight.stderr)


def test_growing_tables_narrow_and_end_at_the_whole(clf):
    data = made(20)
    tables = list(score_progressive(clf, data, steps=4, cache=False))
    assert [t.samples for t in tables] == [4, 8, 16, 20]
    widths = [np.mean(t.interval_high - t.interval_low) for t in tables]
    assert widths == sorted(widths, reverse=True)
    assert tables[-1].stability >= tables[0].stability
    whole = score_heads(clf, data, steps=4, cache=False)
    np.testing.assert_array_equal(tables[-1].values, whole.values)


# bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"score": "conductance-spearmen"}, OptionError, "Did you mean 'conductance-spearman'"),
        ({"preset": "michel"}, OptionError, "michel-2019, thesis-2024"),
        ({"preset": "michel-2019", "score": "fisher"}, OptionError, "is of the score 'taylor'"),
        ({"row": "all"}, OptionError, "Did you mean 'rows'"),
        ({"rows": "first"}, OptionError, "all, influential"),
        ({"score": "taylor", "abs_level": "none"}, OptionError, "example, token, batch, signed"),
        ({"score": "taylor", "batch_size": 0}, OptionError, "at least 1"),
        ({"score": "ablation", "metric": "f1"}, OptionError, "accuracy"),
        ({"score": "fisher", "steps": 3}, OptionError, "has no options"),
        ({"steps": 0}, OptionError, "from 1"),
        ({"target": "yes"}, OptionError, "entailment"),
        ({"mask": HeadMask.full(2, 2)}, MaskError, "2×2 heads"),
    ],
)
def test_bad_input_is_answered_in_one_line(clf, data, given, error, says):
    with pytest.raises(error, match=says) as caught:
        score_heads(clf, data.subset(range(2)), **given)
    assert "\n" not in str(caught.value)


def test_data_that_do_not_fit(clf, data):
    with pytest.raises(TaskError, match="no examples"):
        score_heads(clf, data.subset([]))
    with pytest.raises(TaskError, match="Give its pair"):
        score_heads(clf, made(3, task="sst2"))
    bare = type(data)(data.task, data.split, data.texts, data.pairs)
    assert np.isfinite(score_heads(clf, bare.subset(range(2)), steps=4, cache=False).values).all()  # no label needed
    for name in ("taylor", "fisher", "ablation", "attattr-max"):
        with pytest.raises(TaskError, match="no gold labels"):
            score_heads(clf, bare, name)

"""Every algorithm against a slow, literal transcription of its definition, on tiny models."""

import math
from itertools import pairwise

import numpy as np
import pytest

import headviz
from headviz.errors import OptionError
from headviz.heads import HeadMask
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.job import run_plan
from support.plain import evaluate
from support.pruning_plans import QUICK, by_hash, context, plan

SIX = ("one-importance", "iterative", "igspf", "igspp", "isp", "one-shot-isp")


def literal(name, c, p, seed, total=12):
    """METHODS' table, sentence by sentence: [(mask, dev logits)] of one seed."""
    star, sample = c.clf, c.sample(p, seed, p.samples)

    def S(model, mask=None):
        return by_hash(model, sample, p.score, mask=mask, seed=seed).values

    def FT(mask):
        small = headviz.prune(c.load_base(seed), mask)
        return fine_tune(small, c.train, QUICK, seed).classifier

    def lowest(scores, mask, count):
        left = [(scores[h], h) for h in mask.kept]
        return mask.without([h for _, h in sorted(left)[:count]])

    first = S(star)
    mask, model, steps, k = HeadMask.full(3, 4), star, [], 0
    while mask.sparsity < p.until:
        k += 1
        if name == "isp":
            more = max(1, round(p.step * len(mask.kept)))
        else:
            more = round(k * p.step * total) - len(mask.off)
        more = min(more, round(p.until * total) - len(mask.off))  # the last step ends at the share that was named
        if name in ("one-importance", "one-shot-isp"):
            mask = lowest(first, mask, more)
        elif name in ("iterative", "igspf"):
            mask = lowest(S(star, mask), mask, more)
        else:
            mask = lowest(S(model), mask, more)
        if name in ("one-importance", "iterative"):
            logits = evaluate(star, c.dev, mask).logits
        else:
            model = FT(mask)
            logits = evaluate(model, c.dev).logits
        steps.append((mask, logits))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("name", SIX)
def test_against_the_literal_loop(name, tmp_path):
    seeds = (0, 5) if name in ("one-importance", "iterative") else (5,)
    c, p = context(tmp_path), plan(name, seeds=seeds, step=0.3, until=0.5, retrain_full=False)
    *_, state = run_plan(p, c)
    for seed in p.seeds:
        expected = literal(name, c, p, seed)
        found = [r for r in state.steps if r.seed == seed]
        assert [r.mask for r in found] == [mask.hex for mask, _ in expected]
        for record, (mask, logits) in zip(found, expected, strict=True):
            np.testing.assert_allclose(state.logits[record.logits], logits, atol=1e-5)
            right = np.mean(logits.argmax(1) == c.dev.gold)
            assert record.metrics["accuracy"] == pytest.approx(right, abs=1e-12)
            assert record.sparsity == len(mask.off) / 12 == record.heads_off / 12


@pytest.mark.slow
@pytest.mark.parametrize(("name", "keep"), [("one-importance", 1), ("iterative", 0), ("isp", 1)])
def test_masks_are_nested_and_sizes_exact(name, keep, tmp_path):
    p = plan(name, step=0.3, until=0.7, keep_per_layer=keep, retrain_full=False, last_step="full")
    *_, state = run_plan(p, context(tmp_path))
    masks = [HeadMask.from_hex(r.mask, 3, 4) for r in state.steps]
    sizes = [4, 7, 9 if keep else 11] if name != "isp" else [4, 6, 8, 9]
    assert [len(m.off) for m in masks] == sizes
    for before, after in pairwise(masks):
        assert set(before.off) < set(after.off)
    if keep:
        assert all(4 - len(m.off_in(layer)) >= keep for m in masks for layer in range(3))


def test_unmeasured_heads_go_last(tmp_path):
    def holes(clf, data, score, *, mask, **_):
        class T:
            values = np.array([[np.nan, 9, 9, 9], [np.nan, 9, 9, 9], [np.nan, 1, 2, 3.0]])

        return T()

    *_, state = run_plan(plan("one-importance"), context(tmp_path, score=holes))
    assert state.choices[0].scores[0][0] is None
    assert HeadMask.from_hex(state.steps[-1].mask, 3, 4).kept == ((0, 0), (1, 0), (2, 0))


@pytest.mark.slow
def test_a_score_that_draws_takes_the_runs_seed(tmp_path):
    from headviz.scores.scoring import score_heads

    c, p = context(tmp_path, score=None), plan("one-importance", seeds=(0, 3))
    *_, state = run_plan(p, c)
    tables = {}
    for seed in p.seeds:
        tables[seed] = np.array(state.choice(seed, 1).scores, float)
        expected = score_heads(c.clf, c.sample(p, seed, 24), "random", seed=seed, cache=False).values
        np.testing.assert_array_equal(tables[seed], expected)
    assert not np.array_equal(tables[0], tables[3])
    a, b = (headviz.sample(c.train, 24, seed, length_filter=None) for seed in p.seeds)
    assert (c.sample(p, 0, 24).texts, c.sample(p, 3, 24).texts) == (a.texts, b.texts)
    assert a.texts != b.texts


@pytest.mark.slow
def test_the_record_of_a_step(tmp_path):
    c, p = context(tmp_path), plan("one-importance")
    *_, state = run_plan(p, c)
    full = evaluate(c.clf, c.dev)
    for r in state.steps:
        mask = HeadMask.from_hex(r.mask, 3, 4)
        masked = evaluate(c.clf, c.dev, mask)
        assert r.agreement == np.mean(masked.predictions == full.predictions)
        low, high = r.intervals["accuracy"]
        assert low < r.metrics["accuracy"] < high
        delta = r.deltas["accuracy"]
        assert delta["delta"] == pytest.approx(r.metrics["accuracy"] - full.metrics["accuracy"])
        assert delta["low"] <= delta["delta"] <= delta["high"]
        small = headviz.prune(c.clf, mask)
        assert (r.parameters, r.flops) == (small.cost().parameters, small.cost().flops)
        assert set(r.seconds) == {"score", "evaluate"}
        assert all(math.isfinite(s) and s >= 0 for s in r.seconds.values())
    assert state.reference.metrics == full.metrics
    assert state.choices[0].samples == 24


@pytest.mark.slow
def test_a_retrained_step_has_its_curve_and_its_model(tmp_path):
    c = context(tmp_path)
    p = plan("igspp", until=0.5, keep_models="all")
    *_, state = run_plan(p, c)
    for r in state.steps:
        assert [x.step for x in r.curve] == list(range(1, 7))  # 48 examples, batches of 8, one epoch
        again = headviz.load(c.folder / r.model, device="cpu")
        assert again.digest == r.model_digest
        np.testing.assert_allclose(evaluate(again, c.dev).logits, state.logits[r.logits], atol=1e-5)
        assert r.seconds["train"] > 0


@pytest.mark.slow
def test_only_the_last_models_are_kept_by_default(tmp_path):
    c = context(tmp_path)
    *_, state = run_plan(plan("one-shot-isp", until=0.5), c)
    there = sorted(p.name for p in (c.folder / "models").iterdir())
    last = max(r.step for r in state.steps)
    assert [n for n in there if not n.endswith("step0")] == [f"seed0-step{last}"]
    assert not (c.folder / "training").exists()


@pytest.mark.slow
def test_step_zero_is_retrained_only_where_the_algorithm_retrains(tmp_path):
    for options, same in (({"retrain_full": False}, True), ({}, False)):
        *_, state = run_plan(plan("one-shot-isp", until=0.25, **options), context(tmp_path / str(same)))
        assert (state.record(0, 0).logits == state.reference.logits) is same


@pytest.mark.slow
def test_the_callers_models_stay_as_they_were(tmp_path):
    c = context(tmp_path)
    before = c.clf.digest, c.load_base(0).digest
    for name in ("iterative", "mask-search", "igspp"):
        for _ in run_plan(plan(name, until=0.25), context(tmp_path / name, clf=c.clf)):
            pass
    from headviz.models.network import weights_digest

    assert weights_digest(c.clf.model, c.clf.config.to_dict(), c.clf.present.hex) == before[0]
    assert c.load_base(0).digest == before[1]


def test_a_run_replaces_no_models_that_were_there(tmp_path):
    c = context(tmp_path)
    kept = c.folder / "models" / "seed0-step1"
    kept.mkdir(parents=True)
    with pytest.raises(OptionError, match="not an empty folder"):
        next(run_plan(plan("one-importance", until=0.5), c))
    assert kept.is_dir()

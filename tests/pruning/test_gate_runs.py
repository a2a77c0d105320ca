"""Runs by learned gates: what they choose, resuming in the middle of a learning, translation models."""

import numpy as np
import pytest

from headviz.heads import lowest
from headviz.pruning.job import run_plan
from headviz.scores.scoring import score_heads
from support.pruning_plans import context, plan
from support.translation_plans import context as translation_context
from support.translation_plans import plan as translation_plan

QUICK = {"steps": 12, "batch": 6}


def of(name, **options):
    return plan(name, score="", score_options=QUICK, **options)


def whole(folder, p):
    *_, state = run_plan(p, context(folder, score=None))
    return state


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gates-hard", "gates-causal"])
def test_gates_are_learned_once_and_the_first_to_close_go_first(name, tmp_path):
    p = of(name)
    state = whole(tmp_path, p)
    c = context(tmp_path / "again", score=None)
    values = score_heads(c.clf, c.sample(p, 0, p.samples), name, cache=False, **QUICK).values
    for choice, size in zip(state.choices, (3, 6, 9), strict=True):
        mask = c.clf.full_mask.without(lowest(values, size, c.clf.full_mask.kept, seed=0))
        assert choice.mask == mask.hex


@pytest.mark.slow
def test_exactly_so_many_heads_are_off_and_a_layer_may_be_spared(tmp_path):
    state = whole(tmp_path, of("gates-exact", keep_per_layer=1))
    assert [r.heads_off for r in state.records] == [0, 3, 6, 9]
    assert all(c.scores is not None and np.isfinite(np.array(c.scores, dtype=float)).all() for c in state.choices)


@pytest.mark.slow
def test_translation_models_and_their_stacks(tmp_path):
    p = translation_plan(
        "gates-exact", score="", score_options={"steps": 4, "batch": 2}, stack="cross", step=0.5, until=0.5
    )
    c = translation_context(tmp_path)
    *_, state = run_plan(p, c)
    rows = c.clf.stacks["cross"]
    (choice,) = state.choices
    off = c.clf.full_mask.from_hex(choice.mask, c.clf.num_layers, c.clf.num_heads).off
    assert len(off) == len(rows) * c.clf.num_heads // 2
    assert {h.layer for h in off} <= set(rows)

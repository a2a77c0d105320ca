"""Runs by learned gates: what they choose, resuming in the middle of a learning, translation models."""

import numpy as np
import pytest

from headviz.errors import Cancelled
from headviz.heads import lowest
from headviz.pruning import State
from headviz.pruning.job import run_plan
from headviz.scores import whole as whole_module
from headviz.scores.scoring import score_heads
from support.marks import all_in_ci
from support.pruning_plans import context, plan, without_times
from support.translation_plans import context as translation_context
from support.translation_plans import plan as translation_plan

QUICK = {"steps": 12, "batch": 6}
NAMES = ("gates", "gates-hard", "gates-exact", "gates-causal")


def of(name, **options):
    return plan(name, score="", score_options=QUICK, **options)


def whole(folder, p):
    *_, state = run_plan(p, context(folder, score=None))
    return state


@pytest.mark.parametrize("name", ["gates", "gates-hard", "gates-causal"])
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
@pytest.mark.parametrize("name", all_in_ci(NAMES, NAMES[:1]))
def test_stopped_in_the_middle_of_a_learning_it_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(whole_module, "KEEP_SECONDS", 0.0)
    p = of(name, step=0.4, until=0.7)
    expected = without_times(whole(tmp_path / "whole", p))
    tries, learned = 0, []
    while True:
        c = context(tmp_path / "again", score=None)
        before = State.load(c.folder) if list(c.folder.glob("state-*")) else None
        asked = iter(range(6 + 3 * tries))
        try:
            for _ in run_plan(p, c, before, cancel=lambda a=asked: next(a, None) is None):
                pass
            break
        except Cancelled:
            tries += 1
            learned += c.folder.glob("training/*/score.safetensors")
    assert tries >= 2
    assert learned  # a stop was in the middle of a learning
    assert without_times(State.load(c.folder)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_translation_models_and_their_stacks(name, tmp_path):
    p = translation_plan(name, score="", score_options={"steps": 4, "batch": 2}, stack="cross", step=0.5, until=0.5)
    c = translation_context(tmp_path)
    *_, state = run_plan(p, c)
    rows = c.clf.stacks["cross"]
    (choice,) = state.choices
    off = c.clf.full_mask.from_hex(choice.mask, c.clf.num_layers, c.clf.num_heads).off
    assert len(off) == len(rows) * c.clf.num_heads // 2
    assert {h.layer for h in off} <= set(rows)

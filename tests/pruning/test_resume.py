"""A continued run equals an uninterrupted one, bit for bit; damage is noticed; works may come in any order."""

import dataclasses
import random

import pytest

from headviz.errors import Cancelled, RunError
from headviz.pruning import ALGORITHMS, FinetuneOptions, State
from headviz.pruning.check import start
from headviz.pruning.job import run_plan
from support.marks import algorithms
from support.pruning_plans import by_hash, context, do, plan, ready, without_times, write

SHORT = {"step": 0.4, "until": 0.7, "seeds": (0,)}
TWO = {**SHORT, "seeds": (0, 2), "retrain_full": False}


def whole(folder, p):
    *_, state = run_plan(p, context(folder))
    return without_times(state)


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms(["iterative", "isp", "gates-exact"], ALGORITHMS))
def test_resumed_after_every_step(name, tmp_path):
    learned = {"score_options": {"steps": 20}} if name.startswith("gates") else {}
    p = plan(name, **SHORT, **learned)
    expected = whole(tmp_path / "whole", p)
    c = context(tmp_path / "again")
    write(start(c, p), c.folder)
    steps = 0
    while True:
        c = context(tmp_path / "again")  # nothing but the folder survives
        state = State.load(c.folder)
        if not ready(p, state):
            break
        next(run_plan(p, c, state))
        steps += 1
    assert steps == len(state.sizes) + 1
    assert without_times(state) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "latest"), [("igspp", 18), ("iterative", 4)])
def test_cancelled_at_random_moments(name, latest, tmp_path):
    """``latest`` is the last moment at which a step is stopped."""
    p = plan(name, finetune=FinetuneOptions(epochs=2, batch=8, learning_rate=1e-3, checkpoint_steps=3), **SHORT)
    expected = whole(tmp_path / "whole", p)
    chance = random.Random(0)
    tries = 0
    while True:
        c = context(tmp_path / "again")
        questions = iter(range(chance.randint(2, latest) if tries < 20 else 10**9))
        before = State.load(c.folder) if list(c.folder.glob("state-*")) else None
        try:
            for _ in run_plan(p, c, before, cancel=lambda q=questions: next(q, None) is None):
                pass
            break
        except Cancelled:
            tries += 1
    assert tries >= 2
    assert without_times(State.load(c.folder)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["igspp", "iterative"])
def test_works_in_any_order_and_with_contexts_of_their_own(name, tmp_path):
    p = plan(name, **TWO)
    expected = whole(tmp_path / "whole", p)
    c = context(tmp_path / "pieces")
    state = start(c, p)
    chance = random.Random(1)
    while pieces := ready(p, state):
        fresh = context(tmp_path / "pieces")  # each piece with a context of its own
        state = do(fresh, p, State.from_bytes(state.to_bytes()), chance.choice(pieces))
    found = without_times(state)
    assert found == expected


@pytest.mark.slow
def test_independent_trainings_are_ready_together(tmp_path):
    p = plan("one-shot-isp", **TWO)
    c = context(tmp_path)
    state = start(c, p)
    for _ in range(4):  # both seeds' two masks
        state = do(c, p, state, next(piece for piece in ready(p, state) if piece.startswith("choose")))
    assert ready(p, state) == [f"build-s{s}-k{k}" for s in (0, 2) for k in (0, 1, 2)]
    chained = plan("igspp", **TWO)
    c = context(tmp_path / "chained")
    state = start(c, chained)
    assert ready(chained, state) == ["build-s0-k0", "choose-s0-k1", "build-s2-k0", "choose-s2-k1"]
    # the next mask waits for the model that its scores are of
    state = do(c, chained, state, "choose-s0-k1")
    assert [piece for piece in ready(chained, state) if "-s0-" in piece] == ["build-s0-k0", "build-s0-k1"]
    state = do(c, chained, state, "build-s0-k1")
    assert [piece for piece in ready(chained, state) if "-s0-" in piece] == ["build-s0-k0", "choose-s0-k2"]


@pytest.mark.slow
def test_a_lost_or_damaged_model_is_trained_again(tmp_path):
    p = plan("igspp", **SHORT)
    expected = whole(tmp_path / "whole", p)
    c = context(tmp_path / "again")
    state = start(c, p)
    for _ in range(2):
        state = next(run_plan(p, c, state))
    for file in (c.folder / "models" / "seed0-step1").glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    state = State.from_bytes(state.to_bytes())
    c = context(tmp_path / "again")
    *_, state = run_plan(p, c, state)
    assert without_times(state) == expected


def test_a_large_models_steps_are_read_back(tmp_path):
    p = plan("one-importance", **SHORT)
    *_, state = run_plan(p, context(tmp_path), start(context(tmp_path), p))
    large = tuple(dataclasses.replace(r, flops=3 * 10**12, parameters=7 * 10**9) for r in state.records)
    state = dataclasses.replace(state, records=large)
    assert State.from_bytes(state.to_bytes()) == state


def test_a_damaged_state_is_passed_over_for_the_one_before(tmp_path):
    c, p = context(tmp_path), plan("one-importance")
    states = list(run_plan(p, c))
    newest = max(c.folder.glob("state-*"))
    raw = newest.read_bytes()
    newest.write_bytes(raw[: len(raw) // 2])
    before = State.load(c.folder)
    assert before.records == states[-2].records
    for i in (20, len(raw) // 2, len(raw) - 3):  # header, middle, logits
        newest.write_bytes(raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :])
        assert State.load(c.folder) == before
    newest.write_bytes(raw)
    assert State.load(c.folder) == states[-1]
    for file in c.folder.glob("state-*"):
        file.write_bytes(b"")
    with pytest.raises(RunError, match="No state in"):
        State.load(c.folder)
    with pytest.raises(RunError, match="There is no state"):
        State.load(tmp_path / "nowhere")


def test_what_does_not_belong_together_is_refused(tmp_path):
    c, p = context(tmp_path), plan("one-importance")
    state = start(c, p)
    with pytest.raises(RunError, match="another plan"):
        next(run_plan(plan("one-importance", step=0.5), c, state))
    other = context(tmp_path / "other", layers=3, dev=c.train)
    with pytest.raises(Exception, match="data of this run has changed"):
        next(run_plan(p, other, state))
    *_, done = run_plan(p, c, state)
    assert list(run_plan(p, c, done)) == []
    with pytest.raises(RunError, match="cannot be done now"):
        do(c, p, state, "build-s0-k3")


def test_nothing_is_lost_when_a_score_fails(tmp_path):
    calls = []

    def fails_later(clf, data, score, **given):
        calls.append(1)
        if len(calls) > 2:
            raise ValueError("no more")
        return by_hash(clf, data, score, **given)

    c, p = context(tmp_path, score=fails_later), plan("iterative")
    with pytest.raises(ValueError, match="no more"):
        for _ in run_plan(p, c):
            pass
    state = State.load(c.folder)
    assert [r.step for r in state.records] == [0, 1, 2]

"""A choice whose scoring was measured in parts equals one that was measured in one go, in every bit."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from headviz.errors import Cancelled, RunError
from headviz.pruning import ALGORITHMS, State
from headviz.pruning.check import start
from headviz.pruning.job import run_plan
from headviz.pruning.state import ScorePart
from headviz.scores import scoring
from support.marks import algorithms
from support.pruning_plans import context, do, make_data, plan, ready, without_times


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "PART", 8)


def subject(tmp_path: Any, name: str) -> Any:
    """A context whose scores come from the table, with enough examples for several parts."""
    return context(tmp_path / name, layers=2, score=None, train=make_data(40), dev=make_data(20, "dev", 1))


def whole(c: Any, p: Any) -> State:
    """The run as a version without parts does it."""
    state = replace(start(c, p), score_parts=())
    while pieces := ready(p, state):
        state = do(c, p, state, pieces[0])
    return state


def in_parts(c: Any, p: Any, seed: int) -> tuple[State, int]:
    """Pieces in random order, through bytes; and how many parts there were."""
    draw = random.Random(seed)
    state, split = start(c, p), 0
    while pieces := ready(p, state):
        piece = draw.choice(pieces)
        state = do(c, p, State.from_bytes(state.to_bytes()), piece)
        split += "-p" in piece
    return state, split


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms(["iterative", "isp"], ALGORITHMS))
def test_every_algorithm_in_parts_equals_itself_in_one_go(name, tmp_path):
    seeds = (3,) if ALGORITHMS[name].retrains else (0, 1)
    options: dict[str, Any] = {"samples": 36, "seeds": seeds, "until": 0.5}
    if name == "iterative":
        options["repair"] = "bias"  # the model that is scored is then made anew at each step
    fixed = ALGORITHMS[name].only_score is not None  # measured whole
    if name.startswith("gates"):
        options["score_options"] = {"steps": 20}
    p = plan(name, **options, **({} if fixed else {"score": "taylor"}))
    result, split = in_parts(subject(tmp_path, "parts"), p, seed=3)
    expected = whole(subject(tmp_path, "whole"), p)
    assert without_times(replace(result, score_parts=())) == without_times(expected)
    # four parts for each seed; those that score again do so at each step, isp at each of its rounds
    scorings = 0 if fixed else len(result.sizes) if ALGORITHMS[name].rescores else 1
    assert split == 4 * len(seeds) * scorings


def test_a_score_of_the_callers_own_and_masked_language_scores_have_no_parts(tmp_path):
    p = plan("iterative", samples=36)
    own = start(context(tmp_path), p)
    assert own.score_parts == (1,)
    assert ready(p, own) == ["build-s0-k0", "choose-s0-k1"]
    with pytest.raises(RunError, match="cannot be done now"):
        do(context(tmp_path), p, own, "choose-s0-k1-p0")


@pytest.mark.slow
def test_only_choices_that_score_are_split(tmp_path):
    p = plan("one-importance", samples=36, score="taylor")
    state = start(subject(tmp_path, "x"), p)
    assert state.score_parts == (4,)  # 4+4, 8, 16 and the last 4
    assert ready(p, state) == ["build-s0-k0", *(f"choose-s0-k1-p{i}" for i in range(4))]
    for piece in (*ready(p, state)[1:], "choose-s0-k1"):
        state = do(subject(tmp_path, "x"), p, state, piece)
    assert ready(p, state) == ["build-s0-k0", "build-s0-k1", "choose-s0-k2"]
    assert not state.parts  # they are in the choice


def test_a_damaged_part_is_refused():
    whole = ScorePart({"a": make_data(4).gold}, 1.5).to_bytes()
    assert ScorePart.from_bytes(whole).seconds == 1.5
    with pytest.raises(RunError, match="damaged"):
        ScorePart.from_bytes(whole[:-3])


@pytest.mark.slow
def test_a_run_that_is_stopped_within_a_scoring_goes_on_with_the_parts_it_has(tmp_path):
    p = plan("iterative", samples=36, score="taylor", until=0.5)
    c, told = subject(tmp_path, "run"), []
    next(run_plan(p, c))  # the full model has no scoring
    state = State.load(c.folder)
    with pytest.raises(Cancelled):
        list(run_plan(p, c, state, lambda *seen: told.append(seen), cancel=lambda: ("score", 16, 36) in told))
    state = State.load(c.folder)
    assert sorted(state.parts) == ["choose-s0-k1-p0", "choose-s0-k1-p1"]
    told.clear()
    again = subject(tmp_path, "run")
    steps = run_plan(p, again, state, lambda *seen: told.append(seen))
    after = next(steps)
    scored = [(done, total) for phase, done, total in told if phase == "score"]
    assert scored == sorted(scored)
    assert (scored[0][0], scored[-1]) == (32, (36, 36))
    *_, result = steps
    expected = whole(subject(tmp_path, "whole"), p)
    assert without_times(replace(result, score_parts=())) == without_times(expected)
    assert after.steps == result.steps[:1]
    assert not list((c.folder / "training").rglob("*.safetensors"))


def test_metrics_keep_their_order_the_primary_one_first(tmp_path):
    """A run that went on after a stop was judged by the first metric of the alphabet."""
    p = plan("iterative", samples=36, score="taylor")
    c = subject(tmp_path, "run")
    state = start(c, p)
    turned = {name: state.reference.metrics[name] for name in sorted(state.reference.metrics, reverse=True)}
    state = replace(state, reference=replace(state.reference, metrics={"zeta": 0.5, **turned}))
    assert [*State.from_bytes(state.to_bytes()).reference.metrics] == ["zeta", *turned]

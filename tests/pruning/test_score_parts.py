"""A choice whose scoring was measured in parts equals one that was measured in one go, in every bit."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headviz.errors import Cancelled, RunError
from headviz.pruning import ALGORITHMS, State, Work, absorb, advance, driver, is_done, perform, ready, run_plan, start
from headviz.pruning.driver import measure_part, score_parts
from headviz.pruning.state import ScorePart
from headviz.scores import parts as parts_module
from support.marks import all_in_ci
from support.pruning_plans import context, make_data, plan, without_times


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "PART", 8)


def subject(tmp_path: Any, name: str) -> Any:
    """A context whose scores come from the table, with enough examples for several parts."""
    return context(tmp_path / name, layers=2, score=None, train=make_data(40), dev=make_data(20, "dev", 1))


def whole(c: Any, p: Any) -> State:
    state = start(c, p)
    while not is_done(state):
        for work in ready(p, state):
            state = absorb(p, state, perform(c, p, state, work))
    return state


def in_parts(c: Any, p: Any, seed: int) -> tuple[State, int]:
    """Parts of each choice in random order, through bytes."""
    draw = random.Random(seed)
    state, split = start(c, p), 0
    while not is_done(state):
        work = draw.choice(ready(p, state))
        count = score_parts(p, state, work)
        found = None
        if count > 1:
            order = list(range(count))
            draw.shuffle(order)
            raw = {i: measure_part(c, p, state, work, i).to_bytes() for i in order}
            found = [ScorePart.from_bytes(raw[i]) for i in range(count)]
            split += 1
        state = absorb(p, state, perform(c, p, state, work, parts=found))
    return state, split


@pytest.mark.slow
@pytest.mark.parametrize("name", all_in_ci(ALGORITHMS, ["iterative", "mask-search"]))
def test_every_algorithm_in_parts_equals_itself_in_one_go(name, tmp_path):
    options: dict[str, Any] = {"samples": 36, "seeds": (0, 1), "until": 0.5}
    if name == "iterative":
        options["repair"] = "bias"  # the model that is scored is then made anew at each step
    fixed = ALGORITHMS[name].only_score is not None  # measured whole
    if name.startswith("gates"):
        options["score_options"] = {"steps": 20}
    p = plan(name, **options, **({} if fixed else {"score": "taylor"}))
    found, split = in_parts(subject(tmp_path, "parts"), p, seed=3)
    assert without_times(found) == without_times(whole(subject(tmp_path, "whole"), p))
    # two seeds; those that score again do so at each of two steps, isp at each of its rounds
    once = {"one-importance": 2, "one-shot-isp": 2}
    assert split == (0 if fixed else once.get(name, 2 * len(found.sizes)))


def test_a_score_of_the_callers_own_and_masked_language_scores_have_no_parts(tmp_path):
    p = plan("iterative", samples=36)
    own = start(context(tmp_path), p)
    assert own.score_parts == (1,)
    assert score_parts(p, own, Work("choose", 0, 1)) == 1
    with pytest.raises(RunError, match="cannot be done now"):
        measure_part(context(tmp_path), p, own, Work("choose", 0, 2), 0)


def test_only_choices_that_score_are_split(tmp_path):
    p = plan("one-importance", samples=36, score="taylor")
    state = start(subject(tmp_path, "x"), p)
    assert state.score_parts == (4,)  # 4+4, 8, 16 and the last 4
    first = Work("choose", 0, 1)
    assert (score_parts(p, state, first), score_parts(p, state, Work("build", 0, 1))) == (4, 1)
    state = absorb(p, state, perform(subject(tmp_path, "x"), p, state, first))
    assert score_parts(p, state, Work("choose", 0, 2)) == 1


def test_a_damaged_part_is_refused():
    whole = ScorePart({"a": make_data(4).gold}, 1.5).to_bytes()
    assert ScorePart.from_bytes(whole).seconds == 1.5
    with pytest.raises(RunError, match="damaged"):
        ScorePart.from_bytes(whole[:-3])


def test_a_state_of_an_older_version_has_no_parts(tmp_path):
    p = plan("one-importance", samples=36, score="taylor")
    old = start(subject(tmp_path, "x"), p).to_dict()
    del old["score_parts"]
    logits = start(subject(tmp_path, "x"), p).logits
    assert State.from_dict(old, logits).score_parts == ()


def test_a_run_that_is_stopped_within_a_scoring_goes_on_with_the_parts_it_has(tmp_path, monkeypatch):
    p = plan("iterative", samples=36, score="taylor", until=0.5)
    measured: list[tuple[str, int]] = []

    def counting(c: Any, plan: Any, state: State, work: Work, number: int, *more: Any) -> ScorePart:
        part = measure_part(c, plan, state, work, number, *more)
        measured.append((work.key, number))
        return part

    monkeypatch.setattr(driver, "measure_part", counting)
    c = subject(tmp_path, "run")
    state = start(c, p)
    state = advance(c, p, state)  # the full model has no scoring
    assert measured == []
    with pytest.raises(Cancelled):
        advance(c, p, state, cancel=lambda: len(measured) == 2)
    told: list[tuple[str, int, int]] = []
    again = subject(tmp_path, "run")
    after = advance(again, p, state, lambda *seen: told.append(seen))
    assert measured == [("choose-s0-k1", i) for i in range(4)]
    scored = [(done, total) for phase, done, total in told if phase == "score"]
    assert scored == sorted(scored)
    assert (scored[0][0], scored[-1]) == (32, (36, 36))
    *_, found = run_plan(p, again, after)
    assert without_times(found) == without_times(whole(subject(tmp_path, "whole"), p))
    assert not list((c.folder / "training").rglob("*.safetensors"))


@pytest.mark.parametrize("damaged", [False, True])
def test_parts_of_another_run_are_measured_anew(damaged, tmp_path):
    p, other = (plan("iterative", samples=36, score="taylor", until=0.5, seeds=(seed,)) for seed in (0, 1))
    c, told = subject(tmp_path, "run"), []
    state = advance(c, other, start(c, other))
    with pytest.raises(Cancelled):
        advance(c, other, state, lambda *seen: told.append(seen), cancel=lambda: ("score", 16, 36) in told)
    (kept,) = (c.folder / "training").rglob("parts.safetensors")
    place = kept.parent.rename(kept.parent.with_name(kept.parent.name.replace("seed1", "seed0")))
    if damaged:
        (place / kept.name).write_bytes(b"no arrays")
    *_, found = run_plan(p, c)
    assert without_times(found) == without_times(whole(subject(tmp_path, "whole"), p))


def test_a_repair_before_a_part_is_told_as_it_is():
    told: list[tuple[str, int, int]] = []
    progress = driver._after_parts(lambda *seen: told.append(seen), [ScorePart({"a": make_data(4).gold}, 1.0)], 36)
    assert progress is not None
    progress("repair", 1, 3)
    progress("score", 2, 8)
    assert told == [("repair", 1, 3), ("score", 6, 36)]

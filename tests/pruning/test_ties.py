"""Runs by a score that ties: heads go in an order drawn from the run's seed, the same when a run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headviz.errors import RunError
from headviz.heads import HeadMask, lowest
from headviz.pruning import PruningPlan, State, baselines
from headviz.pruning.check import start
from headviz.pruning.job import run_plan
from support.pruning_plans import Table, context, plan, ready, without_times, write

COSTS = np.zeros((3, 4))
COSTS[1, 2], COSTS[0, 0] = 0.2, 0.1


def by_cost(clf: Any, data: Any, score: str, *, mask: Any, **_: Any) -> Table:
    """Costs of a few heads; all others tie."""
    kept = clf.present if mask is None else clf.present | mask
    return Table(np.where(kept.array(), COSTS, np.nan))


def masks(state: State) -> list[tuple[int, str]]:
    return [(r.seed, r.mask) for r in state.records]


@pytest.mark.slow
def test_a_run_that_was_stopped_removes_the_heads_of_the_unbroken_one(tmp_path: Path) -> None:
    p = plan("iterative", seeds=(0, 1, 2))
    *_, whole = run_plan(p, context(tmp_path / "whole", score=by_cost))
    c = context(tmp_path / "again", score=by_cost)
    write(start(c, p), c.folder)
    state = State.load(c.folder)
    while ready(p, state):
        c = context(tmp_path / "again", score=by_cost)  # nothing but the folder survives
        next(run_plan(p, c, state))
        state = State.load(c.folder)
    assert without_times(state) == without_times(whole)
    full = HeadMask.full(3, 4)
    for record in whole.steps:
        expected = full.without(lowest(COSTS, record.heads_off, full.kept, seed=record.seed))
        assert record.mask == expected.hex
    assert len({r.mask for r in whole.steps if r.step == 1}) == 3  # of three seeds
    assert [r.tied for r in whole.steps if r.seed == 0] == [10, 7, 4]
    assert whole.to_dict()["records"][1]["tied"] == 10


@pytest.mark.slow
def test_an_older_plan_keeps_its_rule_and_its_digest_and_is_not_mixed_with_a_new_one(tmp_path: Path) -> None:
    new = plan()
    stored = {name: value for name, value in new.to_dict().items() if name != "ties"}
    old = PruningPlan.from_dict(stored)
    assert (old.ties, new.ties) == ("place", "random")
    assert old.to_dict() == stored
    assert old.digest != new.digest
    *_, state = run_plan(old, context(tmp_path / "old", score=by_cost))
    assert HeadMask.from_hex(state.steps[0].mask, 3, 4).off == ((0, 1), (0, 2), (0, 3))
    with pytest.raises(RunError, match="another plan"):
        next(run_plan(new, context(tmp_path / "old", score=by_cost), state))
    told = baselines.tie_rule(old.to_dict(), state.to_dict()["records"])
    assert "by layer and head" in told
    assert "seed" in baselines.tie_rule(new.to_dict(), state.to_dict()["records"])
    assert baselines.tie_rule(new.to_dict(), []) == ""


def test_heads_without_any_information_tie_in_the_search_by_fisher(tmp_path: Path) -> None:
    from headviz.pruning.search import best_subset, search

    gone = {search(np.zeros((4, 3, 4)), 6, seed=seed).hex for seed in range(9)}
    assert len(gone) == 9
    assert best_subset(np.zeros((4, 4)), (1, 3), range(4)) == (1, 3)
    assert best_subset(np.eye(80), tuple(range(1, 80, 3)), range(80)) == tuple(range(1, 80, 3))
    assert best_subset(np.diag([4.0, 3.0, 2.0, 1.0]), (0, 1), range(4)) == (2, 3)


@pytest.mark.parametrize("heads", [8, 40], ids=["all choices", "swaps"])
def test_of_sets_of_heads_that_tie_one_is_drawn(heads: int) -> None:
    """Four heads do the same, all others cost a little more each: one of the four goes with any three others."""
    from headviz.pruning.search import rearranged, search

    g = np.diag([0.0] * 4 + [1.1] * (heads - 4))
    g[0, :4] = 1.0
    start = search(g[:, None], 4)
    assert start.off_in(0) == (0, 1, 2, 3)
    result = [rearranged(start, g[:, None], seed).off_in(0) for seed in range(40)]
    assert all(off[0] < 4 <= off[1] and len(off) == 4 for off in result)
    assert {off[0] for off in result} == {0, 1, 2, 3}
    assert len({h for off in result for h in off[1:]}) > 0.8 * (heads - 4)
    assert rearranged(start, g[:, None], None).off_in(0)[1:] == (4, 5, 6)  # older plans, by place
    assert rearranged(start, g[:, None], 3) == rearranged(start, g[:, None], 3)

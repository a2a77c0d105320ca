"""Single-seed runs put together are the run over all their seeds."""

from __future__ import annotations

import dataclasses

import pytest

from headviz.extras.tickets.winning import ticket_rows, together
from headviz.pruning.job import run_plan
from support.pruning_plans import context, plan


def finished(folder, **options):
    *_, state = run_plan(plan(**options), context(folder))
    return state


def timeless(records):
    return [{k: v for k, v in dataclasses.asdict(r).items() if k != "seconds"} for r in records]


@pytest.mark.slow
def test_two_seeds_apart_are_two_seeds_at_once(tmp_path):
    apart = [finished(tmp_path / str(s), algorithm="one-shot-isp", seeds=(s,)) for s in (0, 1)]
    at_once = finished(tmp_path / "both", algorithm="one-shot-isp", seeds=(0, 1))
    (result,) = together(apart)
    assert result.plan == at_once.plan
    assert result.plan_digest == at_once.plan_digest
    assert timeless(sorted(result.records, key=lambda r: (r.seed, r.step))) == timeless(
        sorted(at_once.records, key=lambda r: (r.seed, r.step))
    )
    # as text: from Python 3.13 on, data classes that hold the same NaN are not equal
    assert str(ticket_rows([result])) == str(ticket_rows([at_once]))


def test_what_differs_stays_apart_and_a_seed_counts_once(tmp_path):
    a = finished(tmp_path / "a")
    b = finished(tmp_path / "b", step=0.5)
    again = finished(tmp_path / "c")
    result = together([a, b, again])
    assert [s.plan["step"] for s in result] == [0.25, 0.5]
    assert result[0] == a
    assert together([]) == []

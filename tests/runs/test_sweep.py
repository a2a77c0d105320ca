"""Sweeps: one parent, a run for each combination, one table."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from headviz.errors import OptionError, RunError
from headviz.runs import queue, reading, record, service
from headviz.runs.prepare import Amount, amount
from headviz.runs.queue import look
from headviz.runs.reading import Row, results
from headviz.runs.record import IllegalTransition
from headviz.runs.registry import Registry
from headviz.runs.sweep import Member, expand, start_sweep
from support.running import running_steps, until

BASE = {"model": "models/{task}", "base": "theta0", "data": None}


def rehearsals(count: int, **spec) -> list[Member]:
    return [Member("rehearsal", {"steps": 2, **spec, "payload": i}, f"run {i}") for i in range(count)]


def wait_for_sweep(run_id: str, seconds: float = 60) -> str:
    until(lambda: service.wait_for(run_id, timeout=seconds), seconds)
    return reading.show(run_id).state


def test_every_combination_once_and_in_order():
    plans = expand(BASE, ["mrpc", "rte"], ["iterative", "igspp"], ["taylor", "random"], [0, 1])
    assert len(plans) == 16
    assert [(p.task, p.algorithm, p.score, p.seeds) for p in plans[:3]] == [
        ("mrpc", "iterative", "taylor", (0,)),
        ("mrpc", "iterative", "taylor", (1,)),
        ("mrpc", "iterative", "random", (0,)),
    ]
    assert {(p.task, p.model) for p in plans} == {("mrpc", "models/mrpc"), ("rte", "models/rte")}
    fixed = expand(BASE, ["mrpc"], ["mask-search"], ["taylor", "random"], [0, 1])
    assert [(p.score, p.seeds) for p in fixed] == [("fisher", (0,)), ("fisher", (1,))]  # once per seed


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        (([], ["iterative"], ["taylor"], [0]), "at least one task"),
        ((["mrpc"], ["iterative"], ["taylor"], [0, 0]), "repeats one"),
        ((["mrpc"], ["iterativ"], ["taylor"], [0]), "Did you mean 'iterative'"),
        ((["mrpc"], ["iterative"], ["taylor"], list(range(1001))), "at most 1,000"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(axes, reason):
    with pytest.raises(OptionError, match=reason):
        expand(BASE, *axes)


def test_the_plan_counts_what_the_algorithms_do():
    plans = {a: expand(BASE, ["mrpc"], [a], ["taylor"], [0])[0] for a in ("one-importance", "iterative", "igspp")}
    assert amount(plans["one-importance"], 9) == Amount(1, 9, 0, 1, 10)
    assert amount(plans["iterative"], 9) == Amount(1, 9, 0, 9, 10)
    assert amount(plans["igspp"], 9) == Amount(1, 9, 10, 9, 11)
    both = amount(plans["iterative"], 9) + amount(plans["igspp"], 9)
    assert (both.finetunings, both.scorings, both.evaluations) == (10, 18, 21)


@pytest.mark.slow
def test_a_sweep_on_this_machine_runs_all_and_needs_no_process_of_its_own(registry):
    sweep = start_sweep(rehearsals(3), title="three")
    assert sweep.worker is None
    assert wait_for_sweep(sweep.id) == "done"
    view, size = reading.show(sweep.id), service.disk_usage(sweep.id)
    assert [c.state for c in view.children] == ["done"] * 3
    assert look(registry, sweep.id).worker is None
    assert [v.record.id for v in reading.overview()] == [sweep.id]
    assert len(view.to_dict()["children"]) == 3
    with pytest.raises(RunError, match="deleted as a whole"):
        service.delete(view.children[0].record.id)
    assert service.delete(sweep.id) == size
    assert registry.records() == []
    assert [p for p in registry.folder.iterdir() if p.is_dir()] == []


@pytest.mark.slow
def test_cancelling_a_sweep_stops_all_its_runs_and_resuming_finishes_them(registry):
    sweep = start_sweep(rehearsals(3, steps=6, seconds=0.2), title="three")
    first = registry.records(parent=sweep.id)[0]
    running_steps(first.id, 2)
    service.cancel(sweep.id)
    assert [r.state for r in registry.records(parent=sweep.id)] == ["cancelled"] * 3
    assert reading.show(sweep.id).state == "cancelled"
    with pytest.raises(IllegalTransition, match="nothing to cancel"):
        service.cancel(sweep.id)
    service.resume(sweep.id)
    assert wait_for_sweep(sweep.id) == "done"
    assert [len(registry.steps(r.id)) for r in registry.records(parent=sweep.id)] == [6, 6, 6]


def test_nothing_is_written_when_one_member_is_wrong(registry):
    with pytest.raises(OptionError):
        start_sweep([*rehearsals(2), Member("rehearsal", {"steps": 0}, "bad")], title="x")
    assert not Registry().path.exists()


def child(seed: int, steps: dict[float, float | None], full: float, algorithm: str = "igspp"):
    """One run; ``full`` is the full model that its seed trained, or for ``iterative`` the model as given."""
    spec = {"task": "mrpc", "algorithm": algorithm, "score": "taylor", "seeds": [seed]}
    trains = algorithm == "igspp"
    given, phases = (0.99, {"train": 9.0}) if trains else (full, {"evaluate": 1.0})
    baseline = (
        {"step": 0, "reference": True, "sparsity": 0.0, "metrics": {"accuracy": given}},
        {"step": 0, "seed": seed, "sparsity": 0.0, "metrics": {"accuracy": full}, "phases": phases},
    )
    return SimpleNamespace(
        record=SimpleNamespace(spec=spec, kind="prune"),
        baseline=baseline,
        steps=tuple({"sparsity": s, "metrics": {"accuracy": v}} for s, v in steps.items()),
    )


def test_the_table_has_mean_and_sd_over_seeds_and_counts_what_is_missing():
    children = [child(0, {0.5: 0.8, 0.9: None}, 0.9), child(1, {0.5: 0.6}, 0.7), child(0, {}, 0.5, "iterative")]
    assert results(children) == [
        Row(
            "mrpc",
            "igspp",
            "taylor",
            0.0,
            "accuracy",
            pytest.approx(0.8),
            pytest.approx(0.141421356),
            2,
            0,
            "retrained",
        ),
        Row("mrpc", "igspp", "taylor", 0.5, "accuracy", pytest.approx(0.7), pytest.approx(0.141421356), 2, 0),
        Row("mrpc", "igspp", "taylor", 0.9, "accuracy", None, None, 0, 2),
        Row("mrpc", "iterative", "taylor", 0.0, "accuracy", 0.5, None, 1, 0, "given"),
    ]


def test_planning_a_sweep_tells_how_far_it_is_and_can_be_stopped(tmp_path, own_home):
    from headviz.errors import Cancelled
    from headviz.runs.prepare import prepare_all
    from headviz.runs.sweep import plan_of
    from support.real_runs import folders, options

    place = folders(tmp_path / "x")
    base = {k: v for k, v in options(place, "iterative").items() if k not in ("algorithm", "score")}
    plans = expand(base, ["custom"], ["one-importance", "iterative"], ["random"], [0])
    seen = []
    prepared = prepare_all(plans, lambda i, n: seen.append((i, n)))
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert prepared[0].context is prepared[1].context
    with pytest.raises(Cancelled):
        prepare_all(plans, cancel=lambda: True)
    with pytest.raises(Cancelled):
        plan_of(prepared, 1, cancel=lambda: True)


def test_a_fine_tuning_is_counted_and_timed_before_it_starts(tmp_path, own_home):
    from headviz.errors import UserError
    from headviz.runs.prepare import planned_training
    from support.real_runs import folders

    place = folders(tmp_path / "x")
    spec = {
        "model": place["base"],
        "task": "custom",
        "data": place["data"],
        "text_columns": ["text", "pair"],
        "label_column": "label",
        "device": "cpu",
        "train_limit": 40,
        "finetune": {"epochs": 2.0, "batch": 8, "early_stopping": 1},
    }
    result = planned_training(spec, 1)
    assert (result.updates, result.examples, result.device, result.note) == (10, 40, "cpu", "")
    assert result.seconds > 0
    with pytest.raises(UserError, match="nothing"):
        planned_training({**spec, "label_column": "nothing"}, 1)


@pytest.mark.slow
def test_the_timing_of_a_plan_hears_its_stop(tmp_path, own_home):
    from headviz.errors import Cancelled
    from headviz.pruning import PruningPlan
    from headviz.runs.prepare import estimate, prepare_all
    from support.real_runs import folders, options

    place = folders(tmp_path / "x")
    (prepared,) = prepare_all([PruningPlan.from_dict(options(place, "one-importance"))])
    asked = []

    def after(number):
        asked.clear()
        return lambda: asked.append(1) or len(asked) > number

    assert estimate(prepared, 1, after(10**9)).total > 0
    looks = len(asked)
    assert looks > 2  # in the evaluation, and in the scoring
    for number in range(looks):
        with pytest.raises(Cancelled):
            estimate(prepared, 1, after(number))


def test_runs_that_name_no_card_are_spread_over_all(registry, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setattr(queue, "spawn", lambda *_: 1)
    own = replace(service.new_record("rehearsal", {"steps": 2}, device="cuda:0"), spec={"device": "auto"})
    runs = queue.spread(registry, [replace(own, id=record.new_id()) for _ in range(5)])
    assert [r.device for r in runs] == ["cuda:0", "cuda:1", "cuda:2", "cuda:0", "cuda:1"]
    assert [r.placed_spec["device"] for r in runs] == ["auto", "cuda:1", "cuda:2", "auto", "cuda:1"]
    registry.add(runs)
    assert len(queue.dispatch(registry)) == 3  # one on each card, the others wait
    others = [replace(own, device="cuda:1", spec={"device": "cuda:1"}), replace(own, device="cpu"), own]
    assert [r.device for r in queue.spread(registry, others)] == ["cuda:1", "cpu", "cuda:2"]

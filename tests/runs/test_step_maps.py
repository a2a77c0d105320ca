"""A head's maps over a run's steps are those of the models that the run made; a zip holds those models."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import headviz
from headviz.engine import Checkpoints, Execution, Workplace, run_here
from headviz.errors import Cancelled, OptionError
from headviz.heads import HeadId, HeadMask
from headviz.models.pruning import prune
from headviz.pruning import PruningPlan, State
from headviz.pruning.context import open_context
from headviz.runs import service
from headviz.runs.kinds import make_job
from headviz.runs.step_models import open_run, save_model, step_maps, zip_model
from support.real_runs import folders, options
from support.running import ended

TEXT, PAIR = "the dog sleeps", "a cat runs"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return folders(tmp_path_factory.mktemp("maps") / "x")


@pytest.fixture
def opened(place, tmp_path, own_home):
    """Carry a run to its end in this process: context, plan, state."""

    def make(algorithm: str, **changes):
        spec = options(place, algorithm, **changes)
        job = make_job("prune", spec)
        results = tmp_path / "results"
        execution = Execution(job, Checkpoints(tmp_path / "checkpoints"), job.begin())
        list(run_here(execution, Workplace(job, results)))
        execution.finish(results)
        plan = PruningPlan.from_dict(spec)
        return open_context(plan, results), plan, State.load(results)

    return make


def kept_throughout(state) -> HeadId:
    return HeadMask.from_hex(state.steps[-1].mask, state.num_layers, state.num_heads).kept[0]


def removed_first(state) -> HeadId:
    return HeadMask.from_hex(state.steps[0].mask, state.num_layers, state.num_heads).off[0]


@pytest.mark.slow
def test_without_retraining_the_maps_are_those_of_the_really_pruned_model(opened):
    context, plan, state = opened("iterative")
    head = kept_throughout(state)
    result = step_maps(context, plan, state, head, TEXT, PAIR)
    assert [s.step for s in result.steps] == [0, 1, 2, 3]
    assert result.target == headviz.conductance(context.clf, TEXT, PAIR, cache=False).target_label
    for s in result.steps[1:]:
        mask = HeadMask.from_hex(state.record(0, s.step).mask, state.num_layers, state.num_heads)
        oracle = headviz.conductance(prune(context.clf, mask), TEXT, PAIR, target=result.target, cache=False)
        np.testing.assert_allclose(s.attention, oracle.attention[head], atol=1e-6)
        np.testing.assert_allclose(s.attribution, oracle.attribution[head], atol=1e-6)
        np.testing.assert_allclose(s.probabilities, oracle.probabilities, atol=1e-6)
        assert s.sparsity == state.record(0, s.step).sparsity


@pytest.mark.slow
def test_a_removed_head_has_no_maps_from_its_step_on(opened):
    context, plan, state = opened("one-importance")
    head = removed_first(state)
    result = step_maps(context, plan, state, head, TEXT, PAIR, steps=[1, 3, 99])
    assert [(s.step, s.state) for s in result.steps] == [(0, "there"), (1, "removed"), (3, "removed")]
    assert result.steps[0].attention is not None
    assert all(s.attention is None and s.attribution is None for s in result.steps[1:])
    assert all(len(s.probabilities) == 3 for s in result.steps)


@pytest.mark.slow
def test_retrained_steps_show_their_own_models_or_say_that_they_are_gone(opened):
    context, plan, state = opened("one-shot-isp", keep_models="last")
    head = kept_throughout(state)
    result = step_maps(context, plan, state, head, TEXT, PAIR)
    there = [s.step for s in result.steps if s.state == "there"]
    assert there == [0, 3]
    assert all(s.state in ("there", "not kept") for s in result.steps)
    last = headviz.load(context.folder / state.record(0, 3).model, device="cpu")
    oracle = headviz.conductance(last, TEXT, PAIR, target=result.target, cache=False)
    np.testing.assert_allclose(result.steps[-1].attribution, oracle.attribution[head], atol=1e-6)


@pytest.mark.slow
def test_one_class_is_explained_throughout_and_stop_stops(opened):
    context, plan, state = opened("one-importance")
    head = kept_throughout(state)
    result = step_maps(context, plan, state, head, TEXT, PAIR, target="neutral", steps=[1])
    oracle = headviz.conductance(context.clf, TEXT, PAIR, target="neutral", cache=False)
    assert result.target == "neutral"
    np.testing.assert_allclose(result.steps[0].attribution, oracle.attribution[head], atol=1e-6)
    with pytest.raises(Cancelled):
        step_maps(context, plan, state, head, TEXT, PAIR, cancel=lambda: True)


@pytest.mark.slow
def test_a_zip_holds_the_step_s_model_both_ways(place, registry, tmp_path):
    run = service.start("prune", options(place, "one-importance"))
    assert ended(run.id).error == ""
    context, _, state = open_run(run.id)
    sizes = []
    file = zip_model(run.id, tmp_path / "out" / "small.zip", 0, 2, progress=lambda d, n: sizes.append((d, n)))
    assert sizes[-1][0] == sizes[-1][1] > 0
    assert [p.name for p in file.parent.iterdir()] == ["small.zip"]
    zipfile.ZipFile(file).extractall(tmp_path / "there")
    mask = HeadMask.from_hex(state.record(0, 2).mask, state.num_layers, state.num_heads)
    small = headviz.load(tmp_path / "there" / "small" / "pruned", device="cpu")
    whole = headviz.load(tmp_path / "there" / "small" / "masked", device="cpu")
    assert (small.present, whole.present.is_full) == (mask, True)
    wanted = headviz.evaluate(context.clf, context.dev, mask=mask).logits
    for clf in (small, whole):
        np.testing.assert_allclose(headviz.evaluate(clf, context.dev).logits, wanted, atol=1e-5)
    assert {"report.json", "curve.csv"} <= {p.name for p in (tmp_path / "there" / "small").iterdir()}
    with pytest.raises(OptionError, match="not an empty folder"):
        save_model(run.id, tmp_path / "there")

"""What a run leaves: models that reload with equal logits, a strict JSON report, a curve."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard

import headviz
from headviz.errors import RunError
from headviz.extras.tickets.winning import ticket_rows, together
from headviz.pruning.job import run_plan
from headviz.pruning.outcome import by_sparsity, model_of, seconds, write_outcome
from support.plain import evaluate
from support.pruning_plans import context, plan

CASES = [("iterative", {}), ("iterative", {"repair": "bias"}), ("igspp", {})]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_saved_models_give_the_recorded_logits(name, options, tmp_path):
    from transformers import AutoModelForSequenceClassification

    c, p = context(tmp_path), plan(name, step=0.4, until=0.4, **options)
    *_, state = run_plan(p, c)
    places = write_outcome(context(tmp_path), p, state)
    recorded = state.logits[state.steps[-1].logits]
    small = headviz.load(places["pruned"], device="cpu")
    facts = ModelCard.load(Path(places["pruned"]) / "README.md").data
    values = {r.metric_type: r.metric_value for r in facts.eval_results}
    assert values == {k: v for k, v in state.steps[-1].metrics.items() if v is not None}
    assert small.present.hex == state.steps[-1].mask
    np.testing.assert_allclose(evaluate(small, c.dev).logits, recorded, atol=1e-5)
    assert sum(q.numel() for q in small.model.parameters()) == state.steps[-1].parameters
    export = AutoModelForSequenceClassification.from_pretrained(places["masked"])
    whole = headviz.wrap(export, small.tokenizer)
    np.testing.assert_allclose(evaluate(whole, c.dev).logits, recorded, atol=1e-5)
    report = json.loads((c.folder / "outcome" / "report.json").read_text())
    assert report["saved"] == {"seed": 0, "step": 1, "digest": small.digest}
    rows = list(csv.DictReader((c.folder / "outcome" / "curve.csv").open(newline="")))
    if "train" in state.record(0, 0).seconds:  # its full model is another one than θ*, which stands above it
        first = rows.pop(0)
        assert (first["model"], first["seed"]) == ("unpruned model", "")
        assert float(first["accuracy"]) == state.reference.metrics["accuracy"]
        assert rows[0]["model"] == "full θ0, retrained the same way"
    assert [float(r["sparsity"]) for r in rows] == [r.sparsity for r in state.records]
    assert rows[1]["mask"] == "0x" + state.steps[0].mask


@pytest.mark.slow
def test_shares_of_time_add_up_and_means_are_over_the_seeds(tmp_path):
    *_, state = run_plan(plan("one-importance", seeds=(0, 1)), context(tmp_path))
    spent = seconds(state)
    assert sum(spent["shares"].values()) == pytest.approx(1)
    expected = state.reference.seconds["evaluate"] + sum(r.seconds["evaluate"] for r in state.steps)
    assert spent["by_phase"]["evaluate"] == pytest.approx(expected)
    assert spent["by_phase"]["score"] == pytest.approx(sum(c.seconds for c in state.choices))
    means = by_sparsity(state)
    for entry in means:
        values = [r.metrics["accuracy"] for r in state.records if r.step == entry["step"]]
        told = entry["metrics"]["accuracy"]
        assert (told["mean"], told["low"], told["high"]) == (pytest.approx(np.mean(values)), min(values), max(values))
    assert any(entry["metrics"]["accuracy"]["low"] < entry["metrics"]["accuracy"]["high"] for entry in means)


@pytest.mark.slow
def test_models_that_are_gone(tmp_path):
    c, p = context(tmp_path), plan("igspp", step=0.4, until=0.7, retrain_full=False)
    *_, state = run_plan(p, c)
    with pytest.raises(RunError, match="keep_models='all'"):
        model_of(c, p, state, 0, 1)
    assert model_of(c, p, state, 0, 2).digest == state.steps[-1].model_digest
    with pytest.raises(RunError, match="no step 9"):
        model_of(c, p, state, 0, 9)


def test_nothing_is_overwritten(tmp_path):
    c, p = context(tmp_path), plan("iterative")
    *_, state = run_plan(p, c)
    write_outcome(c, p, state)
    with pytest.raises(headviz.UserError, match="not an empty folder"):
        write_outcome(c, p, state)


# single-seed runs put together are the run over all their seeds -------------------------------------


def finished(folder, **options):
    *_, state = run_plan(plan(**options), context(folder))
    return state


def timeless(records):
    return [{k: v for k, v in dataclasses.asdict(r).items() if k != "seconds"} for r in records]


@pytest.mark.slow
def test_two_seeds_apart_are_two_seeds_at_once(tmp_path):
    asked = {"algorithm": "one-shot-isp", "step": 0.5, "until": 0.5}
    apart = [finished(tmp_path / str(s), seeds=(s,), **asked) for s in (0, 1)]
    at_once = finished(tmp_path / "both", seeds=(0, 1), **asked)
    (result,) = together(apart)
    assert result.plan == at_once.plan
    assert result.plan_digest == at_once.plan_digest
    assert timeless(sorted(result.records, key=lambda r: (r.seed, r.step))) == timeless(
        sorted(at_once.records, key=lambda r: (r.seed, r.step))
    )
    # as text: from Python 3.13 on, data classes that hold the same NaN are not equal
    assert str(ticket_rows([result])) == str(ticket_rows([at_once]))


@pytest.mark.slow
def test_what_differs_stays_apart_and_a_seed_counts_once(tmp_path):
    a = finished(tmp_path / "a")
    b = finished(tmp_path / "b", step=0.5)
    again = finished(tmp_path / "c")
    result = together([a, b, again])
    assert [s.plan["step"] for s in result] == [0.25, 0.5]
    assert result[0] == a
    assert together([]) == []

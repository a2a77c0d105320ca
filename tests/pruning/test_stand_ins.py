"""Runs with something in the place of removed heads."""

from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import UserError
from headviz.pruning.context import open_context
from headviz.pruning.job import run_plan
from headviz.pruning.outcome import MASKED, PRUNED, write_outcome
from support.custom_files import write_custom
from support.tiny import tiny_folder


def test_a_run_evaluates_and_removes_with_the_mean(tmp_path: Path) -> None:
    write_custom(tmp_path, train=40, dev=20)
    model = tiny_folder(tmp_path / "model", layers=2, heads=3, hidden=24)
    given = {"data": str(tmp_path), "text_columns": ("a", "b"), "label_column": "y", "device": "cpu"}
    plan = headviz.PruningPlan(
        str(model), "custom", "iterative", score="magnitude", step=0.34, until=0.67, samples=12, **given,
        ablation="mean", reference=15,
    )  # fmt: skip
    assert headviz.PruningPlan.from_dict(plan.to_dict()) == plan
    context = open_context(plan, tmp_path / "run")
    *_, state = run_plan(plan, context)
    clf, dev = headviz.load(model, device="cpu"), context.dev
    reference = headviz.sample(context.train, 15, length_filter=None)
    masks = [headviz.HeadMask.from_hex(r.mask, 2, 3) for r in state.records if r.step > 0]
    assert [len(m.off) for m in masks] == [2, 4]
    for record, mask in zip([r for r in state.records if r.step > 0], masks, strict=True):
        result = headviz.evaluate(clf, dev, mask, ablation="mean", reference=reference)
        np.testing.assert_allclose(state.logits[record.logits], result.logits, atol=1e-5)
    places = write_outcome(context, plan, state, tmp_path / "outcome")
    for name in (PRUNED, MASKED):
        small = headviz.load(places[name], device="cpu")
        np.testing.assert_allclose(headviz.evaluate(small, dev).logits, result.logits, atol=1e-5)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"ablation": "resample"}, "nothing can be removed for real"),
        ({"algorithm": "igspp", "ablation": "mean"}, "trains the network after"),
        ({"ablation": "mean", "repair": "bias"}, "both fill the place"),
        ({"ablation": "median"}, "median"),
        ({"ablation": "mean", "reference": 0}, "reference is a whole number"),
    ],
)
def test_what_a_plan_refuses(more: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        headviz.PruningPlan(**{"model": "demo", "task": "demo", "algorithm": "iterative", **more})


def test_a_plan_with_zero_is_stored_as_before() -> None:
    stored = headviz.PruningPlan("demo", "demo", "iterative").to_dict()
    assert not {"ablation", "reference"} & set(stored)

"""Pruning runs of translation models: masks, metrics and retraining against the obvious ways to get them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import HeadMask, UserError
from headviz.errors import OptionError, TaskError
from headviz.extras.translation.evaluation import evaluate_translation, lines, texts_of
from headviz.heads import lowest
from headviz.pruning.check import start
from headviz.pruning.context import Context, open_context
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.job import run_plan
from headviz.pruning.options import FinetuneOptions
from headviz.pruning.outcome import MASKED, PRUNED, write_outcome
from headviz.pruning.plan import PruningPlan
from headviz.scores.scoring import score_heads
from headviz.tasks import get_task
from support.custom_files import write_custom
from support.tiny import tiny_classifier, tiny_folder
from support.tiny_translation import HEADS, ROWS, tiny_translator
from support.translation_plans import context, done, mask_of, pairs, plan

STACKS = {"encoder": range(2), "cross": range(2, 5), "decoder": range(5, 8)}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["marian", "t5"])
def test_one_importance_removes_the_lowest_heads_and_measures_bleu(tmp_path, family):
    c, p = context(tmp_path, family), plan()
    state = done(c, p)
    table = score_heads(c.clf, c.sample(p, 0, 12), "taylor", cache=False).values
    for record, off in zip(state.steps, (8, 16), strict=True):
        wanted = HeadMask.full(ROWS, HEADS).without(lowest(table, off, HeadMask.full(ROWS, HEADS).kept, seed=0))
        assert mask_of(record.mask) == wanted
        found = evaluate_translation(c.clf, c.dev, wanted)
        assert record.metrics["bleu"] == pytest.approx(found.metrics["bleu"], abs=1e-9)
        assert record.metrics["chrf"] == pytest.approx(found.metrics["chrf"], abs=1e-9)
        assert texts_of(state.logits[record.logits]) == list(found.translations)
        low, high = record.intervals["bleu"]
        assert low <= high
        full = state.reference.metrics["bleu"]
        assert record.deltas["bleu"]["delta"] == pytest.approx(record.metrics["bleu"] - full, abs=1e-9)
    assert state.reference.agreement == 1.0
    unchanged = {"delta": 0.0, "low": None, "high": None, "p": 1.0}  # too few changed sentences for an interval
    assert state.reference.deltas["bleu"] == unchanged
    assert state.steps[-1].parameters < state.reference.parameters
    assert any("nrefs:1" in n for n in state.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "stack"), [("iterative", "encoder"), ("mask-search", "cross"), ("isp", "decoder")]
)
def test_a_plan_about_one_stack_removes_heads_of_no_other(tmp_path, algorithm, stack):
    c = context(tmp_path)
    state = done(c, plan(algorithm, stack=stack, retrain_full=False))
    rows = STACKS[stack]
    for record, size in zip(state.steps, state.sizes, strict=True):
        off = mask_of(record.mask).off
        assert len(off) == record.heads_off == size
        assert {h.layer for h in off} <= set(rows)
    if algorithm != "isp":  # shares are of the stack's heads
        assert state.sizes == tuple(round(k * 0.25 * len(rows) * HEADS) for k in (1, 2))


@pytest.mark.slow
def test_retraining_gives_models_that_are_saved_and_reload_with_equal_translations(tmp_path):
    c, p = context(tmp_path / "run"), plan("igspp")
    state = done(c, p)
    last = state.records[-1]
    assert last.curve
    again = headviz.load(c.folder / last.model, device="cpu")
    assert again.digest == last.model_digest
    assert again.present.hex == last.mask
    assert list(evaluate_translation(again, c.dev).translations) == texts_of(state.logits[last.logits])
    places = write_outcome(c, p, state, tmp_path / "out")
    small = headviz.load(places["pruned"], device="cpu")
    masked = headviz.load(places["masked"], device="cpu")
    assert small.present.hex == last.mask
    for model in (small, masked):
        assert list(evaluate_translation(model, c.dev).translations) == texts_of(state.logits[last.logits])


@pytest.mark.slow
def test_the_mean_loss_of_all_tokens_is_what_training_lowers(tmp_path):
    clf, train = tiny_translator(dropout=0.0, attention_dropout=0.0), pairs(16, "train")
    options = FinetuneOptions(epochs=6, batch=8, learning_rate=5e-3)
    trained = fine_tune(clf, train, options, 0)
    assert trained.curve[-1].loss < 0.8 * trained.curve[0].loss
    # the first loss by hand: this model has no dropout, and here all sentences are one batch
    whole = fine_tune(clf, train, FinetuneOptions(epochs=1, batch=16, learning_rate=1e-9), 0).curve[0].loss
    import torch

    batch = clf.collate(clf.encode(list(train.texts), list(train.references)))
    with torch.inference_mode():
        logits = clf.forward(batch, clf.call())
    by_hand = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100)
    assert whole == pytest.approx(by_hand.item(), rel=1e-5)
    assert trained.classifier.kind == clf.kind
    assert trained.classifier.digest != clf.digest


def test_a_classifier_has_no_sentences_and_no_stack_of_that_name(tmp_path):
    from support.pruning_plans import make_data

    with pytest.raises(TaskError, match="encoder-decoder model"):
        start(context(tmp_path, clf=tiny_classifier()), plan())
    c = Context(tmp_path, tiny_classifier(), make_data(12), make_data(12, "dev"))
    with pytest.raises(OptionError, match="stack"):
        start(c, plan(task="demo", stack="cross"))
    with pytest.raises(TaskError, match="translates"):
        start(Context(tmp_path, tiny_translator(), make_data(12), make_data(12, "dev")), plan(task="demo"))


def test_translations_survive_as_bytes():
    texts = ["", "ein Häuser", "two\nlines", "日本"]
    kept = lines(texts)
    assert kept.dtype == np.uint8
    assert texts_of(kept) == ["", "ein Häuser", "two lines", "日本"]
    assert texts_of(lines([""])) == [""]


def test_older_plans_keep_their_digest():
    p = PruningPlan(model="m", task=get_task("demo").name, algorithm="iterative")
    assert not {"stack", "prefix", "languages"} & p.to_dict().keys()
    q = PruningPlan.from_dict({**p.to_dict(), "stack": "cross", "languages": ["en_XX", "ro_RO"]})
    assert PruningPlan.from_dict(q.to_dict()) == q != p


# runs with something in the place of removed heads --------------------------------------------------


@pytest.mark.slow
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

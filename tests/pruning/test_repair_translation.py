"""Repairs of translation models against slow transcriptions: one sentence at a time, every stack."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import headviz
from headviz.errors import ModelError
from headviz.heads import HeadMask
from headviz.pruning.reconstruction import held_out, weights_of
from headviz.pruning.removal import repaired
from support.ridge import best, refitted, tuned
from support.tiny_translation import HEADS, ROWS, tiny_translator
from support.translation_plans import context, done, mask_of, pairs, plan

DATA = pairs(24, "train", seed=3)
OFF = [(0, 1), (1, 0), (1, 3), (2, 2), (4, 0), (4, 1), (5, 3), (7, 0), (7, 2)]  # heads of every stack
MASK = HeadMask.full(ROWS, HEADS).without(OFF)
LAST = 4  # the row that runs last: cross-attention of the last decoder layer (rows 2 to 4)


def outputs_of(clf, data=DATA):
    """Per row the heads' outputs of every token of its own side, one sentence at a time: [N, h·d]."""
    rows = [[] for _ in range(clf.num_layers)]
    for e in clf.encode(data.texts, data.references):
        call = clf.call(keep_outputs=True)
        with torch.inference_mode():
            clf.forward(clf.collate([e]), call)
        for row, out in enumerate(call.outputs):
            rows[row].append(out[0].transpose(0, 1).flatten(1))
    return [torch.cat(r).double().numpy() for r in rows]


def attended(clf, row, outputs):
    weights = weights_of(clf.projections(row).output)
    return outputs @ weights[:-1] + weights[-1]


def kept_columns(mask, row, size):
    return [h * size + k for h in range(HEADS) if h not in mask.off_in(row) for k in range(size)]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["marian", "mbart"])
def test_bias_is_the_removed_heads_mean_output_without_padding(family):
    clf = tiny_translator(family)
    fixed, plain = repaired(clf, MASK, DATA, "bias").classifier, headviz.prune(clf, MASK)
    for row, out in enumerate(outputs_of(clf)):
        lost = out.copy()
        lost[:, kept_columns(MASK, row, clf.head_size)] = 0
        mean = (lost @ weights_of(clf.projections(row).output)[:-1]).mean(axis=0)
        expected = plain.projections(row).output.bias.double().numpy() + mean
        np.testing.assert_allclose(fixed.projections(row).output.bias, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "repair"), [("marian", "refit"), ("t5", "tune"), ("mbart", "refit")])
def test_the_row_that_runs_last_is_the_plain_least_squares_solution(family, repair):
    """With all other rows whole, what is wanted of it is the full model's own attention output."""
    clf = tiny_translator(family)
    assert clf.order.row(ROWS - 1) == LAST
    mask = HeadMask.full(ROWS, HEADS).without([(LAST, 0), (LAST, 2)])
    fixed = repaired(clf, mask, DATA, repair)
    whole = outputs_of(clf)[LAST]
    own, columns = weights_of(clf.projections(LAST).output), kept_columns(mask, LAST, clf.head_size)
    kept, wanted = whole[:, columns], attended(clf, LAST, whole)
    start = np.vstack([own[columns], own[-1:]])
    constant = np.full((len(kept), 1), float(family != "t5"))  # T5 has no bias
    encodings = clf.encode(DATA.texts, DATA.references)
    held = np.repeat(held_out(encodings), [len(e.target) for e in encodings])
    solve = refitted if repair == "refit" else tuned
    expected, _ = best(solve, np.hstack([kept, constant]), wanted, held, start, clf.head_size)
    np.testing.assert_allclose(weights_of(fixed.classifier.projections(LAST).output), expected, atol=2e-4)
    for row in range(ROWS):
        if row != LAST:  # nothing was missing there
            np.testing.assert_allclose(
                weights_of(fixed.classifier.projections(row).output), weights_of(clf.projections(row).output), atol=2e-4
            )


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_a_stack_may_lose_all_its_heads(family):
    clf = tiny_translator(family)
    mask = HeadMask.full(ROWS, HEADS).without([(row, h) for row in (5, 6, 7) for h in range(HEADS)])
    fixed = repaired(clf, mask, DATA, "refit")
    assert fixed.error["after"] <= fixed.error["before"]
    assert fixed.classifier.heads_per_layer[5:] == [0, 0, 0]


def test_a_model_without_biases_says_where_the_mean_cannot_go(tmp_path):
    clf = tiny_translator("t5")
    with pytest.raises(ModelError, match=r"T5 has no bias behind its attention.*'tune' or 'refit'"):
        repaired(clf, MASK, DATA, "bias")
    with pytest.raises(ModelError, match="T5 has no bias"):
        done(context(tmp_path, "t5"), plan(repair="bias"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_repairs_and_measures_the_repaired_model(tmp_path):
    options = {"repair": "refit", "repair_samples": 10, "stack": "decoder"}
    c, p = context(tmp_path), plan("one-importance", **options)
    state = done(c, p)
    for record in state.steps:
        assert 0 <= record.repair_error["after"] <= record.repair_error["before"]
        assert {h.layer for h in mask_of(record.mask).off} <= {5, 6, 7}
    mask = mask_of(state.steps[-1].mask)
    model = repaired(c.clf, mask, c.sample(p, 0, 10), "refit").classifier
    assert headviz.evaluate(model, c.dev).metrics["bleu"] == pytest.approx(state.steps[-1].metrics["bleu"])

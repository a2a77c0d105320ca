"""What is computed on a CUDA or MPS device is what the processor computes. Skips where there is none.

    make test-gpu
    HEADVIZ_TEST_DEVICE=cpu make test-gpu    # the tests themselves, on a machine without one

A product in float32 may differ in its last digits from device to device, so numbers agree to a tolerance; orders,
masks, predictions and sizes agree exactly.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.evaluation.evaluator import EvaluatorOptions
from headviz.models.fast.gpu import refusals
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.options import FinetuneOptions
from headviz.scores import map_values
from headviz.scores.catalogue import SCORES
from headviz.scores.options import GateOptions
from headviz.tasks import TASKS, Dataset
from support.tiny import PAIRS, TEXTS, pairs_of_texts, tiny_folder
from support.tiny_translation import SOURCES, TARGETS, tiny_translator_folder

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
MASK = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 3), (2, 2)])
CLOSE = {"atol": 1e-4, "rtol": 1e-3}
COUNT = 12
DATA = pairs_of_texts(COUNT)
Both = Callable[..., tuple[Any, Any]]


@pytest.fixture
def device() -> str:
    asked = os.environ.get("HEADVIZ_TEST_DEVICE")
    here = asked or ("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else None)
    if here is None:
        pytest.skip("no CUDA and no MPS device; HEADVIZ_TEST_DEVICE=cpu tries the tests themselves")
    return here


@pytest.fixture
def both(device: str, tmp_path: Path) -> Both:
    """The same model on the processor and on the device."""

    def load(family: str = "bert", **options: Any) -> tuple[Any, Any]:
        folder = tiny_folder(tmp_path / family, family)
        return headviz.load(folder, device="cpu"), headviz.load(folder, device=device, **options)

    return load


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "deberta-v2", "mpnet"])
def test_masked_logits(both: Both, device: str, family: str, dtype: str) -> None:
    here, there = both(family, dtype=dtype)
    assert there.device.type == torch.device(device).type

    def logits(clf: Any, mask: HeadMask | None) -> torch.Tensor:
        return torch.as_tensor(clf.logits(clf.collate(clf.encode(TEXTS, PAIRS)), mask)).float().cpu()

    for mask in (None, MASK):
        expected = logits(here, mask)
        tolerance = 1e-4 if dtype == "float32" else 0.1 * float(expected.abs().max())
        assert (logits(there, mask) - expected).abs().max() < tolerance
        if dtype == "float32":
            result = [headviz.evaluate(clf, DATA, mask, precision="float32").logits for clf in (here, there)]
            np.testing.assert_allclose(result[1], result[0], **CLOSE)


@pytest.mark.parametrize("ablation", ["zero", "mean", "mean-by-place", "resample", "constant"])
def test_every_mask_of_an_evaluator(both: Both, ablation: str) -> None:
    here, there = both()
    options = {"ablation": ablation, "reference": DATA}
    exact = EvaluatorOptions(precision="float32")
    one, other = (headviz.evaluator_of(clf, DATA, exact, **options) for clf in (here, there))
    masks = [None, *(HeadMask.full(3, 4).without([h]) for h in HeadMask.full(3, 4).heads()), MASK]
    for mask in masks:
        np.testing.assert_allclose(other.evaluate(mask).logits, one.evaluate(mask).logits, **CLOSE)


def test_what_one_answer_is_made_of(both: Both) -> None:
    here, there = both()
    parts, reading, explained = (
        [make(clf) for clf in (here, there)]
        for make in (
            lambda clf: headviz.contributions(clf, TEXTS[0], PAIRS[0], mask=MASK),
            lambda clf: headviz.head_reading(clf, TEXTS[0], PAIRS[0], (1, 1), mask=MASK),
            lambda clf: headviz.token_explanations(clf, TEXTS[0], PAIRS[0]),
        )
    )
    np.testing.assert_allclose(parts[1].heads, parts[0].heads, **CLOSE)
    np.testing.assert_allclose(reading[1].scores, reading[0].scores, **CLOSE)
    assert explained[1].methods == explained[0].methods
    np.testing.assert_allclose(explained[1].values, explained[0].values, **CLOSE)


@pytest.mark.parametrize("score", SCORES)
def test_scores(both: Both, score: str) -> None:
    here, there = both()
    result = [headviz.score_heads(clf, DATA, score, cache=False).values for clf in (here, there)]
    if SCORES[score].slow or issubclass(
        SCORES[score].options, GateOptions
    ):  # learned in many steps, in which last digits grow
        assert result[1].shape == result[0].shape
        assert np.isfinite(result[1]).all()
    else:
        np.testing.assert_allclose(result[1], result[0], atol=2e-3, rtol=2e-2)


@pytest.mark.parametrize("tokens", [7, 14, 29, 64, 100])
def test_correlations(device: str, tokens: int) -> None:
    """A constant map has none, though CUDA's mean of equal numbers may differ from them by a last bit."""
    a, b = np.random.default_rng(tokens).normal(size=(2, 6, tokens**2)).astype(np.float32)
    a[0] = b[1] = a[2] = b[2] = 0.1
    b[3] = np.round(b[3])
    a[4, 5] = np.nan
    tables = (torch.from_numpy(t).to(device) for t in (a, b))
    result, expected = map_values.correlated(*tables), map_values.correlations(a, b)
    for name, values in expected.items():
        np.testing.assert_array_equal(np.isnan(values), [True, True, True, False, True, False])
        np.testing.assert_allclose(result[name].cpu(), values, atol=1e-12)


def test_conductance_and_attention(both: Both) -> None:
    here, there = both()
    how = {"steps": 8, "precision": "float32", "cache": False}
    result = [headviz.conductance(clf, TEXTS[0], PAIRS[0], **how) for clf in (here, there)]
    np.testing.assert_allclose(result[1].attribution, result[0].attribution, **CLOSE)
    np.testing.assert_allclose(result[1].attention, result[0].attention, **CLOSE)


def test_patching(both: Both) -> None:
    here, there = both()
    a, b = (TEXTS[0], PAIRS[0]), (TEXTS[0], PAIRS[1])
    result = [headviz.patch(clf, a, b) for clf in (here, there)]
    np.testing.assert_allclose(result[1].whole, result[0].whole, **CLOSE)


def test_pruned_saved_and_loaded(both: Both, device: str, tmp_path: Path) -> None:
    _, there = both()
    small = headviz.prune(there, MASK)
    masked = headviz.evaluate(there, DATA, MASK, precision="float32").logits
    np.testing.assert_allclose(headviz.evaluate(small, DATA, precision="float32").logits, masked, **CLOSE)
    small.save(tmp_path / "small")
    again = headviz.load(tmp_path / "small", device=device)
    np.testing.assert_allclose(headviz.evaluate(again, DATA, precision="float32").logits, masked, **CLOSE)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_training(both: Both, device: str, precision: str) -> None:
    here, there = both()
    if precision == "float16" and device != "cuda":
        pytest.skip("float16 is trained on CUDA only")
    for clf in (here, there):  # devices draw other random numbers
        for module in clf.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    options = FinetuneOptions(epochs=2, batch=4, learning_rate=1e-3)
    low, exact = fine_tune(there, DATA, replace(options, precision=precision)), fine_tune(here, DATA, options)
    losses = [[point.loss for point in trained.curve] for trained in (low, exact)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.15)
    assert low.classifier.device.type == torch.device(device).type


def test_translations(device: str, tmp_path: Path) -> None:
    folder = tiny_translator_folder(tmp_path / "marian")
    data = Dataset(TASKS["custom-translation"], "dev", texts=tuple(SOURCES), pairs=tuple(TARGETS))
    mask = HeadMask.full(8, 4).without([(0, 1), (4, 2), (7, 3)])
    result = [headviz.evaluate(headviz.load(folder, device=where), data, mask) for where in ("cpu", device)]
    for name in ("translations", "metrics"):
        assert getattr(result[0], name) == getattr(result[1], name)


def test_a_callers_setting_changes_nothing_and_is_left_as_it_is(both: Both) -> None:
    _, there = both()
    result = []
    for setting in ("highest", "high"):
        torch.set_float32_matmul_precision(setting)
        try:
            maps = headviz.conductance(there, TEXTS[0], PAIRS[0], steps=8, precision="float32", cache=False)
            result.append((maps.attribution, headviz.evaluate(there, DATA, precision="float32").logits))
            assert torch.get_float32_matmul_precision() == setting
        finally:
            torch.set_float32_matmul_precision("highest")
    for one, other in zip(*result, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_recorded_pass_is_the_plain_one(both: Both) -> None:
    """A text alone is recorded, also for the next text and mask of its length; several together are not."""
    _, there = both()
    how = {"steps": 4, "precision": "float32", "cache": False}
    for mask in (None, MASK):
        together = headviz.conductance(there, TEXTS, PAIRS, mask=mask, **how)
        for i in (0, 3, 1, 2, 0):
            alone = headviz.conductance(there, TEXTS[i], PAIRS[i], mask=mask, **how)
            np.testing.assert_allclose(alone.attribution, together[i].attribution, **CLOSE)
            np.testing.assert_allclose(alone.head_error, together[i].head_error, **CLOSE)
    if there.device.type == "cuda":
        assert not refusals(there.model)

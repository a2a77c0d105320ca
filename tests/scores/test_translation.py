"""Head scores of translation models: derivatives against finite differences, ablation against BLEU itself."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import normalizers

import headviz
from headviz import HeadMask
from headviz.errors import OptionError
from headviz.evaluation.stand_ins import standing_in
from headviz.scores.scoring import Scoring, score_heads
from headviz.storage.store import Store
from headviz.tasks import TASKS, Dataset
from support.gated import gated
from support.tiny_translation import HEADS, ROWS, SOURCES, TARGETS, sentence_tokenizer, tiny_seq2seq

MASK = HeadMask.full(ROWS, HEADS).without([(0, 1), (3, 0), (6, 2)])
DATA = Dataset(TASKS["custom-translation"], "dev", texts=tuple(SOURCES), pairs=tuple(TARGETS))


def exact(family: str = "marian", **options: object) -> headviz.Classifier:
    """In float64, so that finite differences are good to many digits."""
    return headviz.wrap(tiny_seq2seq(family, **options).double(), sentence_tokenizer())


def losses(clf: headviz.Classifier, row: int, head: int, gate: float) -> np.ndarray:
    """Each sentence's loss with one head turned down or up by a gate; one sentence at a time."""
    out = []
    for encoding in clf.encode(SOURCES, TARGETS):
        batch = clf.collate([encoding])
        with torch.inference_mode():
            logits = clf.forward(batch, clf.call(MASK, edit_outputs=gated(clf, {(row, head): gate})))
        labels = batch["labels"][0]
        out.append(torch.nn.functional.cross_entropy(logits[0], labels).item())
    return np.array(out)


@pytest.mark.parametrize(("family", "kind"), [("t5", "zero"), ("marian", "mean")])
def test_taylor_is_the_derivative_by_finite_differences(family: str, kind: str) -> None:
    clf = standing_in(exact(family), kind, DATA)
    result = score_heads(clf, DATA, "taylor", mask=MASK, layer_norm=False, cache=False)
    signed = score_heads(clf, DATA, "taylor", mask=MASK, layer_norm=False, abs_level="signed", cache=False)
    fisher = score_heads(clf, DATA, "fisher", mask=MASK, cache=False)
    step = 1e-4
    for row, head in [(0, 0), (1, 3), (2, 1), (4, 0), (5, 2), (7, 3)]:
        slope = (losses(clf, row, head, 1 + step) - losses(clf, row, head, 1 - step)) / (2 * step)
        # the loss is taken in float32
        assert result.values[row, head] == pytest.approx(np.abs(slope).mean(), rel=2e-2, abs=2e-4)
        assert signed.values[row, head] == pytest.approx(slope.mean(), rel=2e-2, abs=2e-4)
        assert fisher.values[row, head] == pytest.approx((slope**2).sum(), rel=4e-2, abs=2e-4)
    assert np.isnan(result.values[[0, 3, 6], [1, 0, 2]]).all()
    assert np.isfinite(result.values).sum() == len(MASK.kept)


def test_neither_batches_nor_the_order_nor_padding_matter() -> None:
    clf = exact()
    together = score_heads(clf, DATA, "taylor", abs_level="token", cache=False).values
    backwards = score_heads(clf, DATA.subset([3, 1, 0, 2]), "taylor", abs_level="token", cache=False).values
    np.testing.assert_allclose(together, backwards, rtol=1e-6)
    alone = [
        score_heads(clf, DATA.subset([i]), "taylor", abs_level="token", layer_norm=False, cache=False).values
        for i in range(4)
    ]
    raw = score_heads(clf, DATA, "taylor", abs_level="token", layer_norm=False, cache=False).values
    np.testing.assert_allclose(raw, np.mean(alone, axis=0), rtol=1e-5)


def test_the_cache_tells_references_apart() -> None:
    clf = exact()
    other = Dataset(DATA.task, "dev", texts=DATA.texts, pairs=tuple(TARGETS[::-1]))
    first = score_heads(clf, DATA, "taylor", layer_norm=False).values
    assert np.array_equal(score_heads(clf, DATA, "taylor", layer_norm=False).values, first)
    second = score_heads(clf, other, "taylor", layer_norm=False).values
    np.testing.assert_allclose(second, score_heads(clf, other, "taylor", layer_norm=False, cache=False).values)
    assert not np.allclose(first, second)


def test_the_cache_tells_references_apart_that_have_the_same_tokens(tmp_path: Path) -> None:
    """BLEU reads capitals, a tokenizer may not."""
    tokenizer = sentence_tokenizer(8)
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    clf, some = headviz.wrap(tiny_seq2seq(), tokenizer), HeadMask.only(ROWS, HEADS, ["0.0", "3.1", "6.2"])
    (text,), _ = headviz.translate(clf, SOURCES[2:3], some)
    data, capital = (Dataset(DATA.task, "dev", (SOURCES[2],), (said,)) for said in (text, text.upper()))
    how = {"mask": some, "cache": Store(tmp_path)}
    first = score_heads(clf, data, "ablation", **how).values
    assert not np.array_equal(score_heads(clf, capital, "ablation", **how).values, first, equal_nan=True)
    one, other = (Scoring(clf, d, "shapley").whole for d in (data, capital))
    assert one is not None
    assert other is not None
    assert one.digest != other.digest


def test_the_cache_tells_generation_settings_apart(tmp_path: Path) -> None:
    model = tiny_seq2seq()
    some = HeadMask.only(ROWS, HEADS, ["0.0", "3.1", "6.2"])
    usual = headviz.wrap(model, sentence_tokenizer())
    (text,), _ = headviz.translate(usual, SOURCES[2:3], some)
    data, how = Dataset(DATA.task, "dev", (SOURCES[2],), (text,)), {"mask": some, "cache": Store(tmp_path)}
    first = score_heads(usual, data, "ablation", **how).values
    model.generation_config.bad_words_ids = [[i] for i in usual.encode(SOURCES[2:3], (text,))[0].target[:2]]
    own = headviz.wrap(model, sentence_tokenizer())
    uncached = score_heads(own, data, "ablation", mask=some, cache=False).values
    assert not np.array_equal(uncached, first, equal_nan=True)
    assert np.array_equal(score_heads(own, data, "ablation", **how).values, uncached, equal_nan=True)


def test_ablation_is_the_difference_of_bleu() -> None:
    clf, heads = exact(seed=3), [(0, 0), (2, 1), (5, 3), (7, 0)]
    mask = HeadMask.only(ROWS, HEADS, heads)
    # references near to what the model writes, so that BLEU is not 0
    written = headviz.evaluate(clf, DATA, mask).translations
    near = tuple(" ".join(t.split()[:-1] or ["a"]) for t in written)
    data = Dataset(DATA.task, "dev", texts=DATA.texts, pairs=near)
    result = score_heads(clf, data, "ablation", mask=mask, cache=False)
    full = headviz.evaluate(clf, data, mask).metrics["bleu"]
    assert full > 20
    for head in heads:
        without = headviz.evaluate(clf, data, mask.without([head])).metrics["bleu"]
        assert result.values[head] == pytest.approx(full - without, abs=1e-9), head
    assert np.isnan(result.values[0, 1])
    known = np.isfinite(result.values)
    # fewer sentences than an interval needs: before, an unchanged translation had [0, 0]
    assert (result.values[known] == 0).any()
    assert np.isnan(result.interval_low[known]).all()
    with pytest.raises(OptionError, match="not measured in 'chrf'"):
        score_heads(clf, data, "ablation", mask=mask, metric="chrf", cache=False)

"""Evaluation of translation models: order, batches, bounds, statistics, and what is refused."""

import logging

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF

import headviz
from headviz import HeadMask
from headviz.errors import MaskError, ModelError, OptionError, TaskError
from headviz.extras.translation.evaluation import (
    TOKENISED,
    TranslationEvaluation,
    TranslationEvaluator,
    TranslationOptions,
    translate,
)
from headviz.tasks import TASKS, Dataset
from support.tiny import tiny_classifier
from support.tiny_translation import SOURCES, TARGETS, tiny_translator

MASK = HeadMask.full(8, 4).without([(0, 1), (2, 0), (4, 2), (5, 1), (7, 3)])


def data_of(repeat: int = 1, slices: bool = False) -> Dataset:
    n = repeat * len(SOURCES)
    return Dataset(
        TASKS["custom-translation"],
        "dev",
        texts=tuple(SOURCES * repeat),
        pairs=tuple(TARGETS * repeat),
        slices=tuple("ab"[i % 2] for i in range(n)) if slices else None,
        slice_name="kind" if slices else None,
    )


@pytest.fixture(scope="module")
def clf() -> headviz.Classifier:
    return tiny_translator(seed=3, longest=40)


def test_metrics_are_those_of_sacrebleu(clf: headviz.Classifier) -> None:
    result = headviz.evaluate(clf, data_of(), MASK)
    assert isinstance(result, TranslationEvaluation)
    texts, references = list(result.translations), [TARGETS]
    assert result.metrics["bleu"] == BLEU().corpus_score(texts, references).score
    assert result.metrics["chrf"] == CHRF().corpus_score(texts, references).score
    pieces = [" ".join(clf.tokenizer.tokenize(t)) for t in texts]
    expected = BLEU(tokenize="none").corpus_score(pieces, [[" ".join(clf.tokenizer.tokenize(t)) for t in TARGETS]])
    assert result.metrics[TOKENISED] == expected.score
    assert "tok:13a" in result.signatures["bleu"]
    assert "tok:none" in result.signatures[TOKENISED]
    assert result.mask == MASK
    assert result.n == len(result.predictions) == 4


def test_long_translations_of_a_broken_model_warn_of_nothing() -> None:
    clf = tiny_translator(seed=3)  # its own tokenizer: transformers warns once for each
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    data = Dataset(TASKS["custom-translation"], "dev", texts=("a dog",), pairs=("the house runs " * 20,))
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    try:
        headviz.evaluate(clf, data)
    finally:
        logger.removeHandler(handler)
    assert not [s for s in said if "longer than" in s]


@pytest.mark.slow
def test_neither_batches_nor_the_order_matter(clf: headviz.Classifier) -> None:
    together, _ = translate(clf, SOURCES, MASK, beams=2)
    alone = [translate(clf, [text], MASK, beams=2)[0][0] for text in SOURCES]
    small, _ = translate(clf, SOURCES, MASK, beams=2, batch_tokens=1)
    backwards, _ = translate(clf, SOURCES[::-1], MASK, beams=2)
    assert together == alone == small == backwards[::-1]


@pytest.mark.slow
def test_a_beam_search_does_not_depend_on_longer_sentences_in_its_batch() -> None:
    clf = tiny_translator(longest=60, seed=1)
    long = "the red cat sees two birds in the garden and a dog runs"
    (alone,), _ = translate(clf, ["two birds ."], beams=4)
    assert translate(clf, ["two birds .", long], beams=4)[0][0] == alone


def test_translations_that_never_end_are_cut(clf: headviz.Classifier) -> None:
    clf.model.generation_config.suppress_tokens = [1]  # never the end
    try:
        result = headviz.evaluate(clf, data_of())
        ids = clf.generate(clf.collate(clf.encode(SOURCES[:1])))
    finally:
        clf.model.generation_config.suppress_tokens = None
    assert result.cut == 4
    assert ids.shape[1] == clf.max_length
    own = [len(clf.encode([t])[0]) for t in SOURCES]
    words = [len(t.split()) for t in result.translations]
    assert all(w <= 2 * n + 20 for w, n in zip(words, own, strict=True))


def test_truncated_sentences_are_counted(clf: headviz.Classifier) -> None:
    data = Dataset(TASKS["custom-translation"], "dev", ("a dog " * 60, "a cat"), ("a", "dog " * 50))
    assert headviz.evaluate(clf, data).truncated == 2


# many masks --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_evaluator_equals_plain_evaluation(clf: headviz.Classifier) -> None:
    evaluator = TranslationEvaluator(clf, data_of())
    for mask in (None, MASK, MASK.without([(1, 1)])):
        assert evaluator.evaluate(mask).translations == headviz.evaluate(clf, data_of(), mask).translations
    assert evaluator.evaluate(MASK) is evaluator.evaluate(MASK)
    with pytest.raises(MaskError):
        evaluator.evaluate(HeadMask.full(2, 2))


def test_an_evaluator_refuses_weights_that_have_changed() -> None:
    clf = tiny_translator(seed=3, longest=40)
    evaluator = TranslationEvaluator(clf, data_of())
    with torch.no_grad():
        next(clf.model.parameters()).mul_(2)
    with pytest.raises(ModelError, match="Make a new evaluator"):
        evaluator.evaluate()


@pytest.mark.slow
def test_comparison(clf: headviz.Classifier) -> None:
    evaluator = TranslationEvaluator(clf, data_of(8, slices=True))
    result = evaluator.compare(MASK)
    assert [d.metric for d in result.deltas] == ["bleu", "chrf"]
    full, masked = headviz.evaluate(clf, data_of(8)), headviz.evaluate(clf, data_of(8), MASK)
    assert result.primary.full == pytest.approx(full.metrics["bleu"])
    assert result.primary.masked == pytest.approx(masked.metrics["bleu"])
    assert (result.primary.full, result.primary.masked) == (0, 0)  # nothing that an interval could be made of
    assert np.isnan([result.primary.interval_low, result.primary.interval_high]).all()
    assert result.flips is None
    assert [d.name for d in result.slices] == ["a", "b"]
    assert np.isnan(result.deltas[1].p_value)
    assert result.deltas[1].delta == pytest.approx(masked.metrics["chrf"] - full.metrics["chrf"])
    answers = evaluator.answers()
    assert answers.measure(answers.full, "bleu") == pytest.approx(full.metrics["bleu"])
    nothing = evaluator.compare(HeadMask.full(8, 4)).primary
    assert (nothing.delta, nothing.p_value) == (0, 1)


# bad input ---------------------------------------------------------------------------------------


def test_an_encoder_only_model_is_refused() -> None:
    for ask in (headviz.evaluate, TranslationEvaluator):
        with pytest.raises(TaskError, match="an encoder only"):
            ask(tiny_classifier(), data_of())
    with pytest.raises(TaskError, match="encoder-decoder model"):
        headviz.Evaluator(tiny_classifier(), data_of())


def test_a_translator_does_not_classify(clf: headviz.Classifier) -> None:
    labelled = Dataset(TASKS["sst2"], "dev", ("a", "b"), labels=np.array([0, 1]))
    with pytest.raises(TaskError, match="'tiny-marian' translates, but task 'sst2' is no translation"):
        headviz.evaluate(clf, labelled)
    with pytest.raises(OptionError, match="beams is for translation models"):
        headviz.evaluate(tiny_classifier(labels=("negative", "positive")), labelled, beams=2)


def test_nothing_to_translate(clf: headviz.Classifier) -> None:
    with pytest.raises(TaskError, match="no examples"):
        headviz.evaluate(clf, Dataset(TASKS["custom-translation"], "dev", (), ()))
    with pytest.raises(OptionError, match="beams is a whole number of at least 1"):
        TranslationOptions(beams=0)

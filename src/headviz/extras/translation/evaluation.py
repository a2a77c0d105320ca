"""Evaluation of translation models: (translator, data, mask) -> translations, BLEU and chrF.

``TranslationEvaluator`` answers the same questions about many masks as ``headviz.Evaluator`` does for classifiers,
so that ablation, all-but-one, curves and dynamics work on stacks of heads unchanged.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import MOST_BEAMS, ModelError, OptionError, TaskError, shown, whole_number
from ...evaluation.mask_evaluator import MaskEvaluator
from ...evaluation.plain import BATCH_TOKENS, Evaluation, batches, stand_in_fields
from ...evaluation.precision import AUTO
from ...heads import HeadMask
from ...models.base import Model
from ...models.network import require_model
from ...progress import Cancel, Progress, tracked
from ...pruning.judging import Judge, Measured, measured
from ...storage.exchange import MaskLike
from ...tasks.dataset import require_dataset
from ...tasks.tokenizer_lock import alone_with
from .recurrent import RnnTranslator, words_of
from .sentence import bleu, chrf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...models.classifier import Classifier
    from ...tasks import Dataset
    from .translator import SentenceEncoding, Translator


# a broken model may never stop: a translation ends after 2 tokens per source token and 20 more
LENGTH_FACTOR, LENGTH_EXTRA = 2, 20
SENTENCES = 256  # a recurrent model asks the cancel flag once per so many sentences
TOKENISED = "bleu-tokenised"


@dataclass(frozen=True, eq=False)
class TranslationEvaluation(Evaluation):
    """What a translation model writes for a data set under one mask. There are no logits (``logits`` is [n, 0]).

    ``metrics`` has BLEU and chrF of the text as people write it, and BLEU of both sides in the model's own tokens
    (``bleu-tokenised``): two forms that must not be compared with each other.
    """

    mask: HeadMask | None  # type: ignore[assignment]  # None: a recurrent model, without heads
    translations: tuple[str, ...]
    references: tuple[str, ...]
    signatures: dict[str, str]  # of each metric, by sacrebleu
    beams: int
    cut: int  # translations that reached the length bound

    @property
    def predictions(self) -> np.ndarray:
        """[n] the translations."""
        return np.array(self.translations, dtype=object)

    @property
    def probabilities(self) -> np.ndarray:
        raise TaskError("A translation has no class probabilities.")

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"signatures": self.signatures, "beams": self.beams, "cut": self.cut}


def evaluate_translation(
    clf: Model,
    data: Dataset,
    mask: MaskLike | None = None,
    *,
    beams: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> TranslationEvaluation:
    """Translate under a mask and measure. Greedy by default; ``beams`` > 1 searches."""
    start = time.perf_counter()
    truncated, filled = 0, {}
    if isinstance(clf, RnnTranslator):
        under = None
        texts, cut = _recurrent(clf, data, mask, beams, progress, cancel)
        tokens, reference_tokens = ([" ".join(words_of(t)) for t in side] for side in (texts, data.references))
    else:
        translator = require_translation(clf, data)
        under = clf.under(mask)
        texts, cut = translate(translator, data.texts, mask, beams, batch_tokens, progress, cancel)
        if data.pairs is not None:
            truncated = sum(e.truncated for e in translator.encode(data.texts, data.references))
        tokens, reference_tokens = (_tokenised(translator, list(side)) for side in (texts, data.references))
        filled = stand_in_fields(translator)
    scores = {
        "bleu": bleu(texts, data.references),
        "chrf": chrf(texts, data.references),
        TOKENISED: bleu(tokens, reference_tokens, "none"),
    }
    return TranslationEvaluation(
        metrics={name: score.value for name, score in scores.items()},
        logits=np.empty((len(data), 0), dtype=np.float32),
        gold=None,
        mask=under,
        seconds=time.perf_counter() - start,
        truncated=truncated,
        translations=tuple(texts),
        references=data.references,
        **filled,
        signatures={name: score.signature for name, score in scores.items()},
        beams=beams,
        cut=cut,
        answer=data.answer,
    )


def _recurrent(
    clf: RnnTranslator,
    data: Dataset,
    mask: MaskLike | None,
    beams: int,
    progress: Progress | None,
    cancel: Cancel | None,
) -> tuple[list[str], int]:
    """Translations of a model without heads, and how many of them reached the length bound."""
    if mask is not None:
        clf.gates(mask)  # says that it has no heads
    clf.answer.refuse(clf, data)
    texts: list[str] = []
    parts = [data.texts[at : at + SENTENCES] for at in range(0, len(data), SENTENCES)]
    for sentences in tracked(parts, progress, cancel, size=len):
        texts += clf.translate(sentences, beams=beams)
    return texts, sum(len(words_of(t)) >= clf.max_length for t in texts)


def require_translation(clf: Model, data: Dataset) -> Translator:
    """The model as a translator, if model and data are both about translation."""
    require_model(clf)
    require_dataset(data)
    if len(data) == 0:
        raise TaskError("There is nothing to evaluate: the data set has no examples.")
    data.answer.refuse(clf, data)
    clf.answer.refuse(clf, data)
    _ = clf.num_layers  # a recurrent model says that it has no heads
    return cast("Translator", clf)


def translate(
    clf: Translator,
    texts: Any,
    mask: MaskLike | None = None,
    beams: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> tuple[list[str], int]:
    """Translations in the order of the texts, and how many of them were cut at the length bound.

    >>> import headviz
    >>> clf, data = headviz.load("demo-translation", device="cpu"), headviz.load_task("demo-translation", limit=2)
    >>> texts, cut = headviz.translate(clf, data.texts)
    >>> len(texts), cut
    (2, 0)
    """
    require_model(clf)
    if not hasattr(clf, "generate"):
        raise ModelError(f"'{clf.name}' is {clf.title}; headviz.translate takes a transformers model that translates.")
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TaskError(f"headviz.translate takes a list of texts, not {shown(texts)}.")
    encodings = clf.encode(list(texts))
    out = [""] * len(encodings)
    cut = 0
    for index in tracked(_sentence_batches(clf, encodings, beams, batch_tokens), progress, cancel, size=len):
        sources = [encodings[i] for i in index]
        bounds = [_bound(clf, len(e)) for e in sources]
        ids = clf.generate(clf.collate(sources), mask, beams=beams, max_new_tokens=max(bounds)).tolist()
        # each by its own bound: a translation must not depend on the others in its batch
        rows = [row[: 1 + bound] for row, bound in zip(ids, bounds, strict=True)]
        cut += sum(_reaches_bound(clf, row, bound) for row, bound in zip(rows, bounds, strict=True))
        for i, text in zip(index, clf.decode(rows), strict=True):
            out[i] = text
    return out, cut


def _sentence_batches(
    clf: Translator, encodings: Sequence[SentenceEncoding], beams: int, batch_tokens: int
) -> Iterator[list[int]]:
    """Batches of sentences. Which beams win depends on how long they may become, so a search has one bound for all."""
    for index in batches([len(e) for e in encodings], batch_tokens):
        if beams == 1:
            yield index
        else:
            yield from (list(group) for _, group in groupby(index, lambda i: _bound(clf, len(encodings[i]))))


def _bound(clf: Translator, source: int) -> int:
    return min(clf.max_length - 1, LENGTH_FACTOR * source + LENGTH_EXTRA)


def _reaches_bound(clf: Translator, row: list[int], bound: int) -> bool:
    end = clf.config.eos_token_id
    ends = set(end) if isinstance(end, list) else {end}
    return len(row) == 1 + bound and not ends & set(row[1:])


def _tokenised(clf: Translator, texts: list[str]) -> list[str]:
    # no warning of long texts: these tokens are only counted
    with alone_with(clf.tokenizer):
        return [" ".join(clf.tokenizer.tokenize(text, verbose=False)) for text in texts]


KEPT = 512  # masks whose translations are kept


@dataclass(frozen=True)
class TranslationOptions:
    """How ``TranslationEvaluator`` translates. Weights are used in the model's own precision."""

    beams: int = 1
    batch_tokens: int = BATCH_TOKENS

    def __post_init__(self) -> None:
        whole_number(self.batch_tokens, "batch_tokens", 1)
        whole_number(self.beams, "beams", 1, MOST_BEAMS)


class TranslationEvaluator(MaskEvaluator):
    """Many masks of one translator on one data set, in the model's own precision. Safe to share.

    >>> import headviz
    >>> clf = headviz.load("demo-translation", device="cpu")
    >>> evaluator = headviz.TranslationEvaluator(clf, headviz.load_task("demo-translation", limit=2))
    >>> sorted(evaluator.evaluate().metrics)
    ['bleu', 'bleu-tokenised', 'chrf']
    """

    clf: Translator

    def __init__(self, clf: Model, data: Dataset, options: TranslationOptions | None = None) -> None:
        super().__init__(require_translation(clf, data), data)
        self.options = options or TranslationOptions()
        self._results: OrderedDict[tuple, TranslationEvaluation] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def precision(self) -> str:
        return str(self.clf.dtype).removeprefix("torch.")

    @property
    def own_keywords(self) -> dict[str, Any]:
        return {"beams": self.options.beams}

    def evaluate(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> TranslationEvaluation:
        off = self.whole(mask).off
        with self._lock:
            if off in self._results:
                self._results.move_to_end(off)
                return self._results[off]
        evaluation = evaluate_translation(
            self.clf,
            self.data,
            mask,
            beams=self.options.beams,
            batch_tokens=self.options.batch_tokens,
            progress=progress,
            cancel=cancel,
        )
        with self._lock:
            self._results[off] = evaluation
            while len(self._results) > KEPT:
                self._results.popitem(last=False)
        return evaluation

    def predictions(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> NDArray:
        return self.evaluate(mask, keep=keep, progress=progress, cancel=cancel).predictions


def evaluator(
    clf: Model, data: Dataset, options: Any, label_order: Any, beams: int, donors: Any, cancel: Any
) -> MaskEvaluator:
    """What ``headviz.evaluator_of`` gives for translations."""
    if options is not None and options.precision not in (AUTO, "float32"):
        raise OptionError(
            f"A translation model is evaluated in its own precision; '{options.precision}' is for classifiers."
        )
    return TranslationEvaluator(clf, data, TranslationOptions(beams))


# Evaluate a translation model of a pruning run -------------------------------------------------


END = "\n"


class Sentences(Judge):
    """Translations, greedy: kept as UTF-8, one per line."""

    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        model = require_translation(clf, self.data)
        texts, _ = translate(model, self.data.texts, mask, progress=progress, cancel=cancel)
        return lines(texts)

    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        translations, others = (np.array(texts_of(lines), dtype=object) for lines in (answers, reference))
        return measured(self.data, translations, others)


def lines(texts: list[str]) -> np.ndarray:
    """Texts as one array of bytes, one per line. Line breaks within a text become spaces."""
    joined = END.join(" ".join(t.splitlines()) for t in texts)
    return np.frombuffer(joined.encode(), np.uint8).copy()


def texts_of(answers: np.ndarray) -> list[str]:
    """The inverse of ``lines``."""
    return answers.tobytes().decode().split(END)

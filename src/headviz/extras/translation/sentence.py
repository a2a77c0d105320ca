"""A translation of a sentence: the job ``sentence``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...answers.answer import IGNORED, Answer, Changed
from ...answers.comparison import Answers, Ends, percentiles
from ...answers.metrics import Metric
from ...errors import OptionError, TaskError, is_one_of, unknown_choice
from ...heads import TRANSLATION

if TYPE_CHECKING:
    from torch import Tensor


# BLEU and chrF by sacrebleu, with signatures, and paired bootstrap resampling of BLEU ----------
#
# ``13a`` is for ordinary, detokenised text, and is the form to report. ``none`` splits at spaces only, for text that
# is tokenised already. Values of the two forms must not be compared.
#
# Shapes: N sentences, R resamples.


DETOKENISED, TOKENISED = "13a", "none"
TOKENIZERS = (DETOKENISED, TOKENISED, "intl", "char", "zh")
ORDERS = 4  # n-grams of up to four words
RESAMPLES = 1000
FEW = 10  # sentences that must differ before an interval of their change is given


@dataclass(frozen=True)
class Score:
    """A corpus score from 0 to 100, and the signature that makes it comparable."""

    value: float
    signature: str


@dataclass(frozen=True)
class Change:
    """How BLEU changed between two systems on the same sentences: other − first, with its uncertainty."""

    delta: float
    interval_low: float  # 95 % of the resampled changes
    interval_high: float
    p_value: float  # two-sided


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = DETOKENISED) -> Score:
    """Corpus BLEU, one reference for each sentence."""
    return _corpus_score(_metric(tokenize), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF (character n-grams of up to six, β = 2), one reference for each sentence."""
    from sacrebleu.metrics import CHRF

    return _corpus_score(CHRF(), hypotheses, references)


def _corpus_score(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    _check(hypotheses, references)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(float(score.score), str(metric.get_signature()))


def bleu_counts(hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """What BLEU needs of each sentence, int64 [N, 10]: matches and totals by order, both lengths.

    Sums of rows give the corpus score of those sentences (``bleu_of``).
    """
    _check(hypotheses, references)
    metric = _metric(DETOKENISED)
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        score = metric.corpus_score([hypothesis], [[reference]])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, dtype=np.int64)


def bleu_of(total: np.ndarray) -> float:
    """BLEU of summed counts [10]."""
    correct, totals = total[:ORDERS].tolist(), total[ORDERS : 2 * ORDERS].tolist()
    score = _metric(DETOKENISED).compute_bleu(correct, totals, int(total[-2]), int(total[-1]), smooth_method="exp")
    return float(score.score)


def compare(first: np.ndarray, other: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Change:
    """Paired bootstrap resampling of two systems' ``bleu_counts``: the same sentences are drawn for both.

    The p value is the share of resampled changes that are at least as far from their mean as the observed change is
    from zero; its least value is 1 / (resamples + 1). With fewer than ``FEW`` sentences that differ there is no
    interval (NaN): the resamples are too similar to hold the true change.
    """
    if first.shape != other.shape:
        raise TaskError(f"{len(first):,} sentences cannot be paired with {len(other):,}.")
    if resamples < 1:
        raise OptionError(f"At least one resample is needed, not {resamples}.")
    delta = bleu_of(other.sum(axis=0)) - bleu_of(first.sum(axis=0))
    if np.array_equal(first, other):
        return Change(delta, float("nan"), float("nan"), 1.0)
    rng, n = np.random.default_rng(seed), len(first)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples)  # [R, N]
    drawn = np.array([bleu_of(b) - bleu_of(a) for a, b in zip(weights @ first, weights @ other, strict=True)])
    extreme = np.count_nonzero(np.abs(drawn - drawn.mean()) >= abs(delta))
    return Change(delta, *interval(drawn, differing(first, other)), (1 + extreme) / (1 + resamples))


def differing(first: np.ndarray, other: np.ndarray) -> int:
    """Sentences whose counts differ."""
    return int((first != other).any(axis=1).sum())


def interval(drawn: np.ndarray, changed: int) -> tuple[float, float]:
    """95 % of the resampled changes; NaN where fewer than ``FEW`` sentences changed."""
    if changed < FEW:
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def _metric(tokenize: str) -> Any:
    from sacrebleu.metrics import BLEU

    if not is_one_of(tokenize, TOKENIZERS):
        raise OptionError(unknown_choice("BLEU tokenizer", tokenize, TOKENIZERS))
    # force: no warning for tokenised text, which is given on purpose
    return BLEU(tokenize=tokenize, force=True)


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise TaskError(
            f"There are {len(hypotheses):,} translations but {len(references):,} references. Give one for each."
        )
    if not len(references):
        raise TaskError("There is nothing to measure: no sentence was translated.")


# -----------------------------------------------------------------------------------------------


METRICS = {
    "bleu": Metric(lambda predicted, gold: bleu(predicted.tolist(), gold.tolist()).value, points=1.0),
    "chrf": Metric(lambda predicted, gold: chrf(predicted.tolist(), gold.tolist()).value, points=1.0),
}
_ROOM = "headviz.extras.translation"
OWN = {
    "model": f"{_ROOM}.translator:Translator",
    "reader": f"{_ROOM}.tasks:local_pairs",
    "evaluator": f"{_ROOM}.evaluation:evaluator",
    "evaluate": f"{_ROOM}.evaluation:evaluate_translation",
    "judge": f"{_ROOM}.evaluation:Sentences",
    "gate parts": f"{_ROOM}.scores:gate_parts",
    "ablation": f"{_ROOM}.scores:ablation",
    "ablation cost": f"{_ROOM}.scores:cost_in_bleu",
    "compare": f"{_ROOM}.pages.compare:draw",
    "bench": f"{_ROOM}.pages.compare:before_and_after",
}


@dataclass(frozen=True, eq=False)
class TextAnswers(Answers):
    """References and translations. The unit is the sentence."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """What BLEU needs of each of the full model's translations."""
        return bleu_counts(self.full.tolist(), self.gold.tolist())

    def pick(self, index: NDArray) -> Self:
        picked = super().pick(index)
        vars(picked)["counts"] = self.counts[index]
        return picked

    def measure(self, predicted: NDArray, name: str) -> float:
        return METRICS[name].of(predicted, self.gold)

    def interval(self, predicted: NDArray, name: str, seed: int = 0) -> Ends:
        """By bootstrap over the sentences; chrF has none: it only accompanies BLEU."""
        if name != "bleu":
            return None, None
        n = len(self.gold)
        weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        return percentiles(self.resampled(weights, predicted, name))

    def resampled(self, counts: NDArray, predicted: NDArray, name: str) -> NDArray[np.float64]:
        parts = bleu_counts(predicted.tolist(), self.gold.tolist())
        return np.array([bleu_of(total) for total in counts @ parts])

    def uncertainty(self, masked: NDArray, name: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        """Paired bootstrap resampling of BLEU; nothing for chrF."""
        if name != "bleu":
            return float("nan"), float("nan"), float("nan")
        # a sentence that stayed the same keeps its counts
        changed = np.flatnonzero(masked != self.full)
        counts = self.counts.copy()
        if len(changed):
            counts[changed] = bleu_counts(masked[changed].tolist(), self.gold[changed].tolist())
        change = compare(self.counts, counts, seed or 0)
        return change.interval_low, change.interval_high, change.p_value


class Sentence(Answer):
    """Texts are sources and pairs are references. Logits [n, T, V] are those of the reference's tokens."""

    job, kind = "sentence", TRANSLATION
    does = "reads a text and translates it"
    architectures, auto_class = ("ForConditionalGeneration", "MTModel"), "AutoModelForSeq2SeqLM"
    trained, decoder, stacked, explains = "output layer for translating", True, True, False
    after, own, metrics, unscored = "labels", OWN, METRICS, ("chrf",)
    usual, gold_name, gold_is_pair, quick = ("bleu", "chrf"), "references", True, False
    graph: tuple[str, ...] = ()

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> TextAnswers:
        return TextAnswers(gold, full)

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        index = np.flatnonzero(full != masked).tolist()
        return Changed(
            f"Changed translations: {len(index)} of {len(data)}",
            "No translation changed.",
            "Sentences that are translated differently under the mask.",
            ("masked", "full model", "reference", "source", data.slice_name or "slice", "example"),
            [[masked[i], full[i], data[i].pair, data[i].text, data[i].slice, i] for i in index],
        )

    def groups(self, data: Any) -> tuple[NDArray[np.int64], list[str]]:
        return super().groups(data)[0], ["sentences"]

    def references(self, data: Any) -> tuple[str, ...]:
        if data.pairs is None:
            return super().references(data)
        pairs: tuple[str, ...] = data.pairs
        return pairs

    def gold(self, data: Any) -> NDArray:
        return np.array(data.references, dtype=object)

    def has_gold(self, data: Any) -> bool:
        return data.pairs is not None

    def notes(self, data: Any) -> list[str]:
        return [f"BLEU by sacrebleu: {bleu(data.references, data.references).signature}"]

    def refuse(self, clf: Any, data: Any) -> None:
        if data.answer is not self:
            raise TaskError(
                f"'{clf.name}' translates, but task '{data.task.name}' is no translation. "
                "Choose task demo-translation or custom-translation, or a classifier."
            )
        if clf.answer is not self:
            raise TaskError(
                f"Task '{data.task.name}' is a translation: it needs an encoder-decoder model (Marian, BART, mBART, "
                f"T5), such as demo-translation, and '{clf.name}' is {clf.title}, an encoder only."
            )

    def described(self, names: Sequence[str]) -> str:
        return "none (translates)"

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """The mean over all tokens of the references."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction=reduction)


SENTENCE = Sentence()
ANSWERS = [SENTENCE]

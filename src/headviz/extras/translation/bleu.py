"""BLEU and chrF by sacrebleu, with signatures, and paired bootstrap resampling of BLEU.

``13a`` is for ordinary, detokenised text, and is the form to report. ``none`` splits at spaces only, for text that is
tokenised already. Values of the two forms must not be compared.

Shapes: N sentences, R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import OptionError, TaskError, is_one_of, unknown_choice

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

    first: float
    other: float
    interval_low: float  # 95 % of the resampled changes
    interval_high: float
    p_value: float  # two-sided
    resamples: int

    @property
    def delta(self) -> float:
        return self.other - self.first


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = DETOKENISED) -> Score:
    """Corpus BLEU, one reference for each sentence."""
    _check(hypotheses, references)
    metric = _metric(tokenize)
    found = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(float(found.score), str(metric.get_signature()))


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus chrF (character n-grams of up to six, β = 2), one reference for each sentence."""
    from sacrebleu.metrics import CHRF

    _check(hypotheses, references)
    metric = CHRF()
    found = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(float(found.score), str(metric.get_signature()))


def bleu_counts(hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """What BLEU needs of each sentence, int64 [N, 10]: matches and totals by order, both lengths.

    Sums of rows give the corpus score of those sentences (``bleu_of``).
    """
    _check(hypotheses, references)
    metric = _metric(DETOKENISED)
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        one = metric.corpus_score([hypothesis], [[reference]])
        rows.append([*one.counts, *one.totals, one.sys_len, one.ref_len])
    return np.array(rows, dtype=np.int64)


def bleu_of(total: np.ndarray) -> float:
    """BLEU of summed counts [10]."""
    from sacrebleu.metrics import BLEU

    correct, totals = total[:ORDERS].tolist(), total[ORDERS : 2 * ORDERS].tolist()
    found = BLEU.compute_bleu(correct, totals, int(total[-2]), int(total[-1]), smooth_method="exp")
    return float(found.score)


def compare(first: np.ndarray, other: np.ndarray, seed: int = 0, resamples: int = RESAMPLES) -> Change:
    """Paired bootstrap resampling of two systems' ``bleu_counts``: the same sentences are drawn for both.

    The p value is the share of resampled changes that are at least as far from their mean as the observed change is
    from zero; its least value is 1 / (resamples + 1). With fewer than ``FEW`` sentences that differ there is no
    interval (NaN): the resamples are too much alike to hold the true change.
    """
    if first.shape != other.shape:
        raise TaskError(f"{len(first):,} sentences cannot be paired with {len(other):,}.")
    if resamples < 1:
        raise OptionError(f"At least one resample is needed, not {resamples}.")
    values = bleu_of(first.sum(axis=0)), bleu_of(other.sum(axis=0))
    if np.array_equal(first, other):
        return Change(*values, float("nan"), float("nan"), 1.0, resamples)
    rng, n = np.random.default_rng(seed), len(first)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples)  # [R, N]
    both = (weights @ first, weights @ other)  # each [R, 10]
    drawn = np.array([bleu_of(b) - bleu_of(a) for a, b in zip(*both, strict=True)])
    low, high = interval(drawn, differing(first, other))
    extreme = np.count_nonzero(np.abs(drawn - drawn.mean()) >= abs(values[1] - values[0]))
    return Change(*values, float(low), float(high), (1 + extreme) / (1 + resamples), resamples)


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

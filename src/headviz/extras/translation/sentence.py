"""A translation of a sentence: the job ``sentence``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...answers.answer import IGNORED, Answer, Changed
from ...answers.comparison import Answers, Ends
from ...answers.metrics import Metric
from ...errors import TaskError
from ...heads import TRANSLATION
from ...statistics.significance import LEVEL
from . import bleu

if TYPE_CHECKING:
    from torch import Tensor


METRICS = {
    "bleu": Metric(lambda said, gold: bleu.bleu(said.tolist(), gold.tolist()).value, points=1.0),
    "chrf": Metric(lambda said, gold: bleu.chrf(said.tolist(), gold.tolist()).value, points=1.0),
}
_ROOM = "headviz.extras.translation"
OWN = {
    "model": f"{_ROOM}.translator:Translator",
    "reader": f"{_ROOM}.tasks:local_pairs",
    "evaluator": f"{_ROOM}.evaluation:evaluator",
    "evaluate": f"{_ROOM}.evaluation:evaluate_translation",
    "judge": f"{_ROOM}.judging:Sentences",
    "gate parts": f"{_ROOM}.scores:gate_parts",
    "ablation": f"{_ROOM}.scores:ablation",
    "ablation cost": f"{_ROOM}.scores:cost_in_bleu",
    "compare": f"{_ROOM}.pages.compare:draw",
}


@dataclass(frozen=True, eq=False)
class TextAnswers(Answers):
    """References and translations. The unit is the sentence."""

    @classmethod
    def of(cls, references: Sequence[str], full: Sequence[str]) -> Self:
        """Texts as they are."""
        return cls(np.array(references, dtype=object), np.array(full, dtype=object))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """What BLEU needs of each of the full model's translations."""
        return bleu.bleu_counts(self.full.tolist(), self.gold.tolist())

    def pick(self, index: NDArray) -> Self:
        some = super().pick(index)
        vars(some)["counts"] = self.counts[index]
        return some

    def measure(self, predicted: NDArray, name: str) -> float:
        return METRICS[name].of(predicted, self.gold)

    def interval(self, predicted: NDArray, name: str, seed: int = 0) -> Ends:
        """By bootstrap over the sentences; chrF has none: it only accompanies BLEU."""
        if name != "bleu":
            return None, None
        n, counts = len(self.gold), bleu.bleu_counts(predicted.tolist(), self.gold.tolist())
        weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), bleu.RESAMPLES)
        tail = (1 - LEVEL) / 2
        low, high = np.quantile([bleu.bleu_of(total) for total in weights @ counts], [tail, 1 - tail])
        return float(low), float(high)

    def resampled(self, counts: NDArray, predicted: NDArray, name: str) -> NDArray[np.float64]:
        parts = bleu.bleu_counts(predicted.tolist(), self.gold.tolist())
        return np.array([bleu.bleu_of(total) for total in counts @ parts])

    def uncertainty(self, masked: NDArray, name: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        """Paired bootstrap resampling of BLEU; nothing for chrF."""
        if name != "bleu":
            return float("nan"), float("nan"), float("nan")
        # a sentence that stayed the same keeps its counts
        changed = np.flatnonzero(masked != self.full)
        counts = self.counts.copy()
        if len(changed):
            counts[changed] = bleu.bleu_counts(masked[changed].tolist(), self.gold[changed].tolist())
        found = bleu.compare(self.counts, counts, seed or 0)
        return found.interval_low, found.interval_high, found.p_value


class Sentence(Answer):
    """Texts are sources and pairs are references. Logits [n, T, V] are those of the reference's tokens."""

    job, kind = "sentence", TRANSLATION
    architectures, auto_class = ("ForConditionalGeneration", "MTModel"), "AutoModelForSeq2SeqLM"
    trained, decoder, stacked, explains = "output layer for translating", True, True, False
    after, own, metrics, unscored = "labels", OWN, METRICS, ("chrf",)
    usual, gold_name, gold_is_pair, quick = ("bleu", "chrf"), "references", True, False

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> TextAnswers:
        return TextAnswers(gold, full)

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        places = [int(i) for i in (full != masked).nonzero()[0]]
        return Changed(
            f"Changed translations: {len(places)} of {len(data)}",
            "No translation changed.",
            "Sentences that are translated differently under the mask.",
            ("masked", "full model", "reference", "source", data.slice_name or "slice", "example"),
            [[masked[i], full[i], data[i].pair, data[i].text, data[i].slice, i] for i in places],
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
        return [f"BLEU by sacrebleu: {bleu.bleu(data.references, data.references).signature}"]

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

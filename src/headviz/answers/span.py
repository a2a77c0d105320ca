"""A span of a passage that answers a question, or none: the job ``span``.

A passage is cut into units, words and signs. A span begins at the first piece of one and ends at the last piece of
another. Logits [n, 1 + 2U, 2] have [CLS], which stands for no answer, and then of each unit its first and last piece.

Shapes: n questions, U units of the longest passage, A answers that people gave. Predictions [n, 2] are the numbers of
the first and the last unit, -1 for none. Gold answers [n, U, 1 + A] have a number for each unit's word, 0 for what
SQuAD's normalisation drops (articles and signs), and of each answer which units it has.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import OptionError, TaskError
from ..heads import ANSWERING
from .answer import EACH, GOLD, IGNORED, PREDICTED, WORSE_FIRST, Answer, Changed, Lead, Target, change_of
from .comparison import Drawn, SumAnswers, mean_of_units
from .metrics import Metric

if TYPE_CHECKING:
    from torch import Tensor

UNIT = re.compile(r"\w+|[^\w\s]")
ARTICLES = ("a", "an", "the")
LONGEST = 30  # units of an answer
ANSWER = "answer"  # what marks the units of one
NO_ANSWER = "no answer to any question"


def units(text: str) -> list[tuple[int, int]]:
    """Where each word or sign begins and ends."""
    return [match.span() for match in UNIT.finditer(text)]


def touched_units(passage: str, begin: int, end: int) -> tuple[int, int]:
    """The first and last unit that a span of characters touches; -1 for none."""
    touched = [i for i, (a, b) in enumerate(units(passage)) if a < end and b > begin]
    return (touched[0], touched[-1]) if touched else (-1, -1)


def numbers_of(passage: str) -> list[int]:
    """A number for the word of each unit, the same everywhere; 0 for articles and signs."""
    ids = []
    for begin, end in units(passage):
        word = passage[begin:end].lower()
        dropped = word in ARTICLES or not any(c.isalnum() for c in word)
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=7).digest()
        ids.append(0 if dropped else 1 + int.from_bytes(digest, "little"))
    return ids


@dataclass(frozen=True, eq=False)
class SpanAnswers(SumAnswers):
    """The unit is the question. The best of several gold answers counts."""

    metrics: ClassVar[Mapping[str, Callable[[NDArray], NDArray]]] = {
        "exact_match": mean_of_units,
        "token_f1": mean_of_units,
    }

    def as_rows(self, predicted: NDArray) -> tuple[NDArray, NDArray]:
        """[n, A, 2] the first and last unit of each gold answer, -1 for none, and the predicted ones [n, 2]."""
        return _ends(np.moveaxis(self.gold[..., 1:], -1, 1) == 1), predicted

    def each(self, predicted: NDArray, metric: str) -> NDArray[np.float64]:
        self._of(metric)
        return np.array([self._value(i, span, metric) for i, span in enumerate(predicted.tolist())], dtype=float)

    def _value(self, i: int, span: Sequence[int], metric: str) -> float:
        words, answers = self.gold[i, :, 0], self.gold[i, :, 1:].T.astype(bool)
        predicted = _kept(words[span[0] : span[1] + 1]) if span[0] >= 0 else []
        golds = [_kept(words[answer]) for answer in answers if answer.any()] or [[]]
        return max(float(predicted == gold) if metric == "exact_match" else _f1(predicted, gold) for gold in golds)

    def quality(self, predicted: NDArray) -> NDArray[np.float64]:
        """The words in common with the best gold answer."""
        return self.each(predicted, "token_f1")

    def agreement(self, predicted: NDArray) -> float:
        return float((predicted == self.full).all(axis=1).mean())


def _kept(words: NDArray) -> list[int]:
    return [int(word) for word in words if word]


def _first_answers(gold: Any) -> NDArray[np.int64]:
    """[…, 2] first and last unit of the first of gold answers […, U, 1 + A], -1 where the passage has none."""
    return _ends(np.asarray(gold)[..., 1] == 1)


def _ends(marked: NDArray) -> NDArray[np.int64]:
    """[…, 2] the first and last unit that is marked, of […, U]; -1 for none."""
    ends = np.stack([marked.argmax(axis=-1), marked.shape[-1] - 1 - marked[..., ::-1].argmax(axis=-1)], axis=-1)
    return np.where(marked.any(axis=-1, keepdims=True), ends, -1)


def _f1(predicted: Sequence[int], gold: Sequence[int]) -> float:
    if not predicted or not gold:
        return float(not predicted and not gold)
    common = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * common / (len(predicted) + len(gold))


class Span(Answer):
    """The best span by start and end logit, or none. F is the sum of both logits of the predicted span."""

    job, kind = "span", ANSWERING
    does = "reads a question and a passage and marks the answer in the passage"
    costs = "log-probability of the right span, lost without the head"
    architectures, auto_class = ("ForQuestionAnswering",), "AutoModelForQuestionAnswering"
    trained, read_at, num_texts, fresh = "question-answering head", EACH, 2, ("start", "end")
    usual, graded_in = ("exact_match", "token_f1"), "token_f1"
    paired, columns, label_needed = True, "span", False
    functions, label_type = True, "long"
    text_columns, label_column = ("question", "context"), "answers"
    graph = ("start_logits", "end_logits")
    gold_name, unit, text_names = "answers", ("question", "questions"), ("Question", "Passage")
    named = ("span", "questions")
    formula = r"F = z^{\mathrm{start}}_i + z^{\mathrm{end}}_j"

    def possible(self, outputs: int) -> bool:
        return outputs == 2

    # judging -----------------------------------------------------------------------------------------------

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> SpanAnswers:
        return SpanAnswers(gold, full)

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[SpanAnswers, NDArray]:
        gold, before, after = map(np.asarray, (gold, before, after))
        if gold.ndim != 3 or before.ndim != 2 or len({len(gold), len(before), len(after)}) > 1:
            raise TaskError("Spans are compared as data.gold and predictions of headviz.Evaluator, one each.")
        return SpanAnswers(gold, before), after

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """Token F1, against no answer to any question."""
        no_answers = SpanAnswers(gold, np.full((len(gold), 2), -1))
        return no_answers.drawn(weights, self.graded_in, f"answers no better than {NO_ANSWER}")

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        answers, rows = SpanAnswers(data.gold, full), []
        before, after = answers.quality(full), answers.quality(masked)
        for i in map(int, np.flatnonzero((full != masked).any(axis=1))):
            e = data[i]
            texts = (span_text(e.pair or "", span) for span in (data.labels[i, 0], full[i], masked[i]))
            rows.append([e.text, *texts, change_of(before[i], after[i]), e.slice, i])
        kinds = [row[4] for row in rows]
        return Changed(
            f"Changed answers: {kinds.count('worse')} now worse, {kinds.count('better')} now better",
            "No answer changed.",
            "Questions whose answer moves under the mask; worse = fewer words in common with the gold answers.",
            ("question", "gold", "full model", "masked", "change", data.slice_name or "slice", "example"),
            sorted(rows, key=lambda row: WORSE_FIRST.index(row[4])),
            {"question": 320},
        )

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        if labels.ndim != 3 or labels.shape[2] != 2 or not np.issubdtype(labels.dtype, np.integer):
            raise TaskError("Answers are a table [questions, answers, 2] of the first and last unit of each.")
        return np.array(labels, dtype=np.int64)

    def label(self, value: Any, names: Sequence[str]) -> str:
        return "none" if value[0, 0] < 0 else f"words {value[0, 0]} to {value[0, 1]}"

    def unread(self, places: Sequence[int], label: Any) -> bool:
        """Whether every gold answer was cut off."""
        return all(first >= 0 and min(places[1 + 2 * first], places[2 + 2 * last]) < 0 for first, last in label)

    def gold(self, data: Any) -> NDArray:
        labels, passages = super().gold(data), [numbers_of(text) for text in data.pairs]
        table = np.zeros((len(labels), max(map(len, passages)), 1 + labels.shape[1]), dtype=np.int64)
        for row, numbers, answers in zip(table, passages, labels, strict=True):
            row[: len(numbers), 0] = numbers
            for k, (first, last) in enumerate(answers):
                if first >= 0:
                    row[first : last + 1, 1 + k] = 1
        return table

    def slices(self, data: Any) -> tuple[str, list[str]] | None:
        """By the question word."""
        words = "what who when where why which how".split()
        question_words = ((w for w in re.findall(r"\w+", text.lower()) if w in words) for text in data.texts)
        return "question word", [next(of_text, "other") for of_text in question_words]

    def order(self, clf: Any, data: Any, label_order: Sequence[str] | str | None) -> NDArray[np.int64]:
        if clf.answer is not self:
            raise TaskError(
                f"'{clf.name}' answers {clf.answers}, but '{data.task.name}' asks for a span. Choose a model with a "
                "question-answering head."
            )
        return np.arange(2)

    # the output --------------------------------------------------------------------------------------------

    def places(
        self, texts: Sequence[str], offsets: Sequence[tuple[int, int]], sides: Sequence[int | None]
    ) -> tuple[int, ...]:
        """[CLS], then the first and the last piece of each unit; -1 for a unit that was cut off."""
        if len(texts) < 2:
            return (0,)
        begins = [begin for begin, _ in units(texts[1])]
        spans = [[-1, -1] for _ in begins]
        for place, ((_, end), side) in enumerate(zip(offsets, sides, strict=True)):
            number = int(np.searchsorted(begins, end - 1, side="right")) - 1
            if side == 1 and end > 0 and number >= 0:
                spans[number][1] = place
                if spans[number][0] < 0:
                    spans[number][0] = place
        return (0, *(place for span in spans for place in span))

    def unanswered(self, logits: NDArray) -> bool:
        return not bool(np.isfinite(logits[:, 0]).all()) or bool(np.isinf(logits).any())

    def described(self, names: Sequence[str]) -> str:
        return "a span of the passage that answers the question"

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        return self.plain(logits)

    def plain(self, logits: NDArray) -> NDArray[np.int64]:
        return np.stack(_best_span(np, np.asarray(logits, dtype=np.float64)), axis=1)

    def shares(self, values: NDArray, names: Sequence[str]) -> list[tuple[str, float]]:
        ((first, last),) = self.plain(values[None])
        score = float(values[0].sum() if first < 0 else values[1 + 2 * first, 0] + values[2 + 2 * last, 1])
        return [("no answer" if first < 0 else f"words {first} to {last}", score)]

    def marked(self, text: str, pair: str | None, values: NDArray, names: Sequence[str]) -> list[tuple[str, str]]:
        ((first, last),) = self.plain(values[None])
        passage = pair or ""
        return [
            (passage[begin:end], ANSWER if first <= i <= last and first >= 0 else "")
            for i, (begin, end) in enumerate(units(passage))
        ]

    # the scalar to explain -----------------------------------------------------------------------------------

    def target(self, clf: Any, target: Any, label: Any = None) -> Target:
        if isinstance(target, tuple):
            return target
        if target == GOLD:
            if np.ndim(label) != 2:
                raise OptionError(
                    "The target 'gold' of a span is its row of data.gold (label=). Without one take 'predicted'."
                )
            return tuple(_first_answers(label).tolist())
        if target != PREDICTED:
            raise OptionError(f"'{clf.name}' answers with a span; its target is 'predicted', not {target!r}.")
        return None

    def target_table(self, targets: Sequence[Target]) -> Tensor:
        """[B, 2] first and last unit, -1 for none; -2 = the predicted ones."""
        import torch

        return torch.tensor([t if isinstance(t, tuple) else (-2, -2) for t in targets])

    def chosen(self, logits: Tensor, targets: Tensor) -> Tensor:
        import torch

        exact = (logits.cpu() if logits.device.type == "mps" else logits).detach().double()
        predicted = torch.stack(_best_span(torch, exact), dim=1).to(targets.device)
        return torch.where(targets == -2, predicted, targets)

    def explained(self, logits: Tensor, chosen: Tensor) -> Tensor:
        first = (1 + 2 * chosen[:, :1]).clamp(min=0)
        last = (2 + 2 * chosen[:, 1:]).clamp(min=0)
        return logits[..., 0].gather(1, first) + logits[..., 1].gather(1, last)

    def target_of(self, chosen: NDArray) -> tuple[int, ...]:
        return tuple(chosen.tolist())

    def explained_name(self, target: Any, names: Sequence[str]) -> str:
        return "no answer" if target[0] < 0 else f"the span from word {target[0]} to {target[1]}"

    def followed(self, logits: NDArray, target: Any) -> NDArray:
        first, last = (0, 0) if target[0] < 0 else (1 + 2 * target[0], 2 + 2 * target[1])
        shown: NDArray = logits[:, first, 0] + logits[:, last, 1]
        return shown

    def target_name(self, name: str) -> str:
        return f"the logits of {name}"

    def lead(self, text: NDArray, donor: NDArray, target: Target, names: Sequence[str]) -> Lead:
        """The lead of the donor's span over the text's, in the text's passage."""
        if len(text) != len(donor):
            raise TaskError(
                "The passages of text and donor have different lengths, and spans are compared token by token. Give "
                "two questions about the same passage."
            )
        own, others = (tuple(self.plain(logits[None])[0].tolist()) for logits in (text, donor))

        def of(logits: NDArray) -> NDArray:
            flat = logits.reshape(-1, *logits.shape[-2:])
            lead = self.followed(flat, others) - (0 if own == others else self.followed(flat, own))
            return np.asarray(lead, dtype=np.float64).reshape(logits.shape[:-2])

        own_name, others_name = self.explained_name(own, names), self.explained_name(others, names)
        over = "" if own == others else f" minus those of {own_name}"
        return Lead(of, f"logits of {others_name}{over}", own_name, others_name)

    # learning ------------------------------------------------------------------------------------------------

    def learned(self, gold: Any) -> NDArray[np.int64]:
        """[n, 2] first and last unit of the first gold answer, -1 for none."""
        return _first_answers(gold)

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """The mean of both cross-entropies, over [CLS] and where a unit may begin or end; none where it was cut off."""
        import torch

        losses = []
        for side in (0, 1):
            z = torch.cat([logits[:, :1, side], logits[:, 1 + side :: 2, side]], dim=1)
            gold = 1 + labels[:, side]
            read = z.isfinite().gather(1, gold.clamp(max=z.shape[1] - 1)[:, None])[:, 0] & (gold < z.shape[1])
            gold = gold.masked_fill(~read, IGNORED)
            z = z.masked_fill(z.isnan(), -torch.inf)
            losses.append(torch.nn.functional.cross_entropy(z, gold, reduction="none"))
        each = torch.stack(losses).mean(dim=0)
        return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()

    def imitated(self, logits: Tensor, theirs: Tensor, temperature: float) -> Tensor:
        """Of where a span begins and where it ends, over the places of the passage."""
        ours, teachers = (z.nan_to_num(nan=-1e4).transpose(1, 2).flatten(0, 1) for z in (logits, theirs))
        return super().imitated(ours, teachers, temperature)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        places = np.broadcast_to(_first_answers(gold), (*logits.shape[:-2], 2)) + 1
        total = np.zeros(logits.shape[:-2])
        for side in (0, 1):
            z = np.concatenate([logits[..., :1, side], logits[..., 1 + side :: 2, side]], axis=-1)
            z = scipy.special.log_softmax(np.where(np.isnan(z), -np.inf, z), axis=-1)
            place = np.minimum(places[..., side], z.shape[-1] - 1)[..., None]
            each = -np.take_along_axis(z, place, axis=-1)[..., 0]
            total += np.where(np.isfinite(each), each, 0.0) / 2
        return total


def _best_span(library: Any, logits: Any) -> tuple[Any, Any]:
    """Numbers [n] of the first and the last unit, -1 for no answer, of logits of this library: numpy or torch."""
    where, starts, ends = library.where, logits[:, 1::2, 0], logits[:, 2::2, 1]
    starts, ends = (where(library.isnan(of_units), -library.inf, of_units) for of_units in (starts, ends))
    best = logits[:, 0].sum(axis=1)
    first = last = library.full_like(best, -1, dtype=library.int64)
    for distance in range(min(LONGEST, starts.shape[1])):  # from the first unit to the last
        sums = starts[:, : starts.shape[1] - distance] + ends[:, distance:]
        top, begin = library.amax(sums, 1), sums.argmax(1)
        better = top > best
        best, first = where(better, top, best), where(better, begin, first)
        last = where(better, begin + distance, last)
    return first, last


def span_text(passage: str, span: Sequence[int]) -> str:
    if span[0] < 0:
        return "none"
    where = units(passage)
    return passage[where[span[0]][0] : where[min(span[1], len(where) - 1)][1]]


def _metric(name: str) -> Metric:
    measure = SpanAnswers.measured_by(name)

    def unanswered(gold: NDArray) -> float | None:
        return measure(np.full((len(gold), 2), -1), gold) if len(gold) else None

    return Metric(measure, constant=unanswered, constant_name=NO_ANSWER, dims=(2, 3))


Span.metrics = {name: _metric(name) for name in SpanAnswers.metrics}
SPAN = Span()

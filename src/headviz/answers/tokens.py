"""A class for each word of a text, such as its part of speech or the span it belongs to: the job ``tokens``.

Words stand with a space between them, and a word's class is read at its first piece. Classes named ``O``, ``B-…`` and
``I-…`` mark spans (IOB2): such a task lists O, then B and I of each type, so that a class's number tells what it marks.

Shapes: n texts, W words of the longest one, C classes. Gold answers and predictions [n, W] hold class numbers, with
-100 behind a text's end, and -1 for an answer that is none of the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import OptionError, TaskError
from ..heads import TAGGING
from .answer import EACH, GOLD, IGNORED, PREDICTED, WORSE_FIRST, Answer, Changed, Lead, Target, change_of
from .class_names import label_map, match_names
from .comparison import Drawn, SumAnswers, f1, mean_of_units
from .metrics import Metric
from .one_class import OTHER, class_name, output_named

if TYPE_CHECKING:
    from torch import Tensor

OUTSIDE, BEGIN, INSIDE = "O", "B-", "I-"
NO_SPAN, MOST_FREQUENT = "no span at all", "the most frequent tag for all"
EXPECTED = -1  # in place of a class: the one that the model predicts


def types_in(names: Sequence[str]) -> tuple[str, ...] | None:
    """The types of spans that these classes mark, in order; None where they mark none."""
    types = sorted({name[2:] for name in names if name[:2] in (BEGIN, INSIDE) and len(name) > 2})
    return tuple(types) if types and set(names) <= {*_marks(types)} else None


def _marks(types: Sequence[str]) -> tuple[str, ...]:
    """O, then B and I of each type."""
    return (OUTSIDE, *(start + name for name in types for start in (BEGIN, INSIDE)))


def tag_names(names: Sequence[str]) -> tuple[str, ...]:
    """Classes in the order that this job has them: O, B-A, I-A, B-B, …; others by the alphabet."""
    types = types_in(names)
    return tuple(sorted(set(names))) if types is None else _marks(types)


def spans(tags: NDArray) -> tuple[NDArray, NDArray]:
    """[n, W] where a span begins, and which words are further words of one. IOB2, strict: a span begins with B."""
    begins = (tags > 0) & (tags % 2 == 1)
    inside = np.zeros_like(begins)
    for j in range(1, tags.shape[1]):
        same = (tags[:, j] > 0) & (tags[:, j] % 2 == 0) & (tags[:, j] - 1 == tags[:, j - 1] - 1 + tags[:, j - 1] % 2)
        inside[:, j] = same & (begins[:, j - 1] | inside[:, j - 1])
    return begins, inside


def hits(gold: NDArray, predicted: NDArray) -> NDArray[np.int64]:
    """[n, 3] spans of each text that are equal, gold, and predicted."""
    (b0, i0), (b1, i1) = spans(gold), spans(predicted)
    matching, matches = np.zeros(len(gold), dtype=bool), np.zeros(len(gold), dtype=np.int64)
    for j in range(gold.shape[1] + 1):
        last = j == gold.shape[1]
        on0, on1 = (np.zeros(len(gold), dtype=bool) if last else inside[:, j] for inside in (i0, i1))
        matches += matching & ~on0 & ~on1  # both end here
        if not last:
            matching = (matching & on0 & on1) | (b0[:, j] & b1[:, j] & (gold[:, j] == predicted[:, j]))
    return np.stack([matches, b0.sum(axis=1), b1.sum(axis=1)], axis=1)


def fit_width(tags: NDArray, width: int, fill: float = IGNORED) -> NDArray:
    """Rows of tags, cut or filled up to a width: [n, width, …]."""
    missing = width - tags.shape[1]
    if missing <= 0:
        return tags[:, :width]
    return np.pad(tags, ((0, 0), (0, missing), *[(0, 0)] * (tags.ndim - 2)), constant_values=fill)


@dataclass(frozen=True, eq=False)
class TokenAnswers(SumAnswers):
    """The unit is the text: the words of one text are not independent."""

    types: tuple[str, ...] = ()  # of spans
    tags: tuple[str, ...] = ()  # the classes, where they mark no spans

    def as_rows(self, predicted: NDArray) -> tuple[NDArray, NDArray]:
        """[n, W] class numbers, -100 behind a text's end in both."""
        return self.gold, np.where(self.gold != IGNORED, fit_width(predicted, self.gold.shape[1]), IGNORED)

    metrics: ClassVar[Mapping[str, Callable[[NDArray], NDArray]]] = {
        "span_f1": lambda total: f1(*np.moveaxis(total, -1, 0)),
        "token_accuracy": mean_of_units,
    }

    def parts(self, predicted: NDArray, metric: str) -> NDArray[np.int64]:
        words, predictions = self.gold != IGNORED, fit_width(predicted, self.gold.shape[1])
        if metric == "token_accuracy":
            return np.stack([(words & (predictions == self.gold)).sum(axis=1), words.sum(axis=1)], axis=1)
        return hits(np.where(words, self.gold, OTHER), np.where(words, predictions, OTHER))

    def quality(self, predicted: NDArray) -> NDArray[np.int64]:
        """How many of a text's words are right."""
        return self.parts(predicted, "token_accuracy")[:, 0]

    def agreement(self, predicted: NDArray) -> float:
        """The share of words with the full model's tag."""
        width = self.gold.shape[1]
        return float((fit_width(predicted, width) == fit_width(self.full, width))[self.gold != IGNORED].mean())

    def sliced(self, masked: NDArray, slices: Sequence[str] | None) -> Iterator[tuple[str, TokenAnswers, NDArray]]:
        """By the data's slices, else by the type of span: the same texts, with spans of that type alone. Of tags that
        mark no spans by tag: the texts that have it, with the words of that gold tag alone."""
        if slices is not None:
            yield from super().sliced(masked, slices)
            return
        for number, name in enumerate(self.tags):
            there = (self.gold == number).any(axis=1)
            if there.any():
                gold = np.where(self.gold == number, self.gold, IGNORED)[there]
                yield name, replace(self, gold=gold, full=self.full[there], tags=()), masked[there]
        for number, name in enumerate(self.types):
            gold, full, predicted = (_only(tags, number) for tags in (self.gold, self.full, masked))
            if (gold > 0).any():
                yield name, replace(self, gold=gold, full=full, types=()), predicted


def _only(tags: NDArray, number: int) -> NDArray:
    return np.where((tags > 0) & ((tags - 1) // 2 != number), 0, tags)


class Tokens(Answer):
    """The largest logit of each word decides. F is the logit of a class at one word, or its mean over the words."""

    job, kind = "tokens", TAGGING
    does = "reads {texts} and gives each word one of {n} tags"
    costs = "log-probability of the right tags, lost without the head"
    architectures, auto_class = ("ForTokenClassification",), "AutoModelForTokenClassification"
    trained, read_at, num_texts = "token-classification head", EACH, 1
    usual, graded_in = ("span_f1", "token_accuracy"), "token_accuracy"
    paired, columns, functions, label_type = True, "tokens", True, "long"
    text_columns, label_column = ("tokens",), "tags"
    gold_name, named, formula = "tags", ("tag", "words"), r"p_{wc} = e^{z_{wc}} / \sum_k e^{z_{wk}}"

    def possible(self, outputs: int) -> bool:
        return outputs > 1

    # judging -----------------------------------------------------------------------------------------------

    def usual_for(self, names: Mapping[str, int]) -> tuple[str, ...]:
        return self.usual if types_in(list(names)) else self.usual[1:]

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> TokenAnswers:
        types = types_in(names)
        return TokenAnswers(gold, full, types or (), () if types else tuple(names))

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[TokenAnswers, NDArray]:
        """Lists of tags, one list for each text; or tables of class numbers."""
        tables = {"gold": gold, "before": before, "after": after}
        if not all(isinstance(t, np.ndarray) and t.ndim == 2 and t.dtype.kind in "iu" for t in tables.values()):
            tables = _tables(tables, metric)
        sizes = {name: len(table) for name, table in tables.items()}
        if len(set(sizes.values())) > 1 or not sizes["gold"]:
            listed = ", ".join(f"{n} {name}" for name, n in sizes.items())
            raise TaskError(
                f"gold, before and after must have equally many texts, and one or more; there are {listed}."
            )
        return TokenAnswers(tables["gold"], tables["before"]), tables["after"]

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        """Token accuracy, against the most frequent tag for all."""
        most_frequent = TokenAnswers(gold, _most_frequent(gold))
        return most_frequent.drawn(weights, self.graded_in, f"is no better than {MOST_FREQUENT}")

    def counts(self, predictions: NDArray, names: Sequence[str]) -> dict[str, int]:
        """How many words get each tag."""
        counts = np.bincount(predictions[predictions >= 0], minlength=len(names)).tolist()
        return dict(zip(names, counts, strict=True))

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        tag_name, changed_rows = partial(class_name, data.label_names), []
        answers = self.answers(data.gold, full, data.label_names)
        before, after = answers.quality(full), answers.quality(masked)
        for i in map(int, np.flatnonzero((full != masked).any(axis=1))):
            e, words = data[i], data[i].text.split(" ")
            places = [j for j in np.flatnonzero(full[i] != masked[i]) if j < len(words)]
            changes = (f"{words[j]}: {tag_name(full[i, j])} → {tag_name(masked[i, j])}" for j in places)
            gold = ", ".join(f"{words[j]}: {tag_name(data.gold[i, j])}" for j in places)
            how = change_of(before[i], after[i])
            changed_rows.append([e.text, "; ".join(changes), gold, len(places), how, e.slice, i])
        kinds = [row[4] for row in changed_rows]
        return Changed(
            f"Changed tags: {sum(row[3] for row in changed_rows):,} words in {len(changed_rows):,} texts, "
            f"{kinds.count('worse')} texts now worse, {kinds.count('better')} now better",
            "No tag changed.",
            "Texts in which a word changes its tag under the mask.",
            ("text", "changed tags", "gold", "words", "change", data.slice_name or "slice", "example"),
            sorted(changed_rows, key=lambda row: WORSE_FIRST.index(row[4])),
            {"text": 260, "changed tags": 280, "gold": 200},
        )

    # the data ----------------------------------------------------------------------------------------------

    def checked(self, labels: NDArray, names: Sequence[str]) -> NDArray:
        if labels.ndim != 2 or not np.issubdtype(labels.dtype, np.integer):
            raise TaskError(f"Tags are a table of class numbers, a row for each text, with {IGNORED} behind its end.")
        labels = np.array(labels, dtype=np.int64)
        if labels.size and not ((labels == IGNORED) | ((labels >= 0) & (labels < len(names)))).all():
            raise TaskError(f"Tags must lie between 0 and {len(names) - 1}, as the indices of {', '.join(names)}.")
        return labels[:, : int((labels != IGNORED).sum(axis=1).max(initial=0))]

    def check_texts(self, texts: Sequence[str], labels: NDArray) -> None:
        for i, (text, tags) in enumerate(zip(texts, (labels != IGNORED).sum(axis=1), strict=True)):
            if len(text.split(" ")) != tags:
                raise TaskError(f"Text {i} has {len(text.split(' '))} words, but {tags} tags. Give one for each word.")

    def unread(self, places: Sequence[int], label: Any) -> bool:
        """Whether a word with a gold tag was cut off."""
        return any(place < 0 and tag != IGNORED for place, tag in zip(places, label, strict=False))

    def label(self, value: Any, names: Sequence[str]) -> str:
        return " ".join(class_name(names, tag) for tag in value if tag != IGNORED)

    def order(self, clf: Any, data: Any, label_order: Sequence[str] | str | None) -> NDArray[np.int64]:
        """The model's output of each tag; -1 for a tag that no word has and the model does not know."""
        if clf.answer is not self:
            raise TaskError(
                f"'{clf.name}' answers {clf.answers}, but '{data.task.name}' has a tag for each word. "
                "Choose a model with a token-classification head."
            )
        names, count = data.label_names, np.bincount(data.labels[data.labels >= 0], minlength=len(data.label_names))
        where = [match_names([name], clf.labels) for name in names]
        lacking = [f"{name} ({n:,} words)" for name, n, at in zip(names, count, where, strict=True) if n and at is None]
        if label_order is not None or len(lacking) == np.count_nonzero(count):
            return label_map(clf.labels, data, label_order)
        if lacking:
            raise TaskError(
                f"'{clf.name}' does not know the tags {', '.join(lacking[:5])}; its own are {', '.join(clf.labels)}. "
                "Leave the texts with these tags out, or choose a model that was trained on them."
            )
        return np.array([-1 if at is None else at[0] for at in where], dtype=np.int64)

    def in_model(self, labels: NDArray, order: NDArray) -> NDArray:
        return np.where(labels >= 0, order[labels.clip(min=0)], IGNORED)

    # the output --------------------------------------------------------------------------------------------

    def places(
        self, texts: Sequence[str], offsets: Sequence[tuple[int, int]], sides: Sequence[int | None]
    ) -> tuple[int, ...]:
        """The first piece of each word, -1 for a word that was cut off or has no piece."""
        (text,) = texts
        number = np.cumsum([c == " " for c in text])  # of each character's word
        first = [-1] * (text.count(" ") + 1)
        for place, ((begin, end), side) in enumerate(zip(offsets, sides, strict=True)):
            # the last character decides: a piece may begin with the space before its word
            if side == 0 and end > begin and text[end - 1] != " " and first[number[end - 1]] < 0:
                first[number[end - 1]] = place
        return tuple(first)

    def unanswered(self, logits: NDArray) -> bool:
        """A word that was cut off has no answer, but each text has a word that is answered."""
        return bool(np.isinf(logits).any() or np.isnan(logits).all(axis=(1, 2)).any())

    def described(self, names: Sequence[str]) -> str:
        return f"a tag for each word: {', '.join(names)}"

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        """The tag of each word; -1, which is never right, where the task lacks the class or there is no word."""
        logits = np.asarray(logits)
        back = np.full(logits.shape[-1], OTHER, dtype=np.int64)
        back[order[order >= 0]] = np.flatnonzero(order >= 0)
        plain = self.plain(logits)
        return np.where(plain >= 0, back[plain.clip(min=0)], OTHER)

    def plain(self, logits: NDArray) -> NDArray:
        finite = np.isfinite(logits).all(axis=-1)
        return np.where(finite, np.where(finite[..., None], logits, 0).argmax(axis=-1), OTHER)

    def shares(self, values: NDArray, names: Sequence[str]) -> list[tuple[str, float]]:
        """The most probable tag of each word, with its probability."""
        answered = values[np.isfinite(values).all(axis=-1)]
        return [(names[int(word.argmax())], float(word.max())) for word in answered]

    def marked(self, text: str, pair: str | None, values: NDArray, names: Sequence[str]) -> list[tuple[str, str]]:
        tags = [names[tag] if tag >= 0 else "" for tag in self.plain(values)]
        words = text.split(" ")
        return [(word, "" if tag == OUTSIDE else tag) for word, tag in zip(words, tags[: len(words)], strict=True)]

    def values(self, logits: NDArray) -> NDArray:
        shares: NDArray = scipy.special.softmax(logits, axis=-1)
        return shares

    # the scalar to explain -----------------------------------------------------------------------------------

    def probable(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)

    def targets(self, names: Sequence[str], labelled: bool) -> list[str]:
        return [PREDICTED, *([GOLD] if labelled else []), *names]

    def target(self, clf: Any, target: Any, label: Any = None) -> Target:
        """A class at every word, the gold ones [W] in the model's terms, or None: the predicted ones."""
        if target == PREDICTED or isinstance(target, tuple):
            return None if target == PREDICTED else target
        if target != GOLD:
            return output_named(clf, target)
        if label is None:
            raise OptionError("The target 'gold' needs the tags of the text (--label, label=).")
        if isinstance(label, str):
            return tuple(output_named(clf, name) for name in label.split())
        return self.target_of(np.asarray(label))

    def at_word(self, target: Target, word: int) -> Target:
        output = target[word] if isinstance(target, tuple) else EXPECTED if target is None else target
        return (*[IGNORED] * word, output)

    def words(self, text: str) -> list[str]:
        return text.split(" ")

    def check_word(self, encoding: Any, word: int | None) -> None:
        if word is None:
            return
        if word >= len(encoding.places):
            count = len(encoding.places)
            raise OptionError(f"There is no word {word}: the text has {count} words, numbered from 0.")
        if encoding.places[word] < 0:
            raise OptionError(f"Word {word} is behind the end of what the model reads of this text. Shorten the text.")

    def target_table(self, targets: Sequence[Target]) -> Tensor:
        """[B, 1 + W]: the class of each word, and before them that of the words behind; -100 = not explained."""
        import torch

        tuples = [t if isinstance(t, tuple) else () for t in targets]
        table = np.full((len(tuples), 1 + max(map(len, tuples))), IGNORED, dtype=np.int64)
        for row, target, words in zip(table, targets, tuples, strict=True):
            if not isinstance(target, tuple):
                row[:] = EXPECTED if target is None else target
            row[1 : 1 + len(words)] = words
        return torch.from_numpy(table)

    def chosen(self, logits: Tensor, targets: Tensor) -> Tensor:
        """[B, W] the class of each word, -100 where it is not explained."""
        import torch

        words = min(logits.shape[1], targets.shape[1] - 1)
        behind = targets[:, :1].expand(-1, logits.shape[1] - words)
        classes = torch.cat([targets[:, 1 : 1 + words], behind], dim=1)
        chosen = classes.where(classes != EXPECTED, logits.nan_to_num().argmax(dim=-1))
        return chosen.masked_fill(logits.isnan().any(dim=-1), IGNORED)

    def explained(self, logits: Tensor, chosen: Tensor) -> Tensor:
        words = chosen != IGNORED
        each = logits.gather(2, chosen.clamp(min=0)[..., None])[..., 0]
        return (each.masked_fill(~words, 0).sum(dim=1) / words.sum(dim=1))[:, None]

    def followed(self, logits: NDArray, target: Any) -> NDArray:
        """The mean probability of what is explained, over the words."""
        words = [j for j, tag in enumerate(target) if tag >= 0]
        shown: NDArray = self.values(logits)[:, words, [target[j] for j in words]].mean(axis=1)
        return shown

    def target_of(self, chosen: NDArray) -> tuple[int, ...]:
        words = chosen.tolist()
        while words and words[-1] == IGNORED:
            words.pop()
        return tuple(words)

    def explained_name(self, target: Any, names: Sequence[str]) -> str:
        tags = [(j, names[tag]) for j, tag in enumerate(target) if tag >= 0]
        return f"{tags[0][1]} at word {tags[0][0]}" if len(tags) == 1 else f"the tags of {len(tags)} words"

    def lead(self, text: NDArray, donor: NDArray, target: Target, names: Sequence[str]) -> Lead:
        """How far the donor's tags lead: the mean over the words whose tags differ. Of a class its logit, the mean over
        all words."""
        if len(text) != len(donor):
            raise TaskError(
                f"The text has {len(text)} words and the donor {len(donor)}, and tags are compared word by word. Give "
                "two texts with equally many words."
            )
        own, others = self.plain(text), self.plain(donor)
        answered = (own >= 0) & (others >= 0)
        differ = np.flatnonzero(answered & (own != others))
        answers = [" ".join(class_name(names, tag) for tag in tags) for tags in (own, others)]
        if isinstance(target, int) or not len(differ):
            words = np.flatnonzero(answered)
            toward = np.full(len(words), target) if isinstance(target, int) else others[words]
            name = names[target] if isinstance(target, int) else "the tags"
            return Lead(
                lambda z: z[..., words, toward].mean(axis=-1, dtype=np.float64), f"mean logit of {name}", *answers
            )

        def of(logits: NDArray) -> NDArray:
            lead = logits[..., differ, others[differ]] - logits[..., differ, own[differ]]
            value: NDArray = lead.mean(axis=-1, dtype=np.float64)
            return value

        places = "1 word" if len(differ) == 1 else f"{len(differ)} words"
        return Lead(of, f"mean lead of the donor's tags over the text's at {places}", *answers)

    # learning ------------------------------------------------------------------------------------------------

    def loss(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Cross-entropy: the mean over a batch's words, as transformers has it; of a single text over its own."""
        import torch

        wide = torch.full(logits.shape[:2], IGNORED, dtype=torch.long, device=logits.device)
        words = min(wide.shape[1], labels.shape[1])
        wide[:, :words] = labels[:, :words]
        counted = (wide != IGNORED) & ~logits.isnan().any(dim=-1)
        # the others are 0 and not left out: how many there are, a GPU would be waited for
        numbers, tags = logits.where(counted[..., None], 0.0), wide.where(counted, IGNORED)
        each = torch.nn.functional.cross_entropy(
            numbers.flatten(0, 1), tags.flatten(), reduction="none", ignore_index=IGNORED
        ).view(counted.shape)
        if reduction == "mean":
            return each.sum() / counted.sum()
        of_texts = each.sum(dim=1) / counted.sum(dim=1).clamp(min=1)
        return of_texts if reduction == "none" else of_texts.sum()

    def imitated(self, logits: Tensor, theirs: Tensor, temperature: float) -> Tensor:
        """The imitation loss, averaged over words."""
        words = theirs.isfinite().all(dim=-1)
        return super().imitated(logits[words], theirs[words], temperature)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        width = logits.shape[-2]
        gold = np.pad(gold, [*[(0, 0)] * (gold.ndim - 1), (0, max(0, width - gold.shape[-1]))], constant_values=IGNORED)
        gold = np.broadcast_to(gold[..., :width], logits.shape[:-1])
        counted = (gold != IGNORED) & np.isfinite(logits).all(axis=-1)
        with np.errstate(invalid="ignore"):
            log_shares = scipy.special.log_softmax(logits, axis=-1)
            each = -np.take_along_axis(log_shares, gold.clip(min=0)[..., None], axis=-1)[..., 0]
            losses: NDArray[np.float64] = np.where(counted, each, 0).sum(axis=-1) / counted.sum(axis=-1)
        return losses


def _tables(values: Mapping[str, Any], metric: str) -> dict[str, NDArray]:
    """Lists of tags as tables of class numbers."""
    read: dict[str, list[list[str]]] = {}
    for name, rows in values.items():
        if isinstance(rows, str | bytes) or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
            raise TaskError(f"{name} must be lists of tags, one list for each text: [['O', 'B-PER'], ['O']].")
        read[name] = [[str(tag) for tag in row] for row in rows]
    lengths = {tuple(map(len, rows)) for rows in read.values()}
    if len(lengths) > 1:
        raise TaskError("gold, before and after must have the same texts, with a tag for each word in all three.")
    tags = [tag for rows in read.values() for row in rows for tag in row]
    names = tag_names(tags)
    if metric == "span_f1" and types_in(tags) is None:
        raise TaskError("span_f1 is of tags O, B-… and I-… (IOB2), which these are not. Compare token_accuracy.")
    index, width = {name: i for i, name in enumerate(names)}, max(map(len, read["gold"]), default=0)
    return {
        name: np.array(
            [[*(index[tag] for tag in row), *[IGNORED] * (width - len(row))] for row in rows], dtype=np.int64
        )
        for name, rows in read.items()
    }


def _most_frequent(gold: NDArray) -> NDArray[np.int64]:
    return np.full_like(gold, np.bincount(gold[gold >= 0]).argmax())


def _no_spans(predictions: NDArray, gold: NDArray) -> str | None:
    if spans(gold)[0].any() or spans(np.where(gold == IGNORED, 0, predictions))[0].any():
        return None
    return "no span is there, and none is predicted"


_span_f1, _token_accuracy = map(TokenAnswers.measured_by, ("span_f1", "token_accuracy"))
Tokens.metrics = {
    "span_f1": Metric(_span_f1, _no_spans, lambda gold: 0.0, dims=(2, 2), constant_name=NO_SPAN),
    "token_accuracy": Metric(
        _token_accuracy,
        constant=lambda gold: _token_accuracy(_most_frequent(gold), gold) if len(gold) else None,
        dims=(2, 2),
        constant_name=MOST_FREQUENT,
    ),
}
TOKENS = Tokens()

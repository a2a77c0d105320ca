"""Check what a user wants explained: texts become encodings, a target becomes a class number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import TaskError

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


def encode(clf: Classifier, texts: Sequence[str], pairs: Sequence[str] | None) -> list[Encoding]:
    """Encodings of texts somebody typed: an empty text, or one without a known word, is an error."""
    if not texts:
        raise TaskError("There is no text to explain. Give at least one.")
    clf.check_texts(pairs is not None)
    if pairs is not None and len(pairs) != len(texts):
        raise TaskError(f"There are {len(texts)} texts but {len(pairs)} pairs. Give one pair for each text.")
    for words in (texts, pairs or ()):
        for text in words:
            if not isinstance(text, str):
                raise TaskError(f"A text is needed, not {type(text).__name__}.")
            if not text.strip():
                raise TaskError("The text is empty. Write at least one word.")
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise TaskError(f"The text '{_short(text)}' is not UTF-8: it has half of a character. Write it anew.")
    for words in (texts, pairs or ()):
        for text, e in zip(words, clf.encode(words), strict=True):
            _check_known(clf, text, e)
    return clf.encode(texts, pairs)


def _check_known(clf: Classifier, text: str, alone: Encoding) -> None:
    """Complain about a text of which nothing, or nothing but unknown words, reaches the model."""
    own = [i for i, special in zip(alone.ids, alone.special, strict=True) if not special]
    if not own:
        raise TaskError(f"Nothing of '{_short(text)}' is left after tokenising. Write at least one word.")
    if all(i == clf.tokenizer.unk_token_id for i in own):
        raise TaskError(
            f"'{clf.name}' knows no word of '{_short(text)}': to it all of them are {clf.tokenizer.unk_token}. "
            "Use words of its vocabulary."
        )


def resolve_target(clf: Classifier, target: str | int, label: str | int | None = None) -> int | None:
    """The class to explain; None = the predicted one. A regression has a single output, 0."""
    clf.check_classes()
    return clf.answer.target(clf, target, label)


def _short(text: str) -> str:
    seen = "".join(c for c in text if c.isprintable())  # what joins emoji is none, and would be shown as an escape
    return seen if len(seen) <= 40 else seen[:37] + "…"

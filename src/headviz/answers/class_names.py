"""Match the label names of a task with those of a model: by name, or by an order that the user gives.

Names match, in this order, if they are equal; equal but for case; equal but for case and punctuation
(``not_entailment``, ``Not entailment``; ``LABEL_1``, ``1`` and ``1.0`` are the same number); or listed synonyms
(``POS`` for ``positive``). One of these rules must fit all labels, one to one.

``LABEL_0``, ``LABEL_1`` do not say what the classes mean, and published checkpoints differ (MNLI has been trained in
at least three orders). A model with such names fits only data whose labels are the same numbers; for other tasks the
user must give the order, with ``label_order``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TaskError, shown

NO_CLASS = "-"  # in a label order: an output of the model that is none of the task's classes

SYNONYMS = (
    ("entailment", "entail", "entails", "entailed"),
    ("contradiction", "contradict", "contradicts", "contradictory"),
    ("not_entailment", "non_entailment", "no_entailment", "not_entailed"),
    ("positive", "pos"),
    ("negative", "neg"),
    ("acceptable", "grammatical"),
    ("unacceptable", "not_acceptable", "ungrammatical"),
    ("duplicate", "is_duplicate", "duplicates"),
    ("not_duplicate", "non_duplicate", "no_duplicate", "not_duplicates"),
    ("equivalent", "paraphrase", "is_paraphrase"),
    ("not_equivalent", "non_equivalent", "not_paraphrase", "non_paraphrase", "not_a_paraphrase", "no_paraphrase"),
)


def _plain(name: str) -> str:
    text = name.strip().casefold()
    number = re.fullmatch(r"(?:label[\s_-]?)?([+-]?\d+(?:\.\d+)?)", text)
    if number:
        return repr(float(number[1]))
    return re.sub(r"[\W_]+", "", text) or text


_CANONICAL = {_plain(word): _plain(words[0]) for words in SYNONYMS for word in words}


def _canonical(name: str) -> str:
    plain = _plain(name)
    return _CANONICAL.get(plain, plain)


_KEYS: tuple[Callable[[str], str], ...] = (str, lambda name: name.strip().casefold(), _plain, _canonical)


def match_names(names: Sequence[str], offered: Sequence[str]) -> list[int] | None:
    """For each name its position among those offered; None where one is missing or ambiguous."""
    for key_of in _KEYS:
        places = {key_of(name): i for i, name in enumerate(offered)}
        keys = [key_of(name) for name in names]
        unique = len(places) == len(offered) and len(set(keys)) == len(keys)
        if unique and all(key in places for key in keys):
            return [places[key] for key in keys]
    return None


def is_generic(model_labels: Sequence[str]) -> bool:
    """Whether these are only numbers (LABEL_0, LABEL_1, or 0, 1)."""
    return all(re.fullmatch(r"(?:label[\s_-]?)?\d+", name.strip().casefold()) for name in model_labels)


def label_map(model_labels: Sequence[str], data: Any, label_order: Sequence[str] | str | None = None) -> np.ndarray:
    """For each class of the data's task the index of the model's output; a ``TaskError`` if they do not match.

    ``label_order`` names the task's classes in the order of the model's outputs ('-' = none of them); it overrides
    the model's own names. A model may have more classes than the task; a prediction of one of those is wrong.
    """
    task = data.task
    names = data.label_names
    if len(model_labels) < 2:
        raise TaskError(
            f"Task '{task.name}' has the classes {', '.join(names)}, but the model has a single output (a regression). "
            "Choose a model with a classification head, or a regression task."
        )
    if label_order is not None:
        return _by_order(names, model_labels, label_order, task.name)
    order = match_names(names, model_labels)
    if order is None:
        raise TaskError(_remedy(names, model_labels, data), options=("label_order",))
    return np.array(order, dtype=np.int64)


def order_of_occurring(
    model_labels: Sequence[str], data: Any, label_order: Sequence[str] | str | None, occurs: np.ndarray | None
) -> np.ndarray:
    """``label_map``, with -1 for a class that no example has and the model does not know; ``occurs`` tells which do."""
    names = data.label_names
    if label_order is None and occurs is not None and match_names(names, model_labels) is None and not occurs.all():
        known = match_names([name for name, one in zip(names, occurs, strict=True) if one], model_labels)
        if known:
            order = np.full(len(names), -1, dtype=np.int64)
            order[occurs] = known
            for k in np.flatnonzero(~occurs):
                at = match_names([names[k]], model_labels)
                order[k] = -1 if at is None or at[0] in known else at[0]
            return order
    return label_map(model_labels, data, label_order)


def _by_order(
    names: Sequence[str], model_labels: Sequence[str], label_order: Sequence[str] | str, task: str
) -> np.ndarray:
    order = parse_order(label_order)
    if len(order) != len(model_labels):
        raise TaskError(
            f"The label order names {len(order)} classes, but the model has {len(model_labels)} outputs "
            f"({', '.join(model_labels)}). Name one class of task '{task}' for each output, or '{NO_CLASS}'."
        )
    # each '-' becomes a name that no class can have
    distinct = [f"\0{i}" if name == NO_CLASS and NO_CLASS not in names else name for i, name in enumerate(order)]
    matched = match_names(names, distinct)
    unknown = [name for name in distinct if not name.startswith("\0") and match_names([name], names) is None]
    if matched is None or unknown:
        raise TaskError(
            f"The label order {','.join(order)} does not name each class of task '{task}' once. "
            f"Its classes are: {', '.join(names)}."
        )
    return np.array(matched, dtype=np.int64)


def parse_order(label_order: Sequence[str] | str) -> list[str]:
    """A label order as typed (``a,b,c``) or as a sequence of names."""
    if not isinstance(label_order, Sequence):
        raise TaskError(f"A label order is names, such as 'a,b,c', not {shown(label_order)}.")
    parts = label_order.split(",") if isinstance(label_order, str) else list(label_order)
    return [str(part).strip() for part in parts]


def _remedy(names: Sequence[str], model_labels: Sequence[str], data: Any) -> str:
    task = data.task.name
    example = ",".join([*names, *[NO_CLASS] * (len(model_labels) - len(names))])
    give = (
        "If you know the order of the model's outputs (its model card says it), give it (--label-order, label_order=), "
        f"for instance {example}."
    )
    if len(names) > len(model_labels):
        return (
            f"Task '{task}' has {len(names)} classes ({', '.join(names)}), but the model only has {len(model_labels)} "
            f"({', '.join(model_labels)}). {_too_many(names, model_labels, data)}"
        )
    if is_generic(model_labels):
        return (
            f"The model calls its classes {', '.join(model_labels)}, which does not say which of "
            f"{', '.join(names)} each one is. {give}"
        )
    unknown = [name for name in names if match_names([name], model_labels) is None]
    return (
        f"The model does not know the label{'s' if len(unknown) > 1 else ''} {', '.join(unknown or names)} of task "
        f"'{task}'; its own are {', '.join(model_labels)}. {give}"
    )


def _too_many(names: Sequence[str], model_labels: Sequence[str], data: Any) -> str:
    """What to do. Unknown labels of a user's own file may be mistakes, so their rows are counted."""
    own = {label.casefold() for label in model_labels}
    unknown = [name for name in names if match_names([name], model_labels) is None]
    unknown = unknown or [name for name in names if name.casefold() not in own]  # two names of one class
    if data.task.name != "custom" or data.labels is None or not unknown or len(names) - len(unknown) < 2:
        return "Choose a model that was fine-tuned on this task."
    counts = data.class_counts()
    listed = ", ".join(f"'{name[:40]}' ({counts[name]:,} of {len(data):,} examples)" for name in unknown[:5])
    return f"It does not know {listed}: correct what is a mistake, or choose a model that was fine-tuned on this task."

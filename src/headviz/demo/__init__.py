"""The shipped demo model: where its files lie, its data, its abilities, and the words that it knows.

This module is light: reading data or checking a text's words imports neither torch nor transformers.
"""

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import TaskError, UserError
from ..heads import HeadId
from .reading import DATA, LABELS, PHENOMENA, RELATIONS, Example, columns, links, shipped

FOLDERS = ("finetuned", "pretrained", "checkpoints", "translation")
FILES = {"train": "train_sample", "dev": "dev", "unseen": "unseen"}
RARE = 60  # a word that 200,000 training pairs show fewer times than this counts as rare

__all__ = [
    "DATA",
    "LABELS",
    "PHENOMENA",
    "Coverage",
    "Example",
    "card_figures",
    "demo_folder",
    "read_split",
    "vocabulary_coverage",
]


def demo_folder(kind: str = "finetuned") -> Path:
    """The folder of the fine-tuned model, the pretrained one, the fine-tuning checkpoints, or the translation model.

    >>> import headviz
    >>> headviz.demo_folder("finetuned").name
    'finetuned'
    """
    if kind not in FOLDERS:
        raise UserError(f"The demo has no folder {kind!r}. It has: {', '.join(FOLDERS)}.")
    folder = DATA / kind
    if not folder.is_dir():
        raise UserError(
            f"The demo model's files are missing ({folder}). Reinstall headviz, or train and pack the model: "
            "python -m tools.demo.train --out RUN, then python -m tools.demo.ship --run RUN."
        )
    return folder


@cache
def read_split(name: str) -> tuple[Example, ...]:
    """A shipped split: 'dev', 'unseen' (combinations that training never shows), or 'train', a sample for scoring."""
    if name not in FILES:
        raise UserError(f"The demo has no split {name!r}. It has: {', '.join(FILES)}.")
    with gzip.open(shipped(f"{FILES[name]}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return tuple(Example(**json.loads(line)) for line in lines)


def read_more(name: str, count: int) -> tuple[Example, ...]:
    """``count`` training pairs, more than those of ``read_split``; of the other splits, all that there are."""
    if name != "train":
        return read_split(name)
    rows = _training_pairs()
    if count > len(rows):
        raise TaskError(f"The demo has {len(rows):,} training examples, and the limit asks for more; lower it.")
    return rows[:count]


@cache
def _training_pairs() -> tuple[Example, ...]:
    return tuple(map(Example, *columns("train.parquet", Example._fields)))


@cache
def planted_heads(phenomenon: str | None = None) -> tuple[HeadId, ...]:
    """The heads that training gave a role to: three for each phenomenon, or those of one."""
    roles: dict[str, list[list[int]]] = json.loads((DATA / "roles.json").read_text(encoding="utf-8"))
    groups = roles.values() if phenomenon is None else [roles[phenomenon]]
    return tuple(sorted(HeadId(*head) for heads in groups for head in heads))


@cache
def card_figures() -> dict[str, Any]:
    """The model card's figures: recipe, accuracy per phenomenon, what the heads do."""
    figures: dict[str, Any] = json.loads((DATA / "card.json").read_text(encoding="utf-8"))
    return figures


def related_words() -> tuple[dict[str, str], Callable[[str], list[tuple[str, int, int]]]]:
    """The relations of grammar with their meanings, and a function that finds them in the demo's sentences.

    The function returns for a text (relation, start of one word, start of the other).
    """
    return RELATIONS, links


@dataclass(frozen=True)
class Coverage:
    """Which words of a text the demo model does not know, or has hardly met."""

    words: int
    unknown: tuple[str, ...]
    rare: tuple[str, ...]


@cache
def _word_counts() -> dict[str, int]:
    with gzip.open(DATA / "words.json.gz", "rt", encoding="utf-8") as file:
        counts: dict[str, int] = json.load(file)
    return counts


def vocabulary_coverage(text: str) -> Coverage:
    """The unknown and the rarely met words of a text, each once, in order.

    The demo was trained on some 1,800 words; outside them its answers are guesses. Not for other models.
    """
    words = re.findall(r"[a-z]+|[0-9]+", re.sub(r"n't\b", "n t", text.lower().replace("’", "'")))
    counts, distinct = _word_counts(), dict.fromkeys(words)
    return Coverage(
        len(words),
        tuple(word for word in distinct if word not in counts),
        tuple(word for word in distinct if 0 < counts.get(word, 0) < RARE),
    )

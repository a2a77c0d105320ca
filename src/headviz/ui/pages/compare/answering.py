"""The models that answer on the Compare page (the full model, masks, a second model), and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ....heads import HeadMask
from ...parts.texts import Text
from ...shell import state

if TYPE_CHECKING:
    from ....models.base import TransformerModel
    from ....models.classifier import Classifier


@dataclass(frozen=True)
class Column:
    """One model that answers: a name, the weights and the mask."""

    name: str
    clf: Classifier
    mask: HeadMask


TAKEN = ("text", "pair", "change")  # other columns of the table of many texts


def columns(clf: Classifier, other: Classifier | None = None) -> list[Column]:
    """The full model, the current mask, the saved masks, and a second model as it is. No two have the same name."""
    out = [Column(name, clf, mask) for name, mask in masks(clf)]
    if other is not None:
        kept = len(other.present.kept)
        out.append(
            Column(f"{other.name[-40:]} ({kept} heads)", other, HeadMask.full(other.num_layers, other.num_heads))
        )
    return [replace(c, name=name) for c, name in zip(out, distinct([c.name for c in out], TAKEN), strict=True)]


def masks(clf: TransformerModel) -> list[tuple[str, HeadMask]]:
    """The full model, the current mask and the saved masks, each with its name."""
    mask = state.mask(clf.present)
    size = clf.num_layers, clf.num_heads
    saved = [(name, one) for name, (one, _) in state.saved_masks(clf.present).items()]
    current = [(f"current mask ({len(mask.off)} off)", mask)] if mask.off else []
    return [("full model", HeadMask.full(*size)), *current, *((name, one) for name, one in saved if one != mask)]


def distinct(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """The names; one that occurs again gets a number."""
    out: list[str] = []
    for name in names:
        number, new = 1, name
        while new in out or new in taken:
            number += 1
            new = f"{name} ({number})"
        out.append(new)
    return out


def answer(clf: Classifier, texts: Sequence[str], pairs: Sequence[str] | None, mask: HeadMask) -> np.ndarray:
    """Class probabilities [n, C], or the numbers of a regression [n, 1]."""
    from ....attribution.inputs import encode

    found = encode(clf, list(texts), None if pairs is None else list(pairs))
    logits = np.concatenate(
        [clf.logits(clf.collate(found[i : i + 32]), mask).cpu().numpy() for i in range(0, len(found), 32)]
    )
    return clf.answer.values(logits)


def answers(shown: Text, given: Sequence[Column]) -> list[np.ndarray]:
    pairs = None if shown.pair is None else [shown.pair]
    return [answer(c.clf, [shown.text], pairs, c.mask)[0] for c in given]

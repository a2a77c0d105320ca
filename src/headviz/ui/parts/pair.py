"""The text on the page, answered with all heads and without those that are off, and what each click would do to it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ...display.sentences import all_heads, answer_change, doubt, from_to, heads_named
from ...errors import UserError
from ...models.stand_in import ZERO
from ..shell import jobs, loaders, show, state
from . import measure
from .texts import Text

if TYPE_CHECKING:
    from ...heads import HeadId, HeadMask
    from ...models.classifier import Classifier, Encoding


def _encoded(clf: Classifier, text: Text) -> list[Encoding]:
    from ...attribution.conductance import encode

    return encode(clf, [text.text], None if text.pair is None else [text.pair])


def answers(clf: Classifier, text: Text, masks: Sequence[HeadMask]) -> list[np.ndarray]:
    """What the model answers under each mask."""
    batch = clf.collate(_encoded(clf, text))
    return [clf.answer.values(clf.logits(batch, mask).cpu().numpy())[0] for mask in masks]


def refusal(clf: Classifier, text: Text) -> UserError | None:
    """Why the model has no answer to this text: half of a pair, say, or no word that it knows."""
    try:
        _encoded(clf, text)
    except UserError as error:
        return error
    return None


def change(clf: Classifier, text: Text) -> tuple[str, bool]:
    """The answer in a few words, with what it becomes without the heads that are off, and whether that is another."""
    mask = state.mask(clf.present)
    unfilled = clf.fill is None and measure.stand_in_of_model(mask).kind != ZERO
    if not clf.answer.decides or unfilled or refusal(clf, text):
        return "", False
    full, masked = answers(clf, text, [clf.full_mask, mask])
    words = from_to(clf.labels, full.tolist(), masked.tolist())
    if not mask.off:
        return words.partition(" → ")[0], False
    return words, full.argmax() != masked.argmax() or words.endswith("not sure")


def section(clf: Classifier, text: Text) -> None:
    """Both answers, class by class, under one sentence."""
    mask = state.mask(clf.present)
    full, masked = answers(clf, text, [clf.full_mask, mask])
    names = heads_named([h for h in mask.off if h not in clf.present.off], loaders.rows_of(clf))
    best, unsure = int(full.argmax()), doubt(full.tolist())
    unchanged = (
        f"With {all_heads(clf.present)} the answer is {clf.labels[best]} ({full[best]:.2f}{unsure and f', {unsure}'})."
    )
    changed = answer_change(clf.labels, f"Without {names}", full.tolist(), masked.tolist())
    show.finding(changed if mask.off else unchanged)
    titles = ("class", all_heads(clf.present), "without those that are off")
    shares = [[f"{value:.2f}" for value in values.tolist()] for values in (full, masked)]
    rows = [*zip(clf.labels, *shares, strict=True)]
    show.report("table", (titles, rows), " → ".join(filter(None, (text.text, text.pair))))
    st.html(bars(clf.labels, full, masked))


def bars(labels: Sequence[str], full: np.ndarray, masked: np.ndarray) -> str:
    """A row for each class: an outline for all heads, a filled bar without those that are off."""
    rows = "".join(
        f'<div class="class" data-best="{i == int(masked.argmax())}"><span class="name">{escape(label)}</span>'
        f"{_bar('all', 'all heads', a)}{_bar('now', 'without those that are off', b)}</div>"
        for i, (label, a, b) in enumerate(zip(labels, full.tolist(), masked.tolist(), strict=True))
    )
    key = '<p class="key"><span class="all"></span>all heads<span class="now"></span>without those that are off</p>'
    return f'<div class="answers">{key}{rows}</div>'


def _bar(kind: str, name: str, share: float) -> str:
    """A bar and its number, which a screen reader hears with the name of the bar."""
    number = f'<span class="value"><span class="words">{name} </span>{share:.2f}</span>'
    return f'<span class="bar {kind}" style="width: {100 * share:.1f}%"></span>{number}'


# ---- what if: every click on the grid, computed ahead of it


def what_if(clf: Classifier, text: Text) -> np.ndarray | None:
    """The answer after a click on each head, [L, H, classes]; None while it is computed, or where there is no class."""
    if not clf.answer.decides or refusal(clf, text):
        return None
    mask = state.mask(clf.present)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> np.ndarray:
        from ...attribution.text_under_mask import toggled_each

        return toggled_each(clf, text.text, text.pair, mask, progress=progress, cancel=cancel)

    key = (*loaders.identity(clf), "what if", text.text, text.pair, mask.hex, measure.stand_in_of_model(mask))
    return jobs.need(key, "Trying each head on this text", work, rank=1)


def turning(clf: Classifier, text: Text, after: np.ndarray) -> list[HeadId]:
    """The heads whose click would change the answer."""
    current = int(answers(clf, text, [state.mask(clf.present)])[0].argmax())
    return [head for head in clf.present.kept if int(after[head].argmax()) != current]


def tips(clf: Classifier, text: Text, after: np.ndarray) -> list[list[str]]:
    """What a click on each head would do to the answer, as it stands now."""
    current = answers(clf, text, [state.mask(clf.present)])[0].tolist()
    return [
        ["–" if values[0] != values[0] else from_to(clf.labels, current, values.tolist()) for values in row]
        for row in after
    ]

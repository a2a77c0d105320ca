"""Which heads carry which ability, and what they look at.

Abilities come from the demo's model card, or for other models from the analysis by kind; what heads look at from the
analysis of that name.

Every page asks here, so that a head has one story everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import streamlit as st

from ...demo import card_figures
from ...display import numbers
from ...display.table import Column, Table
from ...heads import HeadId, HeadMask
from ..shell import recorded, show, state
from ..shell.view import View

if TYPE_CHECKING:
    from ...analyses.by_slice import BySlice
    from ...models.classifier import Classifier


@dataclass(frozen=True, eq=False)
class Ability:
    """What a kind of examples tests: the heads that carry it, the costliest first, and what it loses without them."""

    name: str
    heads: list[HeadId]
    lost: float  # answers of 100 about it, without these heads together; or without the first, where that is measured
    others: float | None  # answers of 100 about other abilities; None where it was not measured
    costs: np.ndarray  # [L, H] answers of 100 about it that are lost without each head alone


T = TypeVar("T")
MOST = 256  # models and data whose abilities are remembered
_measured: dict[tuple[object, ...], dict[str, Ability]] = {}
_looks: dict[tuple[object, ...], dict[HeadId, str]] = {}


def listed(view: View) -> dict[str, Ability]:
    """The abilities of the view's model by name. Empty where it was not measured which heads carry them."""
    return _of_demo() if view.on_demo else _measured.get(view.source, {})


@cache
def _of_demo() -> dict[str, Ability]:
    figures, abilities = card_figures()["heads"], {}
    last = max(map(HeadId.parse, figures["cost"]))
    for row in figures["sets"]:
        name, costs = row["phenomenon"], np.full((last.layer + 1, last.head + 1), np.nan)
        for head, lost in figures["cost"].items():
            costs[HeadId.parse(head)] = 100 * lost[name]
        heads = [*map(HeadId.parse, row["heads"])]
        abilities[name] = Ability(name, heads, 100 * row["cost"], 100 * row["mean_other"], costs)
    return abilities


def carried(view: View) -> dict[HeadId, str]:
    """What each head is known to carry. Empty where this has not been measured."""
    by_head: dict[HeadId, list[str]] = {}
    for ability in listed(view).values():
        for head in ability.heads:
            by_head.setdefault(head, []).append(ability.name)
    for head in map(HeadId.parse, card_figures()["heads"]["shared"] if view.on_demo else ()):
        by_head.setdefault(head, []).append("several abilities")
    return {head: _words(names) for head, names in by_head.items()}


def _words(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def remember(view: View, result: BySlice) -> None:
    """Keep what the analysis by kind has measured, so that all pages know these heads.

    A head carries the kinds that clearly lose without it, if it is the costliest head of that kind or costs at least
    half as much as the costliest.
    """
    abilities, scale = {}, result.subject.scale
    for kind, values, significant in zip(result.slices, result.values, result.significant(), strict=True):
        carry = np.argwhere(significant & (values > 0) & (2 * values >= kind.cost)).tolist()
        heads = sorted((HeadId(*place) for place in carry), key=lambda head: -float(values[head]))
        if heads:
            abilities[kind.name] = Ability(kind.name, heads, scale * float(kind.cost), None, scale * values)
    _keep(_measured, view, abilities)


def _keep(results: dict[tuple[object, ...], T], view: View, result: T) -> None:
    if len(results) >= MOST:
        results.clear()
    results[view.source] = result


def turning(
    clf: Classifier, texts: Sequence[str], pairs: Sequence[str] | None, gold: Sequence[str], heads: Sequence[HeadId]
) -> list[int]:
    """Which of these are answered right and, without the heads, wrong. Those where the model is surest of the wrong
    answer come first, then the shortest; and one of each label before others."""
    batch = clf.collate(clf.encode([*texts], None if pairs is None else [*pairs]))
    masks = (None, clf.full_mask.without(heads))
    full, masked = (clf.answer.values(clf.logits(batch, mask).cpu().numpy()) for mask in masks)
    right = [clf.labels.index(label) for label in gold]
    turned = np.flatnonzero((full.argmax(-1) == right) & (masked.argmax(-1) != right)).tolist()
    length = [len(text) + len(pair) for text, pair in zip(texts, pairs or [""] * len(texts), strict=True)]
    turned.sort(key=lambda i: (-round(float(masked[i].max()), 1), length[i]))
    firsts: dict[str, int] = {}
    for i in turned:
        firsts.setdefault(gold[i], i)
    return sorted(turned, key=lambda i: i not in firsts.values())


# ---- what heads look at


def remember_looks(view: View, result: Any) -> None:
    """Keep what an analysis has measured of what heads look at, so that grids and the gallery name these heads.

    Its ``first()`` has the first role of each head.
    """
    _keep(_looks, view, {head: _role(role.name, role.share) for head, role in result.first().items()})


# by ``Analysis.tells``
REMEMBER: dict[str, Callable[[View, Any], None]] = {"abilities": remember, "looks": remember_looks}


def _role(name: str, share: float) -> str:
    return f"{name} ({100 * share:.0f} %)"


def looks(view: View) -> dict[HeadId, str]:
    """What each head looks at more than by chance, with its share of attention: as measured here, or as recorded for
    the demo. Empty where it was not measured."""
    if view.on_demo and view.source not in _looks:
        return {HeadId.parse(head): _role(*role) for head, role in recorded.role_names().items()}
    return _looks.get(view.source, {})


def tips(view: View, present: HeadMask) -> dict[str, list[list[str]]]:
    """What each head carries and looks at, as lines of a grid's tooltips."""
    layers, heads = range(present.num_layers), range(present.num_heads)
    return {
        name: [[by_head.get(HeadId(i, j), "–") for j in heads] for i in layers]
        for name, by_head in (("carries", carried(view)), ("looks at", looks(view)))
        if by_head
    }


def table(clf: Classifier, view: View) -> None:
    """Which heads carry which ability. Nothing for other models or data, where this is not known."""
    if not view.on_demo:
        return
    figures = card_figures()
    sets, accuracy = figures["heads"]["sets"], figures["accuracy"]["dev"]
    st.subheader("What its heads do")
    show.finding(
        f"{sum(row['others_over_5'] == 0 for row in sets)} of {len(sets)} abilities need one or a few heads whose "
        "loss costs no other ability more than 5 points."
    )
    rows = Table.of(
        "abilities",
        (
            Column("ability", value=itemgetter("phenomenon")),
            Column("accuracy", "%.3f", lambda row: accuracy[row["phenomenon"]]),
            Column("without", value=lambda row: tuple(map(HeadId.parse, row["heads"]))),
            Column("costs it, points", "%.1f", lambda row: 100 * row["cost"]),
            Column("costs others, mean", lambda v: numbers.signed(v, 1), lambda row: 100 * row["mean_other"]),
            Column("others that lose over 5", lambda n: str(n or ""), itemgetter("others_over_5")),
        ),
        sets,
        caption="Exact ablation, on dev examples that were not used to choose the heads.",
        hint="Choose a row to switch them off in the Mask lab.",
    )
    event = show.table(rows, height="content", on_select="rerun", selection_mode="single-row")
    if (row := show.chosen_row(event, "ability_opened")) is not None:
        state.set_mask(clf.present.without([*map(HeadId.parse, sets[row]["heads"])]))
        st.switch_page("pages/masklab.py")

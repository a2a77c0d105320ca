"""Which heads carry which ability, and what they look at.

Abilities come from the demo's model card, or for other models from the analysis by kind; what heads look at from the
analysis of that name.

Every page asks here, so that a head has one story everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import streamlit as st

from ...demo import card_figures
from ...display import numbers
from ...display.table import Column, Table
from ...heads import HeadId, HeadMask
from ..shell import show, state
from ..shell.view import View
from . import recorded

if TYPE_CHECKING:
    from ...analyses.by_slice import BySlice
    from ...models.classifier import Classifier


def known(view: View) -> bool:
    """Whether the view shows the demo and its own data."""
    return view.on_demo


MOST = 256  # models and data whose abilities are remembered
_abilities: dict[tuple[object, ...], dict[HeadId, str]] = {}
_looks: dict[tuple[object, ...], dict[HeadId, str]] = {}


def carried(view: View) -> dict[HeadId, str]:
    """What each head is known to carry. Empty where this has not been measured."""
    return _of_demo() if known(view) else _abilities.get(view.source, {})


def carried_in(spec: Mapping[str, Any]) -> dict[HeadId, str]:
    """What the heads of a run's model are known to carry."""
    place: dict[str, Any] = {n: str(spec.get(n) or "") for n in ("model", "revision", "task", "data")}
    return carried(View(**place))


def carriers(view: View) -> dict[str, list[HeadId]]:
    """The heads that carry each ability of the demo, the costliest first."""
    return _carriers() if known(view) else {}


def remember(view: View, result: BySlice) -> None:
    """Keep what *kind by kind* has found, so that all grids name these heads.

    A head carries the kinds that clearly lose without it, if it is the costliest head of that kind or costs at least
    half as much as the costliest.
    """
    by_head: dict[HeadId, list[str]] = {}
    for one, values, certain in zip(result.slices, result.values, result.significant(), strict=True):
        for at in zip(*(certain & (values > 0) & (2 * values >= one.cost)).nonzero(), strict=True):
            by_head.setdefault(HeadId(*(int(i) for i in at)), []).append(one.name)
    if len(_abilities) >= MOST:
        _abilities.clear()
    _abilities[view.source] = {head: _words(names) for head, names in by_head.items()}


def remember_looks(view: View, result: Any) -> None:
    """Keep what an analysis has measured of what heads look at, so that grids and the gallery name these heads.

    Its ``first()`` has the first role of each head.
    """
    if len(_looks) >= MOST:
        _looks.clear()
    _looks[view.source] = {head: _role(role.name, role.share) for head, role in result.first().items()}


# by ``Analysis.tells``
REMEMBER: dict[str, Callable[[View, Any], None]] = {"abilities": remember, "looks": remember_looks}


def _role(name: str, share: float) -> str:
    return f"{name} ({100 * share:.0f} %)"


def looks(view: View) -> dict[HeadId, str]:
    """What each head looks at more than by chance, with its share of attention: as measured here, or as recorded for
    the demo. Empty where it was not measured."""
    looks_of = _looks.get(view.source)
    return _recorded() if looks_of is None and known(view) else looks_of or {}


def _recorded() -> dict[HeadId, str]:
    return {HeadId.parse(head): _role(*role) for head, role in recorded.role_names().items()}


def look_tips(view: View, present: HeadMask) -> dict[str, list[list[str]]]:
    """The same as a line of a grid's tooltips."""
    tips, heads = looks(view), range(present.num_heads)
    if not tips:
        return {}
    return {"looks at": [[tips.get(HeadId(i, j), "–") for j in heads] for i in range(present.num_layers)]}


@cache
def _carriers() -> dict[str, list[HeadId]]:
    return {r["phenomenon"]: [HeadId.parse(h) for h in r["heads"]] for r in card_figures()["heads"]["sets"]}


@cache
def _of_demo() -> dict[HeadId, str]:
    by_head: dict[HeadId, list[str]] = {}
    for name, heads in _carriers().items():
        for head in heads:
            by_head.setdefault(head, []).append(name)
    for head in card_figures()["heads"]["shared"]:
        by_head.setdefault(HeadId.parse(head), []).append("several abilities")
    return {head: _words(names) for head, names in by_head.items()}


def _words(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def table(clf: Classifier, view: View) -> None:
    """Which heads carry which ability. Nothing for other models or data, where this is not known."""
    if not known(view):
        return

    figures = card_figures()
    sets, accuracy = figures["heads"]["sets"], figures["accuracy"]["dev"]
    chosen = [[HeadId.parse(head) for head in row["heads"]] for row in sets]
    st.subheader("What its heads do")
    show.finding(
        f"{sum(row['others_over_5'] == 0 for row in sets)} of {len(sets)} abilities need one or a few heads whose "
        "loss costs no other ability more than 5 points."
    )
    made = Table.of(
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
    event = show.table(made, height="content", on_select="rerun", selection_mode="single-row")
    if (row := show.chosen_row(event, "ability_opened")) is not None:
        state.set_mask(clf.present.without(chosen[row]))
        st.switch_page("pages/masklab.py")

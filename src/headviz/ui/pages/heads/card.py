"""The selected head, with everything known about it, and the ranking, bands or board of the first score."""

from __future__ import annotations

import streamlit as st

from ....heads import HeadId, HeadScores
from ....scores.catalogue import correlates
from ...parts import abilities, scoring
from ...shell import part, show, state
from ...shell import view_report as viewreport
from ...shell.loaders import Shape
from ...shell.view import COST, View
from ...widgets.ranking import rank_list
from . import bands, board, orders
from . import difference as tuning

SIDES = {"ranking": "Ranking", "bands": "Bands", "board": "Which score"}  # below the grids


def card(ready: dict[str, HeadScores], beside: HeadScores | None, shape: Shape, view: View) -> None:
    """The selected head: what it carries, its values, intervals and ranks, and where to go from here."""
    found = list(ready.values())[-1] if ready else None
    present = shape.present
    head = state.head(present)
    if head is None:
        st.caption("Choose a head in a grid: its values, ranks and what it carries appear here.")
        return
    name, carries = show.head_name(head, shape.rows), abilities.carried(view).get(head)
    off = head in state.mask(present).off
    said = [f"carries {carries}"] if carries else []
    if role := abilities.looks(view).get(head):
        said.append(f"looks more than by chance at: {role}")
    if found is not None and "difference" in ready:
        said.append(tuning.line(head, ready["pre-trained"], ready["fine-tuned"]))
    else:
        tables = {t.score: t for t in (found, beside) if t is not None}
        said += [_value(head, table) for table in tables.values()]
    if off:
        said.append("switched off in the Mask lab")
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="head_card"):
        st.markdown(f"### {show.plain(name)}", width="content")
        st.markdown(show.plain("  ·  ".join(said)), width="content")
        if shape.labels:
            st.page_link("pages/head.py", label="Look into it", icon=":material/search:", width="content")
        st.button(
            "Switch on" if off else "Switch off",
            key="card_toggle",
            type="tertiary",
            icon=":material/power_settings_new:",
            on_click=state.set_mask,
            args=(state.mask(present).toggled([head]),),
        )
        st.page_link("pages/masklab.py", label="Mask lab", icon=":material/grid_on:", width="content")


def _value(head: HeadId, found: HeadScores) -> str:
    word = orders.word(found.score)
    if found.values[head] != found.values[head]:
        return f"{word} not measured"
    unit = " points" if found.score == COST else ""
    value = f"{show.signed(float(found.values[head]))}{unit} {scoring.interval(found, head)}"
    return f"{word} {value}, rank {scoring.rank(found, head)}"


def detail(ready: dict[str, HeadScores], shape: Shape, view: View) -> None:
    """The ranking, the bands of correlation, or the board. Only one of them, so that the first page loads fast."""
    sides = [s for s in SIDES if (s != "bands" or correlates(view.score)) and (s != "board" or shape.labels)]
    if len(sides) == 1 or state.view().present:
        chosen = view.side if view.side in sides else sides[0]
    else:
        chosen = state.switch("side", "Below", sides, format_func=SIDES.__getitem__, label_visibility="collapsed")
    if chosen == "bands":
        bands.section({name: table.values for name, table in ready.items()})
    elif chosen == "board":
        board.section(view)
    else:
        found = list(ready.values())[-1]
        _ranking(found, shape, tuning.RANKED if "difference" in ready else scoring.ranked_by(found))


def _ranking(found: HeadScores, shape: Shape, caption: str) -> None:
    """All heads, the highest first, with their intervals if they have any."""
    header, rows = scoring.ranking_table(found, shape.rows)
    names = {h: show.head_name(h, shape.rows) for h in found.ranked()}
    viewreport.note("table", (header, rows), caption)
    part.clickable(
        lambda: rank_list(
            "ranking",
            found,
            names,
            mask=state.mask(shape.present),
            selected=state.head(shape.present),
            on_select=part.select,
            group="heads",
            interval=scoring.interval,
        )
    )
    show.downloads(header, rows, "ranking", caption, found.to_dict())

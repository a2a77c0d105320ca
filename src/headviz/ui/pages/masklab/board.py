"""The left side of the Mask lab: the grid whose heads are switched on and off, and the buttons that edit a mask."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display import numbers
from ....display.figures.style import scale_of_losses
from ....errors import MaskError, OptionError
from ....evaluation.verdict import undecided
from ....heads import HeadMask, HeadScores
from ....models.stand_in import ZERO, StandIn
from ....storage.exchange import mask_from_text, mask_json, read_ablation
from ...parts import abilities, scoring
from ...shell import frame, loaders, mask_edit, show, state
from ...shell.messages import plain, refused
from ...shell.view import COST
from ...widgets.grid import Look

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation

HOW = (
    "Click a head to switch it off or on, click the name of a row or column to switch all of it. A double click leaves "
    "one head on in its layer."
)
HOW_WITH_KEYS = "Drag to switch several. Keys: arrows, space, S."


def toolbar(present: HeadMask, ordering: HeadScores | None, scores: Sequence[str]) -> None:
    """Invert, and the menus that set many heads at once."""
    mask, view = state.mask(present), state.view()
    with st.container(horizontal=True, gap="xsmall", key="mask_tools"):
        st.button("Invert", on_click=state.set_mask, args=(mask_edit.inverted(mask, present),), key="invert")
        with st.popover("Select heads"):
            _many(present, ordering)
        with st.popover("Saved masks"):
            _saved(present, mask)
        with st.popover("Import mask"):
            _import(present)
        st.download_button(
            "JSON",
            # made at the click, because the model may still be loading
            lambda: mask_json(mask, model=view.model, digest=loaders.model(view).digest, ablation=view.ablation),
            "headviz-mask.json",
            "application/json",
            key="mask_json",
            icon=":material/download:",
            on_click="ignore",
            help="This mask as a file. Import mask reads it back, here or in another dashboard",
        )
        if scores:
            implied = replace(view, beside="").order  # where the user has chosen none
            default = implied
            if ordering is not None and not view.beside and ordering.score != implied:
                default = f"{ordering.score} until {implied} is measured"
            state.choose(
                "beside",
                "Score",
                ["", *(s for s in scores if s == view.beside or s != implied)],
                format_func=lambda s: f"by {s or default}",
                label_visibility="collapsed",
                width=230,
                help="Colours the grid; Select heads switches off the lowest heads by it",
            )


def _many(present: HeadMask, scores: HeadScores | None) -> None:
    count = state.number("count", "Heads to switch off", len(present.kept))
    if scores is None:
        _no_scores()
    values = None if scores is None else scores.values
    st.button(
        plain(f"The {count} lowest by {state.view().order if scores is None else scores.score}"),
        key="lowest",
        disabled=values is None,
        width="stretch",
        on_click=lambda: state.set_mask(mask_edit.off_to_count(values, count, present)),
    )
    if values is not None and (tie := mask_edit.tie_at(values, count, present)):
        st.caption(plain(tie))
    st.button(
        f"{count} at random, a new draw",
        key="random",
        width="stretch",
        on_click=lambda: state.set_mask(mask_edit.off_at_random(count, present, seed=secrets.randbits(32))),
    )


def _no_scores() -> None:
    st.caption(plain(f"{state.view().order} has not been computed for this model and task."))
    st.page_link("pages/scores.py", label="Compute it on Scores", icon=":material/grid_view:")


def _saved(present: HeadMask, mask: HeadMask) -> None:
    saved = state.saved_masks(present)
    with st.form("save_form", border=False):  # so that Enter saves, too
        st.text_input("Name of the current mask", key="mask_name", max_chars=mask_edit.NAME_LENGTH)
        st.form_submit_button("Save", key="save_mask", on_click=_save, args=(mask,), width="stretch")
    if error := st.session_state.get("save_error"):
        refused(error)
    for i, (name, (saved_mask, ablation)) in enumerate(saved.items()):
        kind = ablation.partition(":")[0]
        load, delete = st.columns([4, 1])
        load.button(
            f"{plain(name)} ({len(saved_mask.off)} off{'' if kind == ZERO else f', {plain(kind)}'})",
            key=f"load_{i}",
            on_click=_load,
            args=(saved_mask, ablation),
            width="stretch",
        )
        delete.button("✕", key=f"drop_{i}", on_click=_delete, args=(name,), help=f"Delete {plain(name)}")
    if not saved:
        st.caption("No saved masks yet. They appear here, and as columns in Compare.")


def _load(mask: HeadMask, ablation: str) -> None:
    """A mask together with what stands in the place of its heads."""
    state.update(ablation=ablation)
    state.set_mask(mask)


def _save(mask: HeadMask) -> None:
    saved, name = dict(state.session().saved), st.session_state.get("mask_name", "")
    try:
        state.save_mask(mask_edit.save_named(saved, name, mask, state.view().ablation))
        st.session_state["save_error"] = ""
    except MaskError as error:
        st.session_state["save_error"] = str(error)


def _delete(name: str) -> None:
    state.save_mask({other: mask for other, mask in state.session().saved if other != name})


def _import(present: HeadMask) -> None:
    st.text_area(
        "A mask: hexadecimal digits, heads that are off such as 3.5,7.0, or headviz's JSON",
        key="pasted",
        height=110,
        max_chars=20_000,
    )
    st.file_uploader("or a file that holds it", type=["json", "txt"], key="mask_file")
    st.button("Use this mask", key="use_pasted", on_click=_read, args=(present,), width="stretch")
    if error := st.session_state.get("paste_error"):
        refused(error)


def _read(present: HeadMask) -> None:
    upload = st.session_state.get("mask_file")
    text = st.session_state.get("pasted", "")
    if upload is not None and not text.strip():
        text = upload.getvalue().decode("utf-8", "replace")
    try:
        stacks = loaders.shape(state.view()).ranges
        mask = mask_from_text(text, present.num_layers, present.num_heads, stacks)
        if text.lstrip().startswith("{"):
            _load(mask, StandIn.of(read_ablation(text)).text)
        else:
            state.set_mask(mask)
        st.session_state["paste_error"] = ""
    except (MaskError, OptionError) as error:
        st.session_state["paste_error"] = str(error)


def grid(
    present: HeadMask, scores: HeadScores | None, rows: Sequence[str] | None, next_costs: Ablation | None = None
) -> None:
    """The grid to switch heads off and on, coloured by the chosen score if there is a table of it.

    With ``next_costs`` the colours are what each further head would cost.
    """
    values: Any = None
    name, tips, scale, grey = "heads", {}, None, None
    if next_costs is not None:
        values, name = next_costs.subject.scale * next_costs.values, "cost of one more head, points"
        tips, grey = _cost_tips(next_costs), undecided(next_costs.interval_low, next_costs.interval_high)
        scale = scale_of_losses([float(v) for v in values.ravel()])
    elif scores is not None:
        shown = scoring.in_points(scores)
        values, name = shown.values, scoring.label(shown)
        tips, scale, grey = scoring.tip_tables(shown), scoring.colours(shown), scoring.grey(shown)
    in_points = next_costs is not None or (scores is not None and scores.score == COST)

    def edited(off: list[int], base: list[int] | None) -> None:
        size = present.num_layers, present.num_heads
        before = None if base is None else mask_edit.from_indices(base, *size)
        state.set_mask(mask_edit.from_indices(off, *size), base=before)
        frame.redraw(frame.MASK)

    view = state.view()
    frame.clickable(
        lambda: show.head_grid(
            "board",
            present,
            values,
            mask=state.mask(present),
            tips={**tips, **abilities.tips(view, present)},
            undecided=grey,
            rows=rows,
            look=Look(
                name=name,
                scale=scale,
                numbers=view.numbers,
                blank_zeros=in_points,
                digits=1 if in_points else None,
                large=view.present,
                width=36,
                file="headviz-mask",
            ),
            on_edit=edited,
        )
    )
    if scores is None and not view.present:
        _no_scores()


def _cost_tips(ablation: Ablation) -> dict[str, list[list[str]]]:
    """Tooltip lines of what each further head would cost, in points."""
    scale = ablation.subject.scale

    def ends(low: float, high: float) -> str:
        return "–" if low != low else numbers.interval(low, high, scale)

    rows = zip(ablation.interval_low.tolist(), ablation.interval_high.tolist(), strict=True)
    return {
        "one more head costs": [[numbers.points(float(v), scale) for v in row] for row in ablation.values],
        "95 %": [list(map(ends, lows, highs)) for lows, highs in rows],
    }

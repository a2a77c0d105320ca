"""The bar at the lower edge of each page that has a mask: the answer, the cost on the data, heads off, undo."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from ...answers.metrics import metric_title
from ...display import numbers
from ...heads import HeadMask
from ..shell import frame, loaders, state
from . import measure, pair, texts

if TYPE_CHECKING:
    from ...evaluation.mask_evaluator import Growing
    from ...tasks import Dataset


def of_page() -> None:
    """The bar of a page that shows no result of the mask by itself: what that shows goes first. Without the model in
    memory it counts heads."""

    def draw() -> None:
        view = state.view()
        if loaders.loaded(view) is None:
            section(loaders.shape(view).present)
            return
        clf: Any = loaders.model(view)
        data = loaders.dataset(view)
        mask, choice = state.mask(clf.present), measure.stand_in_choice()
        measured = None if loaders.mismatch(clf, data) else measure.request(clf, data, mask, choice, rank=1)
        section(clf.present, measured, *pair.change(clf, texts.current(view, data)))

    frame.part(frame.MASK, draw, "mask", follows=True)
    view = state.view()
    clf: Any = loaders.loaded(view)
    if clf is not None and frame.controls():
        data = loaders.dataset(view)
        if not loaders.mismatch(clf, data):  # the page follows when the result is there
            measure.measured(clf, data, state.mask(clf.present), measure.stand_in_choice(), rank=1)


def section(present: HeadMask, measured: Growing | None = None, answer: str = "", changed: bool = False) -> None:
    """The bar. What is not known yet is left out. A screen reader hears each new result."""
    mask, history = state.mask(present), state.session().history
    off, of = len({*mask.off} - {*present.off}), len(present.kept)
    parts = [f'<b data-changed="{changed}">{escape(answer)}</b>'] if answer else []
    if measured is not None:
        parts.append(f"<span>{escape(reached(measured, loaders.dataset(state.view()), masked=off > 0))}</span>")
    count = f"{off} of {of} off{frame.in_their_place()}" if off else f"all {of} heads on"
    parts.append(f"<span>{escape(count)}</span>")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="result_bar"):
        st.html(f'<div class="result" role="status" aria-live="polite">{"".join(parts)}</div>')
        if not frame.controls():
            return
        st.button(
            "Undo", key="undo", icon=":material/undo:", disabled=not history.past, on_click=state.undo, shortcut="Mod+Z"
        )
        st.button(
            "Redo",
            key="redo",
            icon=":material/redo:",
            disabled=not history.future,
            on_click=state.redo,
            shortcut="Mod+Shift+Z",
        )
        st.button(
            "All on",
            key="all_on",
            disabled=not off,
            on_click=state.set_mask,
            args=(HeadMask.full(present.num_layers, present.num_heads),),
        )


def reached(measured: Growing, data: Dataset, *, masked: bool) -> str:
    """The primary metric before and after: ``accuracy 99.2 → 98.0 % of 500``, ``BLEU 98.66 on 500 examples``."""
    d = measured.comparison.primary
    percent = d.metric == "accuracy"
    before, after = (f"{100 * v:.1f}" if percent else numbers.metric(v, d.scale) for v in (d.full, d.masked))
    change = f"{before} → {after}" if masked else before
    one, many = data.answer.unit
    name = "" if one == "example" else f" {many}"
    so_far = "" if measured.final else " so far"
    count = f" % of {d.n:,}{name}" if percent else f" on {d.n:,} {one if d.n == 1 else many}"
    return f"{metric_title(d.metric)} {change}{count}{so_far}"

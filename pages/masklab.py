"""Mask lab: switch heads off and see at once what that costs."""

import streamlit as st

from headviz.ui.pages.masklab import board, cost
from headviz.ui.parts import measure, pair, result_bar, scoring, texts
from headviz.ui.shell import frame, loaders, state
from headviz.ui.shell.view import by_grade

view = frame.begin()
shape = loaders.shape(view)
if frame.controls():
    board.toolbar(shape.present, scoring.ordering(view), by_grade(view.source, shape.scores))
    view = state.view()  # a score that a link named wrongly is corrected there
left, right = st.columns([5, 6], gap="large")
with left:
    board.grid(shape.present, scoring.ordering(view), rows=shape.rows, next_costs=cost.next_costs(shape.present))
    st.caption(board.HOW)
    with st.container(key="hint_keys"):
        st.caption(board.HOW_WITH_KEYS)
    if frame.controls():
        cost.choose_stand_in(bool(shape.labels))
        view = state.view()
    hints = st.container()
with right:
    clf, data = loaders.model(view), loaders.dataset(view)
with hints:  # progress stands here, so that nothing jumps
    if frame.controls():
        measure.precision(clf)
    grown = measure.measured(clf, data, state.mask(clf.present), measure.stand_in_choice())
measured = grown if grown is not None and grown.final else None
drawn = state.mask(clf.present)


def headline() -> None:
    """What the mask costs; the one before is dimmed until it is known."""
    mask = state.mask(clf.present)
    result = grown if mask == drawn else measure.request(clf, data, mask, measure.stand_in_choice())
    if mask != drawn:  # the slices are of the mask before until the page follows
        st.html("<style>.st-key-slices {opacity: 0.45}</style>")
    shown = result or measure.last(clf, data, measured)
    if shown is not None:
        with st.container(key="result" if result else "result_before"):
            cost.headline(clf, data, shown)
    result_bar.section(clf.present, shown, *pair.change(clf, texts.current(state.view(), data)))


with right:
    frame.part(frame.MASK, headline, "mask", follows=True)
    shown = measure.last(clf, data, measured)
    if shown is not None:
        with st.container(key="slices" if measured else "slices_before"):
            cost.by_slice(clf, data, shown)
    if measured is not None:
        cost.stand_ins(clf, data, measured)
if measured is not None:
    if frame.controls():
        with hints:
            cost.what_if(clf, data, measured)
        cost.two_masks(clf, data)
    cost.details(clf, data, measured)
    measure.ahead(clf, data, measured.mask, measure.stand_in_choice())
frame.recipe(*cost.recipe(view, clf))

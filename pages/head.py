"""One head: where it looks, and which of that contributes to the prediction."""

import streamlit as st

from headviz.errors import UserError
from headviz.ui.pages import head
from headviz.ui.parts import measure, pair, result_bar, scoring, texts
from headviz.ui.shell import frame, loaders, state
from headviz.ui.shell.messages import plain, refused


def draw() -> None:
    clf, data = measure.filled(loaders.classifier(view)), loaders.dataset(view)
    if clf is None:
        return
    chosen = head.pick(clf.present)
    left, right = st.columns([3, 9], gap="medium")
    with left:
        scores = scoring.scores(view)
        head.chooser(clf.present, chosen, None if scores is None else scores.values, view.score)
        shown = texts.of_page(data, "head_text", fields=frame.controls())
        if frame.controls():
            head.controls(clf, shown)
    current = state.view()  # the controls may have changed it
    with right:
        maps = None
        try:
            if shown.empty:
                st.info(texts.EMPTY, icon=":material/edit:")
            elif (refusal := pair.refusal(clf, shown)) is not None:
                refused(refusal, "warning")
            else:
                maps = head.maps_of(clf, shown, state.mask(clf.present), current)
        except UserError as error:
            refused(error, "warning")
        if maps is not None:
            head.headline(maps, chosen, loaders.deciding(clf, data))
            for remark in texts.remarks(clf, shown):
                st.info(plain(remark))
            head.pictures(maps, chosen, current)
            st.subheader("Attention against attribution")
            head.relation(maps, chosen)
    if maps is not None:
        head.writes(clf, shown, chosen)
    frame.recipe(*head.recipe(current, clf, shown, chosen))


view = frame.begin()
if frame.explains_classes(view):
    draw()
    result_bar.of_page()

"""One head: where it looks, and which of that contributes to the prediction."""

import streamlit as st

from headviz.errors import UserError
from headviz.ui.pages.head import maps as onehead
from headviz.ui.pages.head import relation, writes
from headviz.ui.parts import reference, remarks, scoring, texts
from headviz.ui.shell import frame, loaders, show, state


def draw() -> None:
    clf, data = reference.filled(loaders.classifier(view)), loaders.dataset(view)
    if clf is None:
        return
    chosen = onehead.pick(clf.present)
    left, right = st.columns([3, 9], gap="medium")
    with left:
        onehead.chooser(clf.present, chosen, scoring.known(view), view.score)
        shown = texts.choose(data, "head_text") if frame.controls() else texts.current(view, data)
        if frame.controls():
            onehead.controls(clf, shown)
    now = state.view()
    with right:
        found = None
        try:
            if shown.empty:
                st.info(texts.EMPTY, icon=":material/edit:")
            else:
                found = onehead.maps(clf, shown, state.mask(clf.present), now)
        except UserError as wrong:
            show.refused(wrong, "warning")
        if found is not None:
            onehead.headline(found, chosen)
            for remark in remarks.about(clf, shown):
                st.info(show.plain(remark))
            onehead.pictures(found, chosen, now)
            st.subheader("Attention against attribution")
            relation.section(found, chosen)
    if found is not None:
        writes.section(clf, shown, chosen)
    frame.recipe(*onehead.recipe(now, clf, shown, chosen))


view = frame.begin()
if frame.explains_classes(view):
    draw()

"""Compare: one's own text through the full model, through masks and a pruned model, side by side."""

import streamlit as st

from headviz.errors import UserError
from headviz.ui import compare, frame, loaders, others, show, state, texts

view = frame.begin()
st.title("Compare")
clf, data = loaders.classifier(view), loaders.dataset(view)
if frame.controls():
    shown = texts.choose(data, "compare_text")
    other = others.chooser(view, clf)
else:
    shown, other = texts.current(view, data), others.load(view, clf)
    st.markdown(f"**{show.plain(shown.text)}**  \n{show.plain(shown.pair or '')}")
given = compare.columns(clf, other)
try:
    found = compare.answers(shown, given)
except UserError as wrong:
    st.warning(show.plain(str(wrong)), icon=":material/edit:")
else:
    for remark in texts.remarks(clf, shown):
        st.info(show.plain(remark))
    compare.verdicts(clf, given, found)
    if state.mask(clf.present).off:
        compare.culprit(clf, shown, found)
    elif len(given) == 1:
        st.info(
            "All heads are on. Switch some off in the Mask lab, and their effect on this text stands here beside."
        )
        st.page_link("pages/masklab.py", label="Open the Mask lab", icon=":material/grid_on:")
    if frame.controls():
        compare.tokens(clf, shown, given)
        compare.shift(clf, shown)
if frame.controls():
    compare.several(clf, data, given)
frame.recipe(*compare.recipe(view, clf, shown))

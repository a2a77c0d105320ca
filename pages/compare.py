"""Compare: one text, answered by the full model, under masks and by a pruned model, side by side."""

import streamlit as st

from headviz.ui.pages.compare import columns as compare
from headviz.ui.pages.compare import explanations, many_pairs, patching
from headviz.ui.pages.compare import other_models as others
from headviz.ui.pages.compare import recipe as recipe_of
from headviz.ui.pages.compare import translations as retranslate
from headviz.ui.parts import reference, story, texts, veshan
from headviz.ui.shell import frame, loaders, show, state

view = frame.begin()
story.line()
filled, data = reference.filled(loaders.model(view)), loaders.dataset(view)
if filled is None:
    st.stop()
clf = filled
if frame.controls():
    shown = texts.choose(data, "compare_text")
else:
    shown = texts.current(view, data)
if not (frame.controls() or shown.empty):
    st.markdown(f"**{show.plain(shown.text)}**  \n{show.plain(shown.pair or '')}")
classifies = bool(loaders.shape(view).labels)
if classifies:
    answers, patched, explained = state.tabs(["Answers", "Patching", "Explanations"], "compare_tabs")
    with answers:
        if answers.open:
            other = others.chooser(clf) if frame.controls() else others.load(view, clf)
            compare.section(clf, data, shown, compare.columns(clf, other))
    with patched:
        if patched.open:
            patching.section(clf, shown, data.task.name == "demo")
            many_pairs.section(clf, data.task.name == "demo")
    with explained:
        if explained.open:
            explanations.section(clf, shown)
elif shown.empty:
    veshan.about(view)
    st.info(texts.EMPTY, icon=":material/edit:")
else:
    veshan.about(view)
    retranslate.section(clf, shown)
frame.recipe(*(recipe_of if classifies else retranslate).recipe(state.view(), clf, shown))

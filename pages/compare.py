"""Compare: one text, answered by the full model, under masks and by a pruned model, side by side."""

import streamlit as st

from headviz import plugins
from headviz.ui.pages.compare import answers, explanations, patching, sides
from headviz.ui.parts import measure, result_bar, story, texts
from headviz.ui.shell import frame, loaders, state

view = frame.begin()
filled, data = measure.filled(loaders.model(view)), loaders.dataset(view)
if filled is None:
    st.stop()
clf = filled
result_bar.of_page()
shown = texts.of_page(data, "compare_text", fields=frame.controls() or story.asks_for_text(view))
custom_page = clf.answer.own.get("compare")
if custom_page is None:
    answers_tab, patching_tab, explanations_tab = state.tabs(["Answers", "Patching", "Explanations"], "compare_tabs")
    with answers_tab:
        if answers_tab.open:
            columns = sides.choose(clf) if frame.controls() else sides.columns(clf, view)
            answers.section(clf, data, shown, columns)
    with patching_tab:
        if patching_tab.open:
            patching.section(clf, shown, data.task.name == "demo")
            patching.many_pairs(clf, data.task.name == "demo")
    with explanations_tab:
        if explanations_tab.open:
            explanations.section(clf, shown)
    current = state.view()
    if current.tab == "Explanations" and not shown.empty:
        recipe = explanations.recipe(current, clf, shown)
    elif current.tab == "Patching" and not shown.empty and (pair := patching.pair_of(clf, shown)) is not None:
        recipe = patching.recipe(current, clf, shown, pair)
    else:
        recipe = answers.recipe(current, clf, shown)
    frame.recipe(*recipe)
else:
    frame.recipe(*plugins.function(custom_page)(view, clf, shown))

"""Scores: what each head's score is worth: where it looks against what it contributes, next to what it costs."""

import streamlit as st

from headviz.ui.pages import orders, scores
from headviz.ui.parts import abilities, result_bar, scoring
from headviz.ui.shell import frame, loaders, show, state
from headviz.ui.shell.messages import plain
from headviz.ui.shell.view import COST

view = frame.begin()
shape = loaders.shape(view)
top = st.container()
several = view.weights == "difference"
if several:
    scores.choose(view, shape)
left, right = (st.container(), None) if several else st.columns(2, gap="medium")
with left:
    if not several:
        scores.choose(view, shape)
    view = state.view()
    tables = scores.tables(view)
    measured = {name: table for name, table in tables.items() if table is not None}
    ready = {name: scoring.in_points(table) for name, table in measured.items()}
    main = next(reversed(ready.values()), None)
second = None
if right is not None:
    with right:
        scores.choose_second(view, shape)
        view = state.view()
        second = scoring.costs(view) if view.beside in ("", COST) else scores.second_table(view)
        second = None if second is None else scoring.in_points(second)
with left:
    if several and len(ready) == 2:
        ready["difference"] = orders.difference(ready["pre-trained"], ready["fine-tuned"])
        scores.grids(ready, shape, view)
    elif several and ready:
        scores.grids(ready, shape, view)
    else:
        scores.score_grid("heads_first", main, second, scores.title_of(main, view.score), shape, view)
if right is not None:
    with right:
        scores.score_grid("heads_beside", second, main, scores.title_of(second, view.beside or COST), shape, view)
        working = st.container()
with top:
    if main is None and second is not None and second.score in scoring.LOSSES:
        show.finding(orders.costs(second, shape.rows, scores.hint(view, shape)))
    elif main is None:
        message = f"No scores yet: {view.score} has not been computed for this model and task."
        st.info(plain(message), icon=":material/info:")
    elif len(measured) == 2:
        show.finding(orders.change_sentence(measured["pre-trained"], measured["fine-tuned"], shape))
    elif second is not None:
        carried, growing = abilities.carried(view), scores.growing(view)
        show.finding(orders.sentence(main, second, shape.rows, carried, growing, scores.hint(view, shape)))
    else:
        show.finding(scores.finding(main, view, shape))
frame.part(frame.HEAD, lambda: scores.card(ready, second, shape, view), "head")
if ready:
    for name, table in measured.items():
        scores.status(table, view, scores.TITLES[name] if len(measured) > 1 else "")
    scores.detail(ready, shape, view)
if right is not None and view.beside in ("", COST) and frame.controls():
    with working:
        scoring.compute_costs(view)
result_bar.of_page()
frame.recipe(*scores.recipe(view, ready.get("fine-tuned", ready.get("pre-trained"))))

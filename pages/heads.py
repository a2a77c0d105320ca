"""Heads: what each head's score is worth: where it looks against what it contributes, beside what it costs."""

import streamlit as st

from headviz.scores.catalogue import SCORES
from headviz.ui.pages.heads import card, grids, orders
from headviz.ui.pages.heads import difference as tuning
from headviz.ui.parts import abilities, cost, story
from headviz.ui.shell import frame, loaders, part, show, state
from headviz.ui.shell.view import COST

view = frame.begin()
if frame.controls():
    story.strip()
shape = loaders.shape(view)
top = st.container()
several = view.weights == "difference"
if several:
    grids.choose(view, shape)
left, right = (st.container(), None) if several else st.columns(2, gap="medium")
with left:
    if not several:
        grids.choose(view, shape)
    view = state.view()
    found = grids.tables(view)
    measured = {name: table for name, table in found.items() if table is not None}
    ready = {name: cost.in_points(table) for name, table in measured.items()}
    main = next(reversed(ready.values()), None)
beside = None
if right is not None:
    with right:
        grids.choose_beside(view, shape)
        view = state.view()
        beside = cost.table(view) if view.beside in ("", COST) else grids.table_beside(view)
        beside = None if beside is None else cost.in_points(beside)
with left:
    if several and len(ready) == 2:
        ready["difference"] = tuning.difference(ready["pre-trained"], ready["fine-tuned"])
        grids.grids(ready, shape, view)
    elif several and ready:
        grids.grids(ready, shape, view)
    else:
        grids.one("heads_first", main, beside, grids.title_of(main, view.score), shape, view)
if right is not None:
    with right:
        grids.one("heads_beside", beside, main, grids.title_of(beside, view.beside or COST), shape, view)
        working = st.container()
with top:
    if main is None and beside is not None and beside.score in cost.LOSSES:
        show.finding(orders.costs(beside, shape.rows, grids.hint(view, shape)))
    elif main is None:
        none = f"No scores yet: {view.score} has not been computed for this model and task."
        st.info(show.plain(none), icon=":material/info:")
    elif len(measured) == 2:
        show.finding(tuning.finding(measured["pre-trained"], measured["fine-tuned"], shape))
    elif beside is not None:
        carried, growing = abilities.carried(view), grids.growing(view)
        show.finding(orders.sentence(main, beside, shape.rows, carried, growing, grids.hint(view, shape)))
    else:
        show.finding(grids.finding(main, main.values, view, shape))
part.part(part.HEAD, lambda: card.card(ready, beside, shape, view), "head")
grids.introduction(view)
if ready:
    score = SCORES[view.score]
    show.note(
        f"{view.score} of every head: layers down, heads across. {score.meaning}",
        formula=score.tex,
        source=score.source,
        key="heads",
        saves=False,
    )
    for name, table in measured.items():
        grids.status(table, view, grids.TITLES[name] if len(measured) > 1 else "")
    card.detail(ready, shape, view)
if right is not None and view.beside in ("", COST) and frame.controls():
    with working:
        cost.compute(view)
frame.recipe(*grids.recipe(view, ready.get("fine-tuned", ready.get("pre-trained"))))

"""The demonstration: four prepared views of the demo, each a link like any other, and the line that leads through them.

``docs/demonstration.md`` tells the same with pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import streamlit as st

from ...demo import card_figures
from ...heads import HeadId, HeadMask, lowest
from ..shell import kept, state
from ..shell.messages import plain
from ..shell.view import FIELDS, View
from ..widgets import component
from . import abilities, scoring

SHARE = 0.4  # of the heads that the third step removes
ORDER = "magnitude"  # the order it removes them in
SIDE = 12  # layers, and heads in one
OF_STEP = ("beside", "tokens")  # what steps set besides the mask and the text
CHANGED = "You have changed what is switched off. Back and Next open the steps as they were."


@dataclass(frozen=True)
class Step:
    """One step: its title, one sentence on what to look at, and the view that shows it."""

    title: str
    sentence: str
    page: str
    view: dict[str, Any] = field(default_factory=dict)
    own_text: bool = False  # it asks for one, so a presentation keeps the fields

    @property
    def number(self) -> int:
        return steps().index(self) + 1

    def shown(self) -> View:
        """The whole view: the demo as it comes, and what this step changes."""
        return replace(View(), **self.view, story=self.number)


@cache
def steps() -> tuple[Step, ...]:
    """The four steps. Which heads they switch off comes from the model card and from the shipped scores."""
    listed = abilities.listed(View())
    negation_head, order_head = listed["negation"].heads[0], listed["role-swap"].heads[0]
    shared = HeadId.parse(card_figures()["heads"]["shared"][0])
    scores = scoring.scores(View(), ORDER)
    assert scores is not None
    full = HeadMask.full(SIDE, SIDE)
    removed = lowest(scores.values, round(SHARE * full.size), full.kept, seed=0)

    def pair(first: str, second: str, off: HeadId) -> dict[str, Any]:
        return {"a": first, "b": second, "mask": full.without([off]).hex, "tokens": True}

    return (
        Step(
            "One head turns an answer",
            f"Look at the two answers: {shared} is switched off, and the model says the opposite.",
            "compare",
            pair("Bruno is richer than Alice.", "Bruno is poorer than Alice.", shared),
        ),
        Step(
            "Word order on another",
            f"Look at the two answers: {order_head} is off, and the model can no longer tell who follows whom.",
            "compare",
            pair("The aunt followed the uncle.", "The uncle followed the aunt.", order_head),
        ),
        Step(
            f"{100 * SHARE:.0f} % of the heads can go",
            f"{len(removed)} of {full.size} heads are off, those with the smallest weights first. Look at the accuracy "
            "before and after, and at the loss that is still possible.",
            "masklab",
            {"mask": full.without(removed).hex, "beside": ORDER},
        ),
        Step(
            "Now your own sentence",
            f"Change a word: {negation_head}, which carries negation, is off. An example is below the fields.",
            "compare",
            pair("The dog is not sleeping.", "The dog is sleeping.", negation_head),
            own_text=True,
        ),
    )


def asks_for_text(view: View) -> bool:
    """Whether the view is a step in which one writes."""
    return 1 <= view.story <= len(steps()) and steps()[view.story - 1].own_text


def go(number: int) -> None:
    """Open a step; 0 leaves the demonstration and keeps the mask and the text."""
    view = state.view()
    if number == 0:
        _leave(view)
        return
    step = steps()[number - 1]
    state.open_view(replace(step.shown(), present=view.present, numbers=view.numbers))
    kept.open_page(step.page)


def _leave(view: View) -> None:
    """Keep the mask and the text; reset what only the step had set, because other pages show it too."""
    set_by_step = steps()[view.story - 1].view
    reset = {n: FIELDS[n] for n in OF_STEP if n in set_by_step and getattr(view, n) == set_by_step[n]}
    state.update(story=0, **reset)


def step_buttons() -> None:
    """The four steps in one line."""
    if not state.view().on_demo:
        return
    st.caption("A demonstration in four steps")
    with st.container(horizontal=True, gap="xsmall", key="chips_story"):
        for step in steps():
            st.button(
                plain(f"{step.number} · {step.title}"), key=f"step{step.number}", on_click=go, args=(step.number,)
            )


def step_bar(page: str) -> None:
    """Above a step's own page: the step, its sentence, and the way on.

    Page Down and Page Up go to the next and the previous step. On another page the demonstration is over.
    """
    view = state.view()
    number = view.story
    if not 1 <= number <= len(steps()):
        return
    step = steps()[number - 1]
    if page != step.page or not view.on_demo:
        _leave(view)
        return
    component("tools")(key="story_step", data={"kind": "step", "step": number})
    with st.container(border=True, key="story"):
        text, buttons = st.columns([5, 3], vertical_alignment="center")
        title = f"{number} of {len(steps())} · {step.title}."
        changed = state.mask(HeadMask.full(SIDE, SIDE)).hex != step.view["mask"]
        sentence = CHANGED if changed else step.sentence
        text.markdown(f"**{plain(title)}** {plain(sentence)}")
        with buttons.container(horizontal=True, gap="xsmall", horizontal_alignment="right"):
            st.button(
                "Back", key="story_back", disabled=number == 1, on_click=go, args=(number - 1,), shortcut="PageUp"
            )
            st.button(
                "Next",
                key="story_next",
                type="primary",
                disabled=number == len(steps()),
                on_click=go,
                args=(number + 1,),
                shortcut="PageDown",
            )
            st.button(
                "End",
                key="story_end",
                on_click=go,
                args=(0,),
                help="Leave the demonstration; the mask and the text stay",
            )

"""The text that a page explains: an example of the data, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from ..shell import show, state
from ..shell.view import LONGEST_TEXT, View
from ..widgets.component import component

if TYPE_CHECKING:
    from ...tasks import Dataset

LONGEST = 20_000  # characters that a field takes; where the model cuts earlier, the page says so


@dataclass(frozen=True)
class Text:
    """One text or pair, with its label and slice if it is an example."""

    text: str
    pair: str | None
    label: str | float | None = None
    slice: str | None = None
    own: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is written."""
        return not self.text.strip() and not (self.pair or "").strip()


EMPTY = "Type a text, or choose an example."


def current(view: View, data: Dataset) -> Text:
    """The user's own text if there is one, else the example."""
    example = data[min(view.example, len(data) - 1)]
    if not (view.a or view.b or view.blank):
        return Text(example.text, example.pair, example.label, example.slice)
    if _one_field(data):
        return Text(view.a or view.b, None, own=True)
    paired = data.pairs is not None
    return Text(view.a, view.b if paired else (view.b or None), own=True)


def _one_field(data: Dataset) -> bool:
    """Whether one's own sentence is all there is to write: the pair of a sentence to translate is its reference."""
    return data.answer.gold_is_pair


def choose(data: Dataset, key: str) -> Text:
    """Fields for the text, and buttons to choose an example. An edited text is the user's own."""
    view = state.view()
    shown = current(view, data)
    names = _names(data, shown)
    memory = f"{key}__seq"

    def edited() -> None:
        sent = st.session_state[key].get("edit")
        if sent and int(sent["seq"]) > st.session_state.get(memory, 0):
            st.session_state[memory] = int(sent["seq"])
            texts = [str(t)[:LONGEST] for t in sent["texts"]]
            state.update(a=texts[0], b=texts[1] if len(texts) > 1 else "", blank=not any(texts))

    component("editor")(
        key=key,
        data={
            "texts": [shown.text, shown.pair or ""][: len(names)],
            "names": names,
            "seq": st.session_state.get(memory, 0),
            "limit": LONGEST,
        },
        on_edit_change=edited,
    )
    if max(len(shown.text), len(shown.pair or "")) > LONGEST_TEXT:
        st.caption(f"A link holds {LONGEST_TEXT:,} characters. This text is longer, so a reload loses it.")
    _chips(data, key)
    _picker(data, shown, key)
    return current(state.view(), data)


# pairs to start from, whose words the demo knows; each turns on another ability
CHIPS = (
    ("The dog is not sleeping.", "The dog is sleeping."),
    ("A dog sleeps.", "An animal sleeps."),
    ("The aunt followed the uncle.", "The uncle followed the aunt."),
    ("Everyone waved.", "The actor waved."),
)


def _chips(data: Dataset, key: str) -> None:
    """Pairs of sentences to try, one click each; of the demo, which knows few words."""
    if data.task.name != "demo" or state.view().data:
        return
    with st.container(horizontal=True, gap="xsmall", key=f"chips_{key}"):
        for i, (first, second) in enumerate(CHIPS):
            st.button(
                show.plain(f"{first} → {second}"),
                key=f"{key}_chip{i}",
                type="tertiary",
                on_click=state.update,
                kwargs={"a": first, "b": second, "blank": False},
            )


def _names(data: Dataset, shown: Text) -> list[str]:
    """What the fields are called: one for each text that the model reads."""
    if _one_field(data):
        return ["Sentence"]
    if shown.pair is None:
        return ["Text"]
    return {"demo": ["Premise", "Hypothesis"], "mnli": ["Premise", "Hypothesis"]}.get(data.task.name, ["Text", "Pair"])


def _picker(data: Dataset, shown: Text, key: str) -> None:
    view = state.view()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        at = min(view.example, len(data) - 1)
        for label, step, letter in (("Previous", -1, "p"), ("Next", 1, "n")):
            other = (at + step) % len(data)
            st.button(label, key=f"{key}_{label.lower()}", on_click=_go, args=(other,), shortcut=letter)
        with st.popover("Find an example"):
            _find(data, key)
        st.caption(show.plain(_about(shown, at, data)))


def _about(shown: Text, at: int, data: Dataset) -> str:
    if shown.own or shown.empty:
        return f"{'No text yet' if shown.empty else 'Your own text'}. Previous and Next go back to the examples."
    parts = [f"Example {at} (numbered 0 to {len(data) - 1:,})"]
    if shown.label is not None:
        parts.append(f"gold label {shown.label}")
    if shown.slice:
        parts.append(f"{data.slice_name or 'slice'} {shown.slice}")
    return "  ·  ".join(parts)


def _go(example: int) -> None:
    state.update(example=example, a="", b="")


def _find(data: Dataset, key: str) -> None:
    words = st.text_input("Words", key=f"{key}_words", placeholder="any words of the text")
    kinds = ["all", *dict.fromkeys(data.slices)] if data.slices else ["all"]
    kind = st.selectbox(show.plain(data.slice_name or "slice"), kinds, key=f"{key}_kind") if len(kinds) > 1 else "all"
    found = find(data, words, kind)
    rows = [[i, data[i].text, data[i].pair or "", data[i].label] for i in found[:200]]
    st.caption(f"{len(found)} of {len(data)} examples" + (", the first 200 shown" if len(found) > 200 else ""))
    if not rows:
        return
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["example", "text", "pair", "label"])
    event = st.dataframe(
        frame, hide_index=True, key=f"{key}_found", height=240, on_select="rerun", selection_mode="single-row"
    )
    if (row := show.chosen_row(event, f"{key}_opened", words, kind)) is not None:
        _go(found[row])
        st.rerun()


def find(data: Dataset, words: str, kind: str = "all") -> list[int]:
    """Positions of the examples that contain all of these words and belong to this slice."""
    wanted = words.casefold().split()
    out = []
    for i, e in enumerate(data):
        text = f"{e.text} {e.pair or ''}".casefold()
        if (kind == "all" or e.slice == kind) and all(w in text for w in wanted):
            out.append(i)
    return out

"""The text that a page explains, an example of the data or the user's own, and remarks about it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ...demo import vocabulary_coverage
from ...tasks.tokenizer_lock import alone_with
from ..shell import kept, show, state
from ..shell.messages import plain
from ..shell.view import LONGEST_TEXT, View
from ..widgets import component, last_edit, next_edit

if TYPE_CHECKING:
    from ...models.classifier import Classifier, Encoding
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
    if data.answer.gold_is_pair:  # of a sentence to translate, which has no second text to write
        return Text(view.a or view.b, None, own=True)
    paired = data.pairs is not None
    return Text(view.a, view.b if paired else (view.b or None), own=True)


def of_page(data: Dataset, key: str, *, fields: bool) -> Text:
    """Fields to choose the text with; without them, as in a presentation, the text as it stands."""
    if fields:
        return choose(data, key)
    shown = current(state.view(), data)
    if not shown.empty:
        st.markdown(f"**{plain(shown.text)}**  \n{plain(shown.pair or '')}")
    return shown


def choose(data: Dataset, key: str) -> Text:
    """Fields for the text, and buttons to choose an example. An edited text is the user's own."""
    view = state.view()
    shown = current(view, data)
    names = _names(data, shown)

    def edited() -> None:
        if sent := next_edit(key):
            texts = [str(t)[:LONGEST] for t in sent["texts"]]
            second = texts[1] if len(texts) > 1 else ""
            state.update(a=texts[0], b=second, blank=not any(texts))
            if sent.get("done"):
                state.keep_text(texts[0], second)

    component("editor")(
        key=key,
        data={
            "texts": [shown.text, shown.pair or ""][: len(names)],
            "names": names,
            "seq": last_edit(key),
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
                plain(f"{first} → {second}"),
                key=f"{key}_chip{i}",
                type="tertiary",
                on_click=state.update,
                kwargs={"a": first, "b": second, "blank": False},
            )


def _names(data: Dataset, shown: Text) -> list[str]:
    """What the fields are called: one for each text that the model reads."""
    if data.answer.gold_is_pair:
        return ["Sentence"]
    if shown.pair is None:
        return ["Text"]
    return [*(data.task.text_names or data.answer.text_names)]


def _picker(data: Dataset, shown: Text, key: str) -> None:
    view = state.view()
    at = min(view.example, len(data) - 1)
    if not shown.own and len(members := np.flatnonzero(data.units == data.units[at])) > 1:
        member = st.selectbox(
            plain(f"{data.answer.text_names[1]} of this {data.answer.unit[0]}"),
            members.tolist(),
            members.tolist().index(at),
            key=f"{key}_member_{at}",
            format_func=lambda i: f"{'' if data[i].label is None else f'{data[i].label:g}: '}{data[i].pair}",
        )
        if member != at:
            _go(member)
            st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"picker_{key}"):
        for label, step, letter in (("Previous", -1, "p"), ("Next", 1, "n")):
            other = (at + step) % len(data)
            st.button(label, key=f"{key}_{label.lower()}", on_click=_go, args=(other,), shortcut=letter)
        with st.popover("Find an example"):
            _search_box(data, key)
        kept.own_texts(data.pairs is not None)
        st.caption(plain(_about(shown, at, data)), width="stretch")


def _about(shown: Text, at: int, data: Dataset) -> str:
    if shown.own or shown.empty:
        return f"{'No text yet' if shown.empty else 'Your own text'}. Previous and Next go back to the examples."
    parts = [f"Example {at} (numbered 0 to {len(data) - 1:,})"]
    if shown.label is not None:
        label = f"{shown.label:g}" if isinstance(shown.label, float) else shown.label
        parts.append(f"gold {data.answer.gold_name.removesuffix('s')} {label}")
    if shown.slice:
        parts.append(f"{data.slice_name or 'slice'} {shown.slice}")
    return "  ·  ".join(parts)


def _go(example: int) -> None:
    state.update(example=example, a="", b="")


def _search_box(data: Dataset, key: str) -> None:
    words = st.text_input("Words", key=f"{key}_words", placeholder="any words of the text")
    kinds = ["all", *dict.fromkeys(data.slices)] if data.slices else ["all"]
    kind = st.selectbox(plain(data.slice_name or "slice"), kinds, key=f"{key}_kind") if len(kinds) > 1 else "all"
    places = find(data, words, kind)
    rows = [[i, data[i].text, data[i].pair or "", data[i].label] for i in places[:200]]
    st.caption(f"{len(places)} of {len(data)} examples" + (", the first 200 shown" if len(places) > 200 else ""))
    if not rows:
        return

    from pandas import DataFrame

    frame = DataFrame(rows, columns=["example", *(n.lower() for n in data.answer.text_names), "label"])
    event = st.dataframe(
        frame, hide_index=True, key=f"{key}_found", height=240, on_select="rerun", selection_mode="single-row"
    )
    if (row := show.chosen_row(event, f"{key}_opened", words, kind)) is not None:
        _go(places[row])
        st.rerun()


def find(data: Dataset, words: str, kind: str = "all") -> list[int]:
    """Positions of the examples that contain all of these words and belong to this slice."""
    parts = words.casefold().split()
    places = []
    for i, example in enumerate(data):
        text = f"{example.text} {example.pair or ''}".casefold()
        if (kind == "all" or example.slice == kind) and all(part in text for part in parts):
            places.append(i)
    return places


# ---- remarks: a text is cut, or has words or signs that the model does not know

MOST_NAMED = 8
# signs that programs write instead of those on the keyboard, and what to type
STRAIGHT = (("’‘ʼ´`", "a straight '"), ("“”„«»", 'a straight "'), ("–—−", "-"), ("…", "..."))


def remarks(clf: Classifier, shown: Text) -> list[str]:
    """Remarks about one text or pair."""
    encoding = clf.encode([shown.text], None if shown.pair is None else [shown.pair])[0]
    cut = [_cut(clf, shown, encoding)] if encoding.truncated else []
    return [*cut, *_unknown(clf, f"{shown.text} {shown.pair or ''}", [encoding])]


def remarks_on_many(clf: Classifier, lines: Mapping[int, tuple[str, str]], paired: bool) -> list[str]:
    """Remarks about many texts or pairs, each with the number of its line: which are cut, which words are unknown."""
    texts = list(lines.values())
    encodings = clf.encode([a for a, _ in texts], [b for _, b in texts] if paired else None)
    unknown = _unknown(clf, "\n".join(f"{a} {b}" for a, b in texts), encodings)
    cut = [str(i) for i, e in zip(lines, encodings, strict=True) if e.truncated]
    if not cut:
        return unknown
    subject = f"Lines {_listed(cut, ', ')} are" if len(cut) > 1 else f"Line {cut[0]} is"
    return [f"{subject} longer than the model's {clf.max_length} tokens; the rest was left out.", *unknown]


def _unknown(clf: Classifier, text: str, encodings: Sequence[Encoding]) -> list[str]:
    # the demo is the one model whose training text is known word by word
    if clf.name == "demo" and (sentences := _outside(clf, text)):
        return sentences
    unknown = sum(i == clf.tokenizer.unk_token_id for e in encodings for i in e.ids)
    if not unknown:
        return []
    total = sum(map(len, encodings))
    return [f"{unknown} of {total} tokens are unknown to the model: its answer may mean little."]


def _cut(clf: Classifier, shown: Text, encoding: Encoding) -> str:
    """Which text is cut, and how many of its tokens the model reads."""
    limit = f"the model's {clf.max_length} tokens"
    if shown.pair is None:
        return f"The text is longer than {limit}; the rest was left out."
    # special tokens stand between the two; token types would not do, RoBERTa gives both texts the same
    runs = [len(list(run)) for special, run in groupby(encoding.special) if not special]
    parts = []
    for name, text, read in zip(("first", "second"), (shown.text, shown.pair), (*runs, 0, 0), strict=False):
        with alone_with(clf.tokenizer):
            whole = len(clf.tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])
        if read < whole:
            parts.append(f"of the {name} text only the first {read} of its {whole} tokens are read")
    return f"The two texts together are longer than {limit}: {' and '.join(parts)}."


def _outside(clf: Classifier, text: str) -> list[str]:
    """Words and signs that the demo was not trained on; its tokeniser splits unknown words into known pieces."""
    for special in clf.tokenizer.all_special_tokens:
        text = text.replace(special, " ")
    # composed, and without the invisible characters that the tokeniser drops: words as a reader sees them
    text = "".join(c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf")
    sentences = []
    if words := _strange_words(text):
        quoted = _listed([f"“{w[:30]}”" for w in words], ", ")
        sentences.append(
            f"The demo model does not know {quoted}. It knows only simple English, so its answer may mean little."
        )
    vocabulary = clf.tokenizer.get_vocab()
    signs = [
        c
        for c in dict.fromkeys(text)
        if not (c.isalnum() or c.isspace() or c in vocabulary or unicodedata.category(c) == "Mn")
    ]
    if signs:
        nouns = ("sign", "it") if len(signs) == 1 else ("signs", "them")
        sentences.append(
            f"The demo model does not know the {nouns[0]} {_listed(signs, ' ')}, "
            f"and its answer may change with {nouns[1]}.{_instead(signs)}"
        )
    return sentences


def _listed(names: Sequence[str], between: str) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


def _strange_words(text: str) -> list[str]:
    """The words, as typed, that are not in the demo's vocabulary; each once."""
    strange: dict[str, str] = {}
    for word in re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text):
        plain = "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn")
        if not re.fullmatch(r"[a-z0-9'’]+", plain.lower()) or vocabulary_coverage(plain).unknown:
            strange.setdefault(word.casefold(), word)
    return list(strange.values())


def _instead(signs: Sequence[str]) -> str:
    """What to type for signs that have a plain form."""
    parts = []
    for kinds, key in STRAIGHT:
        if replaced := [c for c in signs if c in kinds]:
            parts.append(f"{key} for {' and '.join(replaced)}")
    return f" Type {', '.join(parts)}." if parts else ""

"""Many heads at once on one text: small maps, sorted by what the heads look at, by a score or by what they carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.figures import maps as charts_maps
from ....heads import HeadId, highest
from ...parts import abilities, cost
from ...shell import show, state

if TYPE_CHECKING:
    from ....attribution.maps import Maps

MOST = 24  # maps in one picture
PATTERNS = (
    "the token before",
    "the token after",
    "itself",
    "the same word elsewhere",
    "[SEP]",
    "[CLS]",
    "the other sentence",
)
ORDER, ABILITY = "cost or chosen score", "heads that carry an ability"
TITLE = 22  # characters that fit above a map
SHARE = "the number is that share of its attention, mean over the words"
SCORE = "the number is that score"


def looks_at(found: Maps, pattern: str) -> np.ndarray:
    """[L, H] the share of attention that goes where the pattern says, mean over the words of the text."""
    tokens, types, special = list(found.tokens), np.array(found.types), np.array(found.special, dtype=bool)
    place = np.arange(len(tokens))
    where = {
        "the token before": place[None, :] == place[:, None] - 1,
        "the token after": place[None, :] == place[:, None] + 1,
        "itself": place[None, :] == place[:, None],
        "the same word elsewhere": same_words(tokens) & (place[None, :] != place[:, None]),
        "[SEP]": np.tile(special & (place > 0), (len(tokens), 1)),
        "[CLS]": np.tile(place == 0, (len(tokens), 1)),
        "the other sentence": types[None, :] != types[:, None],
    }[pattern]
    return _share(found, where, ~special)


def looks_at_word(found: Maps, word: str) -> np.ndarray:
    """[L, H] the share of attention that goes to a word of the text; 0 everywhere if the text does not have it."""
    wanted = word.casefold().split()
    at = np.array([t.casefold().removeprefix("##") in wanted for t in found.tokens])
    return _share(found, np.tile(at, (len(at), 1)), ~np.array(found.special, dtype=bool))


def same_words(tokens: Sequence[str]) -> np.ndarray:
    names = np.array([t.casefold() for t in tokens])
    equal: np.ndarray = names[None, :] == names[:, None]
    return equal


def _share(found: Maps, where: np.ndarray, queries: np.ndarray) -> np.ndarray:
    kept = found.attention[:, :, queries if queries.any() else slice(None)]
    rows = where[queries] if queries.any() else where
    values: np.ndarray = (kept * rows).sum(axis=-1).mean(axis=-1)
    return values


def section(found: Maps, chosen: HeadId, rows: Sequence[int], columns: Sequence[int], present: bool) -> None:
    """The controls and the picture; a presentation shows the picture alone."""
    word, by, all_heads, kind = "", PATTERNS[0], True, "attention"
    if not present:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            word = st.text_input("Heads that look at", key="gallery_word", placeholder="a word, such as not", width=190)
            orders = [*PATTERNS, ORDER, ABILITY]
            by = st.selectbox("Sorted by", orders, key="gallery_by", width=230, disabled=bool(word.strip()))
            only = st.segmented_control(
                "Heads", ("all heads", "this layer"), default="all heads", required=True, key="gallery_heads"
            )
            kind = st.segmented_control(
                "Maps", ("attention", "attribution"), default="attention", required=True, key="gallery_kind"
            )
            all_heads = only == "all heads"
    values, said = _values(found, word.strip(), str(by))
    known_heads = [h for h in highest(values) if all_heads or h.layer == chosen.layer]
    heads, lacking = known_heads[:MOST], missing(found, word.strip())
    if lacking or not heads:
        st.info(show.plain(lacking or "No head has a value in this order. Choose another one."))
        return
    table = found.attention if kind == "attention" else found.attribution
    maps = np.stack([table[h][np.ix_(rows, columns)] for h in heads])
    known = abilities.looks(state.view()) | abilities.carried(state.view())  # an ability before where a head looks
    names = [title(f"{h} {values[h]:.2f} {known.get(h, '').partition(' (')[0]}".strip()) for h in heads]
    at = heads.index(chosen) if chosen in heads else None
    show.figure(
        charts_maps.layer(maps, names, kind, kind == "attribution", at),
        f"gallery_{kind}",
        f"The {kind} of {how_many(len(heads), len(known_heads))} on one colour scale, {said}.",
        wide="48",
    )


def how_many(shown: int, known: int) -> str:
    return f"{shown} of {known} heads" if shown < known else "the one head" if known == 1 else f"all {known} heads"


def title(text: str) -> str:
    """What fits above a map."""
    return text if len(text) <= TITLE else text[: TITLE - 1].rstrip() + "…"


def missing(found: Maps, word: str) -> str:
    """What is said of a word that is no token of the text; empty for others."""
    wanted = word.casefold().split()
    if not wanted or any(t.casefold().removeprefix("##") in wanted for t in found.tokens):
        return ""
    return f"This text has no token “{word[:30]}”. Search for one of: {', '.join(dict.fromkeys(found.tokens))}."


def _values(found: Maps, word: str, by: str) -> tuple[np.ndarray, str]:
    """What the heads are sorted by, and its words in the caption."""
    if word:
        return looks_at_word(found, word), f"those first that look most at “{word[:30]}”; {SHARE}"
    table = cost.ordering(state.view())
    unknown = np.full(found.attention.shape[:2], np.nan)
    if by in PATTERNS:
        return looks_at(found, by), f"those first that look most at {by}; {SHARE}"
    if table is None:
        return unknown, ""
    if by == ORDER:
        return table.values, f"the highest by {table.score} first; {SCORE}"
    for head in abilities.carried(state.view()):
        unknown[head] = table.values[head]
    return unknown, f"only heads that carry an ability, the highest by {table.score} first; {SCORE}"

"""On Compare, under Patching: by which way the heads carry the difference, as a small graph."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from ...parts.texts import Text
from ...shell import jobs, show, state

if TYPE_CHECKING:
    from ....attribution.paths import Paths
    from ....models.classifier import Classifier

FORMULA = r"\frac{F(\text{text, one path from the donor}) - F(\text{text})}{F(\text{donor}) - F(\text{text})}"
DRAWN = 12  # minimal pairs of the example's phenomenon


@dataclass(frozen=True)
class Given:
    """What is patched into what: ``other``'s outputs into ``one``, with an alignment if the user has edited it."""

    one: Any
    other: Any
    memory: tuple[Any, ...]  # what the results depend on
    edited: dict[int, int] | None


def section(clf: Classifier, given: Given, shown: Text) -> None:
    """A question, what it costs, and the strongest paths once they are asked for."""
    from ....attribution.paths import paths, texts_at_most

    mask, where = state.mask(clf.present), state.view().positions
    drawn, memory = _drawn(shown), given.memory
    key: Hashable = (memory, "paths")
    if not state.view().present:
        count = texts_at_most(mask, 1)
        many = f"; over {len(drawn)} minimal pairs {len(drawn)} times as many" if drawn else ""
        st.caption(f"By which way do they carry it? Up to {count:,} texts go through the model{many}.")
        with st.container(horizontal=True):
            st.button("Follow the paths", key="paths", icon=":material/route:", on_click=_ask, args=(key, False))
            if drawn:
                name = f"… over {len(drawn)} pairs of {shown.slice}"
                st.button(show.plain(name), key="paths_many", on_click=_ask, args=(key, True))
    following, many_pairs = asked(memory)
    if not following:
        return
    pairs = drawn if many_pairs else [(given.one, given.other)]
    edited = None if many_pairs else given.edited

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Paths:
        return paths(clf, pairs, positions=where, alignment=edited, mask=mask, progress=progress, cancel=cancel)

    told = None if edited is None else tuple(sorted(edited.items()))
    found = jobs.need((key, many_pairs, str(clf.dtype), told), "Following the paths", work)
    if found is not None:
        _shown(clf, found)


def asked(memory: Hashable) -> tuple[bool, bool]:
    """Whether the paths of these texts are shown, and whether over many pairs."""
    key, many = st.session_state.get("paths_asked", (None, False))
    return key == (memory, "paths"), many


def _ask(key: Hashable, many: bool) -> None:
    st.session_state["paths_asked"] = (key, many)


def _drawn(shown: Text) -> list[tuple[Any, Any]]:
    """Minimal pairs of the phenomenon of a demo example."""
    from ....demo.example import PHENOMENA
    from ....demo.minimal_pairs import minimal_pairs

    if shown.slice not in PHENOMENA:
        return []
    return [((a.premise, a.hypothesis), (b.premise, b.hypothesis)) for a, b in minimal_pairs(shown.slice, DRAWN)]


def _shown(clf: Classifier, found: Paths) -> None:
    from ....display.figures.paths import paths_figure, way

    show.finding(said(found))
    show.figure(
        paths_figure(found.edges, clf.num_layers, clf.num_heads),
        "path_graph",
        "Width: how far one path alone moves the answer. Blue: towards the donor's; orange: away from it.",
        formula=FORMULA,
        source="Path patching (Wang et al. 2022): all other heads keep what they gave for the text.",
        alt=f"Graph of the {len(found.edges)} strongest paths",
        wide="40",
    )
    rows = [[way(e), e.effect, *([e.low, e.high] if found.n > 1 else [])] for e in found.edges]
    header = ["path", "share of the way", *(["95 % low", "95 % high"] if found.n > 1 else [])]
    show.table(header, rows, "path_table", cells=show.printed(dict.fromkeys(header[1:], "%+.3f")))


def said(found: Paths) -> str:
    """The strongest path, and whether its interval excludes nothing at all."""
    from ....display.figures.paths import way
    from ....display.numbers import percent

    first = found.edges[0]
    left = found.same_answer + found.small
    alone = "for the one pair whose answer moves" if left else "for this pair"
    where = alone if found.n == 1 else f"on average over {found.n} pairs"
    text = f"The strongest path is {way(first)}: alone it moves the answer {percent(first.effect)} of the way {where}"
    if found.n > 1 and first.low <= 0 <= first.high:
        text += f", and its interval [{percent(first.low)}, {percent(first.high)}] does not exclude none"
    are = "pair is" if left == 1 else "pairs are"
    return f"{text}." + (f" {left} {are} left out, since the answer hardly moves." if left else "")

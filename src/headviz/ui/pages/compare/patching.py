"""Compare, Patching: each head's output for another text, the donor, put into the pass of this one."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

import headviz

from ....attribution.alignment import ALL, POSITIONS
from ....demo.reading import PHENOMENA, minimal_pairs
from ....display.figures.maps import paths_figure
from ....display.figures.style import scale_for
from ....display.numbers import percent
from ....display.recipes import Code, Options, call
from ....display.table import heads_table, paths_table, way
from ....errors import TaskError, UserError
from ....evaluation.verdict import undecided
from ....heads import HeadId, highest
from ....storage.writing import replace_file
from ....tasks.readers import read_table
from ...parts.texts import EMPTY, Text
from ...shell import jobs, loaders, show, state
from ...shell.messages import plain, refused
from ...shell.uploads import FORMATS
from ...shell.view import LONGEST_TEXT, View
from ...widgets.grid import Look
from .answers import CLF, MASK, PRINTED, recipe_of

if TYPE_CHECKING:
    from ....attribution.patching import Patching, PatchingSet
    from ....attribution.paths import Paths
    from ....models.classifier import Classifier

# ---- paths

FORMULA = r"\frac{F(\text{text, one path from the donor}) - F(\text{text})}{F(\text{donor}) - F(\text{text})}"
DRAWN = 12  # minimal pairs of an ability


@dataclass(frozen=True)
class Pair:
    """What is patched into what: the donor's outputs into the text, with an alignment if the user has edited it."""

    text: Any
    donor: Any
    key: tuple[Any, ...]  # what the results depend on
    alignment: dict[int, int] | None


def path_section(clf: Classifier, pair: Pair, shown: Text) -> None:
    """The buttons that follow the paths, what that costs, and the strongest paths once the user has asked."""
    from ....attribution.paths import texts_at_most

    mask, positions = state.mask(clf.present), state.view().positions
    drawn = drawn_pairs(shown.slice) if shown.slice in PHENOMENA else []  # of a demo example
    if not state.view().present:
        count = texts_at_most(mask, 1)
        many = f"; over {len(drawn)} minimal pairs {len(drawn)} times as many" if drawn else ""
        st.caption(f"By which way do they carry it? Up to {count:,} texts go through the model{many}.")
        with st.container(horizontal=True):
            ask = partial(_ask_paths, pair.key)
            st.button("Follow the paths", key="paths", icon=":material/route:", on_click=ask, args=(False,))
            if drawn:
                name = f"… over {len(drawn)} pairs of {shown.slice}"
                st.button(plain(name), key="paths_many", on_click=ask, args=(True,))
    following, many_pairs = paths_asked(pair.key)
    if not following:
        return
    pairs = drawn if many_pairs else [(pair.text, pair.donor)]
    alignment = None if many_pairs else pair.alignment
    aligned = None if alignment is None else tuple(sorted(alignment.items()))
    result = jobs.need(
        ((pair.key, "paths"), many_pairs, str(clf.dtype), aligned),
        "Following the paths",
        lambda p, c: headviz.paths(
            clf, pairs, positions=positions, alignment=alignment, mask=mask, progress=p, cancel=c
        ),
    )
    if result is not None:
        _draw_paths(clf, result)


def paths_asked(pair_key: Hashable) -> tuple[bool, bool]:
    """Whether the paths of these texts are shown, and whether over many pairs."""
    key, many = st.session_state.get("paths_asked", (None, False))
    return key == pair_key, many


def _ask_paths(pair_key: Hashable, many: bool) -> None:
    st.session_state["paths_asked"] = (pair_key, many)


def drawn_pairs(phenomenon: str) -> list[tuple[Any, Any]]:
    """The texts of minimal pairs of an ability, which the demo brings."""
    return [((a.premise, a.hypothesis), (b.premise, b.hypothesis)) for a, b in minimal_pairs(phenomenon, DRAWN)]


def _draw_paths(clf: Classifier, paths: Paths) -> None:
    show.finding(path_sentence(paths))
    show.figure(
        paths_figure(paths.edges, clf.num_layers, clf.num_heads),
        "path_graph",
        "Width: how far one path alone moves the answer. Blue: towards the donor's; orange: away from it.",
        formula=FORMULA,
        source="Path patching (Wang et al. 2022): all other heads keep what they gave for the text.",
        alt=f"Graph of the {len(paths.edges)} strongest paths",
    )
    show.table(paths_table(paths.edges, paths.n > 1))


def path_sentence(paths: Paths) -> str:
    """The strongest path, and whether its interval excludes nothing at all."""
    first = paths.edges[0]
    left_out = paths.same_answer + paths.small
    alone = "for the one pair whose answer moves" if left_out else "for this pair"
    where = alone if paths.n == 1 else f"on average over {paths.n} pairs"
    text = f"The strongest path is {way(first)}: alone it moves the answer {percent(first.effect)} of the way {where}"
    if paths.n > 1 and first.low <= 0 <= first.high:
        text += f", and its interval [{percent(first.low)}, {percent(first.high)}] does not exclude none"
    are = "pair is" if left_out == 1 else "pairs are"
    return f"{text}." + (f" {left_out} {are} left out, since the answer hardly moves." if left_out else "")


# ---- one pair

EFFECT = r"\frac{F(\text{text with the head's output of the donor}) - F(\text{text})}{F(\text{donor}) - F(\text{text})}"
WHERE = {ALL: "all tokens", "changed": "the words that differ", "first": "[CLS] only"}

LITTLE = 0.1  # of the way: a head of less does not move the answer


def section(clf: Classifier, shown: Text, demo: bool) -> None:
    """The donor's fields, the grid of effects, and which token stood for which."""
    if shown.empty:
        st.info(EMPTY, icon=":material/edit:")
        return
    _fields(shown, demo)
    if _donor(shown) is None:
        st.info(
            "Which head carries a difference between two texts? Write a second text, the donor, that differs from the "
            "one above in one thing. Then each head in turn works with its output for the donor.",
            icon=":material/edit:",
        )
        return
    state.switch("positions", "Tokens that take the donor's values", POSITIONS, format_func=WHERE.__getitem__)
    st.toggle("The other way: this text's outputs into the donor", key="patch_turned")
    pair = pair_of(clf, shown)
    assert pair is not None  # there is a donor
    mask, positions = state.mask(clf.present), state.view().positions
    aligned = None if pair.alignment is None else tuple(sorted(pair.alignment.items()))
    result = jobs.need(
        (*pair.key, str(clf.dtype), aligned),
        "Patching every head",
        lambda p, c: headviz.patch(
            clf, pair.text, pair.donor, positions=positions, alignment=pair.alignment, mask=mask, progress=p, cancel=c
        ),
    )
    if result is None:
        return
    show.finding(sentence(result))
    left, right = st.columns([5, 4], gap="large")
    with left:
        _grid(clf, result)
    with right:
        _alignment(result, pair.key)
    path_section(clf, pair, shown)


def pair_of(clf: Classifier, shown: Text) -> Pair | None:
    """The texts of the fields as they are now; None without a donor."""
    text, donor = (shown.text if shown.pair is None else (shown.text, shown.pair)), _donor(shown)
    if donor is None:
        return None
    if st.session_state.get("patch_turned"):
        text, donor = donor, text
    key = (*loaders.identity(clf), "patch", text, donor, state.mask(clf.present).hex, state.view().positions)
    return Pair(text, donor, key, st.session_state.get("patch_alignment_of", {}).get(key))


def _fields(shown: Text, demo: bool) -> None:
    if state.view().present:
        return
    if demo:
        st.button(
            "Draw a minimal pair", key="minimal_pair", icon=":material/casino:", on_click=_draw_pair, args=(shown,)
        )
        if texts := st.session_state.get(_REPLACED):
            st.button("My texts again", key="my_texts", icon=":material/undo:", on_click=_put_back, args=(texts,))
    boxes = st.columns(1 if shown.pair is None else 2)
    with boxes[0]:
        state.text("donor", "Donor", max_chars=LONGEST_TEXT, placeholder=shown.text)
    if shown.pair is not None:
        with boxes[1]:
            state.text("donor_pair", "Donor's pair (empty = as above)", max_chars=LONGEST_TEXT)


def _donor(shown: Text) -> Any:
    """The donor's texts; None while nothing is written."""
    view = state.view()
    if not view.donor.strip() and not view.donor_pair.strip():
        return None
    first = view.donor.strip() or shown.text
    return first if shown.pair is None else (first, view.donor_pair.strip() or shown.pair)


_REPLACED = "texts_replaced"  # the user's own texts, where a drawn pair took their place
_TEXTS = ("a", "b", "donor", "donor_pair")


def _put_back(texts: dict[str, str]) -> None:
    state.update(**texts)
    del st.session_state[_REPLACED]


def _draw_pair(shown: Text) -> None:
    """Another minimal pair of the example's ability, into all fields. The user's own texts are kept."""
    view = state.view()
    texts = {name: getattr(view, name) for name in _TEXTS}
    if any(texts.values()) and texts != st.session_state.get("pair_drawn"):
        st.session_state[_REPLACED] = texts
    number = st.session_state["pairs_drawn"] = st.session_state.get("pairs_drawn", 0) + 1
    names = list(PHENOMENA)
    name = shown.slice if shown.slice in names else names[number % len(names)]
    ((text, donor),) = minimal_pairs(name, 1, seed=number)
    texts = {"a": text.premise, "b": text.hypothesis, "donor": donor.premise, "donor_pair": donor.hypothesis}
    st.session_state["pair_drawn"] = texts
    state.update(**texts)


def sentence(patching: Patching) -> str:
    """Which head alone moves the answer most, and how far all of them do."""
    if not np.isfinite(patching.effect).any():
        return "Both texts have the same value of what is measured, so no head can move it."
    top = highest(np.abs(patching.effect))[0]
    direction, moved = f"from {patching.from_label} to {patching.to_label}", "the answer"
    if patching.from_label == patching.to_label:
        direction, moved = "to the donor's", f"the score of {patching.to_label}"
    share = percent(patching.effect[top])
    moves = f"{top} alone moves {moved} {share} of the way {direction}"
    if abs(patching.effect[top]) < LITTLE:
        moves = f"No head alone moves {moved} far: {top} most, {share} of the way {direction}"
    takes = "takes" if len(patching.positions) == 1 else "take"
    return f"{moves}; {len(patching.positions)} of {len(patching.tokens)} tokens {takes} the donor's values."


def _effects(key: str, clf: Classifier, effects: np.ndarray, tips: list[list[str]], look: Look, **more: Any) -> None:
    """A grid of effects, where a head is chosen. ``more`` goes to ``show.head_grid``."""
    show.head_grid(
        key,
        clf.present,
        effects,
        mask=state.mask(clf.present),
        selected=state.head(clf.present),
        on_select=state.select,
        tips={"of the way": tips},
        look=replace(look, numbers=state.view().numbers, digits=2),
        **more,
    )


def _grid(clf: Classifier, patching: Patching) -> None:
    scale = scale_for([*map(float, patching.effect.ravel()), LITTLE, -LITTLE], signed=True)  # a tiny effect looks tiny
    tips = [list(map(percent, row)) for row in patching.effect]
    _effects("patch_grid", clf, patching.effect, tips, Look("effect", scale=scale, file="headviz-patching"))
    show.note(
        f"0 = the answer stays the text's, 1 = it is the donor's; below 0 it moves away. "
        f"Measured: {patching.measured}.",
        formula=EFFECT,
        source="Activation patching, one head at a time; all later layers see the change.",
        key="patch_note",
    )


def _alignment(patching: Patching, pair_key: tuple[Any, ...]) -> None:
    """Which token of the donor stood for which; editable."""
    st.caption("Which token of the donor stands for which. Change a number to align them otherwise.")
    from pandas import DataFrame, Series

    rows = range(len(patching.tokens))
    columns = {
        "token": rows,
        "text": patching.tokens,
        "donor's token": Series(patching.alignment, dtype="Int64"),
        "donor": ["–" if j is None else patching.donor_tokens[j] for j in patching.alignment],
        "patched": [i in patching.positions for i in rows],
    }
    edited = st.data_editor(
        DataFrame(columns),
        hide_index=True,
        key="patch_alignment",
        height=360,
        disabled=["token", "text", "donor", "patched"],
        column_config={
            "donor's token": st.column_config.NumberColumn(
                min_value=0, max_value=len(patching.donor_tokens) - 1, step=1
            )
        },
    )
    alignment = alignment_of(edited["donor's token"].tolist())
    if alignment != alignment_of(patching.alignment):
        st.session_state["patch_alignment_of"] = {pair_key: alignment}
        st.rerun()


def alignment_of(column: Sequence[Any]) -> dict[int, int]:
    """Token of the text -> token of the donor, without the empty ones."""
    return {i: int(j) for i, j in enumerate(column) if str(j) not in ("None", "nan", "<NA>")}


# ---- many pairs

MOST_PAIRS = 200
FORMAT = (
    "Columns text and donor, and text_pair and donor_pair for models that compare two texts; or two columns whose "
    "cells are a text, or two texts with | between them."
)


def many_pairs(clf: Classifier, demo: bool) -> None:
    """What to patch, the grid of mean effects, and the heads that carry the difference."""
    if state.view().present:
        return
    with st.expander("Many pairs at once"):
        try:
            texts = _texts(demo)
        except UserError as error:
            refused(error)
            return
        if texts is None:
            return
        mask, positions = state.mask(clf.present), state.view().positions
        result = jobs.need(
            (*loaders.identity(clf), "patch pairs", tuple(texts), mask.hex, positions),
            f"Patching every head over {len(texts)} pairs",
            lambda p, c: headviz.patch_pairs(clf, texts, positions=positions, mask=mask, progress=p, cancel=c),
        )
        if result is not None:
            _draw_pairs(clf, result)


def _texts(demo: bool) -> list[tuple[Any, Any]] | None:
    """The pairs that are asked for; None while nothing is."""
    upload = st.file_uploader("A table of pairs", type=list(FORMATS), key="pairs_file", help=FORMAT)
    if upload is not None:
        texts = read_pairs(upload.getvalue(), upload.name.rsplit(".", 1)[-1].lower())
        if len(texts) > MOST_PAIRS:
            st.caption(f"The first {MOST_PAIRS} of {len(texts):,} pairs are used; the command has no such limit.")
        return texts[:MOST_PAIRS]
    if not demo:
        return None
    name = st.selectbox(
        f"or {DRAWN} minimal pairs of an ability", list(PHENOMENA), index=None, key="pairs_kind", width=320
    )
    return None if name is None else drawn_pairs(name)


def read_pairs(content: bytes, kind: str) -> list[tuple[Any, Any]]:
    """The pairs of an uploaded table, read as a task's files are."""
    from ....attribution.patching import pairs_of

    if kind not in FORMATS:
        raise TaskError(f"'{kind[:20]}' files cannot be read. Upload {', '.join(FORMATS)}.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"pairs.{kind}"
        replace_file(path, content)
        return pairs_of(read_table(path))


def pairs_sentence(patching: PatchingSet) -> str:
    """How many heads carry the difference, and which carries most."""
    significant, tested = int((patching.q_value < 0.05).sum()), int(np.isfinite(patching.mean).sum())
    top = patching.ranked()[0]
    interval = f"[{percent(patching.interval_low[top])}, {percent(patching.interval_high[top])}]"
    effect = f"{percent(patching.mean[top])} of the way {interval}, over {patching.n} pairs"
    if left_out := patching.same_answer + patching.small:
        effect += f"; {left_out} left out, whose answers hardly differ"
    if significant:
        move = f"{significant} of {tested} heads {'moves' if significant == 1 else 'move'} the answer (q < .05)"
    else:
        move = f"No head is shown to move the answer with all {tested} tested at once (q < .05)"
    return f"{move}. {top} has the largest effect: {effect}."


def _draw_pairs(clf: Classifier, patching: PatchingSet) -> None:
    show.finding(pairs_sentence(patching))
    tips = [
        ["–" if m != m else f"{percent(m)} [{percent(a)}, {percent(b)}]" for m, a, b in zip(*row, strict=True)]
        for row in zip(patching.mean, patching.interval_low, patching.interval_high, strict=True)
    ]
    left, right = st.columns([5, 4], gap="large")
    with left:
        _effects(
            "pairs_grid",
            clf,
            patching.mean,
            tips,
            Look("mean effect", file="headviz-patching-pairs"),
            marks=[HeadId(int(i), int(j)) for i, j in np.argwhere(patching.q_value < 0.05)],
            mark_name="q < .05",
            undecided=undecided(patching.interval_low, patching.interval_high),
        )
        show.note(
            "Mean over the pairs: 0 = the answer stays the text's, 1 = it is the donor's.",
            formula=EFFECT,
            source="Student's t over pairs; q by Benjamini and Hochberg over all heads.",
            key="pairs_note",
        )
    with right:
        table = heads_table(
            "pairs_table",
            patching.ranked(),
            "mean effect",
            patching.mean,
            (patching.interval_low, patching.interval_high),
            {"q": patching.q_value},
            caption="All heads, the largest mean effect first.",
        )
        show.table(table, record=patching.to_dict(), height=360)


# ---- the same as a call and as a command


def recipe(view: View, clf: Classifier, shown: Text, pair: Pair) -> tuple[str, str]:
    """Patching heads, or the paths between them once these have been asked for."""
    following, many = paths_asked(pair.key)
    many_pairs = following and many
    keywords: dict[str, Any] = {} if view.positions == ALL else {"positions": view.positions}
    options = dict(keywords)
    if pair.alignment is not None and not many_pairs:
        keywords["alignment"] = pair.alignment
        options["alignment"] = ",".join(f"{i}:{j}" for i, j in pair.alignment.items())
    lines = [f"text = {pair.text!r}", f"donor = {pair.donor!r}"]
    if many_pairs:
        texts = "((a.premise, a.hypothesis), (b.premise, b.hypothesis))"
        lines = [f"pairs = [{texts} for a, b in headviz.minimal_pairs({shown.slice!r}, {DRAWN})]"]
    if following:
        pairs = Code("pairs" if many else "[(text, donor)]")
        code = call("headviz.paths", CLF, pairs, **keywords, mask=MASK)
    else:
        code = call("headviz.patch", CLF, Code("text"), Code("donor"), **keywords, mask=MASK)
    lines += [f"result = {code}", PRINTED]
    all_options = (*text_options("text", pair.text), *text_options("donor", pair.donor), *options.items())
    python, line = recipe_of(view, clf, lines, "patch --paths" if following else "patch", all_options)
    return python, "" if many_pairs else line


def text_options(name: str, value: Any) -> Options:
    first, second = (value, None) if isinstance(value, str) else value
    return (name, first), (f"{name}-pair", second)

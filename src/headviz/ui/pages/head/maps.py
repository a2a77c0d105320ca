"""The parts of the One head page: one example's maps, linked or as arcs, and all maps of a layer."""

from __future__ import annotations

import time
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ....answers import ANSWERS
from ....attribution.arcs import PARTS, positions, strongest
from ....attribution.rules import order_kept
from ....display.figures import maps as charts_maps
from ....display.recipes import Code, call, command
from ....heads import HeadId, HeadMask
from ...parts import abilities, answers, reference
from ...parts.texts import Text
from ...shell import jobs, memo, memory, recipes, show, state
from ...shell import view_report as viewreport
from ...shell.view import LIMITS, View
from ...widgets.grid import Look
from ...widgets.maps import ORDERS, SCALES, Panel, linked_maps
from . import gallery, relation
from .relation import SOURCE

if TYPE_CHECKING:
    from ....attribution.maps import Maps
    from ....models.classifier import Classifier

FORMULA = r"\mathrm{Attr}(A)_{ij} = \int_0^1 \frac{\partial F}{\partial A_{ij}}\,\frac{dA_{ij}}{da}\,da"
ATTENTION = r"A = \mathrm{softmax}(QK^\top/\sqrt{d})"


def maps(clf: Classifier, shown: Text, mask: HeadMask, view: View) -> Maps | None:
    """Attention and attribution of every head for this text, first with few steps; None while there are none."""
    from .... import conductance
    from ....attribution.integration import maps_bytes, peak_bytes

    gold = view.target == "gold"
    key = (
        *memo.identity(clf),
        "maps",
        shown.text,
        shown.pair,
        mask.hex,
        view.target,
        view.rule,
        view.steps,
        shown.label,
    )

    early = False  # show the maps of few steps, which are held while the finer ones are computed
    if jobs.find(key) is None:
        tokens = len(clf.encode([shown.text], None if shown.pair is None else [shown.pair])[0])
        memory.make_room(peak_bytes(clf, tokens), f"a text of {tokens} tokens")
        early = memory.fits(peak_bytes(clf, tokens) + maps_bytes(clf, tokens))

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Maps:
        found: Maps = conductance(
            clf,
            shown.text,
            shown.pair,
            steps=view.steps or None,
            rule=view.rule,
            target=view.target,
            label=None if not gold or isinstance(shown.label, float) else shown.label,
            mask=mask if mask.off else None,
            cancel=cancel,
            progress=progress,
            rough=partial(_offer, key) if early else None,
        )
        return found

    return jobs.need_so_far(key, "Attributing all heads", work)


def _offer(key: Hashable, rough: Maps) -> None:
    """Show the maps of few steps to somebody who already waits."""
    job = jobs.find(key)
    if job is not None and time.monotonic() - job.began > jobs.PATIENCE:
        jobs.offer(key, rough)


def pick(present: HeadMask) -> HeadId:
    """The head looked at: the selected one, else the first that is there."""
    return state.head(present) or present.kept[0]


def chooser(present: HeadMask, chosen: HeadId, values: object, name: str) -> None:
    """A small grid to choose the head, and buttons with keys to step through all heads."""
    kept = present.kept
    at = kept.index(chosen) if chosen in kept else 0
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"### {show.plain(str(chosen))}", width="content")
        for label, step, letter in (("Previous", -1, "k"), ("Next", 1, "j")):
            other = kept[(at + step) % len(kept)]
            st.button(show.plain(label), key=f"head_{letter}", on_click=state.select, args=(other,), shortcut=letter)
    show.head_grid(
        "head_choice",
        present,
        values,
        mask=state.mask(present),
        selected=chosen,
        tips=abilities.look_tips(state.view(), present),
        carries=abilities.carried(state.view()),
        on_select=state.select,
        look=Look(name=name, width=20, compact=True, file="headviz-heads"),
    )


def controls(clf: Classifier, shown: Text) -> None:
    """Which connections, which class, how exactly."""
    from ....attribution.rules import RULES

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if shown.pair is not None:
            state.switch("arrows", "Connections", PARTS)
        targets = clf.answer.targets(clf.labels, shown.label is not None)
        state.choose("target", "Class explained", targets, width=170)
        with st.popover("More"):
            state.choose("rule", "Integration rule", list(RULES))
            state.number("steps", "Integration steps (0 = default)", *LIMITS["steps"])
            state.number("mass", "Arcs: share of the map that they carry, %", 10, 100)
        state.tick(
            "special", "[CLS], [SEP]", help="Show the special tokens, at the edge. Hiding them changes no value."
        )


def headline(found: Maps, chosen: HeadId) -> None:
    """This head in one sentence; then the model's answer, the class explained and the error."""
    show.finding(relation.said(found, chosen))
    told, answer = ANSWERS[found.job].told(found.probabilities, found.labels), ANSWERS[found.job]
    said = ", ".join(f"{name} {share:.2f}" if name else show.number(share) for name, share in told)
    unsure = answers.doubt(found.probabilities.tolist()) if answer.decides else ""
    about = f"Prediction: {said}{f' ({unsure})' if unsure else ''}. Class explained: {found.target_label}."
    error = found.error
    exact = "no error estimate with this rule"
    if error == error:
        exact = f"estimated integration error {100 * error:.1f} %: {order_kept(error)}"
    st.caption(show.plain(f"{about} {found.rule.capitalize()} rule, {found.steps} steps, {exact}."))
    for text in found.notes[found.truncated :]:  # the first note of a cut text repeats what the page says
        st.info(show.plain(text))
    if chosen in found.mask.off:
        off = f"{chosen} is switched off: its output does not reach the prediction, so its attribution is 0."
        st.info(show.plain(off))


def pictures(found: Maps, chosen: HeadId, view: View) -> None:
    """Attention and attribution side by side, as maps and as arcs."""
    part = view.arrows if view.arrows in PARTS and 1 in found.types else "all"
    rows, columns = positions(found.types, found.special, part, view.special)
    if not rows or not columns:
        st.info("No connection is left to show. Show the special tokens, or choose other connections.")
        return
    queries, keys = [found.tokens[i] for i in rows], [found.tokens[i] for i in columns]
    titles = {"maps": "Maps", "arcs": "Strongest connections", "layer": f"Layer {chosen.layer}", "gallery": "Gallery"}
    kind = view.picture if view.picture in titles else "maps"
    if not view.present:
        kind = state.switch(
            "picture", "Picture", list(titles), format_func=titles.__getitem__, label_visibility="collapsed"
        )
    if kind == "gallery":
        gallery.section(found, chosen, rows, columns, view.present)
        return
    if kind == "maps":
        _linked(found, chosen, view, rows, columns)
        return
    places = [st.container(), st.container()] if kind == "layer" else st.columns(2)
    for place, name in zip(places, ("attention", "attribution"), strict=True):
        signed = name == "attribution"
        layer = getattr(found, name)[chosen.layer][:, rows][:, :, columns]
        if kind == "arcs":
            values = layer[chosen.head]
            lines = strongest(values, view.mass / 100)
            figure, wide = charts_maps.arcs(lines, queries, keys, signed=signed), ""
            total = float(np.abs(np.nan_to_num(values)).sum())
            held = 100 * sum(abs(line.value) for line in lines) / total if total else 0.0
            many = "strongest connection" if len(lines) == 1 else f"{len(lines)} strongest connections"
            caption = (
                "Point at a token to see its connections alone. "
                f"The {many}, from query to key: {held:.0f} % of the {name} shown."
                + (" Blue speaks for the class, orange against it." if signed else "")
            )
            if not total:
                caption = f"There is nothing to draw: the {name} is 0 everywhere."
        else:
            names = [str(HeadId(chosen.layer, h)) for h in range(found.mask.num_heads)]
            figure, wide = charts_maps.layer(layer, names, name, signed, chosen.head), "40"
            caption = (
                f"The {name} of all heads of layer {chosen.layer} on one colour scale, logarithmic away from zero: "
                "queries down, keys across." + (" Σ is the sum of all sizes." if signed else "")
            )
        with place:
            st.subheader(show.plain(name.capitalize()))
            formula = FORMULA if signed else ATTENTION
            show.figure(figure, f"{kind}_{name}", caption, formula=formula, source=SOURCE, wide=wide)


def _linked(found: Maps, chosen: HeadId, view: View, rows: list[int], columns: list[int]) -> None:
    """Both maps of one head with one cross-hair; the special tokens stand at the edge."""
    queries, keys = [found.tokens[i] for i in rows], [found.tokens[i] for i in columns]
    panels = []
    for name in ("attention", "attribution"):
        values, signed = getattr(found, name)[chosen][rows][:, columns], name == "attribution"
        caption = _caption(name, chosen, found, len(columns) < len(found.tokens))
        panels.append(Panel(name, values, signed, caption))
        viewreport.note(
            "figure", partial(charts_maps.matrix, values, queries, keys, name, signed=signed, root=True), caption
        )
    linked_maps(
        "maps",
        panels,
        queries,
        keys,
        ([found.special[i] for i in rows], [found.special[i] for i in columns]),
        label=str(chosen),
        scale=view.scale if view.scale in SCALES else SCALES[0],
        order=view.places if view.places in ORDERS else ORDERS[0],
        on_look=lambda scale, order: state.update(scale=scale, places=order),
    )
    show.note(
        "Queries down, keys across. Drag over a part to zoom in, double click for the whole; a click keeps a cell.",
        formula=rf"{ATTENTION} \qquad {FORMULA}",
        source=SOURCE,
        saves=False,
    )


def _caption(name: str, chosen: HeadId, found: Maps, part: bool) -> str:
    if name == "attention":
        rest = "; some keys are hidden" if part else ""
        return f"Where {chosen} looks. Each row is a query and sums to 1 over all keys{rest}."
    return f"Which connections speak for (blue) or against (orange) '{found.target_label}'."


def recipe(view: View, clf: Classifier, shown: Text, chosen: HeadId) -> tuple[str, str]:
    """The maps from the library and from the command line."""
    mask = state.mask(clf.present)
    changed: dict[str, Any] = {
        name: value
        for name, value, default in (
            ("steps", view.steps, 0),
            ("rule", view.rule, "richardson"),
            ("target", view.target, "predicted"),
        )
        if value != default
    }
    words = changed | ({"label": shown.label} if view.target == "gold" else {})
    filled, told = recipes.model_filled(view, reference.of_model(mask))
    lines = [recipes.HEADVIZ, recipes.load(view), *filled]
    if mask.off:
        lines.append(recipes.mask_of(mask))
        words["mask"] = Code("mask")
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    place = f"[{chosen.layer}, {chosen.head}]"
    lines.append(f"maps = {call('headviz.conductance', Code('clf'), *texts, **words)}")
    lines.append(f"maps.attention{place}, maps.attribution{place}")
    options = (
        *recipes.model_options(view),
        ("text", shown.text),
        ("text-pair", shown.pair),
        *changed.items(),
        ("label", shown.label if view.target == "gold" else None),
        *recipes.mask_options(mask),
        *told,
        ("out", "maps.npz"),
    )
    return "\n".join(lines), command("conductance", options)

"""The One head page's parts: maps of one example, as heatmaps, arcs, a scatter, and its whole layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ....attribution.arcs import PARTS, positions, strongest
from ....charts import maps as charts_maps
from ....heads import HeadId, HeadMask
from ....recipes.structure import Call, Command, Item, Let, Name, Recipe, Shown
from ...parts.texts import Text
from ...shell import jobs, recipes, show, state
from ...shell.view import View
from ...widgets.grid import Look, head_grid

if TYPE_CHECKING:
    from ....attribution.maps import Maps
    from ....models.classifier import Classifier

FORMULA = r"\mathrm{Attr}(A)_{ij} = \int_0^1 \frac{\partial F}{\partial A_{ij}}\,\frac{dA_{ij}}{da}\,da"
ATTENTION = r"A = \mathrm{softmax}(QK^\top/\sqrt{d})"
SOURCE = (
    "Neuron conductance of the attention map: word embeddings go from padding to the input, F is the logit of the "
    "target class. Rows are queries, columns keys. *Integrated Gradients for Structured Pruning on BERT*, §5.2.1."
)


def maps(clf: Classifier, shown: Text, mask: HeadMask, view: View) -> Maps | None:
    """Attention and attribution of every head for this text, or None while they are computed."""
    from .... import conductance
    from ....attribution.rules import DEFAULT_STEPS

    steps = view.steps or DEFAULT_STEPS
    gold = view.target == "gold"
    key = (
        clf.digest,
        str(clf.dtype),
        "maps",
        shown.text,
        shown.pair,
        mask.hex,
        view.target,
        view.rule,
        steps,
        shown.label,
    )

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Maps:
        found: Maps = conductance(
            clf,
            shown.text,
            shown.pair,
            steps=steps,
            rule=view.rule,
            target=view.target,
            label=shown.label if gold else None,  # type: ignore[arg-type]
            mask=mask if mask.off else None,
            cancel=cancel,
        )
        return found

    return jobs.need(key, "Attributing all heads", work)


LEGIBLE = ((24, "32"), (34, "48"), (60, "64"))  # up to so many tokens -> the least width in rem that names them


def width_for(tokens: int) -> str:
    """The width below which a map of so many tokens scrolls, as their names would touch."""
    return next((width for most, width in LEGIBLE if tokens <= most), "96")


def pick(present: HeadMask) -> HeadId:
    """The head looked at: the selected one, else the first that is there."""
    return state.head(present) or present.kept[0]


def chooser(present: HeadMask, chosen: HeadId, values: object, name: str) -> None:
    """A small grid to change the head, and the keyboard's way through all of them."""
    kept = present.kept
    at = kept.index(chosen) if chosen in kept else 0
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for sign, step, letter, text in (("‹", -1, "k", "Previous head"), ("›", 1, "j", "Next head")):
            other = kept[(at + step) % len(kept)]
            st.button(sign, key=f"head_{letter}", on_click=_go, args=(other,), help=text, shortcut=letter)
        st.markdown(f"### {show.plain(str(chosen))}", width="content")
    head_grid(
        "head_choice",
        present,
        values,
        mask=state.mask(present),
        selected=chosen,
        on_select=_go,
        look=Look(name=name, width=20, compact=True, file="headviz-heads"),
    )


def _go(head: HeadId) -> None:
    state.update(head=head.dotted)


def controls(clf: Classifier, shown: Text) -> None:
    """Which connections, which class, how exactly."""
    from ....attribution.rules import RULES

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if shown.pair is not None:
            state.switch("arrows", "Connections", PARTS)
        targets = ["predicted", *(["gold"] if shown.label is not None and not clf.is_regression else [])]
        state.choose("target", "Class explained", [*targets, *([] if clf.is_regression else clf.labels)], width=170)
        with st.popover("More"):
            state.choose("rule", "Integration rule", list(RULES))
            state.number("steps", "Integration steps (0 = default)", 0, 400)
            state.number("mass", "Arcs: share of the map's mass, %", 10, 100)
        state.tick("special", "[CLS], [SEP]", help="Show the special tokens. Hiding them changes no value.")


def headline(found: Maps, chosen: HeadId) -> None:
    """This head in one sentence, what the model says, what is explained and how exact it is."""
    rho = _coefficients(found, chosen)["spearman"]
    show.finding(verdict(chosen, rho, found.target_label))
    best = found.predicted
    said = (
        f"{found.labels[best]} {found.probabilities[best]:.2f}"
        if len(found.labels) > 1
        else show.number(float(found.logits[0]))
    )
    about = f"Prediction: {said}. Explained: {found.target_label}."
    error = found.error
    exact = "no error estimate with this rule" if error != error else f"estimated integration error {100 * error:.1f} %"
    st.caption(show.plain(f"{about} {found.rule.capitalize()} rule, {found.steps} steps, {exact}."))
    for text in found.notes[found.truncated :]:  # the first says that the text was cut; the page says how
        st.info(show.plain(text))
    if chosen in found.mask.off:
        st.info(
            show.plain(
                f"{chosen} is switched off: what it attends to does not reach the prediction, so its attribution is 0."
            )
        )


def pictures(found: Maps, chosen: HeadId, view: View) -> None:
    """Attention and attribution side by side, as maps and as arcs."""
    part = view.arrows if view.arrows in PARTS and 1 in found.types else "all"
    rows, columns = positions(found.types, found.special, part, view.special)
    if not rows or not columns:
        st.info("No connection is left. Show the special tokens, or choose another part.")
        return
    queries, keys = [found.tokens[i] for i in rows], [found.tokens[i] for i in columns]
    chosen_maps = {
        "attention": found.attention[chosen][np.ix_(rows, columns)],
        "attribution": found.attribution[chosen][np.ix_(rows, columns)],
    }
    titles = {"maps": "Maps", "arcs": "Strongest connections", "layer": f"Layer {chosen.layer}"}
    shown = view.picture if view.picture in titles else "maps"
    if not view.present:
        shown = state.switch(
            "picture", "Picture", list(titles), format_func=titles.__getitem__, label_visibility="collapsed"
        )
    if shown == "maps":
        for box, (name, values) in zip(st.columns(2), chosen_maps.items(), strict=True):
            with box:
                st.subheader(show.plain(name.capitalize()))
                show.figure(
                    charts_maps.matrix(values, queries, keys, name, signed=name == "attribution"),
                    f"map_{name}",
                    _captions(name, chosen, found, len(columns) < len(found.tokens)),
                    formula=FORMULA if name == "attribution" else ATTENTION,
                    source=SOURCE,
                    wide=width_for(max(len(queries), len(keys))),
                )
    elif shown == "arcs":
        for box, (name, values) in zip(st.columns(2), chosen_maps.items(), strict=True):
            with box:
                st.subheader(show.plain(name.capitalize()))
                lines = strongest(values, view.mass / 100)
                show.figure(
                    charts_maps.arcs(lines, queries, keys, signed=name == "attribution"),
                    f"arcs_{name}",
                    f"The {len(lines)} strongest connections, from query to key; together at most {view.mass} % of the "
                    f"{name}'s mass."
                    + (" Blue speaks for the class, orange against it." if name == "attribution" else ""),
                    formula=FORMULA if name == "attribution" else ATTENTION,
                    source=SOURCE,
                )
    else:
        names = [str(HeadId(chosen.layer, h)) for h in range(found.mask.num_heads)]
        for name, values in (("attention", found.attention), ("attribution", found.attribution)):
            st.subheader(show.plain(name.capitalize()))
            show.figure(
                charts_maps.layer(
                    values[chosen.layer][:, rows][:, :, columns], names, name == "attribution", chosen.head
                ),
                f"layer_{name}",
                f"The {name} maps of all heads of layer {chosen.layer} on one colour scale, queries down, keys across.",
                formula=FORMULA if name == "attribution" else ATTENTION,
                source=SOURCE,
                wide="40",
            )


def _captions(name: str, chosen: HeadId, found: Maps, part: bool) -> str:
    if name == "attention":
        rest = "; it sums to 1 over all keys, of which a part is shown" if part else " and sums to 1 over all keys"
        return f"Where {chosen} looks: each row is a query{rest}."
    return f"What of it speaks for (blue) or against (orange) '{found.target_label}'."


def _coefficients(found: Maps, chosen: HeadId) -> dict[str, float]:
    """How well attention and attribution of all connections agree, by coefficient."""
    from ....scores.correlation import correlations

    a, b = found.attention[chosen].ravel(), found.attribution[chosen].ravel()
    return {name: float(values[0]) for name, values in correlations(a[None], b[None]).items()}


def relation(found: Maps, chosen: HeadId) -> None:
    """The scatter of attention against attribution, with its coefficients."""
    a, b = found.attention[chosen].ravel(), found.attribution[chosen].ravel()
    r = _coefficients(found, chosen)
    names = [f"{q} → {k}" for q in found.tokens for k in found.tokens]
    left, right = st.columns([3, 1], gap="large")
    with left:
        show.figure(
            charts_maps.scatter(a, b, names, "attention", "attribution"),
            "relation",
            f"Each point is one connection of {chosen}, all {len(a)} of them: its attention and its attribution.",
            formula=r"\rho = \mathrm{Spearman}(A, \mathrm{Attr}(A))",
            source=SOURCE,
        )
    with right:
        for name, told in COEFFICIENTS.items():
            st.metric(show.plain(name.capitalize()), show.plain(coefficient(r[name])), help=show.plain(told))


COEFFICIENTS = {
    "spearman": "Correlation of the ranks over all connections of this example",
    "kendall": "How many more pairs of connections are in the same order than in the opposite one, as a share",
    "pearson": "Linear correlation of the values; a few strong connections can decide it",
}


def coefficient(r: float) -> str:
    """A correlation: its size matters, not its first digits, so all have three decimals."""
    return "–" if r != r else f"{r:+.3f}".replace("-", "−")


def verdict(chosen: HeadId, rho: float, target: str) -> str:
    """The coefficient in words."""
    if rho != rho:
        return f"One of the two maps of {chosen} is constant, so their correlation is not defined."
    size = f"Spearman {coefficient(rho)}"
    if abs(rho) < 0.2:
        return f"Where {chosen} looks says little about what it contributes here ({size})."
    way = "for" if rho > 0 else "against"
    much = "clearly" if abs(rho) >= 0.5 else "somewhat"
    return f"The more {chosen} looks at a token, the more this {much} speaks {way} '{target}' ({size})."


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
    lines: list[Any] = [recipes.HEADVIZ, recipes.load(view)]
    if mask.off:
        lines.append(recipes.mask_of(mask))
        words["mask"] = Name("mask")
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    lines.append(Let("maps", Call("headviz.conductance", (Name("clf"), *texts), words)))
    lines.append(Shown(tuple(Item(Name(f"maps.{kind}"), chosen) for kind in ("attention", "attribution"))))
    options = (
        *recipes.model_given(view),
        ("text", shown.text),
        ("text-pair", shown.pair),
        *changed.items(),
        *recipes.mask_given(mask),
        ("out", "maps.npz"),
    )
    return Recipe(tuple(lines), Command(("conductance",), options)).written()

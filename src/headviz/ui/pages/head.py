"""The parts of the One head page: one example's maps, those of many heads, and the head's part in the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

import headviz

from ...attribution.maps import PARTS, positions, strongest
from ...attribution.rules import AUTO, RULES, order_kept
from ...display.figures import bars, maps
from ...display.numbers import number, signed
from ...display.recipes import Code, call, command
from ...display.sentences import doubt
from ...display.table import Column, Table
from ...heads import HeadId, HeadMask, highest, ordered
from ..parts import abilities, measure, scoring
from ..parts.texts import Text
from ..shell import jobs, loaders, recipes, show, state
from ..shell.messages import plain
from ..shell.view import View
from ..widgets.grid import Look
from ..widgets.maps import ORDERS, SCALES, Panel, linked_maps

if TYPE_CHECKING:
    from ...answers.answer import Answer
    from ...attribution.contributions import Contributions
    from ...attribution.maps import Maps
    from ...models.classifier import Classifier

# ---- many heads at once

MOST = 24  # maps in one picture
# what a head may look at -> whether a key is that for a query, by the places of both
PATTERNS: Mapping[str, Callable[[Maps, np.ndarray, np.ndarray], np.ndarray]] = {
    "the token before": lambda maps, query, key: key == query - 1,
    "the token after": lambda maps, query, key: key == query + 1,
    "itself": lambda maps, query, key: key == query,
    "the same word elsewhere": lambda maps, query, key: _same_word(maps, query, key) & (key != query),
    "[SEP]": lambda maps, query, key: np.array(maps.special, dtype=bool)[key] & (key > 0),
    "[CLS]": lambda maps, query, key: key == 0,
    "the other sentence": lambda maps, query, key: np.array(maps.types)[key] != np.array(maps.types)[query],
}
ORDER, ABILITY = "cost or chosen score", "heads that carry an ability"
TITLE = 22  # characters that fit above a map
SHARE = "the number is that share of its attention, mean over the words"
SCORE = "the number is that score"


def looks_at(maps: Maps, pattern: str) -> np.ndarray:
    """[L, H] the share of attention that goes where the pattern says, mean over the words of the text."""
    place = np.arange(len(maps.tokens))
    return _share(maps, PATTERNS[pattern](maps, place[:, None], place[None, :]))


def looks_at_word(maps: Maps, word: str) -> np.ndarray:
    """[L, H] the share of attention that goes to a word of the text; 0 everywhere if the text does not have it."""
    return _share(maps, _is_word(maps, word))


def _same_word(maps: Maps, query: np.ndarray, key: np.ndarray) -> np.ndarray:
    words = np.array([token.casefold() for token in maps.tokens])
    same: np.ndarray = words[key] == words[query]
    return same


def _is_word(maps: Maps, word: str) -> np.ndarray:
    """Which tokens are this word, or one of these."""
    words = word.casefold().split()
    return np.array([token.casefold().removeprefix("##") in words for token in maps.tokens])


def _share(maps: Maps, where: np.ndarray) -> np.ndarray:
    """[L, H] the share of attention on the keys that are true in ``where``, [T, T] or [T]; mean over the words."""
    words = ~np.array(maps.special, dtype=bool)
    queries = words if words.any() else slice(None)
    weights = np.broadcast_to(where, maps.attention.shape[-2:])[queries]
    values: np.ndarray = (maps.attention[:, :, queries] * weights).sum(axis=-1).mean(axis=-1)
    return values


def gallery(result: Maps, chosen: HeadId, rows: Sequence[int], columns: Sequence[int], present: bool) -> None:
    """The controls and the picture; a presentation shows the picture alone."""
    word, order, which_heads, kind = "", next(iter(PATTERNS)), "all heads", "attention"
    if not present:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            word = st.text_input("Heads that look at", key="gallery_word", placeholder="a word, such as not", width=190)
            orders = [*PATTERNS, ORDER, ABILITY]
            order = st.selectbox("Sorted by", orders, key="gallery_by", width=230, disabled=bool(word.strip()))
            which_heads = st.segmented_control(
                "Heads", ("all heads", "this layer"), default="all heads", required=True, key="gallery_heads"
            )
            kind = st.segmented_control(
                "Maps", ("attention", "attribution"), default="attention", required=True, key="gallery_kind"
            )
    values, caption = _values(result, word.strip(), order)
    ranked = [h for h in highest(values) if which_heads == "all heads" or h.layer == chosen.layer]
    heads, complaint = ranked[:MOST], missing(result, word.strip())
    if complaint or not heads:
        st.info(plain(complaint or "No head has a value in this order. Choose another one."))
        return
    table = result.attention if kind == "attention" else result.attribution
    small = np.stack([table[h][np.ix_(rows, columns)] for h in heads])
    roles = abilities.looks(state.view()) | abilities.carried(state.view())  # an ability before where a head looks
    names = [title(f"{h} {values[h]:.2f} {roles.get(h, '').partition(' (')[0]}".strip()) for h in heads]
    show.figure(
        maps.head_maps(small, names, kind, kind == "attribution", heads.index(chosen) if chosen in heads else None),
        f"gallery_{kind}",
        f"The {kind} of {how_many(len(heads), len(ranked))} on one colour scale, {caption}.",
    )


def how_many(shown: int, count: int) -> str:
    return f"{shown} of {count} heads" if shown < count else "the one head" if count == 1 else f"all {count} heads"


def title(text: str) -> str:
    """What fits above a map."""
    return text if len(text) <= TITLE else text[: TITLE - 1].rstrip() + "…"


def missing(maps: Maps, word: str) -> str:
    """The message on a word that is no token of the text; empty for others."""
    if not word.split() or _is_word(maps, word).any():
        return ""
    return f"This text has no token “{word[:30]}”. Search for one of: {', '.join(dict.fromkeys(maps.tokens))}."


def _values(maps: Maps, word: str, order: str) -> tuple[np.ndarray, str]:
    """What the heads are sorted by, and its words in the caption."""
    if word:
        return looks_at_word(maps, word), f"those first that look most at “{word[:30]}”; {SHARE}"
    if order in PATTERNS:
        return looks_at(maps, order), f"those first that look most at {order}; {SHARE}"
    table = scoring.ordering(state.view())
    values = np.full(maps.attention.shape[:2], np.nan)
    if table is None:
        return values, ""
    if order == ORDER:
        return table.values, f"the highest by {table.score} first; {SCORE}"
    for head in abilities.carried(state.view()):
        values[head] = table.values[head]
    return values, f"only heads that carry an ability, the highest by {table.score} first; {SCORE}"


# ---- one head's part in the answer

SOURCE = (
    "Neuron conductance of the attention map: word embeddings go from padding to the input, F is the logit of the "
    "target class. Rows are queries, columns keys. “Integrated Gradients for Structured Pruning on BERT”, §5.2.1."
)
COEFFICIENTS = {
    "spearman": "Agreement of the two orders. Sensitive to the many connections near zero, whose order is noise.",
    "kendall": "Pairs in the same order minus pairs in the opposite order. As sensitive to those near zero.",
    "pearson": "Linear agreement of the values. A few strong connections can decide it.",
}
STRONGEST, PART = 5, 0.01  # connections that the page's first sentence is about: so many, or this part of them
MINOR = 0.1  # of an even share: a head with less hardly takes part
POINTS = 400  # connections that are drawn one by one


def sentence(maps: Maps, chosen: HeadId) -> str:
    """The page's first sentence. Where the head hardly moves the answer, it says that and nothing else."""
    whole, _, share, even = weight(maps, chosen)
    if chosen in maps.mask.off:
        return f"{chosen} is switched off: its output does not reach the prediction, so its attribution is 0."
    if not whole and not share:
        return verdict(chosen, maps.attention[chosen], maps.attribution[chosen])
    moved = f"moves '{maps.target_label}' by {signed(whole, 2)}"
    carried = f"{_percent(share)} of all heads' attribution (an even share is {_percent(even)})"
    if share < MINOR * even:
        return f"{chosen} hardly takes part in this answer: it {moved} and carries {carried}."
    strongest_connections = verdict(chosen, maps.attention[chosen], maps.attribution[chosen])
    return f"{strongest_connections} In all its attribution {moved}, with {carried}."


def weight(maps: Maps, chosen: HeadId) -> tuple[float, float, float, float]:
    """The sum of a head's attribution; its share of its layer's and of the model's sizes; and an even share."""
    sizes = np.array([np.nansum(np.abs(layer), axis=(1, 2), dtype=float) for layer in maps.attribution])
    of_layer, of_model = (
        float(sizes[chosen] / total) if total else 0.0 for total in (sizes[chosen.layer].sum(), sizes.sum())
    )
    return float(maps.attribution[chosen].sum(dtype=float)), of_layer, of_model, 1 / max(1, len(maps.mask.kept))


def verdict(chosen: HeadId, attention: np.ndarray, attribution: np.ndarray) -> str:
    """How much of a head's attribution lies on the connections that it attends to most."""
    size, total = np.abs(attribution).ravel(), float(np.abs(attribution).sum())
    if not total:
        return f"{chosen} contributes nothing to this answer: its attribution is 0 everywhere."
    k = min(max(STRONGEST, round(PART * size.size)), size.size)
    share = float(size[np.argsort(-attention.ravel(), kind="stable")[:k]].sum()) / total
    return (
        f"The {k:,} connections that {chosen} attends to most carry {_percent(share)} of its attribution; "
        f"{k:,} random ones would carry {_percent(k / size.size)}."
    )


def relation(result: Maps, chosen: HeadId) -> None:
    """The scatter of attention against attribution, the head's weight, and the coefficients."""
    a, b = result.attention[chosen].ravel(), result.attribution[chosen].ravel()
    shown = points_drawn(a, b)
    caption = (
        f"Each of the {len(shown):,} points is one connection of {chosen}, with its attention and its attribution."
    )
    if len(shown) < a.size:
        near = " and lie near zero" if b.any() else ""  # of a head that is off every attribution is zero
        caption += f" The other {a.size - len(shown):,} are weaker{near}."
    left, right = st.columns([3, 1], gap="large")
    with left:
        width = len(result.tokens)
        show.figure(
            maps.scatter(
                a[shown],
                b[shown],
                [f"{result.tokens[i // width]} → {result.tokens[i % width]}" for i in shown],
                "attention",
                "attribution",
            ),
            "relation",
            caption,
            formula=r"\rho = \mathrm{Spearman}(A, \mathrm{Attr}(A))",
            source=SOURCE,
        )
    with right:
        whole, layer, model, _ = weight(result, chosen)
        st.metric("Total attribution", plain(signed(whole, 2)))
        st.caption(plain(f"By size {_percent(layer)} of its layer, {_percent(model)} of the model."))
        for name, value in coefficients(result, chosen).items():
            st.metric(plain(name.capitalize()), plain(coefficient(value)))
            st.caption(plain(COEFFICIENTS[name]))


def points_drawn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The places of the points to draw: all, or those that are the largest in either direction."""
    if a.size <= POINTS:
        return np.arange(a.size)
    return np.unique([np.argsort(-np.abs(values), kind="stable")[: POINTS // 2] for values in (a, b)])


def coefficients(maps: Maps, chosen: HeadId) -> dict[str, float]:
    """How well attention and attribution of all connections agree, by coefficient."""
    from ...scores.map_values import correlations

    a, b = maps.attention[chosen].ravel(), maps.attribution[chosen].ravel()
    return {name: float(values[0]) for name, values in correlations(a[None], b[None]).items()}


def coefficient(r: float) -> str:
    """A correlation with three decimals."""
    return "–" if r != r else f"{r:+.3f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{number(100 * share, 2)} %"


# ---- the maps

FORMULA = r"\mathrm{Attr}(A)_{ij} = \int_0^1 \frac{\partial F}{\partial A_{ij}}\,\frac{dA_{ij}}{da}\,da"
ATTENTION = r"A = \mathrm{softmax}(QK^\top/\sqrt{d})"


def maps_of(clf: Classifier, shown: Text, mask: HeadMask, view: View) -> Maps | None:
    """Attention and attribution of every head for this text, first with few steps; None while there are none."""
    from ...attribution.integration import maps_bytes, peak_bytes

    options = (view.target, view.word, view.rule, view.steps, shown.label, view.exact)
    key = (*loaders.identity(clf), "maps", shown.text, shown.pair, mask.hex, *options)
    early = False  # show the maps of few steps, which are held while the finer ones are computed
    if jobs.find(key) is None:
        tokens = len(clf.encode([shown.text], None if shown.pair is None else [shown.pair])[0])
        loaders.make_room(peak_bytes(clf, tokens), f"a text of {tokens} tokens")
        early = loaders.fits(peak_bytes(clf, tokens) + maps_bytes(clf, tokens))

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Maps:
        return headviz.conductance(
            clf,
            shown.text,
            shown.pair,
            steps=view.steps or None,
            rule=view.rule,
            precision="float32" if view.exact else AUTO,
            target=view.target,
            word=word_of(clf, shown, view),
            label=shown.label if view.target == "gold" and not isinstance(shown.label, float) else None,
            mask=mask if mask.off else None,
            cancel=cancel,
            progress=progress,
            rough=partial(_offer, key) if early else None,
        )

    return jobs.need_so_far(key, "Attributing all heads", work)


def word_of(clf: Classifier, shown: Text, view: View) -> int | None:
    """The word that is explained; None for all of them."""
    return view.word if 0 <= view.word < len(clf.answer.words(shown.text)) else None


def _offer(key: Hashable, rough: Maps) -> None:
    """Show the maps of few steps to somebody who already waits."""
    if (job := jobs.find(key)) is not None and time.monotonic() - job.began > jobs.PATIENCE:
        jobs.offer(key, rough)


def pick(present: HeadMask) -> HeadId:
    """The head looked at: the selected one, else the first that is there."""
    return state.head(present) or present.kept[0]


def chooser(present: HeadMask, chosen: HeadId, values: object, name: str) -> None:
    """A small grid to choose the head, and buttons with keys to step through all heads."""
    kept = present.kept
    place = kept.index(chosen) if chosen in kept else 0
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"### {plain(str(chosen))}", width="content")
        for label, step, letter in (("Previous", -1, "k"), ("Next", 1, "j")):
            other = kept[(place + step) % len(kept)]
            st.button(plain(label), key=f"head_{letter}", on_click=state.select, args=(other,), shortcut=letter)
    show.head_grid(
        "head_choice",
        present,
        values,
        mask=state.mask(present),
        selected=chosen,
        tips=abilities.tips(state.view(), present),
        on_select=state.select,
        look=Look(name=name, width=20, compact=True, file="headviz-heads"),
    )


def controls(clf: Classifier, shown: Text) -> None:
    """Which connections, which class, how exactly."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if shown.pair is not None:
            state.switch("arrows", "Connections", PARTS)
        targets = clf.answer.targets(clf.labels, shown.label is not None)
        state.choose("target", plain(f"{clf.answer.named[0].capitalize()} explained"), targets, width=170)
        if words := clf.answer.words(shown.text):
            names = {-1: "all words", **{i: f"{i}: {word}" for i, word in enumerate(words)}}
            state.choose("word", "Word explained", list(names), width=170, format_func=names.__getitem__)
        with st.popover("More"):
            state.choose("rule", "Integration rule", list(RULES))
            state.number("steps", "Integration steps (0 = default)")
            state.number("mass", "Arcs: share of the map that they carry, %")
        state.tick(
            "special", "[CLS], [SEP]", help="Show the special tokens, at the edge. Hiding them changes no value."
        )


def headline(maps: Maps, chosen: HeadId, answer: Answer) -> None:
    """This head in one sentence; then the model's answer, the class explained and the error."""
    show.finding(sentence(maps, chosen))
    shares = answer.shares(maps.probabilities, maps.labels)
    prediction = ", ".join(f"{name} {share:.2f}" if name else number(share) for name, share in shares)
    if answer.decides and (unsure := doubt(maps.probabilities.tolist())):
        prediction += f" ({unsure})"
    explained = f"{answer.named[0].capitalize()} explained" if len(maps.labels) > 1 else "Explained"
    about = f"Prediction: {prediction}. {explained}: {maps.target_label}."
    error, precision = maps.error, "no error estimate with this rule"
    if error == error:
        precision = f"estimated integration error {100 * error:.1f} %: {order_kept(error)}"
    details = [f"{maps.rule.capitalize()} rule, {maps.steps} steps, {precision}."]
    for text in maps.notes[maps.truncated :]:  # the first note of a cut text repeats what the page says
        details.append(f"{text[0].upper()}{text[1:]}.")
    show.note(about, more=details, key="head_about")


def pictures(result: Maps, chosen: HeadId, view: View) -> None:
    """Attention and attribution side by side, as maps and as arcs."""
    part = view.arrows if view.arrows in PARTS and 1 in result.types else "all"
    rows, columns = positions(result.types, result.special, part, view.special)
    if not rows or not columns:
        st.info("No connection is left to show. Show the special tokens, or choose other connections.")
        return
    titles = {"maps": "Maps", "arcs": "Strongest connections", "layer": f"Layer {chosen.layer}", "gallery": "Gallery"}
    kind = view.picture if view.picture in titles else "maps"
    if not view.present:
        kind = state.switch(
            "picture", "Picture", list(titles), format_func=titles.__getitem__, label_visibility="collapsed"
        )
    if kind == "gallery":
        gallery(result, chosen, rows, columns, view.present)
        return
    if kind == "maps":
        _linked(result, chosen, view, rows, columns)
        return
    queries, keys = [result.tokens[i] for i in rows], [result.tokens[i] for i in columns]
    places = [st.container(), st.container()] if kind == "layer" else st.columns(2)
    for place, name in zip(places, ("attention", "attribution"), strict=True):
        signed = name == "attribution"
        layer = getattr(result, name)[chosen.layer][:, rows][:, :, columns]
        if kind == "arcs":
            values = layer[chosen.head]
            lines = strongest(values, view.mass / 100)
            figure = maps.arcs(lines, queries, keys, signed=signed)
            caption = f"There is nothing to draw: the {name} is 0 everywhere."
            if total := float(np.abs(np.nan_to_num(values)).sum()):
                percent = 100 * sum(abs(line.value) for line in lines) / total
                count = "strongest connection" if len(lines) == 1 else f"{len(lines)} strongest connections"
                caption = (
                    "Point at a token to see its connections alone. "
                    f"The {count}, from query to key: {percent:.0f} % of the {name} shown."
                    + (" Blue speaks for the class, orange against it." if signed else "")
                )
        else:
            names = [str(HeadId(chosen.layer, h)) for h in range(result.mask.num_heads)]
            figure = maps.head_maps(layer, names, name, signed, chosen.head)
            caption = (
                f"The {name} of all heads of layer {chosen.layer} on one colour scale, logarithmic away from zero: "
                "queries down, keys across." + (" Σ is the sum of all sizes." if signed else "")
            )
        with place:
            st.subheader(plain(name.capitalize()))
            formula = FORMULA if signed else ATTENTION
            show.figure(figure, f"{kind}_{name}", caption, formula=formula, source=SOURCE)


def _linked(result: Maps, chosen: HeadId, view: View, rows: list[int], columns: list[int]) -> None:
    """Both maps of one head with one cross-hair; the special tokens stand at the edge."""
    queries, keys = [result.tokens[i] for i in rows], [result.tokens[i] for i in columns]
    panels = []
    for name in ("attention", "attribution"):
        values, signed = getattr(result, name)[chosen][rows][:, columns], name == "attribution"
        caption = _caption(name, chosen, result, len(columns) < len(result.tokens))
        panels.append(Panel(name, values, signed, caption))
        show.report("figure", partial(maps.matrix, values, queries, keys, name, signed=signed, root=True), caption)
    linked_maps(
        "maps",
        panels,
        queries,
        keys,
        ([result.special[i] for i in rows], [result.special[i] for i in columns]),
        label=str(chosen),
        scale=view.scale if view.scale in SCALES else SCALES[0],
        order=view.places if view.places in ORDERS else ORDERS[0],
        on_look=lambda scale, order: state.update(scale=scale, places=order),
    )
    show.note(
        "Queries down, keys across. Drag over a part to zoom in, double click for the whole; a click keeps a cell.",
        formula=rf"{ATTENTION} \qquad {FORMULA}",
        source=SOURCE,
    )


def _caption(name: str, chosen: HeadId, maps: Maps, some_hidden: bool) -> str:
    if name == "attention":
        hidden = "; some keys are hidden" if some_hidden else ""
        return f"Where {chosen} looks. Each row is a query and sums to 1 over all keys{hidden}."
    return f"Which connections speak for (blue) or against (orange) '{maps.target_label}'."


def recipe(view: View, clf: Classifier, shown: Text, chosen: HeadId) -> tuple[str, str]:
    """The maps from the library and from the command line."""
    mask = state.mask(clf.present)
    keywords: dict[str, Any] = {
        name: value
        for name, value, default in (
            ("steps", view.steps, 0),
            ("rule", view.rule, "richardson"),
            ("precision", "float32" if view.exact else AUTO, AUTO),
            ("target", view.target, "predicted"),
            ("word", word_of(clf, shown, view), None),
        )
        if value != default
    }
    if view.target == "gold":
        keywords["label"] = shown.label
    filled, stand_in = recipes.model_filled(view, measure.stand_in_of_model(mask))
    options = (
        *recipes.model_options(view),
        ("text", shown.text),
        ("text-pair", shown.pair),
        *keywords.items(),
        *recipes.mask_options(mask),
        *stand_in,
        ("out", "maps.npz"),
    )
    lines = [recipes.HEADVIZ, recipes.load(view), *filled]
    if mask.off:
        lines.append(recipes.mask_of(mask))
        keywords["mask"] = Code("mask")
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    place = f"[{chosen.layer}, {chosen.head}]"
    lines.append(f"maps = {call('headviz.conductance', Code('clf'), *texts, **keywords)}")
    lines.append(f"maps.attention{place}, maps.attribution{place}")
    return "\n".join(lines), command("conductance", options)


# ---- what it reads and writes

DIRECT = r"s_c = \sum_h W_c\,W_O^h\,o_h + \sum_l W_c\,\mathrm{FF}_l + W_c\,x_0 + b_c"
FROZEN = (
    "Direct logit attribution: the scale of every layer norm and the slope of the read-out stay those of this text, so "
    "the parts sum to the score."
)
SHOWN = 12  # heads in the table


def writes(clf: Classifier, shown: Text, chosen: HeadId) -> None:
    """The switch and, where it is on, both figures, the sentence and the table."""
    if not state.tick("writes", "What it reads and writes", help="Takes one pass of the model for each layer"):
        return
    mask = state.mask(clf.present)
    result = jobs.need(
        (*loaders.identity(clf), "contributions", shown.text, shown.pair, mask.hex),
        "Taking the score apart",
        lambda p, c: headviz.contributions(clf, shown.text, shown.pair, mask=mask, progress=p, cancel=c),
    )
    if result is None:
        return
    show.finding(contribution_sentence(result, chosen))
    left, right = st.columns([3, 2], gap="large")
    with left:
        _whole(result)
    with right:
        _heads(result)
    if chosen in result.mask.kept:
        _reading(clf, shown, chosen, mask, result.predicted)


def contribution_sentence(contributions: Contributions, chosen: HeadId) -> str:
    """What this head adds itself, and what is lost without it."""
    c, name = contributions.predicted, contributions.labels[contributions.predicted]
    direct, lost = float(contributions.heads[(*chosen, c)]), float(contributions.ablation[(*chosen, c)])
    if lost != lost:
        if direct and direct == direct:
            return f"{chosen} is off: what stands in its place adds {signed(direct)} to the score of {name}."
        return f"{chosen} is off: it adds nothing to the score of {name}."
    rank = 1 + int((np.abs(contributions.heads[:, :, c]) > abs(direct)).sum())
    count = int(np.isfinite(contributions.heads[:, :, c]).sum())
    change = f"{'falls' if lost > 0 else 'rises'} by {number(abs(lost))}" if lost else "stays as it is"
    return (
        f"{chosen} itself adds {signed(direct)} to the score of {name} (number {rank} of {count} by size); "
        f"without it the score {change}. The difference, {signed(lost - direct)}, goes through what comes "
        "after it. Attribution, above, adds up the way from padding to this text and may have another sign: what a "
        "head did on the way is not what is lost without it at the end."
    )


def _whole(contributions: Contributions) -> None:
    name = contributions.labels[contributions.predicted]
    show.figure(
        bars.waterfall(contributions.parts(), f"score of {name}"),
        "score_waterfall",
        f"Every part of the score of {name}, heads summed over each layer. They sum to the score.",
        formula=DIRECT,
        source=FROZEN,
    )


def _heads(contributions: Contributions) -> None:
    c = contributions.predicted
    order = ordered(-np.abs(contributions.heads[:, :, c]), contributions.mask.kept, seed=0)[:SHOWN]
    columns = (
        Column("head", value=lambda h: h),
        Column("adds itself", value=lambda h: float(contributions.heads[(*h, c)])),
        Column("lost without it", value=lambda h: float(contributions.ablation[(*h, c)])),
    )
    caption = f"The {len(order)} heads that add most to the score of {contributions.labels[c]}, for or against it."
    show.table(Table.of("head_contributions", columns, order, caption=caption))


def _reading(clf: Classifier, shown: Text, chosen: HeadId, mask: HeadMask, target: int) -> None:
    reading = headviz.head_reading(clf, shown.text, shown.pair, chosen, mask=mask)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("What it matches (QK)")
        show.figure(
            maps.matrix(reading.match, reading.tokens, reading.tokens, "match", signed=True),
            "head_match",
            f"How well each query of {chosen} fits each key, before the softmax; words and positions together.",
            formula=r"q_i \cdot k_j / \sqrt{d}",
        )
    with right:
        st.subheader("What it writes (OV)")
        label = reading.labels[target]
        show.figure(
            bars.token_bars(reading.scores[:, target].tolist(), reading.tokens, f"adds to {label}"),
            "head_writes",
            f"What {chosen} adds directly to the score of {label}, by the word that [CLS] reads.",
            formula=r"p_{0j}\,W_c\,W_O\,v_j",
            source=FROZEN,
        )

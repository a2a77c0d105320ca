"""One head's part in the answer: how much it moves it, and whether what it attends to is what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.figures import maps as charts_maps
from ....display.numbers import number, signed
from ....heads import HeadId
from ...shell import show

if TYPE_CHECKING:
    from ....attribution.maps import Maps

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


def said(found: Maps, chosen: HeadId) -> str:
    """The page's first sentence. Where the head hardly moves the answer, it says that and nothing else."""
    whole, _, share, even = weight(found, chosen)
    if not whole and not share:
        return verdict(chosen, found.attention[chosen], found.attribution[chosen])
    moved = f"moves '{found.target_label}' by {signed(whole, 2)}"
    parts = f"{_percent(share)} of all heads' attribution (an even share is {_percent(even)})"
    if share < MINOR * even:
        return f"{chosen} hardly takes part in this answer: it {moved} and carries {parts}."
    told = verdict(chosen, found.attention[chosen], found.attribution[chosen])
    return f"{told} In all its attribution {moved}, with {parts}."


def weight(found: Maps, chosen: HeadId) -> tuple[float, float, float, float]:
    """The sum of a head's attribution; its share of its layer's and of the model's sizes; and an even share."""
    sizes = np.array([np.nansum(np.abs(layer), axis=(1, 2), dtype=float) for layer in found.attribution])
    of = [float(sizes[chosen] / total) if total else 0.0 for total in (sizes[chosen.layer].sum(), sizes.sum())]
    return float(found.attribution[chosen].sum(dtype=float)), of[0], of[1], 1 / max(1, len(found.mask.kept))


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


def section(found: Maps, chosen: HeadId) -> None:
    """The scatter of attention against attribution, the head's weight, and the coefficients."""
    a, b = found.attention[chosen].ravel(), found.attribution[chosen].ravel()
    shown = strongest(a, b)
    near = " and lie near zero" if b.any() else ""  # of a head that is off every attribution is zero
    rest = "" if len(shown) == a.size else f" The other {a.size - len(shown):,} are weaker{near}."
    left, right = st.columns([3, 1], gap="large")
    with left:
        width = len(found.tokens)
        show.figure(
            charts_maps.scatter(
                a[shown],
                b[shown],
                [f"{found.tokens[i // width]} → {found.tokens[i % width]}" for i in shown],
                "attention",
                "attribution",
            ),
            "relation",
            f"Each of the {len(shown):,} points is one connection of {chosen}, with its attention and its attribution."
            + rest,
            formula=r"\rho = \mathrm{Spearman}(A, \mathrm{Attr}(A))",
            source=SOURCE,
        )
    with right:
        whole, layer, model, _ = weight(found, chosen)
        st.metric("Total attribution", show.plain(signed(whole, 2)))
        st.caption(show.plain(f"By size {_percent(layer)} of its layer, {_percent(model)} of the model."))
        for name, value in coefficients(found, chosen).items():
            st.metric(show.plain(name.capitalize()), show.plain(coefficient(value)))
            st.caption(show.plain(COEFFICIENTS[name]))


def strongest(a: np.ndarray, b: np.ndarray, most: int = POINTS) -> np.ndarray:
    """The places of the points to draw: all, or those that are the largest in either direction."""
    if a.size <= most:
        return np.arange(a.size)
    far = [np.argsort(-np.abs(x), kind="stable")[: most // 2] for x in (a, b)]
    return np.unique(np.concatenate(far))


def coefficients(found: Maps, chosen: HeadId) -> dict[str, float]:
    """How well attention and attribution of all connections agree, by coefficient."""
    from ....scores.correlation import correlations

    a, b = found.attention[chosen].ravel(), found.attribution[chosen].ravel()
    return {name: float(values[0]) for name, values in correlations(a[None], b[None]).items()}


def coefficient(r: float) -> str:
    """A correlation with three decimals."""
    return "–" if r != r else f"{r:+.3f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{number(100 * share, 2)} %"

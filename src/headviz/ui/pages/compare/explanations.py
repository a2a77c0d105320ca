"""On Compare: which words the answer comes from, by several methods side by side. None is declared the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

import headviz

from ....attribution.token_methods import METHODS
from ....display.figures import bars, maps
from ....display.numbers import fixed
from ....display.recipes import call
from ....display.sentences import doubt
from ....display.table import areas_table
from ...parts import pair
from ...parts.texts import EMPTY, Text
from ...shell import jobs, loaders, show, state
from ...shell.messages import plain
from ...shell.view import View
from .answers import CLF, MASK, PRINTED, recipe_of

if TYPE_CHECKING:
    from ....attribution.token_explanations import TokenExplanations
    from ....models.classifier import Classifier


def section(clf: Classifier, shown: Text) -> None:
    """The words coloured by each method, how far the methods agree, and the curves next to random orders."""
    if shown.empty:
        st.info(EMPTY, icon=":material/edit:")
        return
    mask = state.mask(clf.present)
    result = jobs.need(
        (*loaders.identity(clf), "explanations", shown.text, shown.pair, mask.hex),
        "Explaining the answer",
        lambda p, c: headviz.token_explanations(clf, shown.text, shown.pair, mask=mask, progress=p, cancel=c),
    )
    if result is None:
        return
    show.finding(sentence(result))
    if clf.answer.decides:
        (probabilities,) = pair.answers(clf, shown, [mask])
        st.caption(plain(about(result, probabilities.tolist())))
    for reason in dict.fromkeys(result.refused.values()):
        names = ", ".join(_title(name) for name, why in result.refused.items() if why == reason)
        st.info(plain(f"{names}: {reason}"))
    _words(result)
    if len(result.methods) < 2:
        _curves(result)
        return
    left, right = st.columns([3, 5], gap="large")
    with left:
        _agreement(result)
    with right:
        _curves(result)


def _title(name: str) -> str:
    return METHODS[name].title


def sentence(explanations: TokenExplanations) -> str:
    """How far the methods agree, and which words they put first."""
    correlations = explanations.rank_correlation[np.triu_indices(len(explanations.methods), 1)]
    correlations = correlations[np.isfinite(correlations)]
    if not correlations.size:
        return f"Explained is {explanations.target_label}; there are no two methods to compare."
    words = np.flatnonzero(~np.array(explanations.special))
    firsts = {int(words[np.argmax(row[words])]) for row in explanations.values}  # places: a word may stand there twice
    top = "all put the same word first" if len(firsts) == 1 else f"{len(firsts)} different words come first"
    low, high = fixed(float(correlations.min()), 2), fixed(float(correlations.max()), 2)
    between = low if correlations.size == 1 else f"from {low} to {high}"
    return f"The methods' rank correlation over words is {between}; {top}."


def about(explanations: TokenExplanations, probabilities: Sequence[float]) -> str:
    """Which answer is explained, how sure the model is of it, and under which mask."""
    count = len(explanations.mask.off)
    off = f", {count} head{'s' if count > 1 else ''} off" if count else ""
    unsure = doubt(probabilities)
    sure = f"; {unsure}" if unsure else ""
    return f"Explained: {explanations.target_label}, probability {explanations.deletion[0, 0]:.2f}{off}{sure}."


def _words(explanations: TokenExplanations) -> None:
    e, methods = explanations, [METHODS[name] for name in explanations.methods]
    show.figure(
        maps.word_rows([method.title for method in methods], e.target_label, e.values, e.special, e.tokens),
        "explained_words",
        "Each word's value by each method, as a share of that method's largest. Rollout and norm have no sign.",
        source=" ".join(f"{m.title.capitalize()}: {m.meaning}; {m.source}." for m in methods),
    )


def _agreement(explanations: TokenExplanations) -> None:
    names = [_title(name) for name in explanations.methods]
    show.figure(
        maps.matrix(explanations.rank_correlation, names, names, "rank correlation", signed=True, end=1.0),
        "explained_agreement",
        "Spearman's rank correlation over words; where a method has no sign, sizes are compared.",
    )


def _curves(explanations: TokenExplanations) -> None:
    sides = [
        ("words that are gone", explanations.deletion, explanations.random_deletion),
        ("words that are back", explanations.insertion, explanations.random_insertion),
    ]
    names, measured = [_title(name) for name in explanations.methods], explanations.measured.removeprefix("the ")
    show.figure(
        bars.token_curves(names, explanations.shares.tolist(), sides, explanations.measured),
        "explained_curves",
        f"The {measured} while words go, or come back, in each method's order, highest first. Grey: 95 % "
        f"of {len(explanations.random_deletion)} random orders. A word that is gone is padding.",
        source="Padding is also where the path of integrated gradients begins. Curves judge an order by texts that "
        "the model never saw, so they do not say which method is right.",
    )
    table = areas_table(
        explanations.areas(),
        _title,
        caption="Areas under the curves: small is good for deletion, large for insertion; next to them, of how many of "
        "the random orders they are better.",
    )
    show.table(table, record=explanations.to_dict())


def recipe(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    texts = (shown.text,) if shown.pair is None else (shown.text, shown.pair)
    code = call("headviz.token_explanations", CLF, *texts, mask=MASK)
    options = (("text", shown.text), ("text-pair", shown.pair))
    return recipe_of(view, clf, (f"result = {code}", PRINTED), "tokens", options)

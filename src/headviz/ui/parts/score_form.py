"""A form for the options of a head score, with its formula and its caution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from ...options import Option, declared
from ...scores.catalogue import PRESETS, SCORES, Preset, Score
from ...tasks import TASKS
from ..shell import controls, loaders
from ..shell.messages import plain
from ..shell.view import View

OF_THE_RUN = ("seed",)  # declared too, but a run's own seeds decide


def fields(view: View, key: str, scores: Sequence[str]) -> Callable[[], dict[str, dict[str, Any]]]:
    """A field for each option. Gives a function that checks them and reads those that the user changed, by score."""
    if not scores:
        return dict
    with st.expander("Options of the score" + ("s" if len(scores) > 1 else ""), icon=":material/instant_mix:"):
        read = {name: _of_score(view, f"{key}_{name}", SCORES[name]) for name in scores}
    return lambda: {name: values() for name, values in read.items()}


def _of_score(view: View, key: str, score: Score) -> Callable[[], dict[str, Any]]:
    caution = f" Caution: {score.caution}." if score.caution else ""
    st.caption(f"**{plain(score.name)}**: {plain(f'{score.formula} ({score.source}).{caution}')}")
    options = [one for name, one in declared(score.options).items() if name not in OF_THE_RUN]
    if not options:
        st.caption("It has no options.")
        return dict
    presets = [name for name, preset in PRESETS.items() if preset.score == score.name]
    if presets:
        chosen = st.selectbox(
            "Published choice", [None, *presets], key=f"preset_{key}", width=230, format_func=lambda p: p or "none"
        )
        if chosen:
            return _of_preset(PRESETS[chosen])
    row = st.container(horizontal=True)
    read = {
        one.name: controls.field(row, one, f"{key}_{one.name}", width=190, **_of_view(view, one)) for one in options
    }
    return lambda: {one.name: value for one in options if (value := read[one.name]()) != one.default}


def _of_preset(preset: Preset) -> Callable[[], dict[str, Any]]:
    """What a published choice sets."""
    st.caption(plain(f"{preset.why[0].upper()}{preset.why[1:]}."))
    return lambda: dict(preset.options)


def _of_view(view: View, one: Option) -> dict[str, Any]:
    """Choices that depend on the view: the task's metrics, the model's classes."""
    if one.name == "metric" and view.task in TASKS:
        return {
            "choices": (None, *TASKS[view.task].metrics),
            "words": lambda metric: "the task's first" if metric is None else str(metric),
        }
    if one.name == "target":
        return {"choices": ("predicted", "gold", *loaders.shape(view).labels)}
    return {}

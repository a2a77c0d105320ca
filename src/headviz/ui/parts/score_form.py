"""A form for the options of a head score, with its formula and its caution."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import streamlit as st

from ...scores.catalogue import PRESETS, SCORES, Preset, Score
from ...scores.options import default_of
from ...tasks import TASKS
from ..shell import loaders, show
from ..shell.view import View

# declared name -> label; an option that is not listed has its own name as label
NAMES = {
    "steps": "Steps",
    "rule": "Rule",
    "target": "Class explained",
    "rows": "Query rows compared",
    "code": "As the author's code",
    "abs_level": "Absolute value per",
    "layer_norm": "Layers on one scale",
    "batch_size": "Batch of level 'batch'",
    "metric": "Measure that is lost",
}
OF_THE_RUN = ("seed",)  # declared too, but a run's own seeds decide


def fields(view: View, key: str, scores: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The options that the user changed, by score."""
    if not scores:
        return {}
    with st.expander("Options of the score" + ("s" if len(scores) > 1 else ""), icon=":material/instant_mix:"):
        return {name: _of_score(view, f"{key}_{name}", SCORES[name]) for name in scores}


def _of_score(view: View, key: str, score: Score) -> dict[str, Any]:
    caution = f" Caution: {score.caution}." if score.caution else ""
    st.caption(f"**{show.plain(score.name)}**: {show.plain(f'{score.formula} ({score.source}).{caution}')}")
    options = [f for f in dataclasses.fields(score.options) if f.name not in OF_THE_RUN]
    if not options:
        st.caption("It has no options.")
        return {}
    presets = [name for name, preset in PRESETS.items() if preset.score == score.name]
    if presets:
        chosen = st.selectbox(
            "Published choice", [None, *presets], key=f"preset_{key}", width=230, format_func=lambda p: p or "none"
        )
        if chosen:
            return _of_preset(PRESETS[chosen])
    changed = {}
    with st.container(horizontal=True):
        for option in options:
            value = _field(view, f"{key}_{option.name}", option)
            if value != default_of(option):
                changed[option.name] = value
    return changed


def _of_preset(preset: Preset) -> dict[str, Any]:
    """What a published choice sets."""
    st.caption(show.plain(f"{preset.why[0].upper()}{preset.why[1:]}."))
    return dict(preset.options)


def _field(view: View, key: str, option: dataclasses.Field[Any]) -> Any:
    """The field for one option: a choice, a switch, a number or a text."""
    label = show.plain(NAMES.get(option.name, option.name.replace("_", " ").capitalize()))
    text = option.metadata.get("help", "")
    more: dict[str, Any] = {"key": key, "help": show.plain(text[:1].upper() + text[1:])}
    default = default_of(option)
    choices = option.metadata.get("choices") or _choices(view, option.name)
    if choices:
        at = choices.index(default) if default in choices else 0
        return st.selectbox(
            label, choices, at, width=190, format_func=lambda c: "the task's first" if c is None else str(c), **more
        )
    if isinstance(default, bool):
        with st.container(width=190, vertical_alignment="bottom"):
            return st.toggle(label, default, **more)
    if isinstance(default, int):
        return st.number_input(label, min(1, default), 100_000, default, width=190, **more)
    if isinstance(default, float):
        return st.number_input(label, 0.0, 100_000.0, default, width=190, **more)
    return st.text_input(label, str(default or ""), width=190, **more) or default


def _choices(view: View, name: str) -> tuple[Any, ...] | None:
    """Choices that depend on the view: the task's metrics, the model's classes."""
    if name == "metric" and view.task in TASKS:
        return (None, *TASKS[view.task].metrics)
    if name == "target":
        return ("predicted", "gold", *loaders.shape(view).labels)
    return None

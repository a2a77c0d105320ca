"""The options that a head score declares, as fields of a form, with what the score is and when not to use it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ...tasks import TASKS
from ..shell import jobs, loaders, show
from ..shell.view import View

# declared name -> what people call it; another one is shown by its own name
NAMES = {
    "steps": "Steps of the integral",
    "rule": "Rule",
    "target": "Class explained",
    "rows": "Query rows compared",
    "abs_level": "Absolute value per",
    "layer_norm": "Layers on one scale",
    "batch_size": "Batch of level 'batch'",
    "metric": "Measure that is lost",
}
OF_THE_RUN = ("seed",)  # declared too, but a run's own seeds decide


@dataclass(frozen=True)
class Declared:
    """One option as its score declares it."""

    name: str
    default: Any
    help: str
    choices: tuple[Any, ...] | None


@dataclass(frozen=True)
class About:
    """One line of the score table, without what computes it."""

    formula: str
    source: str
    caution: str
    options: tuple[Declared, ...]


def fields(view: View, key: str, scores: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each score the options that were changed; nothing while the table is being read.

    The table stands beside torch, which a page must not wait for.
    """
    found = jobs.need(("the table of scores",), "Reading the options of the scores", lambda p, c: _table())
    if not found or not scores:
        return {}
    with st.expander(
        "Options of the score" + ("s" if len(scores) > 1 else ""), icon=":material/instant_mix:"
    ):
        return {name: _of_score(view, f"{key}_{name}", name, found[name]) for name in scores}


def _table() -> dict[str, About]:
    from ...scores.catalogue import SCORES
    from ...scores.options import default_of

    def declared(f: Any) -> Declared:
        return Declared(f.name, default_of(f), f.metadata.get("help", ""), f.metadata.get("choices"))

    return {
        s.name: About(
            s.formula, s.source, s.caution,
            tuple(declared(f) for f in dataclasses.fields(s.options) if f.name not in OF_THE_RUN),
        )
        for s in SCORES.values()
    }  # fmt: skip


def _of_score(view: View, key: str, name: str, about: About) -> dict[str, Any]:
    caution = f" Mind: {about.caution}." if about.caution else ""
    st.caption(f"**{show.plain(name)}**: {show.plain(f'{about.formula} ({about.source}).{caution}')}")
    if not about.options:
        st.caption("It leaves nothing to choose here.")
        return {}
    changed = {}
    with st.container(horizontal=True):
        for option in about.options:
            value = _field(view, f"{key}_{option.name}", option)
            if value != option.default:
                changed[option.name] = value
    return changed


def _field(view: View, key: str, option: Declared) -> Any:
    """The field that fits what was declared: a choice, a switch, a number."""
    label = NAMES.get(option.name, option.name.replace("_", " ").capitalize())
    more: dict[str, Any] = {"key": key, "help": option.help[:1].upper() + option.help[1:]}
    choices = option.choices or _choices(view, option.name)
    if choices:
        at = choices.index(option.default) if option.default in choices else 0
        return st.selectbox(
            label, choices, at, width=190, format_func=lambda c: "the task's first" if c is None else str(c), **more
        )  # fmt: skip
    if isinstance(option.default, bool):
        with st.container(width=190, vertical_alignment="bottom"):
            return st.toggle(label, option.default, **more)
    if isinstance(option.default, int):
        return st.number_input(label, 1, 100_000, option.default, width=190, **more)
    return st.text_input(label, str(option.default or ""), width=190, **more) or option.default


def _choices(view: View, name: str) -> tuple[Any, ...] | None:
    """What a page knows to choose from where the declaration cannot: the task's measures, the model's classes."""
    if name == "metric" and view.task in TASKS:
        return (None, *TASKS[view.task].metrics)
    if name == "target":
        return ("predicted", "gold", *loaders.shape(view).labels)
    return None

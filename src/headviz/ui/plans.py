"""What the forms for one run and for a sweep share: fields drawn from the table of algorithms, and the plan."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ..errors import OptionError
from . import jobs, loaders
from .view import View

if TYPE_CHECKING:
    from ..pruning.plan import PruningPlan
    from ..pruning.table import Algorithm

FILTERS = {"quantile": "of usual length", "std": "within one sd", "none": "of any length"}
STARTS = {"pretrained": "pre-trained weights", "random": "random weights"}


def title_of(name: str) -> str:
    from ..pruning.table import ALGORITHMS

    return ALGORITHMS[name].title


def seeds(key: str, default: str) -> str:
    return st.text_input("Seeds", default, key=key, help="One or more whole numbers, with commas: 0,1,2")


def read_seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(s) for s in text.split(",") if s.strip())
    except ValueError:
        raise OptionError("Seeds are whole numbers with commas, such as 0,1,2.") from None


def amounts(key: str, algorithms: Sequence[Algorithm]) -> dict[str, Any]:
    """How far, in which steps, on how many examples."""
    of = "remaining heads" if algorithms and all(a.of_remaining for a in algorithms) else "heads"
    a, b, c, d = st.columns(4)
    return {
        "step": a.number_input(f"Each step removes, % of {of}", 1, 100, 10, key=f"{key}_step") / 100,
        "until": b.number_input("Up to, % of heads", 1, 100, 90, key=f"{key}_until") / 100,
        "samples": c.number_input("Examples to score on", 4, 20_000, 256, key=f"{key}_samples"),
        "keep_per_layer": d.number_input("Heads each layer keeps", 0, 64, 0, key=f"{key}_keep"),
    }


def further(view: View, key: str, algorithms: Sequence[Algorithm]) -> dict[str, Any]:
    """Options that only some algorithms have, and those that are rarely changed."""
    from ..pruning.plan import INITIALISATIONS, LENGTH_FILTERS
    from ..pruning.repair import REPAIRS

    retrains = any(a.retrains for a in algorithms)
    options: dict[str, Any] = {}
    if retrains:
        left, right = st.columns(2)
        options["base"] = left.text_input(
            "Pre-trained model θ0", "demo-pretrained" if view.model == "demo" else view.base, key=f"{key}_base",
            help="What the pruned networks are trained from anew: a folder or a hub id",
        )  # fmt: skip
        everything = right.toggle(
            "Keep every step's model", key=f"{key}_all",
            help="Needed to look at one example's maps under each of them later; takes a model's size on disk per step",
        )  # fmt: skip
        options["keep_models"] = "all" if everything else "last"
    with st.expander("More options", icon=":material/tune:"), st.container(horizontal=True):
        default = algorithms[0].default_repair if len(algorithms) == 1 else ""
        repairs = list(REPAIRS) if default else ["", *REPAIRS]
        options["repair"] = st.selectbox(
            "Repair after removal", repairs, repairs.index(default), key=f"{key}_repair", width=220,
            format_func=lambda r: r or "as each algorithm does", help="What is done to the kept weights",
        )  # fmt: skip
        options["length_filter"] = st.selectbox(
            "Texts to score on", LENGTH_FILTERS, key=f"{key}_filter", width=200,
            format_func=FILTERS.__getitem__,
        )  # fmt: skip
        if retrains:
            options["initialisation"] = st.selectbox(
                "Retrained from", INITIALISATIONS, key=f"{key}_init", width=200,
                format_func=STARTS.__getitem__,
            )  # fmt: skip
            options["retrain_full"] = st.toggle(
                "Train the full model too",
                True,
                key=f"{key}_full",
                help="Winning tickets are compared with it",
            )
    return options


def source(view: View) -> dict[str, Any]:
    """The view's model and data, as options of a plan."""
    place = view.data
    if place:
        place = str(loaders.uploads().get(place) or loaders.confined(place))
    given = {
        "model": loaders.model_name(view.model),
        "task": view.task,
        "revision": view.revision or None,
        "data": place or None,
        "text_columns": tuple(c for c in view.columns.split(",") if c) or None,
        "label_column": view.label or None,
        "dev_limit": view.limit or None,
        "device": view.device,
    }
    return {k: v for k, v in given.items() if v is not None}


def options_of(view: View, options: dict[str, Any]) -> dict[str, Any]:
    """A plan's options: those of the view, and what a form says."""
    given = {**source(view), **{k: v for k, v in options.items() if v not in ("", None)}}
    if given.get("base"):
        given["base"] = loaders.model_name(str(given["base"]))
    return given


def make_plan(view: View, options: dict[str, Any]) -> PruningPlan:
    """The plan for the view's model and data."""
    from ..pruning.plan import PruningPlan

    return PruningPlan.from_dict(options_of(view, options))


def wanted(key: Hashable) -> None:
    """Somebody asks for the plan with this key. A plan that failed or was stopped is tried again."""
    st.session_state["planned"] = key
    job = jobs.find(key)
    if job is not None and (job.error or job.stopped):
        jobs.forget(key)

"""What the forms for one run and for a sweep share: their fields and the plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from ....errors import Note, OptionError, UserError
from ....pruning.algorithms import ALGORITHMS, REPAIRS
from ....pruning.plan import INITIALISATIONS, LENGTH_FILTERS, SCORE_SOURCES, PruningPlan, masked_lm_scores
from ...parts import training
from ...shell import jobs, loaders, numbers, state
from ...shell.messages import plain, refused
from ...shell.view import View
from . import listing

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from ....pruning.algorithms import Algorithm
    from ....pruning.plan import PruningPlan
    from ....runs.record import RunRecord

T = TypeVar("T")
LAST_STEPS = {"target": "at that share", "full": "after a whole step"}
FILTERS = {"quantile": "of usual length", "std": "within one sd", "none": "of any length"}
STARTS = {"pretrained": "pre-trained weights", "random": "random weights"}
FEW = 256  # examples, so that a first run has its first step within minutes; the command line has 2,000
SOURCES = {"fine-tuned": "the fine-tuned model", "masked-lm": "the pre-trained model, filling in words"}


def title_of(name: str) -> str:
    return ALGORITHMS[name].title if name in ALGORITHMS else name


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
    step = numbers.field(a, f"Each step removes, % of {of}", 1, 100, 10, f"{key}_step")
    until = numbers.field(b, "Up to, % of heads", 1, 100, 90, f"{key}_until")
    return {
        "step": lambda: step() / 100,
        "until": lambda: until() / 100,
        "samples": numbers.field(c, "Examples to score on", 4, 20_000, FEW, f"{key}_samples"),
        "keep_per_layer": numbers.field(d, "Heads each layer keeps", 0, 64, 0, f"{key}_keep"),
    }


def retraining(view: View, key: str, algorithms: Sequence[Algorithm]) -> dict[str, Any]:
    """The fields of algorithms that retrain the pruned models: base model, training, and what is kept on disk."""
    if not any(a.retrains for a in algorithms):
        return {}
    default = "demo-pretrained" if view.model == "demo" else view.base
    base = st.text_input(
        "Pre-trained model θ0",
        default,
        key=f"{key}_base",
        help="The pruned models are retrained from it: a folder or a hub id",
    ).strip()
    try:
        recipe = training.recipe_for(loaders.model_name(base))
    except UserError as wrong:
        refused(wrong)
        return {}
    examples = recipe.examples if not view.data else None
    with st.expander("Training of the pruned models", icon=":material/model_training:"):
        st.caption(plain(recipe.said(view)))
        options, limit, room = training.fields(f"{key}_train_{base}", recipe, examples)
        start = room.selectbox("Retrained from", INITIALISATIONS, key=f"{key}_init", format_func=STARTS.__getitem__)
        with st.container(horizontal=True):
            full = st.toggle("Train the full model too", True, key=f"{key}_full", help="Needed to find winning tickets")
            everything = st.toggle(
                "Keep every step's model",
                key=f"{key}_all",
                help="Needed to show one example's maps at each step; takes the size of a model per step",
            )
    return {
        "base": base,
        "initialisation": start,
        "retrain_full": full,
        "keep_models": "all" if everything else "last",
        "finetune": lambda: None if options() == recipe.options else options().to_dict(),  # None = the recipe's
        "train_limit": None if limit == (examples or 0) else limit or None,
    }


def further(view: View, key: str, algorithms: Sequence[Algorithm], scores: Sequence[str]) -> dict[str, Any]:
    """Options that are rarely changed."""
    shape = loaders.shape(view)
    options: dict[str, Any] = {}
    with st.expander("More options", icon=":material/tune:"), st.container(horizontal=True):
        if shape.stacks:
            stacks = ["", *(name for name, _ in shape.stacks)]
            options["stack"] = st.selectbox(
                "Heads of",
                stacks,
                key=f"{key}_stack",
                width=200,
                format_func=lambda s: s or "all stacks",
                help="Remove heads of this stack only; shares are of its heads",
            )
        if not any(a.of_remaining for a in algorithms):
            shares = st.text_input(
                "Only at these shares, %",
                "",
                key=f"{key}_shares",
                width=200,
                placeholder="30, 50, 70, 90",
                help="Your own list instead of even steps",
            )
            options["sparsities"] = lambda: read_shares(shares)
        options["last_step"] = st.selectbox(
            "The last step ends",
            LAST_STEPS,
            key=f"{key}_last",
            width=200,
            format_func=LAST_STEPS.__getitem__,
            help="“Up to” names a share. A whole step may end beyond it: 30 % a step up to 75 % ends at 90 %",
        )
        default = algorithms[0].default_repair if len(algorithms) == 1 else ""
        repairs = list(REPAIRS) if default else ["", *REPAIRS]
        options["repair"] = st.selectbox(
            "Repair after removal",
            repairs,
            repairs.index(default),
            key=f"{key}_repair",
            width=220,
            format_func=lambda r: r or "as each algorithm does",
            help="How the remaining weights are adjusted",
        )
        options["length_filter"] = st.selectbox(
            "Texts to score on", LENGTH_FILTERS, key=f"{key}_filter", width=200, format_func=FILTERS.__getitem__
        )
        masked = all(s in masked_lm_scores() for s in scores) and not any(
            a.scores_trained or a.only_score for a in algorithms
        )
        if masked and scores and shape.labels:
            options["score_source"] = st.selectbox(
                "Model that is scored",
                SCORE_SOURCES,
                key=f"{key}_source",
                width=260,
                format_func=SOURCES.__getitem__,
                help="The pre-trained model is scored on filling in words, as it was trained",
            )
    if options.get("score_source") == "masked-lm" and not any(a.retrains for a in algorithms):
        default = "demo-pretrained" if view.model == "demo" else view.base
        options["base"] = st.text_input("Pre-trained model θ0", default, key=f"{key}_source_base").strip()
    return options


def read_shares(text: str) -> tuple[float, ...] | None:
    """Shares of heads from percentages with commas; None for an empty text."""
    try:
        return tuple(float(s) / 100 for s in text.replace("%", "").split(",") if s.strip()) or None
    except ValueError:
        raise OptionError("Write shares in per cent with commas, such as 30, 50, 70, 90.") from None


def source(view: View) -> dict[str, Any]:
    """The view's model and data, as options of a plan."""
    place = view.data
    if place:
        place = str(loaders.uploads().get(place) or loaders.confined(place))
    given = {
        "model": loaders.model_name(view.model),
        "task": view.task,
        "revision": view.revision or None,
        "job": view.job or None,
        "data": place or None,
        "text_columns": tuple(c for c in view.columns.split(",") if c) or None,
        "label_column": view.label or None,
        "label_order": view.class_names,
        "dev_limit": view.limit or None,
        "device": view.device,
    }
    return {k: v for k, v in given.items() if v is not None}


def options_of(view: View, options: dict[str, Any]) -> dict[str, Any]:
    """A plan's options: those of the view and those of a form.

    A value that must be checked, such as a list of numbers, comes as a function that is called here. So the whole form
    is drawn before a mistake in it is reported.
    """
    known = {k: v() if callable(v) else v for k, v in options.items()}
    given = {**source(view), **{k: v for k, v in known.items() if v not in ("", None)}}
    if given.get("base"):
        given["base"] = loaders.model_name(str(given["base"]))
    return given


def make_plan(view: View, options: dict[str, Any]) -> PruningPlan:
    """The plan for the view's model and data."""
    return PruningPlan.from_options(options_of(view, options))


# a plan's refusals and notes by code, in the words of the form: its labels, and per cent instead of shares
_IN_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "more-than-a-layer": lambda p: (
        f"“Heads each layer keeps” is {p['keep_per_layer']}, but a layer has only {p['per_layer']} heads."
    ),
    "more-than-removable": lambda p: (
        f"“Up to” {_per_cent(p['until'])} {p['but']} {_per_cent(p['most'])}, or keep fewer."
    ),
    "one-more-step": lambda p: p["text"].format(target=f"“Up to” {_per_cent(p['until'])}"),
}


def in_words(said: UserError | str) -> str:
    """A plan's refusal or note in the form's words; others stay as they are."""
    if not isinstance(said, UserError | Note) or said.code not in _IN_WORDS:
        return str(said)
    return _IN_WORDS[said.code](said.parameters)


def _per_cent(share: float) -> str:
    return f"{100 * share:g} %"


@contextmanager
def form_words() -> Iterator[None]:
    """Refusals in this block use the form's words."""
    try:
        yield
    except UserError as wrong:
        raise wrong.reworded(in_words(wrong)) from wrong


# ---- first the plan, then the start


def wanted(key: Hashable) -> None:
    """Ask for the plan with this key; one that failed or was stopped is tried again."""
    st.session_state["planned"] = key
    job = jobs.find(key)
    if job is not None and (job.error or job.stopped):
        jobs.forget(key)


@dataclass(frozen=True)
class Words:
    """The texts of a form's two buttons."""

    plan: str = "Plan"
    why: str = "Check it and estimate its time"
    doing: str = "Checking the plan and timing a few examples"
    first: str = "Press Plan first"


def checked(
    name: str, key: Hashable, work: jobs.Work[T], words: Words | None = None, about: str = ""
) -> tuple[T, DeltaGenerator] | None:
    """The checked plan and the place of *Start*; None while there is none. A changed plan must be checked again."""
    words = words or Words()
    buttons = st.container(horizontal=True, vertical_alignment="center")
    buttons.button(
        plain(words.plan),
        key=f"{name}_plan",
        icon=":material/checklist:",
        help=plain(words.why),
        on_click=wanted,
        args=(key,),
    )
    if st.session_state.get("planned") != key:
        buttons.button("Start", key=f"{name}_start", disabled=True, help=plain(words.first))
        if about:
            buttons.caption(plain(about))
        return None
    found = jobs.need(key, words.doing, work)
    return None if found is None else (found, buttons)


def start(place: DeltaGenerator, name: str, make: Callable[[str], RunRecord], label: str = "Start") -> None:
    """The button that starts the plan. ``make`` gets the user's name."""
    place.button(
        plain(label), key=f"{name}_start", type="primary", icon=":material/play_arrow:", on_click=_begin, args=(make,)
    )


def _begin(make: Callable[[str], RunRecord]) -> None:
    try:
        record = make(listing.this_user())
    except UserError as wrong:
        state.notify(wrong)
        return
    listing.started(record.id)

"""What the forms for one run and for a sweep share: their fields and the plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from ....errors import Note, UserError
from ....options import Option, declared
from ....pruning.algorithms import ALGORITHMS, REPAIRS
from ....pruning.plan import PruningPlan
from ....runs.process import BUSY, used_by_others
from ....scores.catalogue import PRESETS, SCORES, Score, of_masked_words
from ....tasks import TASKS
from ...parts import training
from ...shell import controls, jobs, kept, loaders, state
from ...shell.messages import plain, refused
from ...shell.view import View

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from ....pruning.algorithms import Algorithm
    from ....runs.record import RunRecord


# A form for the options of a head score, with its formula and its caution ----------------------


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
    # a run's own seeds decide
    options = [option for name, option in declared(score.options).items() if name != "seed"]
    if not options:
        st.caption("It has no options.")
        return dict
    presets = [name for name, preset in PRESETS.items() if preset.score == score.name]
    if presets:
        chosen = st.selectbox(
            "Published choice", [None, *presets], key=f"preset_{key}", width=230, format_func=lambda p: p or "none"
        )
        if chosen:
            preset = PRESETS[chosen]
            st.caption(plain(f"{preset.why[0].upper()}{preset.why[1:]}."))
            return lambda: dict(preset.options)
    row = st.container(horizontal=True)
    read = {
        option.name: controls.field(row, option, f"{key}_{option.name}", width=190, **_of_view(view, option))
        for option in options
    }
    return lambda: {option.name: value for option in options if (value := read[option.name]()) != option.default}


def _of_view(view: View, option: Option) -> dict[str, Any]:
    """Choices that depend on the view: the task's metrics, the model's classes."""
    if option.name == "metric" and view.task in TASKS:
        return {
            "choices": (None, *TASKS[view.task].metrics),
            "words": lambda metric: "the task's first" if metric is None else str(metric),
        }
    if option.name == "target":
        return {"choices": ("predicted", "gold", *loaders.shape(view).labels)}
    return {}


# -----------------------------------------------------------------------------------------------


T = TypeVar("T")
OPTIONS = declared(PruningPlan)
FEW = 256  # examples, so that a first run has its first step within minutes; the command line has 2,000
AMOUNTS = ("step", "until", "samples", "keep_per_layer")
RETRAINING = ("base", "initialisation", "retrain_full", "keep_models", "seeds")  # they have places of their own


def title_of(name: str) -> str:
    return ALGORITHMS[name].title if name in ALGORITHMS else name


def seeds(key: str, default: tuple[int, ...]) -> Callable[[], tuple[int, ...]]:
    return controls.field(st.container(), OPTIONS["seeds"], key, default)


def amounts(key: str, algorithms: Sequence[Algorithm]) -> dict[str, Any]:
    """How far, in which steps, on how many examples."""
    of = "remaining heads" if algorithms and all(a.of_remaining for a in algorithms) else "heads"
    of_field: dict[str, dict[str, Any]] = {
        "step": {"label": f"Each step removes, % of {of}"},
        "samples": {"value": FEW},
    }
    return {
        name: controls.field(place, OPTIONS[name], f"{key}_{name}", **of_field.get(name, {}))
        for name, place in zip(AMOUNTS, st.columns(4), strict=True)
    }


def retraining(view: View, key: str, algorithms: Sequence[Algorithm]) -> dict[str, Any]:
    """The fields of algorithms that retrain the pruned models: base model, training, and what is kept on disk."""
    if not any(a.retrains for a in algorithms):
        return {}
    base = controls.field(st.container(), OPTIONS["base"], f"{key}_base", _base(view))() or ""
    try:
        recipe = training.recipe_for(loaders.model_name(base))
    except UserError as error:
        refused(error)
        return {}
    examples = recipe.examples if not view.data else None
    with st.expander("Training of the pruned models", icon=":material/model_training:"):
        st.caption(plain(recipe.sentence(view)))
        options, limit, room = training.fields(f"{key}_train_{base}", recipe, examples)
        read = {"initialisation": controls.field(room, OPTIONS["initialisation"], f"{key}_initialisation")}
        row = st.container(horizontal=True, vertical_alignment="bottom")
        for name in ("retrain_full", "keep_models"):
            read[name] = controls.field(row, OPTIONS[name], f"{key}_{name}")
    return {
        "base": base,
        **read,
        "finetune": lambda: None if options() == recipe.options else options().to_dict(),  # None = the recipe's
        "train_limit": lambda: None if limit() == examples else limit(),
    }


def _base(view: View) -> str:
    """The pre-trained model of the view's model."""
    return "demo-pretrained" if view.model == "demo" else view.base


def further(view: View, key: str, algorithms: Sequence[Algorithm], scores: Sequence[str]) -> dict[str, Any]:
    """Options that are rarely changed."""
    shape = loaders.shape(view)
    masked = all(s in of_masked_words() for s in scores) and not any(
        a.scores_trained or a.only_score for a in algorithms
    )
    repair = algorithms[0].default_repair if len(algorithms) == 1 else ""
    stacks = ["", *(name for name, _ in shape.stacks)]
    of_field: dict[str, dict[str, Any]] = {
        "stack": {"choices": stacks, "words": lambda name: name or "all stacks"},
        "sparsities": {"placeholder": "30, 50, 70, 90"},
        "repair": {
            "value": repair,
            "choices": list(REPAIRS) if repair else ["", *REPAIRS],
            "words": lambda name: name or "as each algorithm does",
        },
    }
    left_out = {
        "stack": not shape.stacks,
        "sparsities": any(a.of_remaining for a in algorithms),
        "score_source": not (masked and scores and shape.labels),
    }
    with st.expander("More options", icon=":material/tune:"):
        row = st.container(horizontal=True)
        options = {
            name: controls.field(row, option, f"{key}_{name}", width=220, **of_field.get(name, {}))
            for name, option in OPTIONS.items()
            if option.title and name not in (*AMOUNTS, *RETRAINING) and not left_out.get(name)
        }
    score_source = options.get("score_source", lambda: None)()
    if score_source == "masked-lm" and not any(a.retrains for a in algorithms):
        options["base"] = controls.field(st.container(), OPTIONS["base"], f"{key}_source_base", _base(view))
    return options


def source(view: View) -> dict[str, Any]:
    """The view's model and data, as options of a plan."""
    folder = view.data
    if folder:
        folder = str(loaders.uploads().get(folder) or loaders.confined(folder))
    source = {
        "model": loaders.model_name(view.model),
        "task": view.task,
        "revision": view.revision or None,
        "job": view.job or None,
        "data": folder or None,
        "text_columns": tuple(c for c in view.columns.split(",") if c) or None,
        "label_column": view.label or None,
        "separator": view.separator or None,
        "skip_bad": view.skip_bad or None,
        "thresholds": tuple(map(float, view.thresholds.split(","))) if view.thresholds else None,
        "label_order": view.class_names,
        "dev_limit": view.limit or None,
        "device": view.device,
    }
    return {k: v for k, v in source.items() if v is not None}


def options_of(view: View, options: dict[str, Any]) -> dict[str, Any]:
    """A plan's options: those of the view and those of a form.

    A value that must be checked, such as a list of numbers, comes as a function that is called here. So the whole form
    is drawn before a mistake in it is reported.
    """
    values = {k: v() if callable(v) else v for k, v in options.items()}
    chosen = {**source(view), **{k: v for k, v in values.items() if v not in ("", None)}}
    if chosen.get("base"):
        chosen["base"] = loaders.model_name(str(chosen["base"]))
    return chosen


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


def in_words(message: UserError | str) -> str:
    """A plan's refusal or note in the form's words; others stay as they are."""
    if not isinstance(message, UserError | Note) or message.code not in _IN_WORDS:
        return str(message)
    return _IN_WORDS[message.code](message.parameters)


def _per_cent(share: float) -> str:
    return f"{100 * share:g} %"


# ---- first the plan, then the start


LOOK = 0.2  # seconds in which the use of the processor is measured


def busy() -> str:
    """Where other programs use the machine while a plan is timed: the sentence goes on with how much."""
    used_by_others()
    time.sleep(LOOK)
    others = used_by_others()
    return f", which other programs use to {others:.0f} % now" if others >= BUSY else ""


def _request(key: Hashable) -> None:
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
        on_click=_request,
        args=(key,),
    )
    if st.session_state.get("planned") != key:
        buttons.button("Start", key=f"{name}_start", disabled=True, help=plain(words.first))
        if about:
            buttons.caption(plain(about))
        return None
    result = jobs.need(key, words.doing, work)
    return None if result is None else (result, buttons)


def start(place: DeltaGenerator, name: str, make: Callable[[str], RunRecord], label: str = "Start") -> None:
    """The button that starts the plan. ``make`` gets the user's name."""
    place.button(
        plain(label), key=f"{name}_start", type="primary", icon=":material/play_arrow:", on_click=_begin, args=(make,)
    )


def _begin(make: Callable[[str], RunRecord]) -> None:
    """Start the run, close the form and show the run."""
    try:
        record = make(kept.user())
    except UserError as error:
        state.notify(error)
        return
    st.session_state.pop("planned", None)
    st.session_state["new_box"] = False
    state.update(run=record.id, step=0)

"""A | B on Compare: any two of the full model, masks, steps of runs and other models, by a list with search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....answers.class_names import is_generic
from ....display.figures.speed import step_name
from ....display.sentences import whole
from ....errors import ModelError, RunError, UserError
from ....heads import HeadMask
from ....runs import reading
from ....runs.record import PRUNE
from ...shell import loaders, state
from ...shell.messages import plain, refused
from ...shell.view import View
from ..data import local_models
from ..runs import listing, steps
from . import answers
from .answers import Column

if TYPE_CHECKING:
    from ....models.classifier import Classifier
    from ....runs.reading import RunView

ALL, MASK, SAVED, RUN = "all", "mask", "saved:", "run:"
RUNS = 12  # the newest, whose steps are listed
KINDS = (PRUNE, "faster")  # of runs, whose steps have a mask or a model


def list_choices(clf: Classifier) -> dict[str, str]:
    """The choices of a side: the text in a link, and the name in the list."""
    mask = state.mask(clf.present)
    choices = {ALL: whole(clf.present), **({MASK: state.title_of_current(mask)} if mask.off else {})}
    if (maker := reading.maker(state.view().model)) is not None and (before := maker.spec.get("model")):
        choices[before] = f"{reading.model_title(before)}, from which the open model was made"
    choices |= {f"{SAVED}{name}": f"mask {name}" for name in state.saved_masks(clf.present)}
    runs = [run for run in listing.overview()[:RUNS] if run.record.kind in KINDS]
    titles = Counter(run.record.title for run in runs)
    for run in runs:
        if run.record.spec.get("model") == state.view().model:
            suffix = f" ({run.record.id})" if titles[run.record.title] > 1 else ""
            names = ((i, name_step(run, step)) for i, step in enumerate(run.steps))
            choices |= {f"{RUN}{run.record.id}:{i}": f"{name}{suffix}" for i, name in names if name}
    return {**choices, **loaders.model_titles(local_models()), **choices}


def name_step(run: RunView, step: dict[str, Any]) -> str:
    """What a step of a run is called; empty for one without a model: out of reach, deleted, or of another kind."""
    title = run.record.title[:80]
    if run.record.kind == PRUNE:
        return f"{title}, {100 * step['sparsity']:.0f} % off"
    if run.record.kind == "faster" and steps.kept_model(run, step):
        return f"{title}, {step_name(step)}"
    return ""


def choose(clf: Classifier) -> list[Column]:
    """The two lists, and the columns to show: those of A and B, or what is usual where neither is chosen. A folder or a
    hub id may be typed. An error appears below the lists, and the page goes on without them."""
    choices, view = list_choices(clf), state.view()
    a, b = st.columns(2)
    with a:
        # A list without ALL: its name is that of the empty choice, and two entries of one name are one to the browser
        others = {key: name for key, name in choices.items() if key != ALL}
        _choose_side("first", "A", "" if view.first == ALL else view.first, {"": choices[ALL], **others}, choices)
    with b:
        _choose_side("other", "B", view.other, {"": "current mask, and saved ones", **choices}, choices)
    try:
        return columns(clf, view)
    except UserError as error:
        refused(error)
        return answers.columns(clf)


def _choose_side(field: str, label: str, chosen: str, names: dict[str, str], choices: Mapping[str, str]) -> None:
    """The list of one side; ``names`` are its entries, ``choices`` what typed words may mean."""
    key = f"w_{field}"
    names.setdefault(chosen, chosen)  # one that was typed, or that a link names
    titles = {**choices, **names}

    def take() -> None:
        typed = str(st.session_state[key] or "").strip()
        state.update(**{field: find_choice(typed, choices)})

    st.session_state[key] = chosen
    st.selectbox(
        plain(label),
        list(names),
        key=key,
        format_func=lambda text: titles.get(text, text),
        accept_new_options=True,
        on_change=take,
        help="Type to search. A folder with a model, or a hub id, can be typed too",
    )


def find_choice(typed: str, choices: Mapping[str, str]) -> str:
    """The one entry that typed words name, begin, or are part of.

    The browser offers them as a new entry too, and Enter takes that one.
    """
    if typed in choices or not typed:
        return typed
    words = typed.casefold()
    names = {key: name.casefold() for key, name in choices.items()}
    equal = [key for key, name in names.items() if name == words]
    starting = [key for key, name in names.items() if name.startswith(words)]
    containing = [key for key, name in names.items() if words in name]
    return next((keys[0] for keys in (equal, starting, containing) if len(keys) == 1), typed)


def columns(clf: Classifier, view: View) -> list[Column]:
    """The columns of this view."""
    if not view.first and not view.other:
        return answers.columns(clf)
    default = MASK if state.mask(clf.present).off else ALL
    return answers.distinct([side(clf, view, view.first or ALL), side(clf, view, view.other or default)])


def side(clf: Classifier, view: View, text: str) -> Column:
    """What a link names: the full model, a mask of this model, a step of a run, or another model."""
    if text == ALL:
        return all_heads(whole(clf.present), clf)
    if text == MASK:
        mask = state.mask(clf.present)
        return Column(state.title_of_current(mask), clf, mask)
    if text.startswith(SAVED):
        name = text.removeprefix(SAVED)
        saved = state.saved_masks(clf.present).get(name)
        if saved is None:
            raise UserError(f"There is no saved mask '{name[:40]}' here. Choose another from the list.")
        return Column(name, clf, saved[0])
    if text.startswith(RUN):
        return _of_run(clf, view, text.removeprefix(RUN))
    other = other_model(view, clf, text)
    return all_heads(f"{reading.model_title(text)[-40:]} ({len(other.present.kept)} heads)", other)


def all_heads(name: str, clf: Classifier) -> Column:
    return Column(name, clf, HeadMask.full(clf.num_layers, clf.num_heads))


def _of_run(clf: Classifier, view: View, text: str) -> Column:
    """A step of a run: the model that it trained, if that was kept, else its mask on this model."""
    run_id, _, number = text.rpartition(":")
    with suppress(RunError, ValueError, IndexError):
        run = listing.look(run_id)
        step: Any = run.steps[int(number)]
        name = name_step(run, step)
        if folder := steps.kept_model(run, step):
            return all_heads(name, other_model(view, clf, folder))
        if run.record.kind == PRUNE:
            return Column(name, clf, HeadMask.from_hex(step["mask"], clf.num_layers, clf.num_heads))
    raise UserError(f"There is no step '{text[:60]}' of a run here. Choose another from the list.")


def other_model(view: View, like: Classifier, name: str) -> Classifier:
    """Another model, which must answer with the same classes."""
    other = view.of_model(name)
    if is_generic(loaders.shape(other).labels):  # a pruned copy, say, whose outputs mean the same
        other = replace(other, classes=view.classes)
    clf = loaders.classifier(other)
    if clf.labels != like.labels:
        raise ModelError(
            f"'{name}' has the classes {', '.join(clf.labels)}; '{like.name}' has {', '.join(like.labels)}. "
            "Compare models that have the same classes in the same order."
        )
    return clf

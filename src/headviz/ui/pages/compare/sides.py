"""A | B on Compare: any two of the full model, masks, steps of runs and other models, by a list with search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....answers.class_names import is_generic
from ....display.figures.speed import step_name
from ....errors import ModelError, RunError, UserError
from ....heads import HeadMask
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
# kind of run -> what tells a step of it from the others
STEPS: Mapping[str, Callable[[RunView, dict[str, Any]], str]] = {
    "prune": lambda _, step: f"{100 * step['sparsity']:.0f} % off",
    "faster": lambda run, step: step_name(step) if steps.kept_model(run, step) else "",
}


def listed(clf: Classifier) -> dict[str, str]:
    """What can stand on a side, by the text that a link has: its name in the list."""
    off = len(state.mask(clf.present).off)
    out = {ALL: "all heads", **({MASK: f"current mask ({off} off)"} if off else {})}
    out |= {f"{SAVED}{name}": f"mask {name}" for name in state.saved_masks(clf.present)}
    runs = [r for r in listing.overview()[:RUNS] if r.record.kind in STEPS]
    titles = Counter(run.record.title for run in runs)
    for run in runs:
        if run.record.spec.get("model") == state.view().model:
            which = f" ({run.record.id})" if titles[run.record.title] > 1 else ""
            steps_named = ((at, named(run, step)) for at, step in enumerate(run.steps))
            out |= {f"{RUN}{run.record.id}:{at}": f"{name}{which}" for at, name in steps_named if name}
    return out | loaders.model_titles(local_models())


def named(run: RunView, step: dict[str, Any]) -> str:
    """What a step of a run is called; empty for one without a model: out of reach, deleted, or of another kind."""
    name_of = STEPS.get(run.record.kind)
    how = "" if name_of is None else name_of(run, step)
    return f"{run.record.title[:80]}, {how}" if how else ""


def choose(clf: Classifier) -> list[Column]:
    """The two lists, and the columns to show: those of A and B, or what is usual where neither is chosen. A folder or a
    hub id may be typed. An error appears below the lists, and the page goes on without them."""
    known = listed(clf)
    left, right = st.columns(2)
    for box, field, label in ((left, "first", "A"), (right, "other", "B")):
        now, usual = getattr(state.view(), field), "current mask, and saved ones"
        names = ["", *known, *([now] if now and now not in known else [])]
        if field == "first":  # two entries of one name are one to the browser
            now, usual, names = "" if now == ALL else now, known[ALL], [name for name in names if name != ALL]
        with box:
            key = f"w_{field}"
            st.session_state[key] = now
            st.selectbox(
                plain(label),
                names,
                key=key,
                format_func=partial(_named, known, usual),
                accept_new_options=True,
                on_change=_take,
                args=(field, known),
                help="Type to search. A folder with a model, or a hub id, can be typed too",
            )
    try:
        return columns(clf, state.view())
    except UserError as wrong:
        refused(wrong)
        return columns(clf, replace(state.view(), first="", other=""))


def _named(known: Mapping[str, str], usual: str, name: str) -> str:
    return known.get(name, name) or usual


def _take(field: str, known: Mapping[str, str]) -> None:
    state.update(**{field: meant(str(st.session_state[f"w_{field}"] or "").strip(), known)})


def meant(typed: str, known: Mapping[str, str]) -> str:
    """The one entry that typed words name, begin, or are part of.

    The browser offers them as a new entry too, and Enter takes that one.
    """
    if typed in known or not typed:
        return typed
    words = typed.casefold()
    exact = [key for key, name in known.items() if name.casefold() == words]
    begins = [key for key, name in known.items() if name.casefold().startswith(words)]
    holds = [key for key, name in known.items() if words in name.casefold()]
    return next((named[0] for named in (exact, begins, holds) if len(named) == 1), typed)


def columns(clf: Classifier, view: View) -> list[Column]:
    """The columns of this view."""
    if not view.first and not view.other:
        return answers.columns(clf)
    usual = MASK if state.mask(clf.present).off else ALL
    both = [side(clf, view, view.first or ALL), side(clf, view, view.other or usual)]
    names = answers.distinct([one.name for one in both], answers.TAKEN)
    return [replace(one, name=name) for one, name in zip(both, names, strict=True)]


def side(clf: Classifier, view: View, text: str) -> Column:
    """What a link names: the full model, a mask of this model, a step of a run, or another model."""
    full = HeadMask.full(clf.num_layers, clf.num_heads)
    if text == ALL:
        return Column("all heads", clf, full)
    if text == MASK:
        mask = state.mask(clf.present)
        return Column(f"current mask ({len(mask.off)} off)", clf, mask)
    if text.startswith(SAVED):
        name = text.removeprefix(SAVED)
        saved = state.saved_masks(clf.present).get(name)
        if saved is None:
            raise UserError(f"There is no saved mask '{name[:40]}' here. Choose another from the list.")
        return Column(name, clf, saved[0])
    if text.startswith(RUN):
        return _of_run(clf, view, text.removeprefix(RUN))
    other = other_model(view, clf, text)
    name = f"{loaders.model_title(text)[-40:]} ({len(other.present.kept)} heads)"
    return Column(name, other, HeadMask.full(other.num_layers, other.num_heads))


def _of_run(clf: Classifier, view: View, text: str) -> Column:
    """A step of a run: the model that it trained, if that was kept, else its mask on this model."""
    run_id, _, number = text.rpartition(":")
    with suppress(RunError, ValueError, IndexError):
        run = listing.look(run_id)
        step: Any = run.steps[int(number)]
        name = named(run, step)
        if folder := steps.kept_model(run, step):
            other = other_model(view, clf, folder)
            return Column(name, other, HeadMask.full(other.num_layers, other.num_heads))
        if run.record.kind == "prune":
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

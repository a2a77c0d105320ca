"""Faster models on the Runs page: the form, and what each target keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....answers.metrics import metric_title
from ....display.figures.speed import (
    LOSS,
    NAMES,
    decision,
    faster_table,
    kept_against_speed,
    learning_rates,
    step_name,
    tried_table,
)
from ....display.numbers import number, span
from ....display.sentences import points_changed
from ....errors import UserError
from ....evaluation.verdict import excluded
from ....options import UNSET, declared
from ....pruning.options import MEASURED_IN, TARGETS, TORCH, SearchOptions, usual_epochs
from ....reports.run_report import keep_runtimes
from ....runs import service
from ....runs.files import RunFiles
from ....runs.jobs.faster import FasterSpec, make
from ....runs.kinds import make_job
from ....runs.prepare import device_name, timed_with
from ....tasks import chosen_on, points_in
from ...parts import training
from ...shell import controls, jobs, loaders, show, state
from ...shell.messages import plain, refused
from ...shell.view import View
from .. import analyses
from . import models, plans

if TYPE_CHECKING:
    from ....progress import Cancel
    from ....runs.reading import RunView

DEFAULTS = {"length": 32}  # of the form, where they are not the declared ones
RATE = declared(SearchOptions)["rate"]  # of a training alone


def form(view: View) -> None:
    """The options of a search for faster models."""
    st.caption("Heads and feed-forward neurons go until the model is so many times as fast on this machine.")
    first, *columns = st.columns(4)
    targets = controls.field(first, TARGETS, "fast_targets", (1.5, 2))
    places = dict(zip(("batch", "length", "samples"), columns, strict=True))
    options = {
        name: controls.field(places.get(name, st.container()), option, f"fast_{name}", DEFAULTS.get(name, UNSET))
        for name, option in declared(SearchOptions).items()
        if option.title and name != RATE.name
    }
    row = st.container(horizontal=True, gap="medium")
    retrained = row.toggle(
        "Train the smaller models", False, key="fast_retrain", help="On the train split, once parts have gone"
    )
    # with training, heads only next to it would take as long once more
    beside = controls.field(row, declared(FasterSpec)["beside"], f"fast_beside_{retrained}", not retrained)
    training_of: Callable[[], dict[str, Any]] = _training(view) if retrained else dict
    try:
        values = {name: value() for name, value in options.items()}
        spec = _spec(view, targets=list(targets()), beside=beside(), **values, **training_of())
    except UserError as error:
        refused(error)
        return
    timed = retrained  # nothing else has an estimate
    words = plans.Words() if timed else plans.Words(why="Check it", doing="Checking the plan")
    ready = plans.checked("fast", ("faster", json.dumps(spec)), lambda p, c: _check(spec, c), words)
    if ready is not None:
        (device, note), place = ready
        st.caption(plain(note))
        title = f"{', '.join(f'{t:g}×' for t in spec['targets'])} as fast, {spec['task']}"
        plans.start(place, "fast", lambda owner: service.start("faster", spec, title=title, device=device, owner=owner))


def _training(view: View) -> Callable[[], dict[str, Any]]:
    """The fields for training the smaller models. Gives a function that reads and checks them."""
    recipe = training.recipe_for(loaders.model_name(view.model))
    with suppress(UserError):  # what cannot be read is named by the check of the form
        epochs = usual_epochs(len(loaders.train(view)), recipe.options.batch)
        recipe = replace(recipe, options=replace(recipe.options, epochs=epochs))
    with st.expander("Training of the smaller models", icon=":material/model_training:"):
        st.caption(plain(recipe.sentence(view)))
        options, limit, room = training.fields(f"fast_train_{view.model}", recipe, None)
        rate = controls.field(room, RATE, "fast_rate")
    return lambda: {"finetune": options().to_dict(), "train_limit": limit(), RATE.name: rate()}


def _spec(view: View, **chosen: Any) -> dict[str, Any]:
    spec = {k: list(v) if isinstance(v, tuple) else v for k, v in plans.source(view).items()} | chosen
    make_job("faster", spec)
    return spec


def _check(spec: dict[str, Any], cancel: Cancel) -> tuple[str, str]:
    """Check the search before a run is recorded. Gives the device, and a line for the user."""
    from ....pruning.faster import FasterSteps, require_possible

    job = make(spec)
    clf = job.spec.classifier()
    train, dev = job.spec.splits
    require_possible(clf, job.spec.options, train)
    work = FasterSteps(clf, train, job.spec.options, dev, job.spec.label_order, cancel=cancel)
    count, busy = len(job.spec.names), plans.busy()
    sentences = [f"{count} model{'' if count == 1 else 's'} will be built and timed on {clf.device}{busy}."]
    if job.spec.finetune is not None:
        with timed_with(service.default_threads()):
            seconds = work.training_seconds([step for _, step, _ in job.spec.rounds.values()])
        sentences.append(f"The trainings take about {span(seconds)}.")
    return device_name(clf.device), " ".join(filter(None, [*sentences, chosen_on(train, dev)]))


def detail(view: RunView) -> None:
    """The figure, the table and the models of a search for faster models."""
    steps = [s for s in view.steps if s.get("speedup")]
    for step in view.steps:
        if step.get("note"):
            st.caption(plain(f"{NAMES[step['remove']]}: {step['note']}"))
    if not steps:
        if view.state in ("running", "queued"):
            st.info("The first model appears once it is built. You may leave this page; the run continues.")
        return
    first = steps[0]
    metric = next(iter(first["metrics"]), "")
    baseline = (first["baseline"] or {}).get(metric)
    scale = points_in(metric)
    show.finding(f"{decision(steps, metric)} {_finding(steps, metric, scale)}".strip())
    chosen = _chosen(view, steps)
    show.figure(
        kept_against_speed(steps, metric, baseline, chosen),
        "faster_curve",
        f"{metric_title(metric)} on dev against the measured speed, batches of {first['batch']} texts of "
        f"{first['length']} tokens, in {MEASURED_IN[view.record.spec.get('runtime', TORCH)]}; bars and "
        "areas are 95 % intervals. Dotted: the speed if only arithmetic took time.",
    )
    if chosen.get("change"):
        verdict = excluded(chosen["change"]["low"], scale, LOSS)
        st.caption(
            plain(f"{step_name(chosen)}: {metric_title(metric)} changes by {_change(chosen, scale)}; {verdict}.")
        )
    _take(view, chosen)
    show.table(faster_table(steps, metric))
    for step in steps:
        if rates := learning_rates(step):
            st.caption(plain(f"{step_name(step)}: {rates}."))
    if any(step.get("tried") for step in steps):
        with st.expander("What a head or neuron is worth", icon=":material/balance:"):
            show.table(tried_table(steps))


def _finding(steps: list[dict[str, Any]], metric: str, scale: float) -> str:
    """Of the models not significantly slower than the fastest, the one that keeps most, and the others."""
    fastest = max(steps, key=lambda s: float(s["speedup"]))
    level = [s for s in steps if s["speedup_high"] >= fastest["speedup_low"]]

    def keeps_most(step: dict[str, Any]) -> tuple[bool, float]:
        value = step["metrics"].get(metric)  # None where it has no value
        return value is None, -(value or 0.0)

    first, *others = sorted(level, key=keeps_most)
    subject = (
        "Of the fastest models, whose speeds do not differ significantly, the one that keeps most"
        if others
        else "The fastest model"
    )
    low, high = (number(first[k]) for k in ("speedup_low", "speedup_high"))
    sentence = f"{subject} (removed: {NAMES[first['remove']]}) is {number(first['speedup'])}× as fast [{low}, {high}]"
    sentence += f"; {metric_title(metric)} changes by {_change(first, scale)}" if first.get("change") else ""
    changes = [f"{NAMES[s['remove']]} {number(s['speedup'])}×: {_change(s, scale)}" for s in others if s.get("change")]
    return f"{sentence}. Also not significantly slower: {'; '.join(changes)}." if changes else f"{sentence}."


def _change(step: dict[str, Any], scale: float) -> str:
    change = step["change"]
    return points_changed(change.get("difference"), change.get("low"), change.get("high"), scale)


def _chosen(view: RunView, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The model that the slider names; while a run goes on, the models come one by one."""
    by_name = {step_name(s): s for s in sorted(steps, key=lambda s: float(s["speedup"]))}
    if len(by_name) == 1:
        return steps[0]
    return by_name[st.select_slider("Model", list(by_name), key=f"faster_model_{view.record.id}")]


def _take(view: RunView, step: dict[str, Any]) -> None:
    """The button that opens one of the models."""
    if view.state != "done":
        return
    folder = str(RunFiles(view.record.id).results / step["model"])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Use as the current model",
            key="faster_use",
            icon=":material/deployed_code:",
            on_click=models.use,
            args=(folder,),
            disabled=state.view().model == folder,
        )
        compare = st.button(
            "Compare runtimes",
            key="faster_runtimes",
            icon=":material/speed:",
            help="This model and the one that it was made from, in PyTorch, ONNX Runtime and int8",
        )
    key = ("runtimes", view.record.id, step["model"])
    if compare or jobs.find(key) is not None:
        _runtimes(key, make(view.record.spec).spec, folder)


def _runtimes(key: tuple[str, ...], spec: FasterSpec, folder: str) -> None:
    """How fast the chosen model is in each runtime, measured when it is asked for."""
    from ....pruning.runtimes import Runtimes, runtimes, view  # torch

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Runtimes:
        clf = spec.classifier(device="cpu")
        options: Any = {"batch": spec.batch, "length": spec.length, "label_order": spec.label_order}
        compared = runtimes(clf, folder, spec.splits[1], **options, progress=progress, cancel=cancel)
        keep_runtimes(key[1], Path(folder).name, view(compared))
        return compared

    result = jobs.need(key, "Runtimes", work)
    if result is not None:
        analyses.draw(view(result))

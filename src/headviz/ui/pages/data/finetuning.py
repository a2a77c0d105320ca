"""Fine-tuning a base model in the background: the form, its progress, and the way to its result."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....errors import UserError
from ....tasks import points_in
from ...parts import training
from ...shell import jobs, loaders, show, state
from ...shell.view import View
from ..runs import actions as runactions
from ..runs import listing as runsview
from ..runs import plans
from ..runs import take_away as runsave

if TYPE_CHECKING:
    from ....pruning.options import FinetuneOptions
    from ....runs.reading import RunView
    from ....runs.record import RunRecord

WORDS = plans.Words("Check", "Count the updates and time a few", "Checking model and data, timing a few updates",
                    "Check it first")  # fmt: skip


def form(view: View) -> None:
    """A base model, the page's task and data, and how to train. Defaults are the base's own recipe, if it has one."""
    if view.data in loaders.uploads():
        st.info(
            "An upload is a dev split: there is nothing to train on. Under *Task*, name a folder that holds train and "
            "dev files, with the same columns.",
            icon=":material/folder_open:",
        )
        return
    default = view.base or ("demo-pretrained" if view.model == "demo" else "")
    base = st.text_input(
        "Base model", default, key="tune_base", placeholder="bert-base-uncased, or a folder",
        help="A pre-trained encoder; it gets a fresh head for the task's classes",
    ).strip()  # fmt: skip
    if not base:
        st.caption(
            "Name what to train: a hub id such as bert-base-uncased, or a folder below the allowed ones."
        )
        return
    try:
        name = loaders.model_name(base)
        recipe = training.recipe_for(name)
    except UserError as wrong:
        st.error(show.plain(str(wrong)), icon=":material/error:")
        return
    st.caption(recipe.said)
    options, limit, room = training.fields(f"tune_{base}", recipe, None if view.data else recipe.examples)
    seed = room.number_input(
        "Seed", 0, 2**31 - 1, 0, key=f"tune_{base}_seed", help="Of the new head, the order and dropout"
    )
    try:
        spec = spec_of(view, name, options(), int(seed), limit)
    except UserError as wrong:
        st.error(show.plain(str(wrong)), icon=":material/error:")
        return
    ready = plans.checked("tune", ("tune", repr(sorted(spec.items()))), lambda p, c: _prepare(spec, c), WORDS)
    if ready is not None:
        found, place = ready
        st.markdown(
            f"About **{runsview.span(found.seconds)}** on this machine: {found.updates:,} updates on "
            f"{found.examples:,} training examples of {show.plain(view.task)}."
        )
        title = f"{Path(name).name} on {view.task}, seed {spec['seed']}"[:120]
        plans.start(place, "tune", lambda owner: _start(spec, title, found.device, owner))


def spec_of(view: View, name: str, options: FinetuneOptions, seed: int, limit: int) -> dict[str, Any]:
    """What the run is written down with; refused here if it makes no sense."""
    from ....runs.kinds import make_job
    from ....tasks import TASKS

    source = plans.source(view)
    if not TASKS[view.task].is_translation:  # translating dev takes longer than an epoch
        options = dataclasses.replace(options, evaluate_epochs=True)
    spec: dict[str, Any] = {
        "model": name,
        **{k: source[k] for k in ("task", "data", "label_column", "device", "dev_limit") if k in source},
        "seed": seed,
        "finetune": options.to_dict(),
    }
    if source.get("text_columns"):
        spec["text_columns"] = list(source["text_columns"])
    if limit:
        spec["train_limit"] = limit
    make_job("finetune", spec)
    return spec


@dataclasses.dataclass(frozen=True)
class Planned:
    """A checked fine-tuning in numbers."""

    updates: int
    examples: int
    seconds: float
    device: str


def _prepare(spec: dict[str, Any], cancel: jobs.Cancel) -> Planned:
    """What cannot work is refused; a few updates are timed."""
    from ....runs.calibration import finetuning_seconds
    from ....runs.prepare import device_name
    from ....runs.service import default_threads

    updates, examples, seconds, device = finetuning_seconds(spec, default_threads(), cancel)
    return Planned(updates, examples, seconds, device_name(device))


def _start(spec: dict[str, Any], title: str, device: str, owner: str) -> RunRecord:
    from ....runs import service

    return service.start("finetune", spec, title=title, device=device, owner=owner)


# ---- looking


def latest(view: View) -> None:
    """The fine-tuning that the address names, or the newest, on the page that started it."""
    from ....runs import reading
    from ....runs.states import ACTIVE, QUEUED

    found = [r for r in runsview.overview() if r.record.kind == "finetune"]
    if not found:
        return
    first = next((r for r in found if r.record.id == view.run), found[0])
    st.markdown(f"**{show.plain(first.record.title)}**")
    busy = first.state in ACTIVE or first.state == QUEUED
    st.fragment(_live, run_every=runsview.POLL if busy else None)(first.record.id, first.state)
    if first.state == "done":
        result(reading.show(first.record.id, log_lines=0))
    st.page_link("pages/runs.py", label="All runs", icon=":material/list:")


def _live(run_id: str, before: str) -> None:
    from ....runs import reading

    runactions.look_again()
    now = reading.show(run_id, log_lines=0)
    runsview.state_line(now)
    if now.state != before:
        st.rerun()


def detail(view: RunView) -> None:
    """A fine-tuning on the Runs page."""
    if not view.steps:
        if view.state in ("running", "queued"):
            st.info("The learning curve grows from the first updates on. You may leave: the run goes on.",
                    icon=":material/hourglass_top:")  # fmt: skip
        curve(view)
        return
    result(view)
    curve(view)


def curve(view: RunView) -> None:
    """The learning curve so far, drawn anew while it grows."""
    from ....runs.states import ACTIVE

    st.fragment(_curve, run_every=runsview.POLL * 2 if view.state in ACTIVE else None)(view.record.id)


def _curve(run_id: str) -> None:
    from ....charts.runs import learning_curve
    from ....runs import reading
    from ....runs.files import RunFiles
    from ....runs.jobs.finetune import CURVE

    view, files = reading.show(run_id, log_lines=0), RunFiles(run_id)
    so_far = files.read_json(files.results / CURVE)
    points = view.steps[0].get("curve") if view.steps else so_far.get("curve")
    metric = next(iter(view.steps[0]["metrics"] if view.steps else so_far.get("metrics") or ()), "")
    if points:
        measured = any(p.get("metrics") for p in points)
        show.figure(
            learning_curve(points, metric), "tune_curve",
            "Training loss by update" + (f", and {metric} on dev after each epoch." if measured else "."),
        )  # fmt: skip


def result(view: RunView) -> None:
    """What it came to, and the way on."""
    step, record = view.steps[0], view.record
    row = st.container(horizontal=True, gap="medium")
    for name, value in step["metrics"].items():
        row.metric(
            f"{name} on dev",
            show.metric(value, points_in(name)) if value is not None else "undefined",
            width=150,
        )
    kept = (
        "" if step.get("best_epoch") is None else f"; kept are the weights after epoch {step['best_epoch']:g}"
    )
    st.caption(
        f"{step['updates']:,} updates, {step['epochs']:g} epochs{kept}, {runsview.span(step['seconds'])}."
    )
    folder = model_folder(view)
    if folder is None:
        st.caption("Its model opens when the run is done.")
        return
    if state.view().model == str(folder):
        st.success("It is the current model.", icon=":material/check:")
        return
    base = str(record.spec["model"])
    st.button(
        "Open it as the current model", key="tune_use", type="primary", icon=":material/deployed_code:",
        on_click=runsave.use, args=(str(folder),), kwargs={"base": base},
        help="The model lies with its run: deleting the run deletes it",
    )  # fmt: skip


def model_folder(view: RunView) -> Path | None:
    """Where the trained model lies, once the run is done."""
    from ....runs.files import RunFiles
    from ....runs.jobs.finetune import MODEL

    place = RunFiles(view.record.id).results / MODEL
    return place if view.state == "done" and place.is_dir() else None

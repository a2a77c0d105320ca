"""Fine-tuning a base model in the background: the form, its progress, and the way to its result."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ..errors import UserError
from ..tasks import points_in
from . import jobs, loaders, plans, runactions, runsave, runsview, show, state
from .view import View

if TYPE_CHECKING:
    from ..pruning.options import FinetuneOptions
    from ..runs.reading import RunView


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
        recipe, examples = known_recipe(name)
    except UserError as wrong:
        st.error(show.plain(str(wrong)), icon=":material/error:")
        return
    st.caption(
        "Settings: the base model's own recipe."
        if recipe is not None
        else "Settings: the 2024 thesis's for BERT-base; a small model trained from scratch needs others."
    )
    given, seed, limit = _fields(base, recipe, examples if view.data == "" else None)
    try:
        spec = spec_of(view, name, given, seed, limit)
    except UserError as wrong:
        st.error(show.plain(str(wrong)), icon=":material/error:")
        return
    _check_and_start(view, spec, Path(name).name)


def known_recipe(name: str) -> tuple[FinetuneOptions | None, int | None]:
    """The recipe in a local model's folder and how many examples it trains on; a hub model is not downloaded for it."""
    from ..pruning.recipe import examples_of, recipe_of

    if name not in loaders.NAMED and not Path(name).is_dir():
        return None, None
    return recipe_of(name), examples_of(name)


def _fields(
    base: str, recipe: FinetuneOptions | None, examples: int | None
) -> tuple[FinetuneOptions | UserError, int, int]:
    """One field for each option; keys follow the base, so another base brings its own defaults."""
    from ..pruning.options import PRECISIONS, SCHEDULES, FinetuneOptions

    start = recipe or FinetuneOptions()
    key = f"tune_{base}"
    a, b, c = st.columns(3)
    epochs = a.number_input("Epochs", 0.01, 1000.0, float(start.epochs), key=f"{key}_epochs", format="%g")
    batch = b.number_input("Batch", 1, 4096, start.batch, key=f"{key}_batch")
    rate = c.text_input("Learning rate", f"{start.learning_rate:g}", key=f"{key}_rate")
    a, b, c = st.columns(3)
    limit = a.number_input(
        "Training examples", 0, 10_000_000, examples or 0, key=f"{key}_limit", help="0 = all"
    )
    seed = b.number_input(
        "Seed", 0, 2**31 - 1, 0, key=f"{key}_seed", help="Of the new head, the order and dropout"
    )
    stop = c.number_input("Stop early after", 0, 100, start.early_stopping or 0, key=f"{key}_stop",
                          help="Epochs without a better dev metric, then the best weights; 0 = never")  # fmt: skip
    with st.expander("More options", icon=":material/tune:"), st.container(horizontal=True):
        more: dict[str, Any] = {
            "schedule": st.selectbox("Schedule", SCHEDULES, SCHEDULES.index(start.schedule), key=f"{key}_schedule",
                                     width=140),
            "warmup": st.number_input("Warm-up, share", 0.0, 1.0, float(start.warmup), key=f"{key}_warmup", width=130),
            "weight_decay": st.number_input("Weight decay", 0.0, 10.0, float(start.weight_decay), key=f"{key}_decay",
                                            format="%g", width=130),
            "precision": st.selectbox("Precision", PRECISIONS, PRECISIONS.index(start.precision),
                                      key=f"{key}_precision", width=130),
            "accumulation": st.number_input("Batches per update", 1, 1024, start.accumulation,
                                            key=f"{key}_accumulation", width=130),
        }  # fmt: skip
    try:
        made = dataclasses.replace(
            start, epochs=float(epochs), batch=int(batch), learning_rate=_number(rate), evaluate_epochs=True,
            early_stopping=int(stop) or None, **more,
        )  # fmt: skip
    except UserError as wrong:
        return wrong, int(seed), int(limit)
    return made, int(seed), int(limit)


def _number(text: str) -> float:
    from ..errors import OptionError

    try:
        return float(text)
    except ValueError:
        raise OptionError(f"A learning rate is a number such as 2e-5, not '{text[:20]}'.") from None


def spec_of(
    view: View, name: str, options: FinetuneOptions | UserError, seed: int, limit: int
) -> dict[str, Any]:
    """What the run is written down with; refused here if it makes no sense."""
    from ..runs.kinds import make_job

    if isinstance(options, UserError):
        raise options
    source = plans.source(view)
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


def _check_and_start(view: View, spec: dict[str, Any], base: str) -> None:
    key = ("tune", repr(sorted(spec.items())))
    buttons = st.container(horizontal=True)
    buttons.button(
        "Check", key="tune_check", icon=":material/checklist:", help="Count the updates and time a few",
        on_click=plans.wanted, args=(key,),
    )  # fmt: skip
    if st.session_state.get("planned") != key:
        buttons.button("Start", key="tune_start", disabled=True, help="Check it first")
        return
    found = jobs.need(key, "Checking model and data, timing a few updates", lambda p, c: _prepare(spec, c))
    if found is None:
        return
    updates, examples, seconds, device = found
    st.markdown(
        f"About **{runsview.span(seconds)}** on this machine: {updates:,} updates on {examples:,} training examples "
        f"of {show.plain(view.task)}."
    )
    buttons.button(
        "Start", key="tune_start", type="primary", icon=":material/play_arrow:", on_click=_start,
        args=(spec, f"{base} on {view.task}, seed {spec['seed']}"[:120], device),
    )  # fmt: skip


def _prepare(spec: dict[str, Any], cancel: jobs.Cancel) -> tuple[int, int, float, str]:
    """Updates, examples, an estimate of the seconds, and the device; what cannot work is refused."""
    from ..runs.calibration import finetuning_seconds
    from ..runs.prepare import device_name
    from ..runs.service import default_threads

    updates, examples, seconds, device = finetuning_seconds(spec, default_threads(), cancel)
    return updates, examples, seconds, device_name(device)


def _start(spec: dict[str, Any], title: str, device: str) -> None:
    from ..runs import service

    try:
        record = service.start("finetune", spec, title=title, device=device, owner=runactions.this_user())
    except UserError as wrong:
        state.notify(str(wrong))
        return
    st.session_state.pop("planned", None)
    state.update(run=record.id)


# ---- looking


def latest(view: View) -> None:
    """The fine-tuning that the address names, or the newest, on the page that started it."""
    from ..runs import reading
    from ..runs.states import ACTIVE, QUEUED

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
    from ..runs import reading

    runactions.look_again()
    now = reading.show(run_id, log_lines=0)
    runsview.state_line(now)
    if now.state != before:
        st.rerun()


def detail(view: RunView) -> None:
    """A fine-tuning on the Runs page."""
    from ..charts_runs import learning_curve

    if not view.steps:
        if view.state in ("running", "queued"):
            st.info("The learning curve appears when the training is over. You may leave: it goes on.",
                    icon=":material/hourglass_top:")  # fmt: skip
        return
    result(view)
    curve = view.steps[0].get("curve") or []
    if curve:
        metric = next(iter(view.steps[0]["metrics"]), "")
        show.figure(
            learning_curve(curve, metric), "tune_curve",
            f"Training loss by update, and {metric} on dev after each epoch.",
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
    from ..runs.files import RunFiles
    from ..runs.jobs.finetuning import MODEL

    place = RunFiles(view.record.id).results / MODEL
    return place if view.state == "done" and place.is_dir() else None

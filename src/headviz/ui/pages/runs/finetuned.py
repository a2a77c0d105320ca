"""A fine-tuning run: its learning curve, its result, and the button that opens its model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ....display.numbers import span
from ....tasks import points_in
from ...shell import show, state
from . import listing, take_away

if TYPE_CHECKING:
    from ....runs.reading import RunView


def detail(view: RunView) -> None:
    """A fine-tuning on the Runs page."""
    if not view.steps:
        if view.state in ("running", "queued"):
            st.info(
                "The learning curve appears with the first updates. You may leave this page; the run continues.",
                icon=":material/hourglass_top:",
            )
        curve(view)
        return
    result(view)
    curve(view)


def curve(view: RunView) -> None:
    """The learning curve so far, drawn again while it grows."""
    from ....runs.states import ACTIVE

    st.fragment(_curve, run_every=listing.POLL * 2 if view.state in ACTIVE else None)(view.record.id)


def _curve(run_id: str) -> None:
    from ....display.figures.training import learning_curve
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
            learning_curve(points, metric),
            "tune_curve",
            "Training loss by update" + (f", and {metric} on dev after each epoch." if measured else "."),
        )


def result(view: RunView) -> None:
    """The metrics reached, and the button that opens the model."""
    step, record = view.steps[0], view.record
    row = st.container(horizontal=True, gap="medium")
    for name, value in step["metrics"].items():
        row.metric(
            show.plain(f"{name} on dev"),
            show.metric(value, points_in(name)) if value is not None else "undefined",
            width=150,
        )
    kept = "" if step.get("best_epoch") is None else f", weights of epoch {step['best_epoch']:g} kept"
    st.caption(f"{step['updates']:,} updates, {step['epochs']:g} epochs{show.plain(kept)}, {span(step['seconds'])}.")
    folder = model_folder(view)
    if folder is None:
        st.caption("The model can be opened when the run is done.")
        return
    if state.view().model == str(folder):
        st.success("This is the current model.", icon=":material/check:")
        return
    base = str(record.spec["model"])
    st.button(
        "Use as the current model",
        key="tune_use",
        type="primary",
        icon=":material/deployed_code:",
        on_click=take_away.use,
        args=(str(folder),),
        kwargs={"base": base},
        help="The model is stored with its run. Deleting the run deletes the model",
    )


def model_folder(view: RunView) -> Path | None:
    """The folder of the trained model, once the run is done."""
    from ....runs.files import RunFiles
    from ....runs.jobs.finetune import MODEL

    place = RunFiles(view.record.id).results / MODEL
    return place if view.state == "done" and place.is_dir() else None

"""Fine-tune a base model in the background: the form, the progress and the result."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.numbers import span
from ....errors import UserError
from ...parts import training
from ...shell import jobs, loaders, show
from ...shell.view import View
from ..runs import actions as runactions
from ..runs import finetuned, plans
from ..runs import listing as runsview

if TYPE_CHECKING:
    from ....pruning.options import FinetuneOptions
    from ....runs.calibration import Training
    from ....runs.record import RunRecord

WORDS = plans.Words(
    "Check", "Count the updates and time a few", "Checking model and data, timing a few updates", "Check it first"
)


def form(view: View) -> None:
    """The base model and how to train it on the page's data. Defaults come from the base model's own recipe, if any."""
    if view.data in loaders.uploads():
        st.info(
            "An upload has no training split. Under *Task*, name a folder with train and dev files that have the same "
            "columns.",
            icon=":material/folder_open:",
        )
        return
    default = view.base or ("demo-pretrained" if view.model == "demo" else "")
    base = st.text_input(
        "Base model",
        default,
        key="tune_base",
        placeholder="bert-base-uncased, or a folder",
        help="A pre-trained encoder; it gets a new classification head for the task's classes",
    ).strip()
    if not base:
        st.caption(
            "Name the model to train: a hub id such as bert-base-uncased, or a folder that the dashboard may read."
        )
        return
    try:
        name = loaders.model_name(base)
        recipe = training.recipe_for(name)
    except UserError as wrong:
        show.refused(wrong)
        return
    st.caption(show.plain(recipe.said(view)))
    options, limit, room = training.fields(f"tune_{base}", recipe, None if view.data else recipe.examples)
    seed = room.number_input(
        "Seed", 0, 2**31 - 1, 0, key=f"tune_{base}_seed", help="For the new head, the order of the examples and dropout"
    )
    try:
        spec = spec_of(view, name, options(), int(seed), limit)
    except UserError as wrong:
        show.refused(wrong)
        return
    ready = plans.checked("tune", ("tune", repr(sorted(spec.items()))), lambda p, c: _prepare(spec, c), WORDS)
    if ready is not None:
        found, place = ready
        st.markdown(
            f"About **{span(found.seconds)}** on this machine: {found.updates:,} updates on "
            f"{found.examples:,} training examples of {show.plain(view.task)}."
        )
        if found.note:
            st.caption(show.plain(f"Note: {found.note}"))
        title = f"{Path(name).name} on {view.task}, seed {spec['seed']}"[:120]
        plans.start(place, "tune", lambda owner: _start(spec, title, found.device, owner))


def spec_of(view: View, name: str, options: FinetuneOptions, seed: int, limit: int) -> dict[str, Any]:
    """The run's specification; ``UserError`` if it cannot work."""
    from ....runs.kinds import make_job
    from ....tasks import TASKS

    source = plans.source(view)
    if TASKS[view.task].answer.quick:
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


def _prepare(spec: dict[str, Any], cancel: jobs.Cancel) -> Training:
    """Check the specification and time a few updates."""
    from ....runs.calibration import planned_training
    from ....runs.service import default_threads

    return planned_training(spec, default_threads(), cancel)


def _start(spec: dict[str, Any], title: str, device: str, owner: str) -> RunRecord:
    from ....runs import service

    return service.start("finetune", spec, title=title, device=device, owner=owner)


# ---- looking


def latest(view: View) -> None:
    """The fine-tuning that the address names, or the newest one."""
    from ....runs import reading

    found = [r for r in runsview.overview() if r.record.kind == "finetune"]
    if not found:
        return
    first = next((r for r in found if r.record.id == view.run), found[0])
    st.markdown(f"**{show.plain(first.record.title)}**")
    st.fragment(_live, run_every=runsview.POLL if runsview.busy(first) else None)(first.record.id, first.state)
    if first.state == "done":
        finetuned.result(reading.show(first.record.id, log_lines=0))
    st.page_link("pages/runs.py", label="All runs", icon=":material/list:")


def _live(run_id: str, before: str) -> None:
    from ....runs import reading

    runactions.look_again()
    now = reading.show(run_id, log_lines=0)
    runsview.state_line(now)
    if now.state != before:
        st.rerun()

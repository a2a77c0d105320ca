"""The models of runs: made the current one, saved, and the result of a fine-tuning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....answers.metrics import metric_title
from ....display import numbers
from ....display.figures.bars import learning_curve
from ....display.numbers import size, span
from ....errors import UserError
from ....pruning.algorithms import ALGORITHMS
from ....runs import reading
from ....runs.files import RunFiles
from ....runs.jobs.finetune import CURVE, MODEL
from ....runs.record import ACTIVE
from ....runs.step_models import save_model, zip_model
from ....storage.paths import home, outside_path
from ....tasks import points_in
from ...shell import jobs, kept, loaders, show, state
from ...shell.messages import plain, refused
from . import listing, plans

if TYPE_CHECKING:
    from ....runs.reading import RunView

# ---- a run's model and data become the current ones

OF_TABLE = ("text_columns", "label_column", "separator", "skip_bad", "thresholds", "label_order")
ABOUT = ("model", "revision", "job", "task", "data", *OF_TABLE)


def warn_of_other_model(view: RunView) -> None:
    """Say whose figures these are, where a run is not of the model that is open."""
    first = view.children[0] if view.children else view
    model, current = first.record.spec.get("model"), state.view().model
    if model and not _same(str(model), current):
        maker = reading.maker(current)
        made = maker is not None and maker.id in {r.record.id for r in (view, *view.children)}
        what = "is a result of this run" if made else "has no part in its figures"
        sentence = f"This run is of {_title(str(model))}. The open model, {_title(current)}, {what}."
        st.info(plain(sentence), icon=":material/info:")


def _same(model: str, other: str) -> bool:
    try:
        return loaders.model_name(model) == loaders.model_name(other)
    except UserError:  # outside the allowed folders, so it cannot be open
        return False


def _title(model: str) -> str:
    return "the demo" if model == "demo" else reading.model_title(model)


def look_at(spec: dict[str, Any], **changes: Any) -> None:
    """Switch to a run's model and data, and say so; masks of another model are dropped.

    ``UserError`` if that is not allowed.
    """
    current = plans.source(state.view())
    of_run = {**spec, "model": loaders.model_name(str(spec["model"]))}
    before = state.view().model
    if any(_plain(current.get(name)) != _plain(of_run.get(name)) for name in ABOUT):
        if not _same(str(spec["model"]), before):
            state.notify(f"Open now: {_title(str(spec['model']))}, the run's model, no longer {_title(before)}.")
        state.update(
            **model_fields(spec),
            task=str(spec["task"]),
            data=str(spec.get("data") or ""),
            columns=",".join(spec.get("text_columns") or ()),
            label=str(spec.get("label_column") or ""),
            separator=str(spec.get("separator") or ""),
            skip_bad=bool(spec.get("skip_bad")),
            thresholds=",".join(map(str, spec.get("thresholds") or ())),
            **{"groups": "", "example": 0, "a": "", "b": "", "slice": ""},
        )
        state.forget_mask()
    state.update(**changes)


def model_fields(spec: dict[str, Any]) -> dict[str, Any]:
    """The fields of a view that name a run's model."""
    return {
        "model": str(spec["model"]),
        "revision": str(spec.get("revision") or ""),
        "job": str(spec.get("job") or ""),
        "classes": ",".join(spec.get("label_order") or ()),
    }


def _plain(value: Any) -> Any:
    """A value as it comes from JSON, so that two compare: lists are tuples, empty values None."""
    return tuple(value) if isinstance(value, list) else value or None


# ---- a step's model, saved

KEEP = 3  # zip files kept for a second download


def save_form(view: RunView, step: dict[str, Any]) -> None:
    """Both ways to save the chosen step's model."""
    seed, number = int(step.get("seed") or 0), int(step["step"])
    refusal = _why_not_kept(view, step)
    share = f"{100 * step['sparsity']:.0f} %"
    st.caption(
        f"The model with {share} of its heads removed, in two forms: pruned (smaller and faster, opens with headviz) "
        "and masked (same size as before, opens in any transformers). The report and the curve come with it."
    )
    if refusal:
        st.info(refusal, icon=":material/info:")
        return
    left, right = st.columns(2, gap="large")
    with left:
        _as_zip(view, seed, number)
    with right:
        _as_folder(view, seed, number)


def _why_not_kept(view: RunView, step: dict[str, Any]) -> str:
    """Why this step's model cannot be saved; empty if it can."""
    algorithm = ALGORITHMS.get(str(view.record.spec.get("algorithm")))
    if algorithm is None or not algorithm.retrains or view.record.spec.get("keep_models") == "all":
        return ""
    if step["step"] == max(s["step"] for s in view.steps if s.get("seed") == step.get("seed")):
        return ""
    return (
        "This step's trained model was not kept: the run keeps only each seed's last one. Choose the last step, or "
        "start a new run with “Keep every step's model”."
    )


def exports() -> Path:
    return home() / "exports"


def _as_zip(view: RunView, seed: int, step: int) -> None:
    st.markdown("**To your computer**")
    record = view.record
    name = f"headviz-{record.id}-seed{seed}-step{step}"
    file = exports() / f"{name}.zip"
    key = ("zip", str(file))
    if st.session_state.get("run_zip") != name:
        st.button(
            "Prepare a zip file",
            key="run_zip_ask",
            icon=":material/folder_zip:",
            on_click=_ask_zip,
            args=(name, key, file),
        )
        return

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> str:
        if not file.is_file():
            _make_room()
            zip_model(record.id, file, seed, step, progress=progress, cancel=cancel)
        return file.name

    if jobs.need(key, "Saving the model", work) is None:
        return
    if not file.is_file():  # it has been deleted
        jobs.forget(key)
        st.rerun()
    st.download_button(
        plain(f"↓ {file.name} ({size(file.stat().st_size)})"),
        file.read_bytes,
        file.name,
        "application/zip",
        key="run_zip_file",
        type="primary",
        on_click="ignore",
    )


def _ask_zip(name: str, key: tuple[str, str], file: Path) -> None:
    if not file.is_file():
        jobs.forget(key)
    st.session_state["run_zip"] = name


def _make_room() -> None:
    """Delete older zip files; they can be made again."""
    if exports().is_dir():
        old = sorted(exports().glob("headviz-*.zip"), key=lambda p: p.stat().st_mtime, reverse=True)
        for path in old[KEEP - 1 :]:
            path.unlink(missing_ok=True)


def _as_folder(view: RunView, seed: int, step: int) -> None:
    st.markdown("**On the dashboard's machine**")
    run_id = view.record.id
    default = str(home() / "models" / f"{run_id}-seed{seed}-step{step}")
    field = f"run_folder_{run_id}_{seed}_{step}"
    roots = ", ".join(map(str, dict.fromkeys(loaders.allowed_roots())))
    with st.form(f"{field}_form", border=False):
        st.text_input(
            "A new folder",
            default,
            key=field,
            help=plain(f"In one of: {roots}. A name without a path is a folder in {home() / 'models'}"),
        )
        st.form_submit_button("Save", icon=":material/save:", on_click=_ask_folder, args=(run_id, seed, step, field))
    saved_as = st.session_state.get("run_saved", ())
    if saved_as[:3] != (run_id, seed, step):
        return
    try:
        folder = target(saved_as[3])
    except UserError as error:
        refused(error)
        return
    key = ("save", str(folder), run_id, seed, step)
    saved = jobs.need(key, "Saving the model", lambda p, c: save_model(run_id, folder, seed, step))
    if saved is None:
        return
    pruned = folder / "pruned"
    if not pruned.is_dir():
        jobs.forget(key)
        st.rerun()
    st.success(plain(f"Saved in {folder}: {', '.join(saved)}."), icon=":material/check:")
    with st.container(horizontal=True):
        st.button("Use as the current model", key="run_use", on_click=use, args=(str(pruned),))
        st.button(
            "Compare with the full model", key="run_compare", on_click=_compare, args=(view.record.spec, str(pruned))
        )


def target(text: str) -> Path:
    """The folder that a name means: inside an allowed folder; a name without a path is in the models folder."""
    name = text.strip()
    if not name:
        raise UserError(f"Name a new folder. A name without a path is a folder in {home() / 'models'}.")
    path = outside_path(name, "the folder", look=False)
    return loaders.confined(str(path if path.is_absolute() else home() / "models" / path), "write into")


def _ask_folder(run_id: str, seed: int, step: int, field: str) -> None:
    st.session_state["run_saved"] = (run_id, seed, step, st.session_state[field])


def use(folder: str, **changes: Any) -> None:
    """Make this the current model of all pages. Masks of the model before are dropped."""
    state.update(model=folder, revision="", **changes)
    state.forget_mask()
    st.toast("This is now the current model on every page.")


def _compare(spec: dict[str, Any], folder: str) -> None:
    try:
        look_at(spec, other=folder)
    except UserError as error:
        state.notify(error)
        return
    kept.open_page("compare")


# ---- a fine-tuning


def finetuned(view: RunView) -> None:
    """A fine-tuning on the Runs page."""
    if view.steps:
        result(view)
    # drawn again while it grows
    st.fragment(_curve, run_every=listing.POLL * 2 if view.state in ACTIVE else None)(view.record.id)


def _curve(run_id: str) -> None:
    """The learning curve so far."""
    view, files = reading.show(run_id, log_lines=0), RunFiles(run_id)
    record = view.steps[0] if view.steps else files.read_json(files.results / CURVE)
    points, metric = record.get("curve"), next(iter(record.get("metrics") or ()), "")
    if points:
        measured = any(p.get("metrics") for p in points)
        show.figure(
            learning_curve(points, metric),
            "tune_curve",
            "Training loss by update" + (f", and {metric} on dev after each epoch." if measured else "."),
        )
    elif view.state in ("running", "queued"):
        st.info(
            "The learning curve appears with the first updates. You may leave this page; the run continues.",
            icon=":material/hourglass_top:",
        )


def result(view: RunView) -> None:
    """The metrics reached, and the button that opens the model."""
    step = view.steps[0]
    row = st.container(horizontal=True, gap="medium")
    for name, value in step["metrics"].items():
        row.metric(
            plain(f"{metric_title(name)} on dev"),
            numbers.metric(value, points_in(name)) if value is not None else "undefined",
            width=150,
        )
    best = "" if step.get("best_epoch") is None else f", weights of epoch {step['best_epoch']:g} kept"
    st.caption(f"{step['updates']:,} updates, {step['epochs']:g} epochs{plain(best)}, {span(step['seconds'])}.")
    show.cut_off(step.get("cut_off", ""))
    folder = model_folder(view)
    if folder is None:
        st.caption("The model can be opened when the run is done.")
        return
    if state.view().model == str(folder):
        st.success("This is the current model.", icon=":material/check:")
        return
    st.button(
        "Use as the current model",
        key="tune_use",
        type="primary",
        icon=":material/deployed_code:",
        on_click=use,
        args=(str(folder),),
        kwargs={"base": str(view.record.spec["model"])},
        help="The model is stored with its run. Deleting the run deletes the model",
    )


def model_folder(view: RunView) -> Path | None:
    """The folder of the trained model, once the run is done."""
    folder = RunFiles(view.record.id).results / MODEL
    return folder if view.state == "done" and folder.is_dir() else None

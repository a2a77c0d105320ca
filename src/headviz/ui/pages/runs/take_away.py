"""Save the model of a step: as a zip file, or into a folder on the dashboard's machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.numbers import size
from ....errors import UserError
from ....storage.paths import home, outside_path
from ...shell import jobs, loaders, show, state
from .source import look_at

if TYPE_CHECKING:
    from ....runs.reading import RunView

KEEP = 3  # zip files kept for a second download


def form(view: RunView, step: dict[str, Any]) -> None:
    """Both ways to save the chosen step's model."""
    seed, number = int(step.get("seed") or 0), int(step["step"])
    kept = _kept(view, step)
    share = f"{100 * step['sparsity']:.0f} %"
    st.caption(
        f"The model with {share} of its heads removed, in two forms: pruned (smaller and faster, opens with headviz) "
        "and masked (same size as before, opens in any transformers). The report and the curve come with it."
    )
    if kept:
        st.info(kept, icon=":material/info:")
        return
    left, right = st.columns(2, gap="large")
    with left:
        _as_zip(view, seed, number)
    with right:
        _as_folder(view, seed, number)


def _kept(view: RunView, step: dict[str, Any]) -> str:
    """Why this step's model cannot be saved; empty if it can."""
    from ....pruning.algorithms import ALGORITHMS

    algorithm = ALGORITHMS.get(str(view.record.spec.get("algorithm")))
    if algorithm is None or not algorithm.retrains or view.record.spec.get("keep_models") == "all":
        return ""
    last = max(s["step"] for s in view.steps if s.get("seed") == step.get("seed"))
    if step["step"] == last:
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
    if jobs.need(key, "Saving the model", lambda p, c: _zip(record.id, file, seed, step, p, c)) is None:
        return
    if not file.is_file():  # it has been deleted
        jobs.forget(key)
        st.rerun()
    st.download_button(
        show.plain(f"↓ {file.name} ({size(file.stat().st_size)})"),
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


def _zip(run_id: str, file: Path, seed: int, step: int, progress: jobs.Progress, cancel: jobs.Cancel) -> str:
    from ....runs.saving import zip_model

    if not file.is_file():
        _make_room()
        zip_model(run_id, file, seed, step, progress=progress, cancel=cancel)
    return file.name


def _make_room() -> None:
    """Delete older zip files; they can be made again."""
    if exports().is_dir():
        old = sorted(exports().glob("headviz-*.zip"), key=lambda p: p.stat().st_mtime, reverse=True)
        for path in old[KEEP - 1 :]:
            path.unlink(missing_ok=True)


def _as_folder(view: RunView, seed: int, step: int) -> None:
    st.markdown("**On the dashboard's machine**")
    record = view.record
    default = str(home() / "models" / f"{record.id}-seed{seed}-step{step}")
    field = f"run_folder_{record.id}_{seed}_{step}"
    with st.form(f"{field}_form", border=False):
        st.text_input(
            "A new folder",
            default,
            key=field,
            help=show.plain(f"In one of: {_roots()}. A name without a path is a folder in {home() / 'models'}"),
        )
        st.form_submit_button("Save", icon=":material/save:", on_click=_ask_folder, args=(record.id, seed, step, field))
    asked = st.session_state.get("run_saved")
    if not asked or asked[:3] != (record.id, seed, step):
        return
    try:
        folder = target(asked[3])
    except UserError as wrong:
        show.refused(wrong)
        return
    saved = jobs.need(("save", str(folder), *asked[:3]), "Saving the model", lambda p, c: _save(asked, folder))
    if saved is None:
        return
    if not (folder / "pruned").is_dir():
        jobs.forget(("save", str(folder), *asked[:3]))
        st.rerun()
    st.success(show.plain(f"Saved in {folder}: {', '.join(saved)}."), icon=":material/check:")
    with st.container(horizontal=True):
        st.button("Use as the current model", key="run_use", on_click=use, args=(str(folder / "pruned"),))
        st.button(
            "Compare with the full model",
            key="run_compare",
            on_click=_compare,
            args=(view.record.spec, str(folder / "pruned")),
        )
    if st.session_state.pop("run_compared", False):
        st.switch_page("pages/compare.py")


def target(text: str) -> Path:
    """The folder that a name means: inside an allowed folder; a name without a path is in the models folder."""
    name = text.strip()
    if not name:
        raise UserError(f"Name a new folder. A name without a path is a folder in {home() / 'models'}.")
    path = outside_path(name, "the folder", look=False)
    return loaders.confined(str(path if path.is_absolute() else home() / "models" / path), "write into")


def _ask_folder(run_id: str, seed: int, step: int, field: str) -> None:
    st.session_state["run_saved"] = (run_id, seed, step, st.session_state[field])


def _roots() -> str:
    return ", ".join(map(str, dict.fromkeys(loaders.allowed_roots())))


def _save(asked: tuple[str, int, int, str], folder: Path) -> dict[str, str]:
    from ....runs.saving import save_model

    return save_model(asked[0], folder, asked[1], asked[2])


def use(folder: str, **more: Any) -> None:
    """Make this the current model of all pages. Masks of the model before are dropped."""
    state.update(model=folder, revision="", **more)
    state.forget_mask()
    st.toast("This is now the current model on every page.")


def _compare(spec: dict[str, Any], folder: str) -> None:
    try:
        look_at(spec, other=folder)
    except UserError as wrong:
        state.notify(wrong)
        return
    st.session_state["run_compared"] = True

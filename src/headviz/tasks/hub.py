"""Parquet files of the Hugging Face hub, read through its own client and cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..errors import TaskError
from ..storage.downloads import obtain
from .catalogue import get_task
from .readers import Table, read_parquet


def read_hub(repo: str, filename: str, columns: Sequence[str], task: str) -> Table:
    """Columns of one parquet file of a dataset repository; downloaded once, then read from the cache."""
    path = fetch(repo, filename, task)
    try:
        return read_parquet(path, columns)
    except TaskError as error:
        raise TaskError(
            f"The downloaded copy of {repo}/{filename} is damaged or incomplete. Delete {path} and try again."
        ) from error


def fetch(repo: str, filename: str, task: str) -> Path:
    """Path of the file in the hub's cache; in a dashboard, of one that is there or that a user asked for."""
    cached, fetched = partial(_cached, repo, filename), partial(_fetched, repo, filename, task)
    shown = f"{get_task(task).title} ({repo})"
    return obtain(f"task {task}", cached, fetched, partial(_fetch_all, task), shown, f": {' and '.join(_files(task))}")


def _files(task: str) -> list[str]:
    """What the dashboard reads of a task."""
    return [get_task(task).source.hub_file(split) for split in ("train", "dev")]


def _fetch_all(task: str) -> None:
    for filename in _files(task):
        _fetched(str(get_task(task).source.repo), filename, task)


def _cached(repo: str, filename: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    # hf_hub_download sends a request, also with local_files_only: its client asks the hub for a list of programs
    file = try_to_load_from_cache(repo, filename, repo_type="dataset")
    return Path(file) if isinstance(file, str) else None


def _fetched(repo: str, filename: str, task: str) -> Path:
    """The file after a download. If a token is needed it is taken from the environment."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    # HfHubHTTPError inherits OSError and the base class of the HTTP library that this version of the client uses.
    # Together they cover refused, timed out and interrupted connections and a full disk.
    broken_off: tuple[type[BaseException], ...] = HfHubHTTPError.__bases__

    what = f"{repo}/{filename}"
    local = f"or give local files (--data FOLDER, data=), with train and dev files of task '{task}'"
    try:
        return Path(hf_hub_download(repo, filename, repo_type="dataset"))
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise TaskError(
            f"{what} is not in the cache and the hub cannot be reached. Go online (and unset HF_HUB_OFFLINE), {local}."
        ) from error
    except GatedRepoError as error:
        raise TaskError(
            f"{repo} asks for its terms to be accepted: do so on its page and set HF_TOKEN, {local}."
        ) from error
    except (RepositoryNotFoundError, EntryNotFoundError) as error:
        raise TaskError(f"The hub has no file {what}; it may have moved. Update headviz, {local}.") from error
    except PermissionError as error:
        raise TaskError(
            f"The hub's cache folder cannot be written ({error.filename or error}). "
            f"Set HF_HOME to a folder that can, {local}."
        ) from error
    except broken_off as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise TaskError(
            f"The download of {what} broke off ({reason}). Nothing half-read is used; try again to continue it, "
            f"{local}."
        ) from error

"""Parquet files of the Hugging Face hub, read through its own client and cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import TaskError
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
    """Path of the file in the hub's cache. If a token is needed it is taken from the environment."""
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

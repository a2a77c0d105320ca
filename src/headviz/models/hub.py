"""Fetching a model from the hub into its local cache: safetensors and tokenizer files, nothing else."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from ..errors import ModelError
from ..storage.downloads import obtain
from .folder_check import first_line

WANTED = [
    "adapter_config.json",
    "config.json",
    "generation_config.json",
    "headviz.json",
    "*.safetensors",
    "model.safetensors.index.json",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "*.spm",
]


def is_hub_id(text: str) -> bool:
    """Whether a repository of the hub can have this name."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return re.fullmatch(r"[\w./-]+", text, re.ASCII) is not None


def download(repo: str, revision: str | None = None) -> Path:
    """The local folder of a hub repository; in a dashboard, of one that is there or that a user asked for."""
    given = repo, revision
    shown = f"{repo} at revision {revision}" if revision else repo
    return obtain(shown, partial(_cached, *given), partial(_fetched, *given), partial(_asked, *given), shown)


def upload(folder: Path, repo: str, private: bool | None) -> str:
    """Put a folder's files into a repository of the hub in one commit; the commit's address."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    if not is_hub_id(repo) or "/" not in repo:
        raise ModelError(f"'{repo[:100]}' is not the name of a repository, such as 'someone/small-model'.")
    hub = HfApi()
    broken_off: tuple[type[BaseException], ...] = HfHubHTTPError.__bases__
    try:
        hub.create_repo(repo, private=private, exist_ok=True)
        commit = hub.upload_folder(repo_id=repo, folder_path=folder, commit_message="A pruned model of headviz")
    except broken_off as error:
        raise ModelError(
            f"'{repo}' could not be written ({first_line(error)}). Set HF_TOKEN to a token that may write there, and "
            "check the network."
        ) from error
    return str(commit.commit_url)


def _cached(repo: str, revision: str | None) -> Path | None:
    """The folder in the hub's local cache, if all of the model is there. Sends no request."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(repo, "config.json", revision=revision)
    except HFValidationError:
        return None
    return Path(file).parent if isinstance(file, str) and _whole(Path(file).parent) else None


def _whole(folder: Path) -> bool:
    """Whether a folder has a configuration and all files of weights; a download may have been interrupted."""
    files = [path.name for path in folder.glob("*.safetensors")]
    parts = [int(found[1]) for name in files if (found := re.search(r"-of-(\d{1,5})\.", name))]
    described = any((folder / name).is_file() for name in ("config.json", "adapter_config.json"))
    return described and len(files) >= max(parts, default=1)


def _asked(repo: str, revision: str | None) -> None:
    if not _whole(_fetched(repo, revision)):
        raise ModelError(f"'{repo}' has no config.json or no weights as safetensors on the hub. Choose another model.")


def _fetched(repo: str, revision: str | None) -> Path:
    """The folder after a download.

    The token for private models comes from the environment or from ``hf auth login``, as for every
    hub client; it is never written anywhere by headviz. Files already there are not fetched again,
    and a broken download continues where it stopped.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # HfHubHTTPError's bases are OSError and the error class of whichever HTTP library this version of the
    # hub's client uses: refused, timed out and broken-off connections, and a full disk
    broken_off: tuple[type[BaseException], ...] = HfHubHTTPError.__bases__
    at = f" at revision '{revision}'" if revision else ""
    try:
        return Path(snapshot_download(repo, revision=revision, allow_patterns=WANTED, ignore_patterns=["*/*"]))
    except GatedRepoError as error:
        raise ModelError(
            f"'{repo}' asks for your consent first. Accept its terms on its hub page and set HF_TOKEN."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"There is no model '{repo}' on the hub, or it is private. "
            "Check the name; for a private model set HF_TOKEN."
        ) from error
    except RevisionNotFoundError as error:
        raise ModelError(f"'{repo}' has no revision '{revision}'. Give a branch, tag or commit of it.") from error
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"'{repo}'{at} is not on this machine and the hub cannot be reached. "
            "Check the name and the network, or give a local folder."
        ) from error
    except PermissionError as error:
        raise ModelError(
            f"The hub's cache folder cannot be written ({error.filename or error}). Set HF_HOME to a folder that can."
        ) from error
    except broken_off as error:
        raise ModelError(
            f"Downloading '{repo}'{at} was interrupted ({type(error).__name__}). "
            "Try again: it continues where it stopped."
        ) from error

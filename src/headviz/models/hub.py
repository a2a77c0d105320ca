"""Where a model's files are: shipped with headviz, in a folder, or on the hub. Imports no torch.

From the hub safetensors and tokenizer files are fetched into its local cache, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import huggingface_hub
from huggingface_hub import constants

from .. import plugins
from ..demo import demo_folder
from ..errors import ModelError, UserError, shown
from ..plugins import ModelFolder
from ..storage.paths import broken_off, kind_at, obtain, outside_path
from . import NAMED
from .folder_check import ADAPTER, CONFIG, first_line

if TYPE_CHECKING:  # huggingface_hub loads it with its functions, and an HTTP client with it
    import huggingface_hub.errors

MODELS: Mapping[str, ModelFolder] = plugins.Entries("models", ())  # without transformers' configuration, of plugins

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


def locate(name: str | Path, revision: str | None = None) -> Path:
    """The local folder of a model, downloaded first if it is a hub id."""
    text = str(name) if isinstance(name, str | Path) else shown(name)
    if text in NAMED:
        if revision is not None:
            raise ModelError(f"'{text}' is built in and has no revisions. Leave the revision out.")
        return Path(demo_folder(NAMED[text]))
    path = outside_path(text, "the model")
    kind = kind_at(path)
    if kind == "folder":
        return path
    if kind:
        raise ModelError(f"'{text}' is a file. Give the folder that holds config.json and the weights.")
    if not is_hub_id(text):
        raise ModelError(
            f"There is no folder '{text}', and it is not a hub id (such as 'textattack/bert-base-uncased-MNLI'). "
            f"Built-in models: {', '.join(NAMED)}."
        )
    try:
        return download(text, revision)
    except UserError as error:
        similar = [f"'{name}'" for name in get_close_matches(text, NAMED)]
        if not similar:
            raise
        raise error.reworded(f"{error} Did you mean the built-in {' or '.join(similar)}?") from error


def refuse_absent(name: str | Path, revision: str | None = None) -> Path | None:
    """Refuse a model that is not there, if that can be known without a request to the hub; else its folder."""
    text = str(name) if isinstance(name, str | Path) else shown(name)
    if constants.HF_HUB_OFFLINE or text in NAMED or kind_at(outside_path(text, "the model")) or not is_hub_id(text):
        folder = locate(name, revision)
        require_model(folder, name)
        return folder
    return None


def require_model(folder: Path, name: object) -> None:
    """Refuse a folder that holds nothing which says what its model is."""
    if any((folder / file).is_file() for file in (CONFIG, ADAPTER, *MODELS)):
        return
    if absent := plugins.missing_among("models", [path.name for path in folder.iterdir()]):
        raise ModelError(absent)
    # a folder with several exports is easily taken for one
    folders = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
    hint = "Give the folder that holds the model."
    if folders:
        hint = f"Did you mean {' or '.join(str(Path(str(name)) / inner) for inner in folders[:4])}?"
    raise ModelError(f"'{name}' has no {CONFIG}: it is not a model folder. {hint}")


def existing_folder(name: object) -> Path:
    """The folder with files of a model, whatever they are."""
    folder = outside_path(str(name), "the model")
    if not folder.is_dir():
        raise ModelError(f"There is no folder {shown(str(name))}. Give the one that holds the model.")
    return folder


def is_hub_id(text: str) -> bool:
    """Whether a repository of the hub can have this name."""
    if re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", text, re.ASCII) is None:
        return False
    try:
        import_module("huggingface_hub.utils").validate_repo_id(text)
    except huggingface_hub.errors.HFValidationError:
        return False
    return True


def download(repo: str, revision: str | None = None) -> Path:
    """The local folder of a hub repository; in a dashboard only if it is in the cache or a user asked for it."""
    title = f"{repo} at revision {revision}" if revision else repo
    key = repo, revision
    return obtain(title, partial(_cached, *key), partial(_fetched, *key), partial(_require_whole, *key), title)


def upload(folder: Path, repo: str, private: bool | None) -> str:
    """Put a folder's files into a repository of the hub in one commit; the commit's address."""
    if not is_hub_id(repo) or "/" not in repo:
        raise ModelError(f"'{repo[:100]}' is not the name of a repository, such as 'someone/small-model'.")
    hub = huggingface_hub.HfApi()
    try:
        hub.create_repo(repo, private=private, exist_ok=True)
        commit = hub.upload_folder(repo_id=repo, folder_path=folder, commit_message="A pruned model of headviz")
    except broken_off() as error:
        raise ModelError(
            f"'{repo}' could not be written ({first_line(error)}). Set HF_TOKEN to a token that may write there, and "
            "check the network."
        ) from error
    return str(commit.commit_url)


def _cached(repo: str, revision: str | None) -> Path | None:
    """The folder in the hub's local cache, if all of the model is there. Sends no request."""
    try:
        file = huggingface_hub.try_to_load_from_cache(repo, CONFIG, revision=revision)
    except huggingface_hub.errors.HFValidationError:
        return None
    return Path(file).parent if isinstance(file, str) and _whole(Path(file).parent) else None


def _whole(folder: Path) -> bool:
    """Whether a folder has a configuration and all files of weights; a download may have been interrupted."""
    files = [path.name for path in folder.glob("*.safetensors")]
    parts = [int(match[1]) for name in files if (match := re.search(r"-of-(\d{1,5})\.", name))]
    described = any((folder / name).is_file() for name in (CONFIG, ADAPTER))
    return described and len(files) >= max(parts, default=1)


def _require_whole(repo: str, revision: str | None) -> None:
    if not _whole(_fetched(repo, revision)):
        raise ModelError(f"'{repo}' has no config.json or no weights as safetensors on the hub. Choose another model.")


def _fetched(repo: str, revision: str | None) -> Path:
    """The folder after a download.

    The token for private models comes from the environment or from ``hf auth login``, as for every
    hub client; it is never written anywhere by headviz. Files already there are not fetched again,
    and a broken download continues where it stopped.
    """
    at = f" at revision '{revision}'" if revision else ""
    try:
        return Path(
            huggingface_hub.snapshot_download(repo, revision=revision, allow_patterns=WANTED, ignore_patterns=["*/*"])
        )
    except huggingface_hub.errors.GatedRepoError as error:
        raise ModelError(
            f"'{repo}' asks for your consent first. Accept its terms on its hub page and set HF_TOKEN."
        ) from error
    except huggingface_hub.errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"There is no model '{repo}' on the hub, or it is private. "
            "Check the name; for a private model set HF_TOKEN."
        ) from error
    except huggingface_hub.errors.RevisionNotFoundError as error:
        raise ModelError(f"'{repo}' has no revision '{revision}'. Give a branch, tag or commit of it.") from error
    except huggingface_hub.errors.LocalEntryNotFoundError as error:
        raise ModelError(
            f"'{repo}'{at} is not on this machine and the hub cannot be reached. "
            "Check the name and the network, or give a local folder."
        ) from error
    except PermissionError as error:
        raise ModelError(
            f"The hub's cache folder cannot be written ({error.filename or error}). Set HF_HOME to a folder that can."
        ) from error
    except broken_off() as error:
        raise ModelError(
            f"Downloading '{repo}'{at} was interrupted ({type(error).__name__}). "
            "Try again: it continues where it stopped."
        ) from error

"""Fetching a model from the hub into its local cache: safetensors and tokenizer files, nothing else."""

from __future__ import annotations

from pathlib import Path

from ..errors import ModelError

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


def download(repo: str, revision: str | None = None) -> Path:
    """The local folder of a hub repository.

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

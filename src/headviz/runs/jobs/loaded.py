"""Models and data that pieces of work share: loaded once per process, the same from the first piece to the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...errors import RunError, whole_number
from ...pruning.options import Source

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


@dataclass(frozen=True)
class JobSpec(Source):
    """What the specs of these jobs have in common."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("limit", "train_limit", "dev_limit"):
            if getattr(self, name, None) is not None:
                whole_number(getattr(self, name), name, 1)

    def classifier(self, fresh: tuple[str, ...] | None = None, seed: int = 0) -> Classifier:
        return _classifier(self.model, self.revision, self.device, fresh, seed)

    def dataset(self, split: str, limit: int | None = None) -> Dataset:
        return _dataset(self, split, limit)


@lru_cache(maxsize=2)
def _classifier(model: str, revision: str | None, device: str, fresh: tuple[str, ...] | None, seed: int) -> Classifier:
    from ...models.loading import load

    found: Any = load(model, revision=revision, device=device, fresh_labels=fresh, seed=seed)
    return found


@lru_cache(maxsize=4)
def _dataset(spec: JobSpec, split: str, limit: int | None) -> Dataset:
    return Source.dataset(spec, split, limit)


def sources(clf: Classifier, *data: Dataset) -> dict[str, Any]:
    """What the first piece leaves in the state, so that the others refuse another model or other data."""
    return {"model": clf.digest, "tokenizer": clf.tokenizer_digest, "data": [part.digest for part in data]}


def same_sources(known: Mapping[str, Any] | None, clf: Classifier, *data: Dataset) -> None:
    """A ``RunError`` if they are not those of the first piece; a run of an earlier version has none written down."""
    found = sources(clf, *data)
    for name, digest in (known or {}).items():
        if found[name] != digest:
            raise RunError(
                f"The {name} of this run changed after its first step: '{clf.name}' on {data[0].task.name}. "
                "Its results would be a mixture. Start a new run.",
                code="source-changed",
                resumable=False,
            )


def forget() -> None:
    """Free the memory, for a process that only looked at a plan."""
    _classifier.cache_clear()
    _dataset.cache_clear()

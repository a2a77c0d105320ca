"""Models and data that pieces of work share: loaded once per process, checked by their digest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...errors import RunError
from ...pruning.options import Source

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


@dataclass(frozen=True)
class JobSpec(Source):
    """What the specs of these jobs have in common."""

    digest: str | None = None  # of the model's weights, when the run was written down

    def classifier(self, fresh: tuple[str, ...] | None = None, seed: int = 0) -> Classifier:
        return _classifier(self.model, self.revision, self.device, self.digest, fresh, seed)

    def dataset(self, split: str, limit: int | None = None) -> Dataset:
        return _dataset(self, split, limit)


@lru_cache(maxsize=2)
def _classifier(
    model: str, revision: str | None, device: str, digest: str | None, fresh: tuple[str, ...] | None, seed: int
) -> Classifier:
    from ...models.loading import load

    if digest is not None and load(model, revision=revision, device=device).digest != digest:
        raise RunError(
            f"The model '{model}' has changed since this run was written down. Start a new run.",
            code="source-changed",
            resumable=False,
        )
    found: Any = load(model, revision=revision, device=device, fresh_labels=fresh, seed=seed)
    return found


@lru_cache(maxsize=4)
def _dataset(spec: JobSpec, split: str, limit: int | None) -> Dataset:
    return Source.dataset(spec, split, limit)


def forget() -> None:
    """Free the memory, for a process that only looked at a plan."""
    _classifier.cache_clear()
    _dataset.cache_clear()

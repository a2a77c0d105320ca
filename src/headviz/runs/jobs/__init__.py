"""What the jobs of this folder share: options that name a model and data, and what is loaded of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...engine import Job
from ...models.source import Source

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


@dataclass(frozen=True)
class JobSpec(Source):
    """What the specs of these jobs have in common."""

    def classifier(self, fresh: tuple[str, ...] | None = None, seed: int = 0, job: str | None = None) -> Classifier:
        from ...models.loading import load

        how: Any = {"fresh_labels": fresh, "seed": seed, "job": self.job or job}
        classifier: Any = load(self.model, revision=self.revision, device=self.device, **how)
        return classifier


@dataclass(frozen=True)
class Loaded:
    """A model, the data that are read, and what a job makes of them once per process."""

    clf: Classifier
    data: tuple[Dataset, ...]
    made: Any

    @property
    def sources(self) -> dict[str, Any]:
        """What the first piece leaves in the state, so that the others refuse another model or other data."""
        return {
            "model": self.clf.digest,
            "tokenizer": self.clf.tokenizer_digest,
            "data": [part.digest for part in self.data],
        }


class SourcesJob(Job):
    """A job whose state keeps the ``sources`` of what its first piece loaded; those of older versions have none."""

    def sources(self, state: Any) -> dict[str, Any]:
        return state.get("sources") or {}

    def digest(self, loaded: Loaded, name: str) -> Any:
        return loaded.sources[name]

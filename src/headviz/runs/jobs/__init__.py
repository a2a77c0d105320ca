"""What the jobs of this folder share: what is loaded of a spec's model and data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...engine import Job

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


@dataclass(frozen=True)
class Loaded:
    """A model, the data that are read, and what a job makes of them once per process."""

    clf: Classifier
    data: tuple[Dataset, ...]
    shared: Any

    @property
    def sources(self) -> dict[str, Any]:
        """What the first piece leaves in the state, so that the others refuse another model or other data."""
        return {
            "model": self.clf.digest,
            "tokenizer": self.clf.tokenizer_digest,
            "data": [dataset.digest for dataset in self.data],
        }


class SourcesJob(Job):
    """A job whose state keeps the ``sources`` of what its first piece loaded; those of older versions have none."""

    def sources(self, state: Any) -> dict[str, Any]:
        return state.get("sources") or {}

    def digest(self, loaded: Loaded, name: str) -> Any:
        return loaded.sources[name]

"""Models and data that pieces of work share, loaded once per process and checked against their digest."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...errors import OptionError, RunError, unknown_choice

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


@dataclass(frozen=True)
class Source:
    """Which model and data a job is about, as options of its spec."""

    model: str
    task: str
    revision: str | None = None
    data: str | None = None
    text_columns: tuple[str, ...] | None = None
    label_column: str | None = None
    label_order: tuple[str, ...] | None = None
    device: str = "auto"
    digest: str | None = None  # of the model's weights, when the run was written down

    def __post_init__(self) -> None:
        for name in ("text_columns", "label_order"):
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        for name in ("model", "task"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise OptionError(f"This kind of run needs a {name}.")

    def classifier(self, fresh: tuple[str, ...] | None = None, seed: int = 0) -> Classifier:
        return _classifier(self.model, self.revision, self.device, self.digest, fresh, seed)

    def dataset(self, split: str, limit: int | None = None) -> Dataset:
        return _dataset(self, split, limit)


def read_spec(cls: type, spec: dict[str, Any], kind: str) -> Any:
    """A dataclass from a spec; a misspelt option is answered with the valid ones."""
    names = [f.name for f in fields(cls)]
    for name in spec:
        if name not in names:
            raise OptionError(unknown_choice(f"option of a run of kind '{kind}'", name, names))
    try:
        return cls(**spec)
    except TypeError as error:
        raise OptionError(f"The spec of a run of kind '{kind}' is not complete: {error}.") from error


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
    return load(model, revision=revision, device=device, fresh_labels=fresh, seed=seed)


@lru_cache(maxsize=4)
def _dataset(source: Source, split: str, limit: int | None) -> Dataset:
    from ...tasks import load_task

    return load_task(
        source.task,
        split=split,
        data=source.data,
        limit=limit,
        text_columns=source.text_columns,
        label_column=source.label_column,
    )


def forget() -> None:
    """Let go of what is loaded: a process that only looked at a plan has no further use for it."""
    _classifier.cache_clear()
    _dataset.cache_clear()

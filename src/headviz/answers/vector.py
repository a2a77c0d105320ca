"""A vector for each text, and the cosine of two as their similarity: the job ``vector``.

Its models answer data of other jobs: pairs with a number are judged as numbers are, by correlation, and queries with
passages as rankings are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import heads
from ..errors import TaskError
from .number import Number


class Vector(Number):
    """F is the cosine. Learned by the squared error of the cosine, from -1 to 1."""

    graph: tuple[str, ...] = ("last_hidden_state", "sentence_embedding")
    job, kind, instead = "vector", heads.VECTOR, ""
    does = "turns each text into a vector; the cosine of two says how similar they are"
    architectures: tuple[str, ...] = ()  # modules.json tells it
    auto_class, trained, read_at = "AutoModel", "pooling", ""
    negatives = True
    usual: tuple[str, ...] = ("spearman", "pearson")
    others, paired, columns = ("number", "rank"), False, "number"
    decoder: bool | None = False
    text_names, named = ("Text", "Other text"), ("similarity", "pairs")

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        return True  # its kind has this job alone

    def possible(self, outputs: int) -> bool:
        return True

    def claim(self, config: Any) -> None:
        return

    def choice(self, settings: Mapping[str, Any]) -> str:
        return ""

    def judged(self, data: Any) -> Any:
        """Pairs with a number: by Spearman's ρ first."""
        if data.job != Number.job or data.task.by_user:
            return data
        return replace(data, task=replace(data.task, metrics=self.usual))

    def described(self, names: Sequence[str]) -> str:
        return "the similarity of two texts, by their vectors"

    def target_name(self, name: str) -> str:
        return "the similarity"

    def learned(self, gold: Any) -> NDArray:
        return _similarities(gold)

    def losses(self, logits: NDArray, gold: NDArray) -> NDArray[np.float64]:
        return super().losses(logits, _similarities(gold, logits.ndim))


def _similarities(gold: Any, dims: int = 2) -> NDArray:
    """Numbers from -1 to 1; of a ranking the relevance, at most 1."""
    similarities = np.asarray(gold, dtype=float)
    if similarities.ndim == dims:
        return np.minimum(similarities[..., 0], 1)
    if len(similarities) and np.abs(similarities).max() > 1:
        raise TaskError(
            f"A similarity of {similarities.flat[int(np.abs(similarities).argmax())]:g} is compared with a cosine, "
            "from -1 to 1. Divide the labels by the largest."
        )
    return similarities


Vector.metrics = Number.metrics
VECTOR = Vector()

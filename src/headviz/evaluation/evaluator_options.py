"""What an evaluator of classifiers may take: memory, work at once, precision."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import OptionError

GIB = 2**30


@dataclass(frozen=True)
class EvaluatorOptions:
    """``budget`` in bytes is for kept states and results; the model and one chunk's work come on top.

    ``chunk_tokens`` go through a layer at once, by default 1,536 on a processor and 16,384 on a GPU.
    ``precision="bfloat16"`` computes the layers at half the width. Predictions then agree mostly, not always:
    ask ``Evaluator.agreement`` and show it beside the result.
    """

    budget: int = GIB
    chunk_tokens: int | None = None
    precision: str = "float32"

    def tokens_at_once(self, device: torch.device) -> int:
        """A processor's cache holds few; a GPU starts one kernel after the other, so there large chunks are faster."""
        if self.chunk_tokens is not None:
            return self.chunk_tokens
        return 1536 if device.type == "cpu" else 2**14

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise OptionError(f"The memory budget must be 0 bytes or more, not {self.budget}.")
        if self.chunk_tokens is not None and self.chunk_tokens < 1:
            raise OptionError(f"chunk_tokens must be at least 1, not {self.chunk_tokens}.")
        if self.precision not in ("float32", "bfloat16"):
            raise OptionError(f"Unknown precision '{self.precision}'. Choose one of: float32, bfloat16.")

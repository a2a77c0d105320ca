"""What an evaluator of classifiers may take: memory, work at once, precision."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import OptionError, whole_number

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
        whole_number(self.budget, "budget (bytes of memory)", 0, 2**62)
        if self.chunk_tokens is not None:
            whole_number(self.chunk_tokens, "chunk_tokens", 1)
        if self.precision not in ("float32", "bfloat16"):
            raise OptionError(f"Unknown precision '{self.precision}'. Choose one of: float32, bfloat16.")

"""What an evaluator of classifiers may take: memory, work at once, precision."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import OptionError, unknown_choice, whole_number
from ..models.fast.linear import BFLOAT16, FLOAT32, TF32
from ..models.fast.transfers import free
from .precision import AUTO

GIB = 2**30
GPU_SHARE = 0.4  # of a GPU's free memory that kept states may take
PRECISIONS = (AUTO, FLOAT32, TF32, BFLOAT16)


@dataclass(frozen=True)
class EvaluatorOptions:
    """``budget`` in bytes is for kept states and results; the model and one chunk's work come on top. By default it is
    1 GiB, and on a GPU two fifths of its free memory.

    ``chunk_tokens`` go through a layer at once, by default 1,536 on a processor and 65,536 on a GPU.
    ``precision="bfloat16"`` computes the layers at half the width. Predictions then agree mostly, not always:
    ask ``Evaluator.agreement`` and show it beside the result. "auto" is float32 on a processor; on a GPU it is the
    fastest precision that agrees with float32 on the first texts, and ``Evaluator.precision`` says which.
    """

    budget: int | None = None
    chunk_tokens: int | None = None
    precision: str = AUTO

    def room_on(self, device: torch.device) -> int:
        """The budget in bytes."""
        if self.budget is not None:
            return self.budget
        return int(GPU_SHARE * free(device)) if device.type == "cuda" else GIB

    def tokens_at_once(self, device: torch.device) -> int:
        """A processor's cache holds few; a GPU starts one kernel after the other, so there large chunks are faster."""
        if self.chunk_tokens is not None:
            return self.chunk_tokens
        return 1536 if device.type == "cpu" else 2**16

    def __post_init__(self) -> None:
        if self.budget is not None:
            whole_number(self.budget, "budget (bytes of memory)", 0, 2**62)
        if self.chunk_tokens is not None:
            whole_number(self.chunk_tokens, "chunk_tokens", 1)
        if self.precision not in PRECISIONS:
            raise OptionError(unknown_choice("precision", self.precision, PRECISIONS))

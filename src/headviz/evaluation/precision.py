"""What an evaluator's layers compute in, and how far that agrees with float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..errors import ModelError, OptionError
from ..models.fast.kernels import bfloat16_here
from ..models.fast.stages import is_fast
from ..results import Result

if TYPE_CHECKING:
    from ..models.classifier import Classifier


@dataclass(frozen=True)
class Agreement(Result):
    """How far a faster precision agrees with float32 under one mask."""

    precision: str
    n: int
    same: int  # examples with the same prediction
    largest: float  # largest difference of a logit

    @property
    def share(self) -> float:
        return self.same / self.n

    def extra(self) -> dict[str, Any]:
        return {"share": self.share}


def dtype_of(clf: Classifier, precision: str) -> torch.dtype:
    """What the layers compute in; refuses what the model or the processor cannot do."""
    if precision == "float32":
        return clf.dtype
    if not is_fast(clf):
        raise ModelError(f"{clf.family.title} is evaluated in float32 only.")
    if not bfloat16_here(clf.device):
        raise OptionError("This processor does not compute in bfloat16. Use float32.")
    return torch.bfloat16

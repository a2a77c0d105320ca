"""What an evaluator of classifiers may take: memory, work at once, and a precision with its agreement with float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import ModelError, OptionError, unknown_choice, whole_number
from ..models.fast.gpu import fetch, free
from ..models.fast.linear import BFLOAT16, FLOAT32, TF32, bfloat16_here, gpu_products
from ..models.fast.packing import Chunk, pack
from ..models.fast.stages import is_fast, stages_for
from ..results import Result

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


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


SAMPLE = 256  # texts on which a precision is compared with float32
AUTO = "auto"
AGREE = 0.05  # the largest difference of a logit that counts as agreement, in standard deviations of the logits


def dtype_of(clf: Classifier, precision: str) -> torch.dtype:
    """What the layers compute in; refuses what the model or the processor cannot do."""
    if precision != BFLOAT16:
        return clf.dtype
    if not is_fast(clf):
        raise ModelError(f"{clf.family.title} is evaluated in float32 only.")
    if not bfloat16_here(clf.device):
        raise OptionError("This processor does not compute in bfloat16. Use float32.")
    return torch.bfloat16


def chosen(clf: Classifier, wanted: str, encodings: Sequence[Encoding]) -> str:
    """The precision meant: one that is named, or for "auto" the fastest that agrees."""
    return fastest(clf, encodings) if wanted == AUTO else wanted


def name_of(precision: str, dtype: torch.dtype) -> str:
    """What the layers compute in, in words."""
    return TF32 if precision == TF32 and dtype == torch.float32 else str(dtype).removeprefix("torch.")


def fastest(clf: Classifier, encodings: Sequence[Encoding]) -> str:
    """The fastest precision of a GPU whose answers to some of the texts are those of float32."""
    if clf.device.type != "cuda" or clf.dtype != torch.float32:
        return FLOAT32
    some = encodings[:: -(-len(encodings) // SAMPLE)]
    (chunk,) = pack([len(e) for e in some], sum(len(e) for e in some))
    exact = _logits(clf, FLOAT32, chunk, some)
    for precision in (BFLOAT16, TF32) if is_fast(clf) and bfloat16_here(clf.device) else (TF32,):
        logits = _logits(clf, precision, chunk, some)
        near = float(np.nanmax(np.abs(logits - exact))) <= AGREE * float(np.nanstd(exact))
        if near and (logits.argmax(axis=-1) == exact.argmax(axis=-1)).all():
            return precision
    return FLOAT32


def _logits(clf: Classifier, precision: str, chunk: Chunk, encodings: Sequence[Encoding]) -> np.ndarray:
    stages, gates = stages_for(clf, dtype_of(clf, precision)), clf.gates(None)
    with gpu_products(clf.device, precision):
        hidden = stages.embed(chunk, encodings)
        for layer in range(clf.num_layers):
            hidden = stages.layer(layer, hidden, chunk, gates)
        (logits,) = fetch([stages.read_out(hidden, chunk, encodings)])()
    return logits


GIB = 2**30
GPU_SHARE = 0.4  # of a GPU's free memory that kept states may take
PRECISIONS = (AUTO, FLOAT32, TF32, BFLOAT16)


@dataclass(frozen=True)
class EvaluatorOptions:
    """``budget`` in bytes is for kept states and results; the model and one chunk's work come on top. By default it is
    1 GiB, and on a GPU two fifths of its free memory.

    ``chunk_tokens`` go through a layer at once, by default 1,536 on a processor and 65,536 on a GPU.
    ``precision="bfloat16"`` computes the layers at half the width. Predictions then agree mostly, not always:
    ask ``Evaluator.agreement`` and show it next to the result. "auto" is float32 on a processor; on a GPU it is the
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

"""How a faster model is looked for, and the values that stand where nothing else is asked. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import whole_number
from .algorithms import NOTHING
from .options import FinetuneOptions, choice, number

FASTEST = 1000.0
BOTH, HEADS_ONLY = "both", "heads"
REMOVED = (BOTH, HEADS_ONLY)
TUNINGS = (NOTHING, "tune", "refit")


@dataclass(frozen=True)
class FasterOptions:
    """How a faster model is looked for. ``length`` None is 128 tokens, or what the model can take if that is less."""

    batch: int = 32
    length: int | None = None
    samples: int = 1024  # examples for the Fisher information and for the tuning
    remove: str = BOTH  # or "heads": the neurons stay
    repair: str = "refit"  # of the kept weights: none, tune (as in the paper), refit
    seed: int = 0  # of the sample, and of a training
    retrain: FinetuneOptions | None = None  # train the smaller model on the whole of the data

    def __post_init__(self) -> None:
        whole_number(self.batch, "batch", 1)
        whole_number(self.samples, "samples", 1)
        if self.length is not None:
            whole_number(self.length, "length", 1)
        choice(self.remove, "remove", REMOVED)
        choice(self.repair, "repair", TUNINGS)


def check_target(value: object) -> float:
    """A speed above 1."""
    number(value, "faster", 1, FASTEST, above=True)
    return float(value)  # type: ignore[arg-type]

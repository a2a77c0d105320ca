"""How a faster model is looked for, and the values that stand where nothing else is asked. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import Option, Options, option, seed_option
from .algorithms import NOTHING
from .options import FinetuneOptions

BOTH, HEADS_ONLY = "both", "heads"
REMOVED = (BOTH, HEADS_ONLY)
TUNINGS = {"refit": "solved anew for what is left", "tune": "scaled, one factor each", NOTHING: "left as they are"}


TARGETS = Option(
    "faster",
    help="so many times as fast on this machine, such as 2, or several: 1.5,2",
    kind=float,
    several=True,
    each="speed",
    least=1,
    above=True,
    most=1000,
    title="Times as fast",
    metavar="X[,Y,…]",
)


@dataclass(frozen=True)
class SearchOptions(Options):
    """How shapes are timed, chosen and repaired."""

    batch: int = option(32, "texts at once when speed is measured", least=1, title="Texts at once", metavar="B")
    length: int | None = option(
        None, "tokens of each", least=1, usual="128, or what the model can take", title="Tokens of each", flag=""
    )
    samples: int = option(
        1024, "train examples to choose and tune on", least=1, title="Examples to choose on", metavar="N"
    )
    repair: str = option("refit", "of the kept weights", TUNINGS, title="Kept weights", metavar="NAME")
    seed: int = seed_option("of the sample, and of a training")


@dataclass(frozen=True)
class FasterOptions(SearchOptions):
    """How a faster model is looked for."""

    remove: str = option(BOTH, "heads: the neurons stay", REMOVED, flag="")
    retrain: FinetuneOptions | None = option(None, "train the smaller model on the whole of the data", flag="")

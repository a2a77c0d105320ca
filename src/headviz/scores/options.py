"""Options of the head scores."""

from __future__ import annotations

from dataclasses import dataclass

from ..attribution.rules import AttAttrOptions, PathOptions
from ..models.stand_in import CONSTANT, MEAN, ZERO
from ..options import Options, option, seed_option

ROWS = ("all", "influential")
OptionValue = str | int | float | bool | None  # what an option of a score may be
RANDOM, LOSS = "random", "loss"  # how heads that cost the same are ordered
ABS_LEVELS = ("example", "token", "batch", "signed")


@dataclass(frozen=True)
class NoOptions(Options):
    """For scores that leave nothing to choose."""


@dataclass(frozen=True)
class ConductanceOptions(PathOptions):
    """How the attribution is integrated, of which class, and which rows are compared."""

    target: str | int = option("predicted", "class to explain: predicted, gold, or a class", title="Class explained")
    rows: str = option(
        "all", "'influential' leaves out query rows that cannot reach the prediction", ROWS, title="Query rows compared"
    )


@dataclass(frozen=True)
class AttAttrScoreOptions(AttAttrOptions):
    """How AttAttr is integrated, and of which class."""

    target: str | int = option(
        "gold", "class to explain: gold (as published), predicted, or a class", title="Class explained"
    )


@dataclass(frozen=True)
class TaylorOptions(Options):
    """Where the absolute value is taken, and whether layers are put on one scale."""

    abs_level: str = option(
        "example", "the absolute value is taken per …; 'signed' takes none", ABS_LEVELS, title="Absolute value per"
    )
    layer_norm: bool = option(True, "divide each layer by its l2 norm", title="Layers on one scale")
    batch_size: int = option(
        32,
        "examples per batch, in the data's order, for the level 'batch' only",
        least=1,
        title="Batch of level 'batch'",
    )


@dataclass(frozen=True)
class StandInOptions(Options):
    """What is measured in place of the head that is switched off."""

    ablation: str = option(ZERO, "what stands in the head's place, measured on the sample", (ZERO, MEAN, CONSTANT))


@dataclass(frozen=True)
class AblationOptions(StandInOptions):
    """Which measure of the task is lost, and what orders heads that cost the same."""

    metric: str | None = option(None, "a metric of the task; none = its first", title="Measure that is lost")
    ties: str = option(
        RANDOM,
        "heads of equal cost: in random order, or as 'ablation-loss' has them, less than a thousandth of a cost apart",
        (RANDOM, LOSS),
        title="Order among equals",
    )


@dataclass(frozen=True)
class GateOptions(Options):
    """How gates on all heads are learned."""

    steps: int = option(200, "updates of the gates", least=1, title="Steps")
    batch: int = option(32, "examples of an update", least=1)
    rate: float = option(0.125, "learning rate", least=0, above=True, most=100)
    seed: int = seed_option("seed of the draws")


@dataclass(frozen=True)
class HardOptions(GateOptions):
    """How gates are learned under a rising price."""

    price: float = option(
        4.0, "what all open gates cost together in the end, in units of the loss", least=0, above=True, most=1e6
    )


@dataclass(frozen=True)
class PriceOptions(HardOptions):
    """The same, and of which kind."""

    noise: bool = option(False, "hard-concrete gates, redrawn in every update: those of 'gates-hard'")


@dataclass(frozen=True)
class CountOptions(GateOptions):
    """How gates are learned while an exact number of heads is kept."""

    temperature: float = option(
        1.0, "size of the noise that the choice of heads begins with; it falls to 0", least=0, most=100
    )


@dataclass(frozen=True)
class RandomOptions(Options):
    """Which table is drawn."""

    seed: int = seed_option()

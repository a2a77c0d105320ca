"""Options of these scores, declared where controls can be drawn from them."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import OptionError
from ...options import Options, option, seed_option
from ...scores.options import HardOptions


@dataclass(frozen=True)
class BlendOptions(Options):
    """How much each of two tables counts."""

    alpha: float = option(
        0.5, "weight of the importance; the rest is that of the attention's narrowness", least=0, most=0.999999
    )


@dataclass(frozen=True)
class ChangedOptions(Options):
    """How the backward pass is changed."""

    temperature: float = option(
        2.0, "the scores of attention are divided by this in the backward pass", least=0, above=True, most=1e6
    )


@dataclass(frozen=True)
class RanksOptions(Options):
    """Whose ranks are averaged."""

    members: str | None = option(
        None, "scores, separated by commas; none = gim, gnorm and magnitude, as far as the model has them"
    )

    @property
    def names(self) -> tuple[str, ...] | None:
        """The members that are asked for."""
        if self.members is None:
            return None
        return tuple(dict.fromkeys(name.strip() for name in self.members.split(",") if name.strip()))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names is not None and len(self.names) < 2:
            raise OptionError("Ranks are averaged over at least two scores: name two members or more.")


@dataclass(frozen=True)
class CausalOptions(HardOptions):
    """How hard gates are pressed to open and to close."""

    price: float = option(0.5, "pressure on the gates' logits, in units of the loss", least=0, above=True, most=1e6)


@dataclass(frozen=True)
class ShapleyOptions(Options):
    """Whose value is shared out, and over how many random orders."""

    metric: str | None = option(None, "a metric of the task; none = its first", title="Measure that is lost")
    permutations: int = option(
        20, "random orders of switching heads off; up to 10 heads all coalitions are taken", least=2
    )
    tolerance: float = option(
        0.01, "an order ends when the metric is this near to that without any head", least=0, most=0.999999
    )
    seed: int = seed_option("seed of the orders")

"""From which lengths a sample is drawn, and the report about a draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError, is_one_of, unknown_choice

KINDS = ("quantile", "std", "none")


@dataclass(frozen=True)
class LengthFilter:
    """Which lengths are usual. Both ends of the band are inside.

    ``quantile`` keeps the lengths from the ``low`` to the ``high`` quantile, ``std`` those within ``width``
    standard deviations of the mean, ``none`` all of them.
    """

    kind: str = "quantile"
    low: float = 0.25
    high: float = 0.75
    width: float = 1.0

    def __post_init__(self) -> None:
        if not is_one_of(self.kind, KINDS):
            raise OptionError(unknown_choice("length filter", self.kind, KINDS))
        if not 0 <= self.low < self.high <= 1:
            raise OptionError(f"Quantiles must satisfy 0 ≤ low < high ≤ 1, not {self.low} and {self.high}.")
        if not 0 < self.width < float("inf"):
            raise OptionError(f"The width is a positive number of standard deviations, not {self.width}.")

    def band(self, lengths: np.ndarray) -> tuple[float, float] | None:
        """Lowest and highest length kept; None = all."""
        if self.kind == "none":
            return None
        if self.kind == "quantile":
            low, high = np.quantile(lengths, [self.low, self.high])
        else:
            mean, spread = lengths.mean(), self.width * lengths.std()
            low, high = mean - spread, mean + spread
        return float(low), float(high)


@dataclass(frozen=True)
class SampleReport:
    """What was drawn. Keys are class names; for a regression fifths of the label, lowest first."""

    requested: int
    drawn: int
    total: int
    seed: int
    length_filter: LengthFilter
    unit: str  # what lengths are counted in: tokens or words
    band: tuple[float, float] | None
    too_short: int  # examples under the band
    too_long: int  # examples over it
    wanted: dict[str, int]
    available: dict[str, int]  # within the band
    per_class: dict[str, int]  # drawn

    @property
    def dropped(self) -> int:
        """Examples outside the band."""
        return self.too_short + self.too_long

    @property
    def short(self) -> dict[str, int]:
        """How many examples each class lacks; only classes that lack some."""
        return {k: self.wanted[k] - self.per_class[k] for k in self.wanted if self.per_class[k] < self.wanted[k]}

    def text(self) -> str:
        """One line for the user."""
        said = [f"{self.drawn:,} of {self.total:,} examples drawn (seed {self.seed})"]
        if self.band is not None:
            low, high = self.band
            said.append(
                f"lengths {low:.4g} to {high:.4g} {self.unit} kept; "
                f"{self.too_short:,} shorter and {self.too_long:,} longer dropped"
            )
        said.append("per class: " + ", ".join(f"{name} {count:,}" for name, count in self.per_class.items()))
        if self.short:
            said.append("too few examples: " + ", ".join(f"{k} lacks {v:,}" for k, v in self.short.items()))
        return "; ".join(said) + "."

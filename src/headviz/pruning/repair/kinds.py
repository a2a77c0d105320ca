"""The table of repairs: changes of the kept weights right after heads are removed, without training."""

from __future__ import annotations

from dataclasses import dataclass

NOTHING = "none"


@dataclass(frozen=True)
class Repair:
    """One repair."""

    name: str
    title: str
    what: str
    cost: str


_TABLE = (
    Repair(NOTHING, "Nothing", "The kept weights stay as they are.", "Nothing."),
    Repair(
        "bias",
        "Bias compensation",
        "The removed heads' mean output, over the real tokens of a sample, is added to W_O's bias.",
        "One pass of the full model over the sample; every mask is then served.",
    ),
    Repair(
        "tune",
        "Mask tuning",
        "Each kept head gets the factor that rebuilds the full model's layer outputs best (least squares).",
        "One pass over the sample per layer and mask; solves for as many unknowns as a layer has heads.",
    ),
    Repair(
        "refit",
        "Refit of W_O",
        "Each layer's W_O and bias are solved again, so that the kept heads rebuild the full model's layer outputs.",
        "One pass over the sample per layer and mask; solves for as many unknowns per output as W_O has columns.",
    ),
)

REPAIRS: dict[str, Repair] = {r.name: r for r in _TABLE}

"""What stands in the place of a head that is off: nothing, its mean, another example's output, or a learned constant.

This is the choice, as commands and links carry it; ``network.Fill`` has what is measured for one model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from ..errors import OptionError, unknown_choice
from ..options import Options, option, seed_option
from ..storage.exchange import ZERO

MEAN, BY_PLACE, RESAMPLE, CONSTANT = "mean", "mean-by-place", "resample", "constant"

# in words for people: what stands in a head's place
MEANINGS = {
    ZERO: "nothing: its output is zero",
    MEAN: "its mean output over all tokens of the reference",
    BY_PLACE: "its mean output over the reference's tokens of the same kind: [CLS], each [SEP], words of each text",
    RESAMPLE: "its output in another example of the reference, place by place",
    CONSTANT: "one vector, learned so that the reference's loss is lowest without the head",
}
ABLATIONS = tuple(MEANINGS)
EXAMPLES = 256  # of the reference, where nobody says how many
DRAWS = 5


@dataclass(frozen=True)
class StandIn(Options):
    """The choice. ``examples`` is the size of the reference where it is drawn, ``draws`` counts for resample only."""

    called: ClassVar[str] = "option of an ablation"

    kind: str = option(
        ZERO,
        "what stands in the place of heads that are off",
        ABLATIONS,
        each="ablation",
        flag="ablation",
        usual=f"a mask file's, or {ZERO}",
        metavar="A",
    )
    examples: int = option(
        EXAMPLES, "training examples on which that is measured", least=1, flag="reference", metavar="N"
    )
    draws: int = option(DRAWS, "of other examples, for resample", least=1, flag="")
    seed: int = seed_option("of the reference and the draws", flag="")

    @classmethod
    def of(cls, value: object) -> StandIn:
        """A choice, its name, or its text."""
        if isinstance(value, StandIn):
            return value
        match = re.fullmatch(r"([a-z-]+)(?::([0-9]{1,6}))?", value) if isinstance(value, str) else None
        if match is None:
            raise OptionError(unknown_choice("ablation", value, ABLATIONS))
        return cls(match[1]) if match[2] is None else cls(match[1], int(match[2]))

    @property
    def text(self) -> str:
        """As a link has it: ``mean``, or ``mean:64`` with 64 examples."""
        return self.kind if self.kind == ZERO or self.examples == EXAMPLES else f"{self.kind}:{self.examples}"

    @property
    def of_the_text(self) -> bool:
        """Whether it hangs on the text, so that it is no property of a model and nothing can be removed for real."""
        return self.kind in (BY_PLACE, RESAMPLE)

    def refusal(self) -> str:
        """Why it cannot be part of a model."""
        each = "text" if self.kind == RESAMPLE else "kind of token"
        return (
            f"With '{self.kind}' another vector stands in a head's place for every {each}, so it cannot be part of a "
            "model: nothing can be removed for real, and no score or explanation is made of it. Choose zero, mean or "
            "constant."
        )

    @property
    def meaning(self) -> str:
        return MEANINGS[self.kind]

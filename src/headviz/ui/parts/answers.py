"""How sure a model's answer is, in words."""

from __future__ import annotations

from collections.abc import Sequence

SURE = 0.5  # probability from which an answer counts as sure
NEAR = 0.1  # distance from chance below which the model does not know


def doubt(probabilities: Sequence[float], *, before: Sequence[float] | None = None) -> str:
    """What to say of an unsure answer; empty for a sure one. ``before`` are the unpruned model's probabilities."""
    best, chance = max(probabilities), 1 / len(probabilities)
    if best < chance + NEAR:
        again = "no longer knows" if before is not None and not doubt(before) else "does not know"
        return f"near chance ({chance:.2f} each): the model {again}"
    return "uncertain: no class reaches one half" if best < SURE else ""

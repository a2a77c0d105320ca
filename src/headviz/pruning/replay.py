"""The algorithm of one seed, brought by the stored answers to where it stands. Loads no torch."""

from __future__ import annotations

import numpy as np

from ..errors import RunError
from ..heads import HeadMask
from .algorithms import ALGORITHMS, FisherSearch, LearnGates, Question, Remove, Score
from .plan import PruningPlan
from .state import Choice, Scored, State


class Replay:
    """The algorithm before the mask of ``step``: ``question`` is what it asks first, None = nothing.

    The choices of all earlier steps must be in the state.
    """

    def __init__(self, plan: PruningPlan, state: State, seed: int, step: int) -> None:
        self.name = plan.algorithm
        full = HeadMask.full(state.num_layers, state.num_heads)
        self._masks = ALGORITHMS[plan.algorithm].masks(full, state.sizes)
        self.scores: Scored | None = None  # those that were answered last
        self._send(None)
        for number in range(1, step):
            choice = state.choice(seed, number)
            if choice is None:
                raise RunError(f"Step {step} of seed {seed} cannot be done yet: step {number} has no mask.")
            if self.question is not None:
                self.answer(Scored.of(choice))
            self._send(mask_of(state, choice))

    @property
    def question(self) -> Question | None:
        return self._wish if isinstance(self._wish, Question) else None

    @property
    def mask(self) -> Remove | FisherSearch | HeadMask:
        """How the mask of this step is made, once there is no question."""
        assert not isinstance(self._wish, Question)
        return self._wish

    def answer(self, scores: Scored) -> None:
        self.scores = scores
        self._send(np.array(scores.values, dtype=float))  # None becomes NaN
        if self.question is not None:
            raise RunError(f"Algorithm '{self.name}' asks twice before one mask. It may ask once.")

    def _send(self, answer: np.ndarray | HeadMask | None) -> None:
        try:
            self._wish = self._masks.send(answer)
        except StopIteration:
            raise RunError(f"Algorithm '{self.name}' ends before its last step.") from None
        if not isinstance(self._wish, Score | LearnGates | Remove | FisherSearch | HeadMask):
            what = type(self._wish).__name__
            raise RunError(f"Algorithm '{self.name}' yields a {what}. It may yield Score, Remove or a mask.")


def mask_of(state: State, choice: Choice) -> HeadMask:
    return HeadMask.from_hex(choice.mask, state.num_layers, state.num_heads)


def trained_at(state: State, seed: int, mask: HeadMask) -> int:
    """The last step whose model was trained under this mask; 0 for the full one, which stands for θ*."""
    steps = [0] if mask.is_full else [c.step for c in state.choices if c.seed == seed and c.mask == mask.hex]
    if not steps:
        raise RunError(f"No step of seed {seed} trains a model under the mask {mask.hex}, whose scores are asked for.")
    return max(steps)

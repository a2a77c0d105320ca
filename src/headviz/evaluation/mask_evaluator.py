"""What an evaluator of many masks can be asked, whatever its model answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..answers.comparison import Answers, Comparison
from ..errors import ModelError
from ..heads import HeadMask
from ..models.base import TransformerModel
from ..models.digest import weights_state
from ..progress import Cancel, Progress
from ..storage.exchange import MaskLike
from .growing import Growing
from .plain import Evaluation

if TYPE_CHECKING:
    from ..tasks import Dataset


class MaskEvaluator(ABC):
    """Bound to one model and one data set. Masks already seen are not computed again. Safe to share between threads.

    ``mask=None`` is the full model: every head that it has.
    """

    clf: TransformerModel
    data: Dataset

    def __init__(self, clf: TransformerModel, data: Dataset) -> None:
        self.clf, self.data, self._weights = clf, data, weights_state(clf.model)

    def whole(self, mask: MaskLike | None) -> HeadMask:
        """The mask together with the heads that the model lacks. Refused once the model's weights have changed."""
        if weights_state(self.clf.model) != self._weights:
            raise ModelError(
                "The model's weights have changed since this evaluator was made, and what it keeps is of the old ones. "
                "Make a new evaluator."
            )
        return self.clf.under(mask)

    @property
    @abstractmethod
    def precision(self) -> str:
        """What the layers compute in: float32, bfloat16, …"""

    @property
    @abstractmethod
    def options_given(self) -> dict[str, Any]:
        """Keywords with which ``evaluator_of`` makes one like it."""

    @property
    def stand_in(self) -> str:
        """What stands in the place of heads that are off, in words; empty = nothing."""
        fill = self.clf.fill
        return "" if fill is None else f"{fill.kind} of {fill.examples} examples"

    @property
    def room(self) -> int:
        """Results that are kept without one of a click being dropped."""
        return 256

    @abstractmethod
    def evaluate(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Evaluation:
        """The evaluation under a mask. ``keep=False`` leaves no states behind: right for a sweep of masks that
        nobody will build upon."""

    @abstractmethod
    def predictions(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> NDArray:
        """[n] what the model answers under a mask, in the data's order and the task's own terms."""

    @abstractmethod
    def answers(
        self, reference: MaskLike | None = None, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> Answers:
        """Gold answers and the predictions under ``reference``, which other masks are compared with."""

    def each_draw(self) -> Iterator[Self]:
        """Itself, or one evaluator for each draw of what stands in a head's place. They share what they keep."""
        yield self

    def compare(
        self,
        mask: MaskLike,
        reference: MaskLike | None = None,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Comparison:
        """A mask against the reference on the same examples, with all uncertainty."""
        answers = self.answers(reference, progress=progress, cancel=cancel)
        masked = self.predictions(mask, progress=progress, cancel=cancel)
        return answers.compare(masked, self.data.task.metrics, self.data.slices)

    def growing(
        self,
        mask: MaskLike | None = None,
        reference: MaskLike | None = None,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Iterator[Growing]:
        """``compare`` as it grows: on a few examples first, on all of them at last.

        Every interval allows for having looked at those before it. There is only the last step where the whole is
        quick, and for a translation model.
        """
        whole = self.whole(mask)
        found = self.compare(whole, reference, progress=progress, cancel=cancel)
        known, n = self.answers(reference), len(self.data)
        yield Growing(found, np.arange(n), known.gold, known.full, self.predictions(whole), n)

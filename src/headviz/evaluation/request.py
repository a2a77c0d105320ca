"""What an analysis may ask for, whoever runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..progress import Cancel, Progress

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from .evaluator import Evaluator


class Request(Protocol):
    """What an analysis asks for: each thing is loaded when it is asked for.

    The command line and the dashboard have one class each.
    """

    @property
    def progress(self) -> Progress | None: ...
    @property
    def cancel(self) -> Cancel | None: ...
    @property
    def clf(self) -> Classifier: ...
    @property
    def data(self) -> Dataset: ...
    @property
    def label_order(self) -> Sequence[str] | str | None:
        """The model's class for each class of the task, where their names do not match."""
        ...

    @property
    def evaluator(self) -> Evaluator:
        """Of the reported data."""
        ...

    def on(self, data: Dataset, clf: TransformerModel | None = None) -> Evaluator:
        """Of the same model, or of ``clf``, on other data."""
        ...

    def sample(self, clf: TransformerModel | None = None) -> Dataset:
        """Training examples, to choose heads and to score on."""
        ...

    def second(self) -> Dataset:
        """The second data set of an analysis that compares two."""
        ...

    def mask(self) -> HeadMask | None:
        """The user's mask; None without one."""
        ...

    def score(self, clf: TransformerModel, name: str, data: Dataset) -> Any:
        """An L×H table of one score."""
        ...

    def load(self, place: Any, **how: Any) -> Classifier:
        """Another model: a checkpoint's folder, or the pre-trained weights."""
        ...

    def option(self, name: str) -> Any:
        """The value of one of the analysis's options."""
        ...

"""``headviz.prune``: really remove heads, with what stands in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from ..evaluation.stand_ins import standing_in
from ..models import pruning
from ..models.base import TransformerModel
from ..models.network import require_model
from ..models.stand_in import ZERO, StandIn
from ..progress import Cancel, Progress

if TYPE_CHECKING:
    from ..storage.exchange import MaskLike
    from ..tasks import Dataset

M = TypeVar("M", bound=TransformerModel)


def prune(
    clf: M,
    mask: MaskLike,
    *,
    ablation: str | StandIn = ZERO,
    reference: Dataset | None = None,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> M:
    """A new, smaller model with the same logits as ``clf`` under ``mask``.

    Heads keep their original numbers: pruning twice by those numbers is pruning once by both. The
    caller's model is left as it was, and shares no memory with the result. A family whose heads can only be masked is
    a ``ModelError``.

    With ``ablation`` "mean" or "constant", what stands in the removed heads' place becomes a bias of W_O; it is
    measured on ``reference``, a sample of examples; a constant follows ``label_order``, as in ``evaluate``. "resample"
    is refused: it has another vector for every text.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> small = headviz.prune(clf, clf.full_mask.without([(0, 1), (0, 2)]))
    >>> small.heads_per_layer[:2], clf.heads_per_layer[:2]
    ([10, 12], [12, 12])
    """
    require_model(clf)
    chosen = StandIn.of(ablation)
    if chosen.kind == ZERO:
        return pruning.prune(clf, mask)
    pruning.require_prunable(clf)
    filled = standing_in(clf, chosen, reference, label_order=label_order, progress=progress, cancel=cancel)
    return pruning.prune(filled, mask).filled(clf.fill)

"""Prune and repair in one call, for all entries of the table of repairs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ModelError, OptionError, is_one_of, unknown_choice
from ...models.fast.stages import is_fast
from ...models.pruning import prune
from ...storage.exchange import MaskLike
from .bias import compensate
from .kinds import NOTHING, REPAIRS
from .refit import refit_output
from .ridge import Solve
from .streams import rebuild
from .tune import scale_heads

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...progress import Cancel, Progress
    from ...tasks import Dataset

SOLVERS: dict[str, Solve] = {"tune": scale_heads, "refit": refit_output}


@dataclass(frozen=True, eq=False)
class Repaired:
    """A pruned classifier with repaired weights, and its error on the sample before and after."""

    classifier: Classifier
    error: dict[str, Any] | None
    seconds: float


def repaired(
    clf: Classifier,
    mask: MaskLike,
    data: Dataset,
    repair: str,
    memory: dict[Any, Any] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Repaired:
    """``prune(clf, mask)`` with a repair by its name, fitted on ``data`` (labels are not used).

    Pass the same ``memory`` in all calls for one model, so that what all masks need is computed once.
    """
    start = time.perf_counter()
    if not is_one_of(repair, REPAIRS):
        raise OptionError(unknown_choice("repair", repair, REPAIRS))
    require_repairable(clf, repair)
    small = prune(clf, mask)
    error = None
    if repair == "bias":
        error = compensate(clf, small, data, {} if memory is None else memory, progress, cancel)
    elif repair != NOTHING:
        error = rebuild(clf, small, data, SOLVERS[repair], progress, cancel)
    return Repaired(small, error, time.perf_counter() - start)


def require_repairable(clf: Classifier, repair: str) -> None:
    """A ``ModelError`` if this repair cannot be used with this model."""
    if repair == "bias" and any(clf.projections(row).output.bias is None for row in range(clf.num_layers)):
        raise ModelError(
            f"{clf.family.title} has no bias behind its attention, so 'bias' has nowhere to put the mean of the "
            "removed heads. Choose repair 'tune' or 'refit'."
        )
    if repair in ("tune", "refit") and not (is_fast(clf) or clf.family.shows_sums):
        raise ModelError(
            f"Repair '{repair}' needs the sum behind each attention, and headviz does not know where "
            f"{clf.family.title} has it. Choose repair 'bias'."
        )

"""Training dynamics: from which epoch on can heads go? [M §6, Fig. 5]

Every checkpoint of a training run is scored and pruned in its own score's order; the metric is given as a share of
that checkpoint's own unpruned metric.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from ..errors import ModelError
from ..progress import Cancel, Progress, tracked
from ..results import Result
from .pruning_curve import PruningCurves, pruning_curves

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator
    from ..models.classifier import Classifier
    from ..tasks import Dataset

Scorer = Callable[["Evaluator"], NDArray]  # an L×H table, high = keep


@dataclass(frozen=True)
class Checkpoint(Result):
    """One checkpoint's curve; ``relative`` is metric / unpruned metric at each point, NaN without a baseline > 0."""

    name: str
    baseline: float
    sparsities: tuple[float, ...]
    relative: tuple[float, ...]
    curves: PruningCurves


@dataclass(frozen=True)
class Dynamics(Result):
    """Checkpoints in the order of training."""

    folder: str
    score: str
    checkpoints: tuple[Checkpoint, ...]


def dynamics(
    folder: str | Path,
    data: Dataset,
    score: str,
    scorer: Scorer,
    *,
    step: float = 0.1,
    metric: str | None = None,
    evaluator: Callable[[Dataset, Classifier], Evaluator] | None = None,
    load: Callable[[Path], Classifier] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Dynamics:
    """One pruning curve per checkpoint in ``folder``. ``score`` is only the name that ``scorer`` goes by."""
    from ..evaluation.dispatch import evaluator_of
    from ..models.loading import load as load_model

    places = find_checkpoints(folder)
    found = []
    for place in tracked(places, progress, cancel):
        clf = load(place) if load is not None else load_model(place)
        own = evaluator(data, clf) if evaluator is not None else evaluator_of(clf, data)
        table = scorer(own)
        curves = pruning_curves(own, {score: table}, step=step, metric=metric, cancel=cancel)
        points = curves.curves[0].points
        base = curves.baseline
        share = tuple(p.value / base if base > 0 else float("nan") for p in points)
        found.append(Checkpoint(place.name, base, tuple(p.sparsity for p in points), share, curves))
    return Dynamics(str(folder), score, tuple(found))


def find_checkpoints(folder: str | Path) -> list[Path]:
    """The model folders inside a folder, by the numbers in their names."""
    root = Path(folder)
    if not root.is_dir():
        raise ModelError(f"There is no folder '{folder}'. Give the folder that holds the checkpoints.")
    places = [p for p in root.iterdir() if (p / "config.json").is_file()]
    if not places:
        raise ModelError(
            f"'{folder}' holds no checkpoint: none of its folders has a config.json. "
            "Fine-tune with checkpoints kept, or give the folder above them."
        )
    return sorted(places, key=lambda p: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", p.name)])

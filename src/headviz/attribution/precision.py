"""What the precision "auto" is on a GPU: TF32 where it explains the first texts as float32 does.

Each method has a check of its own. It is made again once the model's weights have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from ..models.fast.linear import BFLOAT16, FLOAT32, TF32, bfloat16_here, has_tf32
from ..models.network import weights_state
from ..statistics.resampling import rank_correlation
from ..storage.exchange import MaskLike
from .rules import AUTO, KEPT, IntegrationOptions
from .walk import ExampleMaps

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding

# (classifier, encodings, targets, options, mask, budget, cancel, progress) -> one ExampleMaps per encoding
Sweep = Callable[..., list[ExampleMaps]]
Chosen = TypeVar("Chosen", bound=IntegrationOptions)

SAMPLE, STEPS = 4, 8  # texts that are explained in both precisions, and intervals of their path
SAME_ORDER = 0.999  # the least rank correlation of the heads' strengths


@dataclass(eq=False)
class _Decided:
    """What "auto" is for each method, with the weights as they are."""

    state: list[Any]
    by_sweep: dict[Sweep, str] = field(default_factory=dict)


_DECIDED: WeakKeyDictionary[nn.Module, _Decided] = WeakKeyDictionary()


def settled(
    options: Chosen, clf: Classifier, encodings: Sequence[Encoding], mask: MaskLike | None, sweep: Sweep
) -> Chosen:
    """The options with a precision for "auto"; ``sweep`` is the method's."""
    if options.precision not in (AUTO, TF32):
        return options
    if clf.device.type != "cuda" or clf.dtype != torch.float32:
        return replace(options, precision=FLOAT32)
    if options.precision == TF32:
        return options
    state = weights_state(clf.model)
    decided = _DECIDED.get(clf.model)
    if decided is None or decided.state != state:
        decided = _DECIDED[clf.model] = _Decided(state)
    if sweep not in decided.by_sweep:
        fast = has_tf32(clf.device) and _agrees(clf, encodings[:SAMPLE], options, mask, sweep)
        decided.by_sweep[sweep] = TF32 if fast else FLOAT32
    return replace(options, precision=decided.by_sweep[sweep])


def _agrees(
    clf: Classifier, encodings: Sequence[Encoding], options: IntegrationOptions, mask: MaskLike | None, sweep: Sweep
) -> bool:
    """Whether TF32 explains the same outputs by nearly the same maps, and puts the heads in the same order."""
    exact, fast = (
        sweep(clf, encodings, [None] * len(encodings), replace(options, steps=STEPS, precision=p), mask)
        for p in (FLOAT32, TF32)
    )
    pairs = list(zip(exact, fast, strict=True))
    same = all(a.target == b.target for a, b in pairs)
    near = all(_distance(a.attribution, b.attribution) <= KEPT[0][0] for a, b in pairs)
    order = rank_correlation(_strength(exact), _strength(fast))  # NaN where there is no order
    return same and near and not order < SAME_ORDER


def _distance(exact: np.ndarray, fast: np.ndarray) -> float:
    """The relative L2 distance, without the NaN of removed heads."""
    if (np.isfinite(exact) != np.isfinite(fast)).any():
        return float("inf")
    size, distance = (float(np.linalg.norm(np.nan_to_num(table))) for table in (exact, fast - exact))
    return distance / size if size > 0 else distance


def _strength(maps: Sequence[ExampleMaps]) -> np.ndarray:
    """[L, H] the sum of each head's attributions without their signs, over all texts."""
    strengths = [np.abs(m.attribution).sum(axis=(2, 3), dtype=np.float64) for m in maps]
    return np.asarray(np.sum(strengths, axis=0))


def computed_in(clf: Classifier, precision: str) -> str:
    """The precision in which a settled choice computes: models that are not float32 keep their own."""
    if clf.dtype != torch.float32:
        return str(clf.dtype).removeprefix("torch.")
    if precision == BFLOAT16 and clf.device.type != "cuda" and not bfloat16_here(clf.device):
        return FLOAT32
    return FLOAT32 if precision == TF32 and not has_tf32(clf.device) else precision

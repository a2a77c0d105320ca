"""Really remove heads, put what stands in their place, and repair the kept weights without training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import ModelError, OptionError, is_one_of, unknown_choice
from ..evaluation.plain import encode_data
from ..evaluation.stand_ins import standing_in
from ..models import pruning
from ..models.base import TransformerModel
from ..models.fast.linear import gpu_products
from ..models.fast.stages import has_fast_stages
from ..models.network import require_model
from ..models.stand_in import ZERO, StandIn
from ..progress import Cancel, Progress, tracked
from ..storage.exchange import MaskLike
from .algorithms import NOTHING, REPAIRS
from .reconstruction import Moments, Solve, Stream, moments, pass_moments, rebuild, set_weights, shares, weights_of

if TYPE_CHECKING:
    from ..models.classifier import Classifier
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


def compensate(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    memory: dict[Any, Any],
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, float]:
    """Add the removed heads' mean output, through W_O, to the bias of each layer of ``small`` (edited in place).

    Means are taken in the full model, once for all masks. Returns the squared error of the attention outputs on the
    sample, before and after, as a share of their squared size, each layer with the full model's inputs.
    """
    key = (full.digest, data.digest)
    entry = memory.get("bias")
    if entry is None or entry[0] != key:
        entry = memory["bias"] = None  # frees it before the next one is made
        with gpu_products(full.device):
            entry = memory["bias"] = (key, output_moments(full, data, progress, cancel))
    before = after = energy = 0.0
    for layer, m in enumerate(entry[1]):
        gone = small.present.off_in(layer)
        weights = weights_of(full.projections(layer).output)
        energy += float(np.sum(weights[:-1] * (m.outer[:-1, :-1] @ weights[:-1])))
        if not gone:
            continue
        lost = np.zeros_like(weights)  # the part of W_O that was cut out
        for head in gone:
            rows = slice(head * full.head_size, (head + 1) * full.head_size)
            lost[rows] = weights[rows]
        mean = (m.outer[-1] / m.rows) @ lost  # [D]; the last row of the moments is the sum of the outputs
        error = float(np.sum(lost * (m.outer @ lost)))
        before += error
        after += max(0.0, error - m.rows * float(mean @ mean))
        matrix = small.projections(layer).output
        weights = weights_of(matrix)
        weights[-1] += mean
        set_weights(matrix, weights)
    return shares((before, after, energy))


def output_moments(
    full: Classifier, data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Moments]:
    """Second moments of every layer's head outputs in the full model."""
    if not has_fast_stages(full):
        return pass_moments(full, data, progress, cancel)
    stream = Stream.begin(full, encode_data(full, data))
    by_layer = []
    for layer in tracked(range(full.num_layers), progress, cancel):
        outputs = [stream.outputs(layer, i) for i in range(len(stream.chunks))]
        by_layer.append(moments((o, o[:, :0]) for o in outputs))
        if layer + 1 < full.num_layers:
            stream.pass_layer(layer, outputs)
    return by_layer


def scale_heads(weights: np.ndarray, m: Moments, head_size: int, strength: float) -> np.ndarray:
    """W_O as ``weights_of`` has it, each head's rows times its factor (``factors``); the bias row stays."""
    return weights * np.append(np.repeat(factors(weights, m, head_size, strength), head_size), 1.0)[:, None]


def factors(weights: np.ndarray, m: Moments, head_size: int, strength: float) -> np.ndarray:
    """The factor of each head, [h]: argmin Σ ‖target − bias − Σ_h f_h·W_h·out_h‖², held near 1 by a ridge."""
    heads = (len(weights) - 1) // head_size
    if heads == 0:
        return np.ones(0)
    matrix, bias = weights[:-1], weights[-1]
    # Σ_n ⟨W_h out_h, W_g out_g⟩ = Σ of the block (h, g) of (W·Wᵀ) ∘ (outᵀ·out)
    joint = (matrix @ matrix.T) * m.outer[:-1, :-1]
    gram = joint.reshape(heads, head_size, heads, head_size).sum(axis=(1, 3))  # [h, h]
    target = m.cross[:-1] - np.outer(m.outer[-1, :-1], bias)  # outᵀ·(target − bias)
    right = (matrix * target).sum(axis=1).reshape(heads, head_size).sum(axis=1)  # [h]
    ridge = strength * np.trace(gram) / heads
    if ridge == 0:  # all heads put out zero
        return np.ones(heads)
    return 1 + np.linalg.solve(gram + ridge * np.eye(heads), right - gram.sum(axis=1))


def refit_output(weights: np.ndarray, m: Moments, _: int, strength: float) -> np.ndarray:
    """argmin Σ ‖target − in·X‖² + ridge·‖X − weights‖² over X [W + 1, D]: never worse than ``weights``."""
    width = len(weights) - 1
    ridge = strength * (np.trace(m.outer[:-1, :-1]) / width if width else 0.0)
    penalty = np.append(np.full(width, ridge or 1.0), 0.0 if m.outer[-1, -1] else 1.0)  # the bias is free
    return weights + np.linalg.solve(m.outer + np.diag(penalty), m.cross - m.outer @ weights)


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
    small = pruning.prune(clf, mask)
    error = None
    if repair == "bias":
        error = compensate(clf, small, data, {} if memory is None else memory, progress, cancel)
    elif repair != NOTHING:
        error = rebuild(clf, small, data, SOLVERS[repair], progress, cancel)
    return Repaired(small, error, time.perf_counter() - start)


def require_repairable(clf: Classifier, repair: str, instead: str = "bias", data: Dataset | None = None) -> None:
    """A ``ModelError`` if this repair cannot be used with this model, or on such ``data``; it names what to take
    instead."""
    if repair == "bias" and any(clf.projections(row).output.bias is None for row in range(clf.num_layers)):
        raise ModelError(
            f"{clf.family.title} has no bias behind its attention, so 'bias' has nowhere to put the mean of the "
            "removed heads. Choose repair 'tune' or 'refit'."
        )
    if repair in ("tune", "refit") and not (has_fast_stages(clf) or clf.family.shows_sums):
        raise ModelError(
            f"Repair '{repair}' needs the sum behind each attention, and headviz does not know where "
            f"{clf.family.title} has it. Choose repair '{instead}'."
        )
    if (
        repair in SOLVERS
        and data is not None
        and len(data)
        and not clf.in_stages(encode_data(clf, data.subset(range(1))))
    ):
        raise ModelError(
            f"Repair '{repair}' follows one text through the layers, and '{clf.name}' encodes each text of a pair "
            f"separately. Choose repair '{NOTHING}', or 'bias' where the model has one."
        )

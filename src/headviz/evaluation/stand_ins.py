"""Measure on a reference what stands in the place of heads: ``standing_in`` gives the model with it.

Shapes: B texts, h heads present in a row, H heads of the grid, Q queries, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from ..errors import OptionError, TaskError
from ..models.base import TransformerModel
from ..models.fill import Fill
from ..models.network import require_model
from ..models.stand_in import CONSTANT, MEAN, ZERO, StandIn
from ..progress import Cancel, Progress, tracked
from ..tasks.dataset import require_dataset
from .constants import learn
from .plain import BATCH_TOKENS, batches, encode_data

if TYPE_CHECKING:
    from ..tasks import Dataset

M = TypeVar("M", bound=TransformerModel)


def standing_in(
    clf: M,
    ablation: str | StandIn,
    reference: Dataset | None,
    *,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> M:
    """The model in which the mean, or a learned constant, stands in the place of heads that a mask switches off.

    Every function that takes a mask then puts it there. ``zero`` gives the model as it is. What hangs on the text
    (``mean-by-place``, ``resample``) is refused.

    >>> import headviz
    >>> clf, train = headviz.load("demo", device="cpu"), headviz.load_task("demo", split="train", limit=16)
    >>> clf = headviz.standing_in(clf, "mean", train)
    >>> mask = clf.full_mask.without([(8, 0)])
    >>> headviz.patch(clf, ("A dog runs.", "It runs."), ("A dog sits.", "It runs."), mask=mask).effect.shape
    (12, 12)
    """
    require_model(clf)
    chosen = StandIn.of(ablation)
    if chosen.kind == ZERO:
        return clf
    if chosen.of_the_text:
        raise OptionError(chosen.refusal())
    reference = required(reference, chosen)
    values = mean_outputs(clf, reference, progress if chosen.kind == MEAN else None, cancel)
    if chosen.kind == CONSTANT:
        values = learn(clf, reference, values, chosen.seed, label_order, progress, cancel)
    return clf.filled(Fill(chosen.kind, tuple(values), len(reference), reference.digest))


def required(reference: Dataset | None, chosen: StandIn) -> Dataset:
    """The reference, which all ablations but zero need."""
    if reference is None:
        raise OptionError(
            f"Ablation '{chosen.kind}' needs a reference: examples that say what stands in a head's place, such as "
            "headviz.sample(train, 256)."
        )
    require_dataset(reference)
    if len(reference) == 0:
        raise TaskError("The reference has no examples.")
    return reference


@torch.inference_mode()
def mean_outputs(
    clf: TransformerModel, reference: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Tensor]:
    """Each head's mean output over all real tokens of a reference, per row of the grid [H, d]; padding has no part."""
    encodings = encode_data(clf, reference)
    shape = clf.num_heads, clf.head_size
    total = [torch.zeros(shape, dtype=torch.float64) for _ in range(clf.num_layers)]
    count = [0] * clf.num_layers
    lengths = [max(len(e), len(getattr(e, "target", None) or ())) for e in encodings]
    for index in tracked(batches(lengths, BATCH_TOKENS), progress, cancel, size=len):
        batch = clf.collate([encodings[i] for i in index])
        call = clf.filled(None).call(keep_outputs=True)
        clf.forward(batch, call)
        for row, outputs in enumerate(call.outputs):
            real = clf.real_tokens(row, batch)  # [B, Q]
            total[row][list(clf.present.kept_in(row))] += outputs.transpose(1, 2)[real].double().sum(dim=0).cpu()
            count[row] += int(real.sum())
    return [(t / n).float() for t, n in zip(total, count, strict=True)]

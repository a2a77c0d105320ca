"""The derivative of each example's loss by each head's gate: what the Fisher information is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention import HeadCall
from ..errors import Cancelled
from ..evaluation.plain import batches, class_order, encode_data, gold_for

if TYPE_CHECKING:
    from ..evaluation.plain import Cancel, Progress
    from ..models.classifier import Classifier
    from ..tasks import Dataset

BATCH_TOKENS = 4096


def gate_gradients(
    clf: Classifier,
    data: Dataset,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> np.ndarray:
    """∂Loss(x)/∂ξ for every example and head: [n, L, H], 0 for heads that the model no longer has.

    The loss is the cross-entropy of the gold label, half the squared error of a regression, or the mean negative
    log-likelihood of a reference's tokens; dropout is off.
    """
    if data.is_translation:
        return _of_sentences(clf, data, progress, cancel)
    gold = gold_for(data, class_order(clf, data, label_order))
    assert gold is not None
    encodings = encode_data(clf, data)
    out = np.zeros((len(data), clf.num_layers, clf.num_heads), dtype=np.float64)
    done = 0
    for index in batches([len(e) for e in encodings], BATCH_TOKENS):
        if cancel is not None and cancel():
            raise Cancelled
        gates = [
            torch.ones(len(index), heads, 1, 1, dtype=clf.dtype, device=clf.device, requires_grad=True)
            for heads in clf.heads_per_layer
        ]
        batch = clf.collate([encodings[i] for i in index])
        with torch.enable_grad():
            logits = clf.forward(batch, HeadCall(tuple(gates))).float()
            labels = torch.as_tensor(gold[index], device=logits.device)
            if clf.is_regression:
                loss = 0.5 * ((logits[:, 0] - labels.float()) ** 2).sum()
            else:
                loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
            # the sum's gradient by an example's own gates is that of its own loss
            found = torch.autograd.grad(loss, gates, allow_unused=True)
        for layer, g in enumerate(found):
            if g is not None:
                present = [h for h in range(clf.num_heads) if h not in clf.present.off_in(layer)]
                out[np.ix_(index, [layer], present)] = g.reshape(len(index), 1, -1).double().cpu().numpy()
        done += len(index)
        if progress is not None:
            progress(done, len(data))
    return out


def _of_sentences(
    clf: Classifier, data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> np.ndarray:
    from ..scores.scoring import Job

    job = Job(clf, data, "fisher", cache=False, progress=progress, cancel=cancel)
    for _ in job.grow():
        pass
    assert job.collector is not None
    return np.nan_to_num(job.collector.rows["signed"])

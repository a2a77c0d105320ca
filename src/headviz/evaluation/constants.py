"""Optimal ablation: the vector that, in a head's place, leaves the reference's loss lowest. [arXiv 2409.09951]

Each head's vector is learned with that head alone off, so it does not depend on the mask under which it is used. It
starts at the mean, follows the gradient by Adam, and is kept only where it beats the mean on up to 64 texts of the
reference.

Shapes: B texts of a step, h heads present in a layer, H heads of the grid, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from ..attention import Gate, HeadCall, gate_of
from ..errors import ModelError, TaskError
from ..models.base import TransformerModel
from ..models.fast.linear import products
from ..models.fill import Fill
from ..models.stand_in import CONSTANT
from ..progress import Cancel, Progress, after, tracked
from .evaluator import Evaluator
from .plain import class_order, encode_data, gold_for

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

STEPS = 12  # per layer
TEXTS = 2  # for each head in a step
CHECKED = 64  # texts of the reference on which a constant must beat the mean
RATE = 0.1  # of the first step, as a share of the vectors' size in the layer


def learn(
    clf: TransformerModel,
    reference: Dataset,
    start: Sequence[Tensor],
    seed: int = 0,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> list[Tensor]:
    """One vector per head, for each layer [H, d], from the means in ``start``."""
    wrong = ModelError(f"Constants are learned for classifiers; '{clf.name}' is a {clf.kind} model. Choose mean.")
    clf.check_classes(wrong)
    if reference.labels is None:
        raise TaskError("A constant is learned on the loss of gold labels, and the reference has none. Choose mean.")
    gold = gold_for(reference, class_order(clf, reference, label_order))
    assert gold is not None
    heads = len(clf.present.kept)
    total = clf.num_layers * STEPS + 2 * heads
    found = _descend(clf, reference, gold, start, seed, after(progress, 0, total), cancel)
    done = clf.num_layers * STEPS
    some = np.sort(np.random.default_rng(seed).permutation(len(reference))[:CHECKED])
    checked = reference.subset(some), gold[some]
    before = _losses(clf, *checked, start, label_order, after(progress, done, total), cancel)
    behind = _losses(clf, *checked, found, label_order, after(progress, done + heads, total), cancel)
    better = torch.from_numpy(behind < before)
    return [torch.where(better[i, :, None], new, old) for i, (new, old) in enumerate(zip(found, start, strict=True))]


def _descend(
    clf: TransformerModel,
    reference: Dataset,
    gold: np.ndarray,
    start: Sequence[Tensor],
    seed: int,
    progress: Progress | None,
    cancel: Cancel | None,
) -> list[Tensor]:
    """Adam on all heads of a layer at a time: in each text of a step one of them is off."""
    rng = np.random.default_rng(seed)
    encodings = encode_data(clf, reference)
    out = [rows.clone() for rows in start]
    plan = [(layer, step) for layer in range(clf.num_layers) for step in range(STEPS)]
    present, free, adam = [], torch.empty(0), None
    for layer, step in tracked(plan, progress, cancel):
        if step == 0:
            present = list(clf.present.kept_in(layer))
            free = out[layer][present].to(clf.device).requires_grad_(True)
            rate = RATE * float(free.detach().square().mean().sqrt()) if present else 0.0
            adam = torch.optim.Adam([free], lr=rate or 1e-3)
        if not present or adam is None:
            continue
        for group in adam.param_groups:
            group["lr"] = (rate or 1e-3) * (1 - step / STEPS)
        off = np.tile(np.arange(len(present)), TEXTS)
        chosen = rng.integers(len(encodings), size=len(off))
        adam.zero_grad()
        _loss(clf, [encodings[i] for i in chosen], gold[chosen], layer, off, free).backward()
        adam.step()
        if step == STEPS - 1:
            out[layer][present] = free.detach().cpu()
    return out


def _loss(clf: TransformerModel, texts: list, gold: np.ndarray, layer: int, off: np.ndarray, free: Tensor) -> Tensor:
    """The summed loss of texts of which each has one head of the layer off, with its vector in its place."""
    one = torch.nn.functional.one_hot(torch.from_numpy(off), len(free)).to(free)[:, :, None, None]  # [B, h, 1, 1]
    gates: list[Gate] = [None] * clf.num_layers
    gates[layer] = gate_of((1 - one).to(clf.dtype), free[None, :, None].to(clf.dtype))
    with torch.enable_grad(), products(clf.device):
        batch = clf.labelled(texts, gold.tolist())
        labels = batch.pop("labels")
        return clf.loss(clf.forward(batch, HeadCall(tuple(gates), order=clf.order)), labels) * len(texts)


def _losses(
    clf: TransformerModel,
    reference: Dataset,
    gold: np.ndarray,
    values: Sequence[Tensor],
    label_order: Sequence[str] | str | None,
    progress: Progress | None,
    cancel: Cancel | None,
) -> np.ndarray:
    """[L, H] the mean loss with each head alone off; NaN where there is none."""
    fill = Fill(CONSTANT, tuple(values), len(reference), reference.digest)
    evaluator = Evaluator(cast("Classifier", clf.filled(fill)), reference, label_order=label_order)
    labels = clf.answer.tensor(gold)
    out = np.full((clf.num_layers, clf.num_heads), np.nan)
    for head in tracked(clf.present.kept, progress, cancel):
        logits = evaluator.evaluate(clf.present.without([head]), keep=False).logits
        out[head] = float(clf.loss(torch.from_numpy(np.array(logits)), labels))
    return out

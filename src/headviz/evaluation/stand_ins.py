"""Measure on a reference what stands in the place of heads: ``standing_in`` gives the model with it.

It is the mean, or the vector of optimal ablation, which makes the reference's loss lowest [arXiv 2409.09951].
Each head's vector is learned with that head alone off, so it does not depend on the mask under which it is used. It
starts at the mean, follows the gradient by Adam, and is kept only where it beats the mean on up to 64 texts of the
reference.

Shapes: B texts, h heads present in a row, H heads of the grid, Q queries, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from ..attention import Gate, HeadCall, gate_of
from ..errors import ModelError, OptionError, TaskError
from ..models.base import TransformerModel
from ..models.fast.linear import gpu_products, products
from ..models.network import Fill, require_model
from ..models.stand_in import CONSTANT, MEAN, ZERO, StandIn
from ..progress import Cancel, Progress, after, tracked
from ..tasks.dataset import require_dataset
from .evaluator import Evaluator, EvaluatorOptions
from .plain import BATCH_TOKENS, batches, class_order, encode_data, gold_for

if TYPE_CHECKING:
    from ..models.classifier import Classifier
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

    Every function that takes a mask then puts it there. ``zero`` gives the model as it is. Ablations that depend on the
    text (``mean-by-place``, ``resample``) are refused.

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
        with gpu_products(clf.device):
            clf.forward(batch, call)
        for row, outputs in enumerate(call.outputs):
            real = clf.real_tokens(row, batch)  # [B, Q]
            total[row][list(clf.present.kept_in(row))] += outputs.transpose(1, 2)[real].double().sum(dim=0).cpu()
            count[row] += int(real.sum())
    return [(t / n).float() for t, n in zip(total, count, strict=True)]


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
    clf.check_classes(
        ModelError(f"Constants are learned for classifiers; '{clf.name}' is a {clf.kind} model. Choose mean.")
    )
    if reference.labels is None:
        raise TaskError("A constant is learned on the loss of gold labels, and the reference has none. Choose mean.")
    gold = gold_for(reference, class_order(clf, reference, label_order))
    assert gold is not None
    steps, heads = clf.num_layers * STEPS, len(clf.present.kept)
    total = steps + 2 * heads
    learned = _descend(clf, reference, gold, start, seed, after(progress, 0, total), cancel)
    index = np.sort(np.random.default_rng(seed).permutation(len(reference))[:CHECKED])
    checked = reference.subset(index), gold[index]
    of_means = _losses(clf, *checked, start, label_order, after(progress, steps, total), cancel)
    of_learned = _losses(clf, *checked, learned, label_order, after(progress, steps + heads, total), cancel)
    better = torch.from_numpy(of_learned < of_means)
    return [torch.where(better[i, :, None], new, old) for i, (new, old) in enumerate(zip(learned, start, strict=True))]


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
    present, vectors, adam = [], torch.empty(0), None
    for layer, step in tracked(plan, progress, cancel):
        if step == 0:
            present = list(clf.present.kept_in(layer))
            vectors = out[layer][present].to(clf.device).requires_grad_(True)
            size = float(vectors.detach().square().mean().sqrt()) if present else 0.0
            rate = (RATE * size) or 1e-3
            adam = torch.optim.Adam([vectors], lr=rate)
        if not present or adam is None:
            continue
        for group in adam.param_groups:
            group["lr"] = rate * (1 - step / STEPS)
        off = np.tile(np.arange(len(present)), TEXTS)
        index = rng.integers(len(encodings), size=len(off))
        adam.zero_grad()
        with products(clf.device):
            _loss(clf, [encodings[i] for i in index], gold[index], layer, off, vectors).backward()
        adam.step()
        if step == STEPS - 1:
            out[layer][present] = vectors.detach().cpu()
    return out


def _loss(clf: TransformerModel, texts: list, gold: np.ndarray, layer: int, off: np.ndarray, vectors: Tensor) -> Tensor:
    """The summed loss of texts of which each has one head of the layer off, with its vector in its place."""
    one_hot = torch.nn.functional.one_hot(torch.from_numpy(off), len(vectors))
    is_off = one_hot.to(vectors)[:, :, None, None]  # [B, h, 1, 1]
    gates: list[Gate] = [None] * clf.num_layers
    gates[layer] = gate_of((1 - is_off).to(clf.dtype), vectors[None, :, None].to(clf.dtype))
    with torch.enable_grad():
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
    """[L, H] the mean loss with each head alone off; NaN where the model has no head."""
    fill = Fill(CONSTANT, tuple(values), len(reference), reference.digest)
    exact = EvaluatorOptions(precision="float32")
    evaluator = Evaluator(cast("Classifier", clf.filled(fill)), reference, exact, label_order=label_order)
    labels = clf.answer.tensor(gold)
    out = np.full((clf.num_layers, clf.num_heads), np.nan)
    for head in tracked(clf.present.kept, progress, cancel):
        logits = evaluator.evaluate(clf.present.without([head]), keep=False).logits
        out[head] = float(clf.loss(torch.from_numpy(np.array(logits)), labels))
    return out

"""Scores of heads on sentences to translate: derivatives by the gates, and what a head costs in BLEU.

Shapes: n sentences, L rows, H heads; B sentences of a chunk, h heads present in a row, Q its queries: source or target
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...answers.answer import IGNORED
from ...attention import HeadCall, factor_of, gate_of
from ...models.fast import gpu
from ...models.fast.linear import gpu_products
from ...scores.chunk import Chunk, Tables
from ...scores.gradients import Within
from ...scores.statistics import Summary, draw, exact
from .evaluation import TranslationEvaluator
from .sentence import bleu_counts, bleu_of, differing, interval

if TYPE_CHECKING:
    from ...tasks import Dataset

_RESAMPLES = 200


def ablation(chunk: Chunk) -> list[Callable[[], Tables]]:
    """What BLEU needs of each sentence, with all heads and without each of them."""
    clf, mask = chunk.clf, chunk.mask
    model = TranslationEvaluator(clf, chunk.data)
    full = model.evaluate(mask).translations
    base = bleu_counts(full, chunk.data.references).astype(np.float32)
    without = np.full((len(full), clf.num_layers, clf.num_heads, base.shape[1]), np.nan, np.float32)
    for row, head in mask.kept:
        masked = model.evaluate(mask.without([(row, head)])).translations
        changed = [i for i, (a, b) in enumerate(zip(full, masked, strict=True)) if a != b]
        without[:, row, head] = base
        if changed:
            references = [chunk.data.references[i] for i in changed]
            without[changed, row, head] = bleu_counts([masked[i] for i in changed], references)
    return [lambda i=i: {"full": base[i], "without": without[i]} for i in range(len(full))]  # type: ignore[misc]


def cost_in_bleu(rows: Tables, data: Dataset) -> Summary:
    """BLEU(full) − BLEU(full without the head): positive = the head helps."""
    full, without = rows["full"].astype(np.int64), rows["without"]  # [n, 10], [n, L, H, 10]
    measured = ~np.isnan(without).any(axis=(0, 3))
    shape = measured.shape
    columns = {(row, head): without[:, row, head].astype(np.int64) for row, head in np.argwhere(measured)}

    def costs(weights: Any) -> NDArray:
        """[R, L, H] for each row of weights [R, n]."""
        out = np.full((len(weights), *shape), np.nan)
        counts = np.asarray(weights).astype(np.int64)
        base = np.array([bleu_of(total) for total in counts @ full])
        for head, column in columns.items():
            out[:, *head] = base - [bleu_of(total) for total in counts @ column]
        return out

    values = costs(np.ones((1, len(full))))[0]
    if len(full) < 2:
        return exact(values)

    drawn = costs(draw(len(full), resamples=_RESAMPLES))
    stderr, low, high = (np.full(shape, np.nan) for _ in range(3))
    stderr[measured] = np.std(drawn[:, measured], axis=0, ddof=1)
    for head, column in columns.items():
        low[head], high[head] = interval(drawn[:, *head], differing(full, column))
    return Summary(values, stderr, low, high, np.zeros(shape, np.int64), len(full), costs)


def gate_parts(chunk: Chunk, call: HeadCall, within: Within) -> Sequence[Tensor]:
    """[B, h, Q] of each row; padded queries have no gradient."""
    clf: Any = chunk.clf
    batch = clf.collate(chunk.encodings)
    with torch.enable_grad(), gpu_products(clf.device), within:
        gates = _free_gates(clf, batch, call)
        loss = sentence_losses(clf.forward(batch, call), batch["labels"]).sum()
        grads = torch.autograd.grad(loss, gates, materialize_grads=True)
    return [gpu.exact(grad[..., 0]) for grad in grads]


def sentence_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """[B] mean negative log-likelihood of each reference."""
    losses = torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
    )
    return losses.sum(dim=1) / (labels != IGNORED).sum(dim=1)


def _free_gates(clf: Any, batch: dict[str, Tensor], call: HeadCall) -> list[Tensor]:
    """One gate for each sentence, head and query, put into the call in place of the mask's."""
    source, target = batch["input_ids"].shape[1], batch["decoder_input_ids"].shape[1]
    gates: list[Tensor] = []
    for row, gate in enumerate(call.gates):
        queries = source if row in clf.stacks["encoder"] else target
        shape = (len(batch["input_ids"]), clf.heads_per_layer[row], queries, 1)
        start = torch.ones(shape, dtype=clf.dtype, device=clf.device)
        factor = factor_of(gate)
        gates.append((start if factor is None else start * factor).requires_grad_(True))
    call.gates = tuple(gate_of(factor, clf.stand_in_values(row)) for row, factor in enumerate(gates))
    return gates

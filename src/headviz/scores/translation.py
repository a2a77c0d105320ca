"""What the sweeps of ``sweeps`` measure on a translated sentence: derivatives of its loss, and its part of BLEU.

The loss of a sentence is the mean negative log-likelihood of its reference's tokens, each given those before it.

Shapes: B sentences of a chunk, h heads present in a row, Q queries of a row (source or target tokens), V vocabulary,
n sentences, L rows, H heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..attention import HeadCall
from ..errors import OptionError
from ..evaluation.translation import TranslationEvaluator, require_translation
from ..models.translator import NO_TOKEN
from ..tasks.bleu import bleu_of
from ..tasks.bleu import counts as bleu_counts
from .catalogue import Score, names_for
from .chunk import Chunk, Tables
from .statistics import Counts, Summary, draw

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

_RESAMPLES = 200


def check(clf: Classifier, data: Dataset, score: Score) -> None:
    """Complain about a score, a model or data that translation cannot do with."""
    require_translation(clf, data)
    if score.reads_maps:
        raise OptionError(
            f"Score '{score.name}' explains the class that a model predicts, and a translation has none. "
            f"For translation models choose one of: {', '.join(names_for(translates=True))}."
        )


def sentence_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """[B] mean negative log-likelihood of each reference."""
    each = torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), labels, ignore_index=NO_TOKEN, reduction="none"
    )
    return each.sum(dim=1) / (labels != NO_TOKEN).sum(dim=1)


def gates(chunk: Chunk) -> list[Callable[[], Tables]]:
    """∂Loss/∂ξ of each sentence and head: whole, and as the sum of its tokens' absolute parts."""
    clf: Any = chunk.clf
    size = len(chunk.encodings)
    batch = clf.collate(chunk.encodings)
    call: HeadCall = clf.call(chunk.mask)
    with torch.enable_grad():
        free = _free_gates(clf, batch, call)
        loss = sentence_losses(clf.forward(batch, call), batch["labels"]).sum()
        grads = torch.autograd.grad(loss, free, materialize_grads=True)
    tables = {name: np.full((size, clf.num_layers, clf.num_heads), np.nan) for name in ("signed", "token")}
    for row, grad in enumerate(grads):
        heads = [h for h in range(clf.num_heads) if h not in clf.present.off_in(row)]
        parts = grad[..., 0].double()  # [B, h, Q]; padded queries have none
        tables["signed"][:, row, heads] = parts.sum(dim=-1).cpu().numpy()
        tables["token"][:, row, heads] = parts.abs().sum(dim=-1).cpu().numpy()
    off = ~chunk.mask.array()
    for table in tables.values():
        table[:, off] = np.nan
    return [lambda i=i: {name: table[i] for name, table in tables.items()} for i in range(size)]  # type: ignore[misc]


def _free_gates(clf: Any, batch: dict[str, Tensor], call: HeadCall) -> list[Tensor]:
    """One gate for each sentence, head and query, put into the call in place of the mask's."""
    source, target = batch["input_ids"].shape[1], batch["decoder_input_ids"].shape[1]
    free: list[Tensor] = []
    for row, gate in enumerate(call.gates):
        queries = source if row in clf.stacks["encoder"] else target
        shape = (len(batch["input_ids"]), clf.heads_per_layer[row], queries, 1)
        start = torch.ones(shape, dtype=clf.dtype, device=clf.device)
        free.append((start if gate is None else start * gate).requires_grad_(True))
    call.gates = tuple(free)
    return free


def ablation(chunk: Chunk) -> list[Callable[[], Tables]]:
    """What BLEU needs of each sentence, with all heads and without each of them."""
    clf, mask = chunk.clf, chunk.mask
    model = TranslationEvaluator(clf, chunk.data)
    full = model.evaluate(mask).translations
    base = bleu_counts(full, chunk.data.references).astype(np.float32)
    without = np.full((len(full), clf.num_layers, clf.num_heads, base.shape[1]), np.nan, np.float32)
    for head in mask.kept:
        other = model.evaluate(mask.without([head])).translations
        changed = [i for i, (a, b) in enumerate(zip(full, other, strict=True)) if a != b]
        without[:, head.layer, head.head] = base
        if changed:
            references = [chunk.data.references[i] for i in changed]
            without[changed, head.layer, head.head] = bleu_counts([other[i] for i in changed], references)
    return [lambda i=i: {"full": base[i], "without": without[i]} for i in range(len(full))]  # type: ignore[misc]


def cost_in_bleu(rows: Tables, data: Dataset) -> Summary:
    """BLEU(full) − BLEU(full without the head): positive = the head helps."""
    full, without = rows["full"].astype(np.int64), rows["without"]  # [n, 10], [n, L, H, 10]
    measured = ~np.isnan(without).any(axis=(0, 3))
    shape = measured.shape
    where = list(zip(*np.nonzero(measured), strict=True))
    columns = {place: without[:, place[0], place[1]].astype(np.int64) for place in where}

    def costs(weights: Sequence[Any]) -> NDArray:
        """[R, L, H] for each row of weights [R, n]."""
        out = np.full((len(weights), *shape), np.nan)
        counts = np.asarray(weights).astype(np.int64)
        base = np.array([bleu_of(total) for total in counts @ full])
        for place, column in columns.items():
            out[(slice(None), *place)] = base - [bleu_of(total) for total in counts @ column]
        return out

    values = costs(np.ones((1, len(full))))[0]  # type: ignore[arg-type]
    if len(full) < 2:
        unknown = np.full(shape, np.nan)
        return Summary(values, unknown, unknown, unknown, np.zeros(shape, np.int64))

    def resample(counts: Counts) -> NDArray:
        return costs(counts)  # type: ignore[arg-type]

    drawn = resample(draw(len(full), resamples=_RESAMPLES))
    stderr, low, high = (np.full(shape, np.nan) for _ in range(3))
    stderr[measured] = np.std(drawn[:, measured], axis=0, ddof=1)
    low[measured], high[measured] = np.quantile(drawn[:, measured], [0.025, 0.975], axis=0)
    return Summary(values, stderr, low, high, np.zeros(shape, np.int64), len(full), resample)

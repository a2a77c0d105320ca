"""More head scores from conductance maps, entropies, learned gates and ranks. High = keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor

from ...errors import OptionError
from ...models.fast import gpu
from ...models.fast.gpu import fetch, put
from ...progress import part
from ...scores import gradients
from ...scores.catalogue import SCORES, Score, check_fits, score_named
from ...scores.chunk import Chunk, Tables
from ...scores.learned import Drawn, Rule, learn, rising_price
from ...scores.measures import Inputs, row_of
from ...scores.options import ConductanceOptions, HardOptions
from ...scores.scoring import score_heads
from ...scores.statistics import Counts, Summary, exact, mean, mean_of
from .gim import unknown_norm
from .options import BlendOptions, CausalOptions, RanksOptions

if TYPE_CHECKING:
    from ...models.base import TransformerModel


PRESSED = 4.0  # no pressure beyond this logit: 0.98 open, or 0.02


def conductance_kendall(inputs: Inputs, options: ConductanceOptions) -> np.ndarray:
    return inputs.rows[row_of("kendall", options)]


def conductance_pearson(inputs: Inputs, options: ConductanceOptions) -> np.ndarray:
    return inputs.rows[row_of("pearson", options)]


def conductance_max(inputs: Inputs, options: ConductanceOptions) -> np.ndarray:
    return inputs.rows[row_of("max", options)]


def gates_hard(inputs: Inputs, options: HardOptions) -> np.ndarray:
    """[L, H]: the mean of each gate's chance to be above 0 while the price rises."""
    assert inputs.whole is not None
    return learn(inputs.whole, rising_price(options.price, noise=True), options, "gates-hard").kept


@dataclass(frozen=True)
class CausalRoles:
    """How far each head has each role (Nam et al. 2025), between 0 and 1; [L, H]."""

    facilitating: np.ndarray  # it stays open although all gates are pressed to close
    interfering: np.ndarray  # it closes although all gates are pressed to open
    irrelevant: np.ndarray  # it follows either pressure


def gates_causal(inputs: Inputs, options: CausalOptions) -> Summary:
    """[L, H]: how far a head stays open under pressure to close, minus how far it closes under pressure to open."""
    roles = causal_roles(inputs, options)
    return replace(exact(roles.facilitating - roles.interfering), roles=vars(roles))


def causal_roles(inputs: Inputs, options: CausalOptions) -> CausalRoles:
    """Learned three times: without pressure, then from there with pressure to open, and with pressure to close."""
    assert inputs.whole is not None
    stages = [replace(inputs.whole, progress=part(inputs.whole.progress, i, 3)) for i in range(3)]
    work = "gates-causal"
    free = learn(stages[0], pressed(0.0), options, work, part="free").logits
    opened = learn(stages[1], pressed(options.price), options, work, free, "open").logits
    closed = learn(stages[2], pressed(-options.price), options, work, free, "closed").logits
    up, down = (1 / (1 + np.exp(-z)) for z in (opened, closed))
    return CausalRoles(down, 1 - up, up * (1 - down))


def pressed(price: float) -> Rule:
    """Gates under a constant pressure on their logits: up for a positive price, down for a negative one."""

    def draw(logits: Tensor, done: float, generator: torch.Generator) -> Drawn:
        gates = torch.sigmoid(logits)
        return Drawn(gates, -price * logits.clamp(-PRESSED, PRESSED).mean(), gates)

    return draw


# How spread each head's attention is, and its derivative (Choi et al. 2025, HIES) -----------
#
# A text's entropy is the mean over its tokens of −Σ p·log p, divided by log T: 0 = every token looks at one token,
# 1 = at all tokens equally.
#
# Shapes: B examples of a chunk, h heads present in a layer, T tokens.


def sweep(chunk: Chunk) -> list[Callable[[], Tables]]:
    """For each example: "signed", the loss's derivative by the gate, and "entropy"."""
    call = chunk.clf.call(chunk.mask, "eager", keep_probs=True, keep_outputs=True)
    signed = [part.sum(dim=-1) for part in gradients.of_texts(chunk, call)]
    lengths = put(torch.tensor([len(e) for e in chunk.encodings]), chunk.clf.device)
    entropies = [entropy(probs.detach(), lengths) for probs in call.probs]
    looks_ahead = fetch([torch.stack([p.detach().triu(1).any() for p in call.probs if p.shape[1]] or [lengths[0] > 1])])
    values = gradients.per_example(chunk, {"signed": signed, "entropy": entropies})

    def checked(value: Callable[[], Tables]) -> Tables:
        if max(map(len, chunk.encodings)) > 1 and not looks_ahead()[0].any():
            raise OptionError(
                f"Score 'hies' divides entropy by the logarithm of the text's length, but '{chunk.clf.name}' reads "
                "from left to right: its tokens see different numbers of places."
            )
        return value()

    return [partial(checked, value) for value in values]


def entropy(probs: Tensor, lengths: Tensor) -> Tensor:
    """[B, h] of probabilities [B, h, T, T]; padding takes no part. NaN for a text of one token."""
    tokens = torch.arange(probs.shape[-1], device=probs.device) < lengths[:, None]  # [B, T]
    pairs = tokens[:, None, :, None] & tokens[:, None, None]
    p, count = gpu.exact(probs), gpu.exact(lengths)[:, None]
    parts = torch.special.xlogy(p, p).where(pairs.to(p.device), 0.0)
    return -parts.sum(dim=(2, 3)) / (count * count.log()).where(count > 1, torch.nan)


def hies(inputs: Inputs, options: BlendOptions) -> Summary:
    """α·importance + (1 − α)·(1 − entropy), each brought between 0 and 1 over the heads."""
    entropies = inputs.rows["entropy"]
    importances = np.where(np.isnan(entropies), np.nan, np.abs(inputs.rows["signed"]))
    importance, spread = (mean(rows, inputs.units) for rows in (importances, entropies))
    summary = mean(_blend(importances, entropies, importance.values, spread.values, options.alpha), inputs.units)

    def resample(counts: Counts) -> NDArray:
        assert importance.resample is not None
        assert spread.resample is not None
        pairs = zip(importance.resample(counts), spread.resample(counts), strict=True)
        return np.array([_blend(i, e, i, e, options.alpha) for i, e in pairs])

    return replace(summary, resample=resample)


def _blend(importances: NDArray, entropies: NDArray, importance: NDArray, spread: NDArray, alpha: float) -> NDArray:
    """The formula for values of examples; ``importance`` and ``spread`` are the heads' means, which set the scale."""
    return alpha * _normalised(importances, importance) + (1 - alpha) * (1 - _normalised(entropies, spread))


def _normalised(values: NDArray, table: NDArray) -> NDArray:
    """Scaled so that the table's least value becomes 0 and its largest 1; a table of one value becomes 0."""
    measured = table[np.isfinite(table)]
    low, high = (measured.min(), measured.max()) if measured.size else (0.0, 0.0)
    scaled: NDArray = (values - low) / (high - low if high > low else 1.0)
    return scaled


# The mean rank of every head over several scores. High = keep, as in each of them --------------


NAME = "ranks"
DEFAULT_MEMBERS = ("gim", "gnorm", "magnitude")  # cheap ones, as far as the model has them


def ranks(inputs: Inputs, options: RanksOptions) -> NDArray[np.float64]:
    """[L, H] of the members' tables; those that the cache has are read from it."""
    whole = inputs.whole
    assert whole is not None
    members = members_of(options, whole.clf)
    tables = []
    for i, member in enumerate(members):
        scores = score_heads(
            whole.clf,
            whole.data,
            member.name,
            mask=whole.mask,
            progress=part(whole.progress, i, len(members)),
            cancel=whole.cancel,
            cache=False if whole.store is None else whole.store,
            budget=whole.budget,
            label_order=whole.label_order,
            checkpoint=whole.checkpoint,
        )
        tables.append(scores.values)
    return mean_ranks(tables)


def members_of(options: RanksOptions, clf: TransformerModel) -> list[Score]:
    """The scores whose ranks are averaged on this model. By default Fisher replaces GIM for norms that GIM refuses."""
    if options.names is None:
        names = ("fisher" if name == "gim" and unknown_norm(clf) else name for name in DEFAULT_MEMBERS)
        return [SCORES[name] for name in names if SCORES[name].fits(clf.answer)]
    members = [score_named(name) for name in options.names]
    for score in members:
        if score.name == NAME:
            raise OptionError(f"'{NAME}' averages the ranks of other scores, so it cannot be a member of itself.")
        check_fits(score, clf.answer)
    return members


def mean_ranks(tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """[L, H] between 0 and 1. A table without a value for a head does not count for it; NaN where none has one."""
    return mean_of([ranked(table) for table in tables])


def ranked(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each value's rank in the table, from 0 = lowest to 1 = highest; equal values share their mean rank."""
    ranks = np.full(table.shape, np.nan)
    measured = np.isfinite(table)
    if measured.any():
        ranks[measured] = (rankdata(table[measured]) - 1) / max(1, measured.sum() - 1)
    return ranks

"""Scores of the pre-trained model on its own task: the true token at masked positions.

They use no labels, so the same mask can be used for models that were fine-tuned on any task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..attention import HeadCall, factor_of, with_factor
from ..attribution.rules import PathOptions
from ..errors import OptionError, TaskError
from ..evaluation.plain import batches, encode_data
from ..progress import tracked
from ..scores.masked_place import masked_rows
from ..scores.statistics import layer_normed, mean, total

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier, Encoding
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

CONDUCTANCE = "conductance-"
SHARE = 0.15  # of a text's own tokens, at least one
BATCH_TOKENS = 2048  # the vocabulary's logits are the largest tensor


@dataclass(frozen=True, eq=False)
class MaskedScores:
    """Follows ``context.Scores``."""

    values: np.ndarray  # [L, H], NaN = off
    interval_low: np.ndarray  # 95 % over the texts
    interval_high: np.ndarray


def masked_lm_scores(
    mlm: Classifier,
    data: Dataset,
    score: str = "taylor",
    *,
    mask: HeadMask | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> MaskedScores:
    """A score at the masked-language task.

    ``taylor`` is the mean over texts of |∂Loss/∂ξ|, l2-normalised per layer; ``fisher`` the sum of squares. A
    correlation such as ``conductance-spearman`` explains the logit of the true token at a masked place; its options
    ``steps``, ``rule`` and ``precision`` are used, the target is always that token.
    """
    if score.startswith(CONDUCTANCE):
        statistic = score.removeprefix(CONDUCTANCE)
        rows = masked_rows(
            mlm, data, statistic, options=_path(options or {}), mask=mask, seed=seed, progress=progress, cancel=cancel
        )
        known = mean(rows)
        return MaskedScores(known.values, known.low, known.high)
    gradients = masked_gradients(mlm, data, mask=mask, seed=seed, progress=progress, cancel=cancel)
    kept = mlm.under(mask).array()
    gradients[:, ~kept] = np.nan
    found = layer_normed(mean(np.abs(gradients)), kept) if score == "taylor" else total(gradients**2)
    return MaskedScores(found.values, found.low, found.high)


def _path(options: Mapping[str, Any]) -> PathOptions:
    """The integration of a score's options; others make no sense for a masked place."""
    other = [name for name in options if name not in ("steps", "rule", "precision")]
    if other:
        raise OptionError(f"On a masked-language model '{other[0]}' has no meaning: the true token is explained.")
    return PathOptions(**options)


def masked_gradients(
    mlm: Classifier,
    data: Dataset,
    *,
    mask: HeadMask | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> np.ndarray:
    """∂Loss(x)/∂ξ of the mean cross-entropy over a text's masked places: [n, L, H], 0 for heads that are off."""
    hidden = mlm.mask_token
    encodings = encode_data(mlm, data)
    places = [masked_places(e, seed, i) for i, e in enumerate(encodings)]
    out = np.zeros((len(data), mlm.num_layers, mlm.num_heads))
    gates = mlm.gates(mask)
    for index in tracked(batches([len(e) for e in encodings], BATCH_TOKENS), progress, cancel, size=len):
        batch = mlm.collate([encodings[i] for i in index])
        row = torch.tensor([r for r, i in enumerate(index) for _ in places[i]], device=mlm.device)
        column = torch.tensor([p for i in index for p in places[i]], device=mlm.device)
        truth = batch["input_ids"][row, column].clone()
        batch["input_ids"][row, column] = hidden
        weight = torch.tensor([1 / len(places[i]) for i in index for _ in places[i]], device=mlm.device)
        own = [
            (torch.ones(1, h, 1, 1) if f is None else f).expand(len(index), -1, -1, -1).clone().to(mlm.device)
            for f, h in zip(map(factor_of, gates), mlm.heads_per_layer, strict=True)
        ]
        for g in own:
            g.requires_grad_(True)
        with torch.enable_grad():
            logits = mlm.forward(batch, HeadCall(tuple(map(with_factor, gates, own))))[row, column].float()
            loss = (torch.nn.functional.cross_entropy(logits, truth, reduction="none") * weight).sum()
            found = torch.autograd.grad(loss, own)
        for layer, g in enumerate(found):
            present = list(mlm.present.kept_in(layer))
            out[np.ix_(index, [layer], present)] = g.reshape(len(index), 1, -1).double().cpu().numpy()
    if mask is not None:
        out[:, ~mask.array()] = 0.0
    return out


def masked_places(encoding: Encoding, seed: int, number: int) -> list[int]:
    """The positions of a text that are masked: a seeded share of its tokens, special ones excepted."""
    own = [i for i, special in enumerate(encoding.special) if not special]
    if not own:
        raise TaskError(f"Example {number} has no token of its own to mask.")
    draw = np.random.default_rng([seed, *encoding.ids])
    return sorted(int(i) for i in draw.choice(own, max(1, round(SHARE * len(own))), replace=False))

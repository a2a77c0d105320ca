"""Scores of the pre-trained model on its own task: the true token at masked positions.

They use no labels, so the same mask can be used for models that were fine-tuned on any task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..attribution.integration import BUDGET
from ..attribution.rules import PathOptions
from ..errors import OptionError
from ..evaluation.plain import batches, encode_data
from ..models.classifier import Encoding
from ..progress import tracked
from ..scores.chunk import Chunk, Tables
from ..scores.gradients import by_example, of_texts
from ..scores.map_values import masked_rows, own_places
from ..scores.measures import Given
from ..scores.options import NoOptions
from ..scores.statistics import summarised
from ..storage.exchange import MaskLike
from .plan import require_of_masked_words

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

SHARE = 0.15  # of a text's own tokens, at least one
BATCH_TOKENS = 2048  # the vocabulary's logits are the largest tensor


@dataclass(frozen=True, eq=False)
class MaskedScores:
    """What a ``context.ScoreFunction`` returns."""

    values: np.ndarray  # [L, H], NaN = off
    interval_low: np.ndarray  # 95 % over the texts
    interval_high: np.ndarray


def masked_lm_scores(
    mlm: Classifier,
    data: Dataset,
    score: str = "taylor",
    *,
    mask: MaskLike | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> MaskedScores:
    """A score at the masked-language task, by its own function and options, from rows that are measured there.

    A correlation such as ``conductance-spearman`` explains the logit of the true token at a masked place; of its
    options only ``steps``, ``rule`` and ``precision`` have a meaning. ``taylor`` and ``fisher`` read the derivatives of
    the masked places' loss by the gates. A score that asks for anything else is an ``OptionError``.
    """
    entry = require_of_masked_words(score)
    given = dict(options or {})
    rows: Tables = {}
    if entry.correlation:
        path = _path(given)
        found = masked_rows(
            mlm, data, entry.correlation, options=path, mask=mask, seed=seed, progress=progress, cancel=cancel
        )
        rows = {entry.correlation: found}
    elif entry.needs is not None:
        rows = masked_gates(mlm, data, mask=mask, seed=seed, progress=progress, cancel=cancel)
    built = entry.options_from({"seed": seed, **given} if entry.seeded else given)
    kept = mlm.under(mask)
    known = summarised(entry.function(Given(mlm, kept, rows, data, np.arange(len(data)), None), built))
    on = kept.array()
    return MaskedScores(*(np.where(on, table, np.nan) for table in (known.values, known.low, known.high)))


def _path(options: Mapping[str, Any]) -> PathOptions:
    """The integration of a score's options; others make no sense for a masked place."""
    other = [name for name in options if name not in ("steps", "rule", "precision")]
    if other:
        raise OptionError(f"On a masked-language model '{other[0]}' has no meaning: the true token is explained.")
    return PathOptions(**options)


def masked_gates(
    mlm: Classifier,
    data: Dataset,
    *,
    mask: MaskLike | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Tables:
    """The rows of the sweep of the gates, for the mean cross-entropy over a text's masked places: "signed" and "token",
    [n, L, H], NaN for heads that are off."""
    hidden = mlm.mask_token
    kept = mlm.under(mask)
    encodings = encode_data(mlm, data)
    out: Tables = {}
    for index in tracked(batches([len(e) for e in encodings], BATCH_TOKENS), progress, cancel, size=len):
        places = [masked_places(encodings[i], seed, i) for i in index]
        masked = [_with(encodings[i], own, hidden) for i, own in zip(index, places, strict=True)]
        chunk = Chunk(mlm, kept, masked, [None] * len(masked), None, data.subset(index), NoOptions(), BUDGET)
        loss = _loss_at(places, [encodings[i] for i in index], mlm.device)
        parts = of_texts(chunk, mlm.call(kept, keep_outputs=True), loss=loss)
        for i, finish in zip(index, by_example(chunk, parts), strict=True):
            for name, table in finish().items():
                out.setdefault(name, np.full((len(data), *table.shape), np.nan))[i] = table
    return out


def _with(encoding: Encoding, places: Sequence[int], token: int) -> Encoding:
    """The text with a token in these places."""
    ids = [token if i in places else old for i, old in enumerate(encoding.ids)]
    return Encoding(ids, encoding.types, encoding.truncated, encoding.special)


def _loss_at(
    places: Sequence[Sequence[int]], encodings: Sequence[Encoding], device: torch.device
) -> Callable[[Tensor], Tensor]:
    """The loss of logits [B, T, V]: each text's mean cross-entropy at its places, summed over the texts."""
    at = [(row, place) for row, own in enumerate(places) for place in own]
    row, column = (torch.tensor(numbers, device=device) for numbers in zip(*at, strict=True))
    truth = torch.tensor([encodings[r].ids[p] for r, p in at], device=device)
    weight = torch.tensor([1 / len(places[r]) for r, _ in at], device=device)

    def loss(logits: Tensor) -> Tensor:
        wrong = torch.nn.functional.cross_entropy(logits[row, column].float(), truth, reduction="none")
        return (wrong * weight).sum()

    return loss


def masked_places(encoding: Encoding, seed: int, number: int) -> list[int]:
    """The positions of a text that are masked: a seeded share of its tokens, special ones excepted."""
    own, draw = own_places(encoding, seed, number)
    return sorted(int(i) for i in draw.choice(own, max(1, round(SHARE * len(own))), replace=False))

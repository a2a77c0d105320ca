"""Scores of the pre-trained model at its own task: the true token at masked places.

They use no labels, so the same mask can be used for models that were fine-tuned on any task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..attention import HeadCall
from ..attribution import integration
from ..attribution.integration import BUDGET
from ..attribution.rules import PathOptions
from ..errors import OptionError, TaskError, is_one_of, unknown_choice
from ..evaluation.plain import batches, encode_data
from ..models.classifier import Classifier, Encoding
from ..progress import Cancel, Progress, tracked
from ..storage.exchange import MaskLike
from .catalogue import require_of_masked_words
from .chunk import Chunk, Tables
from .gradients import by_example, of_texts
from .map_values import NAMES, map_values
from .measures import Inputs
from .options import NoOptions
from .statistics import mean_of, summarised

if TYPE_CHECKING:
    from ..tasks import Dataset


COPIES = 1  # of each text
SHARE = 0.15  # of a text's own tokens, at least one
BATCH_TOKENS = 2048  # the vocabulary's logits are the largest tensor


@dataclass(frozen=True, eq=False)
class MaskedScores:
    """Values and their intervals."""

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
    """Head scores of a masked language model at its own task, measured at masked tokens, with the score's options.

    A correlation such as ``conductance-spearman`` explains the logit of the true token at a masked place; of its
    options only ``steps``, ``rule`` and ``precision`` have a meaning. ``taylor`` and ``fisher`` read the derivatives of
    the masked places' loss by the gates. A score that asks for anything else is an ``OptionError``.
    """
    entry = require_of_masked_words(score)
    keywords = dict(options or {})
    rows: Tables = {}
    if entry.correlation:
        path = _path(keywords)
        tables = masked_rows(
            mlm, data, entry.correlation, options=path, mask=mask, seed=seed, progress=progress, cancel=cancel
        )
        rows = {entry.correlation: tables}
    elif entry.needs is not None:
        rows = masked_gates(mlm, data, mask=mask, seed=seed, progress=progress, cancel=cancel)
    settings = entry.options_from({"seed": seed, **keywords} if entry.seeded else keywords)
    full_mask = mlm.under(mask)
    inputs = Inputs(mlm, full_mask, rows, data, np.arange(len(data)), None)
    summary = summarised(entry.function(inputs, settings), data.units)
    on = full_mask.array()
    return MaskedScores(*(np.where(on, table, np.nan) for table in (summary.values, summary.low, summary.high)))


def _path(options: Mapping[str, Any]) -> PathOptions:
    """The integration of a score's options; others make no sense for a masked place."""
    for name in options:
        if name not in ("steps", "rule", "precision"):
            raise OptionError(f"On a masked-language model '{name}' has no meaning: the true token is explained.")
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
    mask_token = mlm.mask_token
    full_mask = mlm.under(mask)
    encodings = encode_data(mlm, data)
    out: Tables = {}
    for index in tracked(batches([len(e) for e in encodings], BATCH_TOKENS), progress, cancel, size=len):
        places = [masked_places(encodings[i], seed, i) for i in index]
        masked = [_masked(encodings[i], masked_at, mask_token) for i, masked_at in zip(index, places, strict=True)]
        chunk = Chunk(mlm, full_mask, masked, [None] * len(masked), None, data.subset(index), NoOptions(), BUDGET)
        loss = _loss_at(places, [encodings[i] for i in index], mlm.device)
        parts = of_texts(chunk, mlm.call(full_mask, keep_outputs=True), loss=loss)
        for i, finish in zip(index, by_example(chunk, parts), strict=True):
            for name, table in finish().items():
                out.setdefault(name, np.full((len(data), *table.shape), np.nan))[i] = table
    return out


def _masked(encoding: Encoding, places: Sequence[int], mask_token: int) -> Encoding:
    """The text with the mask token in these places."""
    ids = [mask_token if i in places else token for i, token in enumerate(encoding.ids)]
    return Encoding(ids, encoding.types, encoding.truncated, encoding.special)


def _loss_at(
    places: Sequence[Sequence[int]], encodings: Sequence[Encoding], device: torch.device
) -> Callable[[Tensor], Tensor]:
    """The loss of logits [B, T, V]: each text's mean cross-entropy at its places, summed over the texts."""
    masked = [(row, place) for row, of_text in enumerate(places) for place in of_text]
    rows, columns = (torch.tensor(numbers, device=device) for numbers in zip(*masked, strict=True))
    truth = torch.tensor([encodings[row].ids[place] for row, place in masked], device=device)
    weight = torch.tensor([1 / len(places[row]) for row, _ in masked], device=device)

    def loss(logits: Tensor) -> Tensor:
        losses = torch.nn.functional.cross_entropy(logits[rows, columns].float(), truth, reduction="none")
        return (losses * weight).sum()

    return loss


def masked_places(encoding: Encoding, seed: int, number: int) -> list[int]:
    """The positions of a text that are masked: a seeded share of its tokens, special ones excepted."""
    places, rng = _maskable(encoding, seed, number)
    return sorted(rng.choice(places, max(1, round(SHARE * len(places))), replace=False).tolist())


@dataclass(frozen=True, eq=False)
class _AtPlace(Classifier):
    """Answers with the logits of one position of each row: [rows, vocabulary]."""

    position: int = 0
    replays: ClassVar[bool] = False

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        return super().forward(batch, call)[:, self.position]


def masked_source(copies: int) -> str:
    """Where the pre-trained model's F comes from, in words."""
    places = "one masked place" if copies == 1 else f"mean over {copies} masked copies"
    return f"the masked-language model's logit of the true token, {places} per text"


def masked_rows(
    mlm: Classifier,
    data: Dataset,
    statistic: str = "spearman",
    *,
    options: PathOptions | None = None,
    copies: int = COPIES,
    mask: MaskLike | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> NDArray[np.float64]:
    """Each text's correlations of attention and attribution: [n, L, H], NaN where a head is off or there is none.

    ``statistics.mean_of`` gives their mean over the texts.
    """
    if not is_one_of(statistic, NAMES):
        raise OptionError(unknown_choice("statistic", statistic, NAMES))
    if copies < 1:
        raise OptionError(f"At least one masked copy of each text is needed, not {copies}.")
    mask_token = mlm.mask_token
    on = mlm.under(mask).array()
    encodings = encode_data(mlm, data)
    out = np.full((len(encodings), *on.shape), np.nan)
    for number, encoding in enumerate(tracked(encodings, progress, cancel)):
        rows = []
        for place in hidden_places(encoding, seed, number, copies):
            # one copy at a time: each has its own place to look at
            at_place = _AtPlace(**{f.name: getattr(mlm, f.name) for f in dataclasses.fields(mlm)}, position=place)
            masked, truth = _masked(encoding, [place], mask_token), encoding.ids[place]
            (swept,) = integration.sweep_groups(
                at_place, [masked], [truth], options or PathOptions(), mask, cancel=cancel
            )
            (value,) = map_values(swept, on, (statistic,))
            rows.append(value()[statistic])
        out[number] = mean_of(rows)
    return out


def hidden_places(encoding: Encoding, seed: int, number: int, copies: int = COPIES) -> list[int]:
    """The positions of the tokens that are masked, one in each copy of the text: never special ones, none twice.

    They do not depend on the text's position in the data. A short text has fewer copies.
    """
    places, rng = _maskable(encoding, seed, number)
    if copies == 1:
        return [int(rng.choice(places))]
    return rng.permutation(places)[:copies].tolist()


def _maskable(encoding: Encoding, seed: int, number: int) -> tuple[list[int], np.random.Generator]:
    """The positions of a text's tokens, special ones excepted, and a generator to draw with; an error without any."""
    places = [i for i, special in enumerate(encoding.special) if not special]
    if not places:
        raise TaskError(f"Example {number} has no token of its own to mask. Remove it from the data.")
    return places, np.random.default_rng([seed, *encoding.ids])

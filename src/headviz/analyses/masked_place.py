"""A pre-trained model's own F: the logit of the true token at a masked position. [T §6.5, the option]

One seeded token of every text is hidden, and conductance explains the masked-language model's logit of what stood
there. No label and no classification head take part.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..attention import HeadCall
from ..attribution import integration as path
from ..attribution.rules import PathOptions
from ..errors import ModelError, OptionError, TaskError, unknown_choice
from ..evaluation.plain import encode_data
from ..models.base import MASKED_LM
from ..models.classifier import Classifier, Encoding
from ..progress import Cancel, Progress, tracked
from ..scores.sweeps import correlate

if TYPE_CHECKING:
    from torch import Tensor

    from ..tasks import Dataset

STATISTICS = ("spearman", "kendall", "pearson")
SOURCE = "the masked-language model's logit of the true token, one masked place per text"


@dataclass(frozen=True, eq=False)
class _AtPlace(Classifier):
    """Answers with the logits of one position: [rows, vocabulary]."""

    position: int = 0

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        return super().forward(batch, call)[:, self.position]


def masked_correlations(
    mlm: Classifier,
    data: Dataset,
    statistic: str = "spearman",
    *,
    options: PathOptions | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> NDArray[np.float64]:
    """Mean over texts of the correlation of attention and attribution, [L, H]; undefined ones are left out."""
    if statistic not in STATISTICS:
        raise OptionError(unknown_choice("statistic", statistic, STATISTICS))
    if mlm.kind != MASKED_LM or mlm.tokenizer.mask_token_id is None:
        raise ModelError(f"'{mlm.name}' has no masked-language head. Load the pre-trained model with masked_lm=True.")
    kept = mlm.present.array()
    total, count = np.zeros(kept.shape), np.zeros(kept.shape, dtype=int)
    encodings = encode_data(mlm, data)
    for number, encoding in enumerate(tracked(encodings, progress, cancel)):
        place = hidden_place(encoding, seed, number)
        # one text at a time: every text has its own place to look at
        at_place = _AtPlace(**{f.name: getattr(mlm, f.name) for f in dataclasses.fields(mlm)}, position=place)
        ids = list(encoding.ids)
        truth, ids[place] = ids[place], int(mlm.tokenizer.mask_token_id)
        masked = Encoding(ids, encoding.types, encoding.truncated, encoding.special)
        found = path.sweep(at_place, [masked], [truth], options or PathOptions(), cancel=cancel)
        values = correlate(found[0], kept)[statistic]
        there = np.isfinite(values)
        total[there] += values[there]
        count += there
    return np.divide(total, count, out=np.full(kept.shape, np.nan), where=count > 0)


def hidden_place(encoding: Encoding, seed: int, number: int) -> int:
    """Which token of a text is hidden: never a special one. It depends on the text and the seed, not on its place."""
    own = [i for i, special in enumerate(encoding.special) if not special]
    if not own:
        raise TaskError(f"Example {number} has no token of its own to mask. Remove it from the data.")
    return int(np.random.default_rng([seed, *encoding.ids]).choice(own))

"""A pre-trained model's own F: the logit of the true token at a masked position. [T §6.5, §7.2]

Of every text some copies are made, each with another of its tokens hidden, seeded; conductance explains the
masked-language model's logit of what stood there. A text's value is the mean over its copies. No label and no
classification head take part.

Shapes: n texts, L layers, H heads.
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
from ..errors import OptionError, TaskError, is_one_of, unknown_choice
from ..evaluation.plain import encode_data
from ..models.classifier import Classifier, Encoding
from ..progress import Cancel, Progress, tracked
from ..storage.exchange import MaskLike
from .map_values import map_values
from .statistics import mean_of

if TYPE_CHECKING:
    from torch import Tensor

    from ..tasks import Dataset

STATISTICS = ("spearman", "kendall", "pearson")
COPIES = 1  # of each text


@dataclass(frozen=True, eq=False)
class _AtPlace(Classifier):
    """Answers with the logits of one position of each row: [rows, vocabulary]."""

    position: int = 0

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        return super().forward(batch, call)[:, self.position]


def source(copies: int) -> str:
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
    if not is_one_of(statistic, STATISTICS):
        raise OptionError(unknown_choice("statistic", statistic, STATISTICS))
    if copies < 1:
        raise OptionError(f"At least one masked copy of each text is needed, not {copies}.")
    mask_token = mlm.mask_token
    kept = mlm.under(mask).array()
    encodings = encode_data(mlm, data)
    out = np.full((len(encodings), *kept.shape), np.nan)
    for number, encoding in enumerate(tracked(encodings, progress, cancel)):
        found = []
        for place in hidden_places(encoding, seed, number, copies):
            # one copy at a time: each has its own place to look at
            at_place = _AtPlace(**{f.name: getattr(mlm, f.name) for f in dataclasses.fields(mlm)}, position=place)
            ids = list(encoding.ids)
            truth, ids[place] = ids[place], mask_token
            hidden = Encoding(ids, encoding.types, encoding.truncated, encoding.special)
            (swept,) = path.swept(at_place, [hidden], [truth], options or PathOptions(), mask, cancel=cancel)
            (value,) = map_values(swept, kept, (statistic,))
            found.append(value()[statistic])
        out[number] = mean_of(found)
    return out


def hidden_places(encoding: Encoding, seed: int, number: int, copies: int = COPIES) -> list[int]:
    """Which tokens of a text are hidden, one in each copy: of its own, never special ones, none twice.

    The same wherever the text stands. A short text has fewer copies.
    """
    own, draw = own_places(encoding, seed, number)
    if copies == 1:
        return [int(draw.choice(own))]
    return [int(i) for i in draw.permutation(own)[:copies]]


def own_places(encoding: Encoding, seed: int, number: int) -> tuple[list[int], np.random.Generator]:
    """Where a text's own tokens are, special ones excepted, and what draws among them; an error if it has none."""
    own = [i for i, special in enumerate(encoding.special) if not special]
    if not own:
        raise TaskError(f"Example {number} has no token of its own to mask. Remove it from the data.")
    return own, np.random.default_rng([seed, *encoding.ids])

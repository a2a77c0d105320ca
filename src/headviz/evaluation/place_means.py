"""The mean by kind of place: in a head's place stands its mean output over tokens of the same kind in a reference.

The kinds are the first token, a delimiter inside, the last delimiter, words of the first text and words of the second.
A kind that the reference does not have takes the mean over all tokens. Means are taken with every head on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..models.stand_in import StandIn
from ..progress import Cancel, Progress, tracked
from .donors import TextRows
from .places import KINDS, kinds_of
from .plain import BATCH_TOKENS, batches, encode_data

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset


class PlaceMeans(TextRows):
    """Per layer five rows, one for each kind."""

    draws = 1

    @torch.inference_mode()
    def __init__(
        self,
        clf: Classifier,
        reference: Dataset,
        stand_in: StandIn,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        self.stand_in, self.examples = stand_in, len(reference)
        encodings = encode_data(clf, reference)
        total = [torch.zeros(len(KINDS), h * clf.head_size, dtype=torch.float64) for h in clf.heads_per_layer]
        count = torch.zeros(len(KINDS), dtype=torch.float64)
        for index in tracked(batches([len(e) for e in encodings], BATCH_TOKENS), progress, cancel, size=len):
            call = clf.filled(None).call(keep_outputs=True)
            clf.forward(clf.collate([encodings[i] for i in index]), call)
            for text, i in enumerate(index):
                kinds = torch.from_numpy(kinds_of(encodings[i]))
                count += torch.bincount(kinds, minlength=len(KINDS))
                for layer, outputs in enumerate(call.outputs):
                    rows = outputs[text, :, : len(kinds)].transpose(0, 1).flatten(1).double().cpu()
                    total[layer].index_add_(0, kinds, rows)
        self.rows = []
        for summed in total:
            means = summed / count.clamp(min=1)[:, None]
            means[count == 0] = summed.sum(dim=0) / count.sum()
            self.rows.append(means.to(dtype=clf.dtype, device=clf.device))

    def places(self, text: Encoding, draw: int) -> list[int]:
        found: list[int] = kinds_of(text).tolist()
        return found

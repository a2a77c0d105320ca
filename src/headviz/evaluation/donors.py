"""A head that is off is replaced by its output for other texts; which output, depends on the text.

Resampling: its output in another example of a reference. Each text draws a donor among the reference's texts that are
at least as long (among the 8 longest, if fewer are), never itself. Each token gets the donor's output at the same
position; behind the end of a shorter donor, the mean over its tokens. The draw depends on the text and the seed alone,
not on the text's position in the data. Donors are read with every head on.

The mean by place: its mean output over tokens of the same kind in a reference, read with every head on. The kinds are
the first token, a delimiter inside, the last delimiter, words of the first text and words of the second. A kind that
the reference does not have gets the mean over all tokens.

Shapes: N rows of a chunk, h heads present, d head size, W = h·d.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..attention import Filled, Gate, factor_of
from ..errors import OptionError
from ..models.fast.linear import gpu_products
from ..models.stand_in import StandIn
from ..progress import Cancel, Progress, tracked
from .plain import BATCH_TOKENS, batches

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding
    from ..models.fast.packing import Chunk
    from ..models.fast.stages import Stages
    from ..tasks import Dataset

FIRST, INNER, LAST, WORDS, PAIR = KINDS = tuple(range(5))  # a token's kind of place, see above


def kinds_of(encoding: Encoding) -> np.ndarray:
    """The kind of each token."""
    special = np.array(encoding.special, dtype=bool)
    kinds = np.where(special, INNER, np.where(encoding.text_numbers == 0, WORDS, PAIR))
    kinds[-1] = LAST if special[-1] else kinds[-1]
    kinds[0] = FIRST if special[0] else kinds[0]
    return kinds


POOL = 8  # texts among which a donor is drawn, at least
MOST = 2 * 2**30  # bytes of kept outputs


class TextRows(ABC):
    """Outputs that replace a head's, chosen by the text: for each token one of the rows [·, W] kept for each layer."""

    stand_in: StandIn
    examples: int  # of the reference
    draws: int
    rows: list[Tensor]

    @abstractmethod
    def places(self, text: Encoding, draw: int) -> list[int]:
        """The row of each token of a text in one draw."""

    def described(self, draw: int | None) -> str:
        """What replaces the heads' outputs, in words: of one draw, or of all (None)."""
        return f"{self.stand_in.kind} from {self.examples} examples"

    def gates(
        self, gates: Sequence[Gate], stages: Stages, chunk: Chunk, texts: Sequence[Encoding], draw: int
    ) -> list[Gate]:
        """A mask's gates for one chunk, with these rows in the place of what is off."""
        if all(gate is None for gate in gates):
            return list(gates)
        places = [place for i in chunk.index for place in self.places(texts[i], draw)]
        index = torch.tensor(places, device=self.rows[0].device)
        return [self._filled(gate, layer, stages, chunk, index) for layer, gate in enumerate(gates)]

    def padded(self, texts: Sequence[Encoding], draw: int, size: int) -> list[Tensor]:
        """Per layer [B, h, T, d], d = ``size``, for a batch padded on the right; padding has the last token's."""
        places = [self.places(text, draw) for text in texts]
        longest = max(map(len, places))
        padded = [indices + indices[-1:] * (longest - len(indices)) for indices in places]
        index = torch.tensor(padded, device=self.rows[0].device)
        return [rows[index].unflatten(2, (rows.shape[1] // size, size)).transpose(1, 2) for rows in self.rows]

    def _filled(self, gate: Gate, layer: int, stages: Stages, chunk: Chunk, index: Tensor) -> Gate:
        factor = factor_of(gate)
        if factor is None:
            return None
        rows = self.rows[layer]
        off = (1 - factor.view(-1)).repeat_interleave(rows.shape[1] // factor.numel())
        return Filled(factor, stages.entry(layer, rows[index], chunk) * off)


class Donors(TextRows):
    """The heads' outputs on a reference, and who gives to whom."""

    def __init__(
        self,
        clf: Classifier,
        reference: Dataset,
        stand_in: StandIn,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        self.stand_in, self.examples, self.draws = stand_in, len(reference), stand_in.draws
        self.encodings, _ = clf.sequences(reference)
        self.lengths = np.array([len(e) for e in self.encodings])
        if len({tuple(e.ids) for e in self.encodings}) < 2:
            raise OptionError("Resampling needs a reference of at least two different texts.")
        size = int((self.lengths + 1).sum()) * sum(clf.heads_per_layer) * clf.head_size * 4
        if size > MOST:
            raise OptionError(
                f"The outputs of this reference take {size / 2**30:.1f} GiB, more than {MOST // 2**30}. "
                "Take a smaller reference."
            )
        # each text's rows, and behind them their mean
        self.starts = np.concatenate([[0], np.cumsum(self.lengths + 1)[:-1]])
        self.rows = _outputs(clf, self.encodings, self.starts, progress, cancel)
        self._by_length = np.argsort(-self.lengths, kind="stable")
        self._drawn: dict[tuple[int, tuple[int, ...]], int] = {}  # (draw, token ids) -> donor

    def described(self, draw: int | None) -> str:
        draws = f"{self.draws} draw{'s' if self.draws > 1 else ''}"
        if draw is not None and self.draws > 1:
            draws = f"draw {draw + 1} of {self.draws}"
        return f"{super().described(draw)}, {draws}"

    def donor(self, text: Encoding, draw: int) -> int:
        """The number of the example whose outputs a text takes in one draw."""
        key = (draw, tuple(text.ids))
        if key not in self._drawn:
            others = [i for i in self._by_length if self.encodings[i].ids != text.ids]
            long_enough = sum(int(self.lengths[i] >= len(text)) for i in others)
            pool = sorted(others[: max(long_enough, POOL)])
            rng = np.random.default_rng([self.stand_in.seed, draw, *text.ids])
            self._drawn[key] = int(pool[rng.integers(len(pool))])
        return self._drawn[key]

    def places(self, text: Encoding, draw: int) -> list[int]:
        donor = self.donor(text, draw)
        return [int(self.starts[donor]) + min(place, int(self.lengths[donor])) for place in range(len(text))]


@torch.inference_mode()
def _outputs(
    clf: Classifier, encodings: Sequence[Encoding], starts: np.ndarray, progress: Progress | None, cancel: Cancel | None
) -> list[Tensor]:
    """Per layer the texts' rows [rows, W], each text's mean behind its own."""
    total = sum(len(e) + 1 for e in encodings)
    rows = [torch.zeros(total, h * clf.head_size, dtype=clf.dtype, device=clf.device) for h in clf.heads_per_layer]
    for index in tracked(batches([len(e) for e in encodings], BATCH_TOKENS), progress, cancel, size=len):
        call = clf.call(keep_outputs=True)
        with gpu_products(clf.device):
            clf.outputs(clf.collate([encodings[i] for i in index]), call)
        for layer, outputs in enumerate(call.outputs):
            flat = outputs.transpose(1, 2).flatten(2)  # [B, T, W]
            for text, i in zip(flat, index, strict=True):
                start, length = int(starts[i]), len(encodings[i])
                rows[layer][start : start + length] = text[:length]
                rows[layer][start + length] = text[:length].mean(dim=0)
    return rows


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
        encodings, _ = clf.sequences(reference)
        total = [torch.zeros(len(KINDS), h * clf.head_size, dtype=torch.float64) for h in clf.heads_per_layer]
        count = torch.zeros(len(KINDS), dtype=torch.float64)
        for index in tracked(batches([len(e) for e in encodings], BATCH_TOKENS), progress, cancel, size=len):
            call = clf.filled(None).call(keep_outputs=True)
            with gpu_products(clf.device):
                clf.outputs(clf.collate([encodings[i] for i in index]), call)
            for text, i in enumerate(index):
                kinds = torch.from_numpy(kinds_of(encodings[i]))
                count += torch.bincount(kinds, minlength=len(KINDS))
                for layer, outputs in enumerate(call.outputs):
                    rows = outputs[text, :, : len(kinds)].transpose(0, 1).flatten(1).double().cpu()
                    total[layer].index_add_(0, kinds, rows)
        self.rows = []
        for sums in total:
            means = sums / count.clamp(min=1)[:, None]
            means[count == 0] = sums.sum(dim=0) / count.sum()
            self.rows.append(means.to(dtype=clf.dtype, device=clf.device))

    def places(self, text: Encoding, draw: int) -> list[int]:
        places: list[int] = kinds_of(text).tolist()
        return places

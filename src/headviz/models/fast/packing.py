"""Texts packed without padding: one row per token, texts of equal length side by side.

Linear layers then run over the rows alone, and attention over one group of equal length at a time, so on a processor
no padding is ever computed. A GPU would wait for hundreds of small groups in every layer; there the fast stages put
texts of similar length into one group, padded for its attention alone (``placed``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch

from ...errors import ModelError
from ..places import PLACES, table_of
from .gpu import put

if TYPE_CHECKING:
    from torch import Tensor

    from ..classifier import Classifier, Encoding


UNEVEN = 1.5  # how much longer than the first text of a padded group its last one may be


@dataclass(frozen=True, eq=False)
class Padding:
    """Where the rows of texts of unequal length lie in a padded table [B, T]."""

    rows: Tensor  # [B·T] the row at each place; behind a text its first row, which no query sees
    places: Tensor  # the place of each row
    bias: Tensor  # [B, 1, 1, T], −∞ behind a text


@dataclass(frozen=True)
class Group:
    """Rows ``start`` to ``stop`` hold ``count`` texts of ``length`` tokens each, from text ``first`` of the chunk."""

    start: int
    stop: int
    count: int
    length: int
    first: int
    padding: Padding | None = None  # where the texts are shorter than ``length``

    def rows_of(self, rows: Tensor) -> Tensor:
        """[N, W] of the chunk -> [B, T, W]."""
        group_rows = rows[self.start : self.stop] if self.padding is None else rows[self.padding.rows]
        return group_rows.view(self.count, self.length, -1)

    def put(self, out: Tensor, values: Tensor) -> None:
        """[B, T, …] into its rows of [N, W]."""
        if self.padding is None:
            out[self.start : self.stop].view(values.shape).copy_(values)
        else:
            out[self.start : self.stop] = values.reshape(self.count * self.length, -1)[self.padding.places]

    def biased(self, bias: Tensor | None) -> Tensor | None:
        """What is added to the scores of attention, [1 or B, 1 or h, Q, T], so that no query sees padding."""
        if self.padding is None:
            return bias
        return self.padding.bias if bias is None else self.padding.bias + bias


@dataclass(frozen=True)
class Chunk:
    """Some texts of a data set: what runs through the layers at once."""

    index: tuple[int, ...]  # their positions in the data set
    groups: tuple[Group, ...]

    @property
    def tokens(self) -> int:
        return self.groups[-1].stop

    def texts(self) -> list[int]:
        """The position of each row's text in the data set."""
        return [i for g in self.groups for i in self.index[g.first : g.first + g.count] for _ in range(g.length)]

    def first_rows(self) -> list[int]:
        """The row of each text's first token."""
        return [g.start + i * g.length for g in self.groups for i in range(g.count)]


def pack(lengths: Sequence[int], tokens: int, index: Iterable[int] | None = None) -> list[Chunk]:
    """Chunks of about ``tokens`` rows, texts sorted by length; a longer text has a chunk of its own.

    ``index`` are the texts to pack, by default all.
    """
    order = sorted(range(len(lengths)) if index is None else index, key=lambda i: (lengths[i], i))
    total = sum(lengths[i] for i in order)
    pieces = max(1, round(total / tokens))
    chunks: list[Chunk] = []
    part: list[int] = []
    done = 0
    for i in order:
        part.append(i)
        done += lengths[i]
        # cut where the evenly spaced share ends, so that no small chunk is left over
        if done >= total * (len(chunks) + 1) / pieces:
            chunks.append(_chunk(part, lengths))
            part = []
    if part:
        chunks.append(_chunk(part, lengths))
    return chunks


def _chunk(index: Sequence[int], lengths: Sequence[int]) -> Chunk:
    groups: list[Group] = []
    row = text = 0
    for length, members in groupby(index, key=lambda i: lengths[i]):
        count = len(list(members))
        groups.append(Group(row, row + count * length, count, length, text))
        row += count * length
        text += count
    return Chunk(tuple(index), tuple(groups))


@dataclass(frozen=True, eq=False)
class Placed:
    """What a chunk's attention reads on a device: its groups, and the row of each text's first token."""

    groups: tuple[Group, ...]
    first_rows: Tensor


def placed(chunk: Chunk, device: torch.device, dtype: torch.dtype) -> Placed:
    """The chunk's groups for a device: as they are on a processor, merged and padded on a GPU."""
    groups = chunk.groups if device.type == "cpu" else tuple(_padded(chunk.groups, device, dtype))
    return Placed(groups, put(torch.tensor(chunk.first_rows(), dtype=torch.long), device))


def _padded(groups: Sequence[Group], device: torch.device, dtype: torch.dtype) -> Iterator[Group]:
    """Neighbours of similar length as one group."""
    similar: list[Group] = []
    for group in (*groups, None):
        if group is not None and (not similar or group.length <= UNEVEN * similar[0].length):
            similar.append(group)
            continue
        first, last, texts = similar[0], similar[-1], [g.length for g in similar for _ in range(g.count)]
        similar = [] if group is None else [group]
        if first is last:
            yield first
            continue
        lengths = torch.tensor(texts)
        is_token = torch.arange(last.length) < lengths[:, None]  # [B, T]
        starts = first.start + lengths.cumsum(0) - lengths
        rows = torch.where(is_token, starts[:, None] + torch.arange(last.length), starts[:, None]).flatten()
        bias = torch.zeros(is_token.shape, dtype=dtype).masked_fill(~is_token, -torch.inf)[:, None, None]
        padding = Padding(*(put(t, device) for t in (rows, is_token.flatten().nonzero()[:, 0], bias)))
        yield Group(first.start, last.stop, len(lengths), last.length, first.first, padding)


def embed(clf: Classifier, chunk: Chunk, encodings: Sequence[Encoding], groups: Sequence[Group] = ()) -> Tensor:
    """The embeddings of a chunk, [N, D], computed by its own groups or by these."""
    if not clf.in_stages([encodings[i] for i in chunk.index]):
        raise ModelError(
            f"This method needs both texts in one sequence, but '{clf.name}' encodes each text of a pair separately. "
            "What works: masks, scores, conductance, patching, ablations, pruning runs and training."
        )
    embeddings = clf.module(clf.family.embeddings)
    parts = []
    for g in groups or chunk.groups:
        batch = clf.collate([encodings[i] for i in chunk.index[g.first : g.first + g.count]])
        batch = {k: v for k, v in batch.items() if k not in ("attention_mask", PLACES)}
        rows = embeddings(**batch).flatten(0, 1)
        parts.append(rows if g.padding is None else rows[g.padding.places])
    return torch.cat(parts)


def read_each(clf: Classifier, rows: Tensor, chunk: Chunk, encodings: Sequence[Encoding], head: Any = None) -> Tensor:
    """Logits [n, W, C] in float32 from the last states [N, D] of a chunk; without a ``head`` they are logits."""
    table = table_of([encodings[i] for i in chunk.index])
    assert table is not None
    is_token = torch.from_numpy(table >= 0).to(rows.device)
    numbers = torch.from_numpy(table + [[first] for first in chunk.first_rows()]).to(rows.device)[is_token]
    logits = rows[numbers] if head is None else head(clf.model, rows[numbers])
    out = torch.full((*table.shape, clf.num_labels), torch.nan, device=rows.device)
    out[is_token] = logits.float()
    return out

"""Texts packed without padding: one row per token, texts of equal length side by side.

Linear layers then run over the rows alone, and attention over one group of equal length at a time, so on a processor
no padding is ever computed. A GPU would wait for hundreds of small groups in every layer; there the fast stages put
texts of similar length into one group, padded for its attention alone (``placed``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
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

    def heads_of(self, rows: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B, h, T, d], d = ``size``, of rows [N, 3·h·d]; of padded texts [h, B, T, d]."""
        if self.padding is None:
            parts = self.rows_of(rows).view(self.count, self.length, 3, -1, size)
            query, key, value = parts.permute(2, 0, 3, 1, 4).contiguous()
        else:  # one copy puts them in their places and side by side
            heads = rows.view(len(rows), 3, -1, size).permute(1, 2, 0, 3)  # [3, h, N, d]
            placed = heads.index_select(2, self.padding.rows)
            query, key, value = placed.view(3, -1, self.count, self.length, size)
        return query, key, value

    def put(self, out: Tensor, heads: Tensor) -> None:
        """The heads' outputs, in the order of ``heads_of``, into their rows of [N, h·d]."""
        rows, size = out[self.start : self.stop], heads.shape[-1]
        if self.padding is None:
            rows.view(self.count, self.length, -1, size).copy_(heads.transpose(1, 2))
        else:
            places = heads.flatten(1, 2).transpose(0, 1)  # [B·T, h, d]
            torch.index_select(places, 0, self.padding.places, out=rows.view(len(rows), -1, size))

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

    @cached_property
    def halves(self) -> tuple[Chunk, ...]:
        """The first and the second half of the texts, each as a chunk; nothing for a single text."""
        lengths = [g.length for g in self.groups for _ in range(g.count)]
        middle = len(lengths) // 2
        parts = (slice(0, middle), slice(middle, None)) if middle else ()
        return tuple(_chunk(self.index[part], lengths[part]) for part in parts)

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
            chunks.append(_chunk(part, [lengths[i] for i in part]))
            part = []
    if part:
        chunks.append(_chunk(part, [lengths[i] for i in part]))
    return chunks


def _chunk(index: Sequence[int], lengths: Sequence[int]) -> Chunk:
    """Texts with these positions and lengths, those of equal length side by side."""
    groups: list[Group] = []
    row = text = 0
    for length, members in groupby(lengths):
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
    numbers = table + np.array(chunk.first_rows())[:, None]
    # counted here: a GPU would have to say how many there are
    places, index = (put(torch.from_numpy(t), rows.device) for t in (np.flatnonzero(table >= 0), numbers[table >= 0]))
    logits = rows[index] if head is None else head(clf.model, rows[index])
    out = torch.full((table.size, clf.num_labels), torch.nan, device=rows.device)
    return out.index_copy_(0, places, logits.float()).view(*table.shape, -1)

"""Texts packed without padding: one row per token, texts of equal length side by side.

Linear layers then run over the rows alone, and attention over one group of equal length at a time, so no
padding is ever computed and none can leak into a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from ..classifier import Classifier, Encoding


@dataclass(frozen=True)
class Group:
    """Rows ``start`` to ``stop`` hold ``count`` texts of ``length`` tokens each, from text ``first`` of the chunk."""

    start: int
    stop: int
    count: int
    length: int
    first: int


@dataclass(frozen=True)
class Chunk:
    """Some texts of a data set: what runs through the layers at once."""

    index: tuple[int, ...]  # their positions in the data set
    groups: tuple[Group, ...]

    @property
    def tokens(self) -> int:
        return self.groups[-1].stop

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
    rows = 0
    done = 0
    for i in order:
        part.append(i)
        rows += lengths[i]
        done += lengths[i]
        # cut where the evenly spaced share ends, so that no small chunk is left over
        if done >= total * (len(chunks) + 1) / pieces and rows:
            chunks.append(_chunk(part, lengths))
            part, rows = [], 0
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


def by_group(chunk: Chunk, encodings: Sequence[Encoding]) -> list[list[Encoding]]:
    """The chunk's encodings, group by group."""
    return [[encodings[i] for i in chunk.index[g.first : g.first + g.count]] for g in chunk.groups]


def rows_of(chunk: Chunk, like: Tensor) -> Tensor:
    """``first_rows`` as an index on the tensor's device."""
    import torch

    return torch.tensor(chunk.first_rows(), dtype=torch.long, device=like.device)


def embed(clf: Classifier, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
    """The embeddings of a chunk, [N, D]."""
    import torch

    embeddings = clf.module(clf.family.embeddings)
    parts = []
    for members in by_group(chunk, encodings):
        batch = clf.collate(members)
        batch.pop("attention_mask")
        parts.append(embeddings(**batch).flatten(0, 1))
    return torch.cat(parts)

"""Position tables with a column for each head (T5): what happens to them when heads are removed.

The first layer of a stack computes the position bias and hands it on to the others. After pruning, layers have
different heads, so the table keeps the columns of heads that any layer of the stack still has, and every attention
module of the stack remembers which of those are its own (``bias_heads``, read by the attention function).

Cross-attention has no table: transformers adds zeros there, of as many heads as the first layer says.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from ..heads import HeadMask
from .families import CROSS
from .network import Network


def tables(clf: Network) -> Iterator[tuple[nn.Embedding, range]]:
    """Each table and the rows of the grid that it serves."""
    for stack, attention in clf.family.attention.items():
        if attention.position_table:
            path = attention.position_table
            yield clf.plain(path, nn.Embedding), clf.stacks[stack]


def columns(present: HeadMask, rows: range) -> list[int]:
    """The heads that a stack's table has a column for."""
    return sorted({h for row in rows for h in present.kept_in(row)})


def removed_parameters(clf: Network, after: HeadMask) -> int:
    """How many numbers of tables go when ``clf`` is pruned to the heads ``after``."""
    return sum(
        table.num_embeddings * (len(columns(clf.present, rows)) - len(columns(after, rows)))
        for table, rows in tables(clf)
    )


def fit(clf: Network, before: HeadMask) -> None:
    """Bring the tables of a model from the heads ``before`` to those it has; new columns are zero. In place."""
    for table, rows in tables(clf):
        old, new = columns(before, rows), columns(clf.present, rows)
        if old != new:
            weight = table.weight.detach()
            fresh = weight.new_zeros(table.num_embeddings, len(new))
            kept = [h for h in new if h in old]
            fresh[:, [new.index(h) for h in kept]] = weight[:, [old.index(h) for h in kept]]
            table.weight = nn.Parameter(fresh, requires_grad=False)
            table.embedding_dim = len(new)
        for row in rows:
            own = [new.index(h) for h in clf.present.kept_in(row)]
            clf.attention_module(row).register_buffer(
                "bias_heads",
                None if len(own) == len(new) else torch.tensor(own, dtype=torch.long, device=clf.device),
                persistent=False,
            )
    if next(tables(clf), None) is not None:
        for row in clf.stacks.get(CROSS, ()):
            # zeros of one head broadcast to any number
            uneven = any(clf.present.off_in(r) for r in clf.stacks[CROSS])
            clf.attention_module(row).n_heads = 1 if uneven else clf.num_heads

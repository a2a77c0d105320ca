"""Which entries of which matrices belong to the heads of a row.

Pruning, saving, counting and student models all read this one table. Matrices are indexed by their outputs (W_Q, W_K,
W_V and what a family computes besides them) or by their inputs (W_O). GPT-2 stores them transposed (``Conv1D``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..heads import HeadMask
from .network import Network

OUT, IN = (0, 1)  # the outputs or the inputs of a map
SIZES = {False: ("out_features", "in_features"), True: ("nf", "nx")}


class Part(NamedTuple):
    """The heads' share of one matrix: these outputs or inputs, in the matrix as it is with the heads ``before``."""

    matrix: Any
    side: int
    index: Tensor  # type: ignore[assignment]  # a tuple's own method of this name is not used

    @property
    def dim(self) -> int:
        """The dimension of the weight that ``index`` is for."""
        return 1 - self.side if is_transposed(self.matrix) else self.side


def is_transposed(matrix: nn.Module) -> bool:
    return hasattr(matrix, "nx")


def is_map(module: nn.Module) -> bool:
    """Whether a module is a linear map."""
    return isinstance(module, nn.Linear) or is_transposed(module)


def weight_of(matrix: nn.Module) -> Tensor:
    """The weight of a linear map as [outputs, inputs]."""
    weight: Tensor = matrix.weight  # type: ignore[assignment]
    return weight.T if is_transposed(matrix) else weight


def keep(part: Part) -> None:
    """Cut everything else out of a matrix, in place."""
    matrix, side, index = part
    matrix.weight = _like(matrix.weight, matrix.weight.detach().index_select(part.dim, index))
    if side == OUT and matrix.bias is not None:
        matrix.bias = _like(matrix.bias, matrix.bias.detach()[index])
    setattr(matrix, SIZES[is_transposed(matrix)][side], len(index))


def widen(part: Part, size: int) -> None:
    """The reverse: ``size`` outputs or inputs, zeros in the new places. In place."""
    matrix, side, index = part
    shape = list(matrix.weight.shape)
    shape[part.dim] = size
    weight = matrix.weight.new_zeros(shape).index_copy_(part.dim, index, matrix.weight.detach())
    matrix.weight = nn.Parameter(weight, requires_grad=False)
    if side == OUT and matrix.bias is not None:
        bias = matrix.bias.new_zeros(size).index_copy_(0, index, matrix.bias.detach())
        matrix.bias = nn.Parameter(bias, requires_grad=False)
    setattr(matrix, SIZES[is_transposed(matrix)][side], size)


def _like(old: Tensor, values: Tensor) -> nn.Parameter:
    """A parameter in the place of another, trained if that one was."""
    return nn.Parameter(values.contiguous(), requires_grad=old.requires_grad)


def parts(clf: Network, row: int, before: HeadMask, after: HeadMask) -> Iterator[Part]:
    """What the heads ``after`` have of the matrices of a row that holds those of ``before``.

    Heads that share keys and values (grouped queries) keep them as long as one head of the group is there.
    """
    attention, where = clf.attention(row)
    group, size = clf.group_size, clf.head_size
    present, kept = before.kept_in(row), after.kept_in(row)
    own = _entries(present, kept, size)
    shared = _entries(_groups(present, group), _groups(kept, group), size)

    def index(entries: Sequence[int]) -> Tensor:
        return torch.tensor(entries, dtype=torch.long, device=clf.device)

    query, key, value, output = clf.projections(row)
    if attention.side_by_side:
        yield Part(query, OUT, index(_entries(present, kept, 3 * size)))
    elif query is key:  # one matrix of W_Q, W_K and W_V, one below the other
        width, narrow = len(present) * size, len(_groups(present, group)) * size
        fused = [*own, *(width + i for i in shared), *(width + narrow + i for i in shared)]
        yield Part(query, OUT, index(fused))
    else:
        yield from (Part(query, OUT, index(own)), Part(key, OUT, index(shared)), Part(value, OUT, index(shared)))
    path = attention.module.format(**where)
    inside = dict(clf.module(path).named_modules())
    further = (clf.matrix(f"{path}.{name}") for name in attention.further if name in inside)
    yield from (Part(matrix, OUT, index(own)) for matrix in further)
    yield Part(output, IN, index(own))


def fit_vectors(clf: Network, before: HeadMask, row: int) -> None:
    """Bring the biases next to a row's matrices from the heads ``before`` to those it has, new ones zero. In place."""
    module, size = clf.attention_module(row), clf.head_size
    old, new = before.kept_in(row), clf.present.kept_in(row)
    for name in clf.attention(row)[0].vectors if old != new else ():
        vector = getattr(module, name)
        fresh = vector.detach().new_zeros(len(new) * size)
        both = [head for head in new if head in old]
        fresh[_entries(new, both, size)] = vector.detach()[_entries(old, both, size)]
        setattr(module, name, _like(vector, fresh))


def key_index(present: HeadMask, row: int, group: int) -> list[int] | None:
    """For each head of a row the place of its keys and values; None where every group has equally many heads."""
    heads = present.kept_in(row)
    groups = _groups(heads, group)
    sizes = {sum(h // group == g for h in heads) for g in groups}
    return None if len(sizes) <= 1 else [groups.index(h // group) for h in heads]


def _groups(heads: Sequence[int], group: int) -> list[int]:
    return sorted({h // group for h in heads})


def _entries(present: Sequence[int], kept: Sequence[int], size: int) -> list[int]:
    stay = set(kept)
    return [i * size + k for i, h in enumerate(present) if h in stay for k in range(size)]

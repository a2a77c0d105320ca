"""Really removing heads: the rows of W_Q, W_K, W_V and the columns of W_O are cut out.

Position tables (T5) have a column for each head. The first layer of a stack computes the position bias and hands it on
to the others. After pruning, layers have different heads, so the table keeps the columns of heads that any layer of the
stack still has, and every attention module of the stack remembers which of those are its own (``bias_heads``, read by
the attention function).

Which entries of which matrices belong to the heads of a row stands here as well: saving, counting and student models
read it. Matrices are indexed by their outputs (W_Q, W_K, W_V and what a family computes besides them) or by their
inputs (W_O). GPT-2 stores them transposed (``Conv1D``).

Cross-attention has no table: transformers adds zeros there, of as many heads as the first layer says.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..heads import HeadMask
from ..storage.exchange import MaskLike
from .families import CROSS
from .network import Network, add_bias, added_bias, require_model

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
    of_heads = entries(present, kept, size)
    of_groups = entries(_groups(present, group), _groups(kept, group), size)

    def index(numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=clf.device)

    query, key, value, output = clf.projections(row)
    if attention.side_by_side:
        yield Part(query, OUT, index(entries(present, kept, 3 * size)))
    elif query is key:  # one matrix of W_Q, W_K and W_V, one below the other
        width, narrow = len(present) * size, len(_groups(present, group)) * size
        fused = [*of_heads, *(width + i for i in of_groups), *(width + narrow + i for i in of_groups)]
        yield Part(query, OUT, index(fused))
    else:
        yield Part(query, OUT, index(of_heads))
        yield Part(key, OUT, index(of_groups))
        yield Part(value, OUT, index(of_groups))
    path = attention.module.format(**where)
    modules = dict(clf.module(path).named_modules())
    for name in attention.further:
        if name in modules:
            yield Part(clf.matrix(f"{path}.{name}"), OUT, index(of_heads))
    yield Part(output, IN, index(of_heads))


def fit_vectors(clf: Network, before: HeadMask, row: int) -> None:
    """Bring the biases next to a row's matrices from the heads ``before`` to those it has, new ones zero. In place."""
    module, size = clf.attention_module(row), clf.head_size
    old, new = before.kept_in(row), clf.present.kept_in(row)
    for name in clf.attention(row)[0].vectors if old != new else ():
        vector = getattr(module, name)
        fresh = vector.detach().new_zeros(len(new) * size)
        fresh[entries(new, old, size)] = vector.detach()[entries(old, new, size)]
        setattr(module, name, _like(vector, fresh))


def key_index(present: HeadMask, row: int, group: int) -> list[int] | None:
    """For each head of a row the place of its keys and values; None where every group has equally many heads."""
    heads = present.kept_in(row)
    groups = _groups(heads, group)
    sizes = {sum(h // group == g for h in heads) for g in groups}
    return None if len(sizes) <= 1 else [groups.index(h // group) for h in heads]


def _groups(heads: Sequence[int], group: int) -> list[int]:
    return sorted({h // group for h in heads})


def entries(present: Sequence[int], chosen: Iterable[int], size: int) -> list[int]:
    """Where a matrix with the heads ``present`` has those of the ``chosen`` that it holds."""
    chosen = set(chosen)
    return [i * size + k for i, head in enumerate(present) if head in chosen for k in range(size)]


N = TypeVar("N", bound=Network)


def prune(clf: N, mask: MaskLike) -> N:
    """A new, smaller model with the same logits as ``clf`` under ``mask``; ``clf.fill`` becomes a bias of W_O.

    Nothing of the caller's model is shared with it. A family whose heads can only be masked is a ``ModelError``.
    """
    require_model(clf)
    require_prunable(clf)
    return cut(dataclasses.replace(clf, model=copy.deepcopy(clf.model)), clf.present | clf.read(mask))


def cut(clf: N, kept: HeadMask) -> N:
    """Remove all other heads from the model's own matrices. In place."""
    if empty := never_empty(clf, kept):
        raise ModelError(f"{clf.row_name(empty[0])} would lose all its heads: {clf.family.why_not_empty}. Keep one.")
    smaller = dataclasses.replace(clf, present=kept)
    for row in range(clf.num_layers):
        if clf.present.kept_in(row) != kept.kept_in(row):
            if clf.fill is not None:
                present = clf.present.kept_in(row)
                gone = entries(present, kept.off_in(row), clf.head_size)
                fill_in(clf.projections(row).output, clf.fill.values[row][list(present)], gone)
            for part in parts(clf, row, clf.present, kept):
                keep(part)
    settle(smaller, clf.present)
    return smaller


def fill_in(output: Any, fill: Tensor, columns: list[int]) -> None:
    """What a fill [h, d] has for these columns of W_O becomes a bias of it, in place: their heads are about to go."""
    weight = weight_of(output)
    add_bias(output, added_bias(weight, fill, torch.tensor(columns, device=weight.device)))


def settle(clf: Network, before: HeadMask) -> None:
    """Bring everything besides the matrices from the heads ``before`` to those a model has. In place."""
    for row in range(clf.num_layers):
        module, heads = clf.attention_module(row), len(clf.present.kept_in(row))
        fit_vectors(clf, before, row)
        for name in ("num_attention_heads", "num_heads", "n_heads"):
            if hasattr(module, name):
                setattr(module, name, heads)
        for name in ("all_head_size", "inner_dim", "split_size"):
            if hasattr(module, name):
                setattr(module, name, heads * clf.head_size)
        if clf.group_size > 1:
            index = key_index(clf.present, row, clf.group_size)
            place = None if index is None else torch.tensor(index, dtype=torch.long, device=clf.device)
            module.register_buffer("key_heads", place, persistent=False)
            query, key, *_ = clf.projections(row)
            places = key.out_features // clf.head_size
            groups = (places - heads) // 2 if query is key else places
            module.num_key_value_groups = max(1, heads // max(1, groups))
    fit_tables(clf, before)


def require_prunable(clf: Network) -> None:
    """A clear error for families whose heads can be masked but not removed."""
    if not clf.family.prunable:
        raise ModelError(
            f"Heads of this model can be masked, but not really removed: {clf.family.why_not_prunable}. "
            "Evaluate it under a mask instead."
        )


def never_empty(clf: Network, kept: HeadMask) -> list[int]:
    """The rows without a head where the family's layers must keep one: such a mask can be used, but not cut."""
    return [row for row in range(clf.num_layers) if clf.family.why_not_empty and not kept.kept_in(row)]


def require_even(clf: Network, kept: HeadMask) -> None:
    """Refuse what transformers' own attention functions cannot run: they know no list of whose keys are whose."""
    for row in range(clf.num_layers):
        if key_index(kept, row, clf.group_size) is not None:
            raise ModelError(
                f"With these heads {clf.row_name(row)} of {clf.title} has groups of different sizes, which "
                f"transformers' own attention cannot run: {clf.group_size} heads share their keys. Remove equally many "
                "heads of each group, or all of a group. headviz.prune(headviz.wrap(model, tokenizer), mask) takes any."
            )
    if clf.family.own_attention is None and any(a.position_table for a in clf.family.attention.values()):
        for rows in clf.stacks.values():
            if len({kept.kept_in(row) for row in rows}) > 1:
                raise ModelError(
                    f"The layers of a {clf.title} stack share one table of positions by head, so transformers needs "
                    "the same heads in all of them. headviz.prune(headviz.wrap(model, tokenizer), mask) takes any."
                )


def zero_columns(matrix: nn.Module, columns: list[int]) -> None:
    """Zero these columns of W_O."""
    weight = weight_of(matrix).detach().clone()
    weight[:, columns] = 0
    matrix.weight = nn.Parameter(weight.T.contiguous() if is_transposed(matrix) else weight, requires_grad=False)


def position_tables(clf: Network) -> Iterator[tuple[nn.Embedding, range]]:
    """Each table and the rows of the grid that it serves."""
    for stack, attention in clf.family.attention.items():
        if attention.position_table:
            yield clf.plain(attention.position_table, nn.Embedding), clf.stacks[stack]


def table_columns(present: HeadMask, rows: range) -> list[int]:
    """The heads that a stack's table has a column for."""
    return sorted({h for row in rows for h in present.kept_in(row)})


def removed_parameters(clf: Network, after: HeadMask) -> int:
    """How many numbers of tables go when ``clf`` is pruned to the heads ``after``."""
    return sum(
        table.num_embeddings * (len(table_columns(clf.present, rows)) - len(table_columns(after, rows)))
        for table, rows in position_tables(clf)
    )


def fit_tables(clf: Network, before: HeadMask) -> None:
    """Bring the tables of a model from the heads ``before`` to those it has; new columns are zero. In place."""
    for table, rows in position_tables(clf):
        old, new = table_columns(before, rows), table_columns(clf.present, rows)
        if old != new:
            weight = table.weight.detach()
            fresh = weight.new_zeros(table.num_embeddings, len(new))
            fresh[:, entries(new, old, 1)] = weight[:, entries(old, new, 1)]
            table.weight = nn.Parameter(fresh, requires_grad=False)
            table.embedding_dim = len(new)
        for row in rows:
            columns = entries(new, clf.present.kept_in(row), 1)
            clf.attention_module(row).register_buffer(
                "bias_heads",
                None if len(columns) == len(new) else torch.tensor(columns, dtype=torch.long, device=clf.device),
                persistent=False,
            )
    if next(position_tables(clf), None) is not None:
        for row in clf.stacks.get(CROSS, ()):
            # zeros of one head broadcast to any number
            uneven = any(clf.present.off_in(r) for r in clf.stacks[CROSS])
            clf.attention_module(row).n_heads = 1 if uneven else clf.num_heads

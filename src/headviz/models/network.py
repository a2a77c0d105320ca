"""The weights of a transformers model, the grid of its heads, and where the matrices of each row are."""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import torch
from torch import nn

from ..errors import MaskError, ModelError
from ..heads import ENCODER, HeadMask
from ..storage.exchange import MaskLike, mask_of
from ..tasks.tokenizing import alone_with
from .as_described import described, require_described
from .digest import tokenizer_digest, weights_digest
from .families import Family, family_of
from .families.sheet import Attention
from .fill import Fill


class Projections(NamedTuple):
    """The four matrices of one attention layer."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear


M = TypeVar("M", bound=nn.Module)


def require_model(given: object) -> None:
    """Refuse what is no model of headviz's (a name, a folder, a bare transformers model) or has been changed."""
    if not hasattr(type(given), "kind") and not hasattr(given, "kind"):
        raise ModelError(
            f"A model from headviz.load or headviz.wrap is needed, not {type(given).__name__}: "
            "clf = headviz.load('demo')."
        )
    if isinstance(given, Network):
        given.require_described()


@dataclass(frozen=True, eq=False, repr=False)
class Network(ABC):
    """A transformers model with its tokenizer and the heads that it still has (``present``).

    ``num_layers`` and ``num_heads`` are those of the original model, so that a head keeps its number after others
    have been removed. ``fill`` is what stands in the place of heads that a mask switches off; None = nothing.
    """

    model: nn.Module
    tokenizer: Any
    present: HeadMask
    name: str = ""
    fill: Fill | None = field(default=None, kw_only=True)

    # identity ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of output."""

    @property
    def config(self) -> Any:
        return self.model.config

    @property
    def family(self) -> Family:
        return family_of(self.config.model_type)

    @property
    def title(self) -> str:
        """What kind of model it is."""
        return self.family.title

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.model.parameters()).dtype

    @property
    def digest(self) -> str:
        """Identifies weights, configuration and what stands in a head's place, whatever the model is called."""
        self.require_described()
        own = weights_digest(self.model, self.config.to_dict(), self.present.hex)
        return own if self.fill is None else hashlib.sha256(f"{own}|{self.fill.digest}".encode()).hexdigest()

    def filled(self, fill: Fill | None) -> Self:
        """The same model with something else in the place of heads that are off."""
        return replace(self, fill=fill)

    def in_float32(self) -> Self:
        """The same weights, computed in float32."""
        return self if self.dtype == torch.float32 else replace(self, model=copy.deepcopy(self.model).float())

    @cached_property
    def tokenizer_digest(self) -> str:
        with alone_with(self.tokenizer):
            return tokenizer_digest(self.tokenizer)

    # grid of heads ----------------------------------------------------------------------------

    @property
    def num_layers(self) -> int:
        return self.present.num_layers

    @property
    def num_heads(self) -> int:
        return self.present.num_heads

    @property
    def heads_per_layer(self) -> list[int]:
        return [len(self.present.kept_in(layer)) for layer in range(self.num_layers)]

    @cached_property
    def head_size(self) -> int:
        return self.family.head_size(self.config)

    @cached_property
    def group_size(self) -> int:
        """How many heads share their keys and values (grouped queries); 1 where each has its own."""
        return self.num_heads // int(getattr(self.config, "num_key_value_heads", None) or self.num_heads)

    @cached_property
    def stacks(self) -> dict[str, range]:
        """The rows of each stack of heads. An encoder is one stack, whose rows are its layers."""
        if self.family.has_decoder:
            return self.family.stacks(self.config)
        return {ENCODER: range(self.num_layers)}

    def place(self, row: int) -> tuple[str, int]:
        """The stack of a row, and the layer in it."""
        for stack, rows in self.stacks.items():
            if row in rows:
                return stack, row - rows.start
        raise MaskError(f"There is no row {row}: the model has 0 to {self.num_layers - 1}.")

    def row_name(self, row: int) -> str:
        """What a row of the grid is called: ``L3``, or ``cross 3`` where there are several stacks."""
        stack, layer = self.place(row)
        return f"L{row}" if len(self.stacks) == 1 else f"{stack} {layer}"

    @property
    def full_mask(self) -> HeadMask:
        """Every head that the model still has on; removed ones off."""
        return self.present

    def read(self, mask: MaskLike) -> HeadMask:
        """A mask as a call takes it: a ``HeadMask``, the heads that are off by layer, or a table of ones and zeros."""
        return mask_of(mask, self.num_layers, self.num_heads, self.stacks)

    def under(self, mask: MaskLike | None) -> HeadMask:
        """The heads that are on under a mask: those that it keeps and the model still has. None = all it has."""
        return self.present if mask is None else self.present | self.read(mask)

    # modules ----------------------------------------------------------------------------------

    def require_described(self) -> None:
        """Refuse the model if it computes something that its weights do not say; a model can be changed at any time."""
        require_described(self.model, self.family, self._called)

    @property
    def _called(self) -> str:
        return self.name or type(self.model).__name__

    def module(self, path: str) -> Any:
        """A module below the family's base model."""
        return self.model.base_model.get_submodule(path)  # type: ignore[union-attr]

    def plain(self, path: str, kind: type[M]) -> M:
        """A module whose weights are read or cut; refused if it is not of exactly this class."""
        found: M = described(self.module(path), kind, path, self._called)
        return found

    def matrix(self, path: str) -> nn.Linear:
        """A linear map whose weights are read or cut (GPT-2's: Conv1D)."""
        return self.plain(path, self.family.matrix)  # type: ignore[return-value]  # Conv1D is as a Linear here

    def attention(self, row: int) -> tuple[Attention, dict[str, int]]:
        """The paths of a row's attention, and what fills their placeholders."""
        stack, i = self.place(row)
        return self.family.attention[stack], self.family.place(self.config, i)

    def attention_module(self, row: int) -> Any:
        """The module that holds a row's W_Q."""
        paths, where = self.attention(row)
        return self.module(paths.module.format(**where))

    def projections(self, layer: int) -> Projections:
        """W_Q, W_K, W_V and W_O of a row (the same fused matrix three times where a family has one)."""
        paths, where = self.attention(layer)
        return Projections(
            *(self.matrix(path.format(**where)) for path in (paths.query, paths.key, paths.value, paths.output))
        )

"""``Network``: a transformers model with the grid of its heads, its digest, and what stands for a head that is off."""

from __future__ import annotations

import copy
import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..errors import MaskError, ModelError
from ..heads import ENCODER, HeadMask
from ..storage.exchange import MaskLike, mask_of
from ..tasks.tokenizer_lock import alone_with
from .as_described import described, require_described
from .families import Family, family_of
from .families.sheet import Attention

# settings that say where a model came from or how to show it, and leave its logits alone
_IRRELEVANT = {
    "_name_or_path",
    "_attn_implementation",
    "architectures",
    "dtype",
    "finetuning_task",
    "id2label",
    "label2id",
    "torch_dtype",
    "transformers_version",
}


def weight_bytes(model: nn.Module) -> int:
    """Bytes of a model's weights."""
    return sum(weight.numel() * weight.element_size() for weight in model.parameters())


_digests: WeakKeyDictionary[nn.Module, tuple[Any, str]] = WeakKeyDictionary()  # what was hashed, and its digest


def weights_digest(model: nn.Module, config: dict[str, Any], present_hex: str) -> str:
    """SHA-256 over every weight as it is in memory, the configuration, and the heads that are present.

    A model is hashed again once one of its weights has been replaced or changed in place. Only values written into a
    weight's ``.data`` stay unseen: torch does not count them.
    """
    settings = {k: v for k, v in config.items() if k not in _IRRELEVANT}
    prefix = json.dumps(settings, sort_keys=True, default=str) + present_hex
    state = (prefix, weights_state(model))
    hashed = _digests.get(model)
    if hashed is None or hashed[0] != state:
        hashed = _digests[model] = (state, _sha256(model, prefix))
    return hashed[1]


def weights_state(model: nn.Module) -> list[Any]:
    """Changes once a weight is replaced or changed in place. Reads addresses and version counters, no values."""
    return [(id(t), t.data_ptr(), t.dtype, _changes(t)) for t in chain(model.parameters(), model.buffers())]


def _changes(tensor: Tensor) -> int:
    """How often a tensor has been changed in place; those of inference mode cannot be."""
    return 0 if tensor.is_inference() else tensor._version


def _sha256(model: nn.Module, prefix: str) -> str:
    sha = hashlib.sha256(prefix.encode())
    for name, tensor in sorted(model.state_dict().items()):
        sha.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        raw = tensor.detach().cpu().contiguous()
        if raw.numel():
            sha.update(raw.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()


def tokenizer_digest(tokenizer: Any) -> str:
    """SHA-256 over the tokenizer's full serialised state: same digest, same token ids."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        state = json.loads(backend.to_str())
        # padding and truncation are set by whoever called last, and headviz never uses them
        state.pop("padding", None)
        state.pop("truncation", None)
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
    state = {
        "class": type(tokenizer).__name__,
        "vocab": sorted(tokenizer.get_vocab().items()),
        "special": {k: str(v) for k, v in sorted(tokenizer.special_tokens_map.items())},
    }
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


class Projections(NamedTuple):
    """The four matrices of one attention layer."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear


M = TypeVar("M", bound=nn.Module)


def require_model(value: object) -> None:
    """Refuse what is no model of headviz's (a name, a folder, a bare transformers model) or has been changed."""
    if isinstance(value, type) or not hasattr(value, "kind"):
        name = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise ModelError(
            f"A model from headviz.load or headviz.wrap is needed, not {name}: clf = headviz.load('demo')."
        )
    if isinstance(value, Network):
        value.require_described()


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
    # whether a pass depends on its inputs alone, so that one that a GPU recorded can be played for other texts
    replays: ClassVar[bool] = False

    # identity ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of output."""

    def write_more(self, folder: Path) -> None:
        """Write what a saved folder holds besides weights, configuration and tokenizer."""
        return

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
        digest = weights_digest(self.model, self.config.to_dict(), self.present.hex)
        return digest if self.fill is None else hashlib.sha256(f"{digest}|{self.fill.digest}".encode()).hexdigest()

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
    def row_names(self) -> tuple[str, ...]:
        """The names of all rows where there are several stacks; empty where the rows are plain layers."""
        return tuple(map(self.row_name, range(self.num_layers))) if len(self.stacks) > 1 else ()

    @property
    def full_mask(self) -> HeadMask:
        """The mask that switches nothing off: every head that the model still has is on."""
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
        """The module at ``path``, whose weights are read or cut; refused unless it is of exactly this class."""
        module: M = described(self.module(path), kind, path, self._called)
        return module

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


def random_batch(model: Network, size: int, length: int) -> dict[str, Tensor]:
    """Texts of random tokens, always the same."""
    words = int(model.config.vocab_size)
    ids = torch.randint(0, words, (size, length), generator=torch.Generator().manual_seed(0))
    # padding in the middle would shift the positions of some families; BART answers at the one end of a text
    end = getattr(model.config, "eos_token_id", None)
    special = {token for token in (model.tokenizer.pad_token_id, end) if isinstance(token, int)}
    other = next(token for token in range(words) if token not in special)
    for token in special:
        ids[ids == token] = other
    if model.family.has_decoder and isinstance(end, int):
        ids[:, -1] = end
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {k: v.to(model.device) for k, v in batch.items()}


@dataclass(frozen=True, eq=False)
class Fill:
    """One vector per head, in float32, for each row of the grid [H, d]; zero for heads that the model has lost."""

    kind: str
    values: tuple[Tensor, ...]
    examples: int  # of the reference
    reference: str  # its digest

    @cached_property
    def digest(self) -> str:
        """The same for the same vectors, wherever they came from."""
        sha = hashlib.sha256()
        for rows in self.values:
            sha.update(rows.detach().cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()


def added_bias(weight: Tensor, fill: Tensor, rows: Tensor) -> Tensor:
    """[D] what W_O [D, h·d] makes of these rows (numbers of columns) of a fill [h, d]: the bias that replaces heads."""
    return (weight.detach()[:, rows].double() @ fill.reshape(-1)[rows].to(weight.device).double()).to(weight.dtype)


def add_bias(matrix: nn.Linear, addend: Tensor) -> None:
    """Add to a linear map's bias, in place; a map without one gets one, which only headviz's own format keeps."""
    old = matrix.bias
    bias = addend if old is None else old.detach() + addend
    trained = matrix.weight.requires_grad if old is None else old.requires_grad
    matrix.own_bias = old is None or has_own_bias(matrix)  # type: ignore[assignment]
    matrix.bias = nn.Parameter(bias.contiguous(), requires_grad=trained)


def has_own_bias(matrix: nn.Linear) -> bool:
    """Whether headviz added this bias: transformers' module has none."""
    return bool(getattr(matrix, "own_bias", False))

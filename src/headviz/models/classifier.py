"""A loaded model and its tokenizer, behind one small interface that every family answers alike."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from ..attention import NAME, Gate, HeadCall, Kernel, gates_for
from ..errors import MaskError, ModelError
from ..heads import ENCODER, HeadMask
from .digest import tokenizer_digest, weights_digest
from .families import Family, family_of

if TYPE_CHECKING:
    from .cost import Cost

# kinds of output a model may have
CLASSIFICATION = "classification"
MASKED_LM = "masked-lm"
TRANSLATION = "translation"


class Encoding(NamedTuple):
    """One text, or pair, as token ids."""

    ids: list[int]
    types: list[int]  # 0 = first text, 1 = second
    truncated: bool
    special: list[bool]  # [CLS], [SEP] and the like

    def __len__(self) -> int:
        return len(self.ids)


class Projections(NamedTuple):
    """The four matrices of one attention layer."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear


@dataclass(frozen=True, eq=False)
class Classifier:
    """A sequence classifier whose heads can be masked per call.

    Made by ``headviz.load`` or ``headviz.wrap``. The weights are frozen and in evaluation mode.
    ``present`` tells which heads the model still has; ``num_layers`` and ``num_heads`` are those of
    the original model, so that a head keeps its number after others have been removed.
    """

    model: nn.Module
    tokenizer: Any
    present: HeadMask
    name: str = ""
    kind: str = CLASSIFICATION

    def __post_init__(self) -> None:
        if getattr(self.config, "_attn_implementation", None) != NAME:
            raise ModelError(
                "The model does not use headviz's attention function. Make one with headviz.wrap."
            )
        self.model.eval()
        self.model.requires_grad_(False)

    def __repr__(self) -> str:
        """One line for a notebook; the weights are in ``model``."""
        there = f"{self.num_layers}×{self.num_heads} heads"
        if self.present.off:
            there += f", {len(self.present.off)} removed"
        return f"<{type(self).__name__} '{self.name}': {self.family.title}, {there}, {self.device}>"

    # identity and shape -----------------------------------------------------------------------

    @property
    def config(self) -> Any:
        return self.model.config

    @property
    def family(self) -> Family:
        return family_of(self.config.model_type)

    @property
    def num_layers(self) -> int:
        return self.present.num_layers

    @property
    def num_heads(self) -> int:
        return self.present.num_heads

    @property
    def stacks(self) -> dict[str, range]:
        """The rows of each stack of heads; a classifier has one stack, whose rows are its layers."""
        return {ENCODER: range(self.num_layers)}

    def row_name(self, row: int) -> str:
        """What a row of the grid is called: ``L3``, or ``cross 3`` where there are several stacks."""
        for stack, rows in self.stacks.items():
            if row in rows:
                return f"L{row}" if len(self.stacks) == 1 else f"{stack} {row - rows.start}"
        raise MaskError(f"There is no row {row}: the model has 0 to {self.num_layers - 1}.")

    @property
    def heads_per_layer(self) -> list[int]:
        return [self.num_heads - len(self.present.off_in(layer)) for layer in range(self.num_layers)]

    @cached_property
    def head_size(self) -> int:
        return int(getattr(self.config, "head_dim", None) or self.config.hidden_size // self.num_heads)

    @property
    def labels(self) -> tuple[str, ...]:
        """The class names, in the order of the logits."""
        names = self.config.id2label
        return tuple(str(names[i]) for i in range(len(names)))

    @property
    def num_labels(self) -> int:
        return int(self.config.num_labels)

    @property
    def is_regression(self) -> bool:
        return self.config.problem_type == "regression" or self.num_labels == 1

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.model.parameters()).dtype

    @cached_property
    def digest(self) -> str:
        """Identifies weights and configuration, whatever the model is called."""
        return weights_digest(self.model, self.config.to_dict(), self.present.hex)

    @cached_property
    def tokenizer_digest(self) -> str:
        return tokenizer_digest(self.tokenizer)

    @cached_property
    def max_length(self) -> int:
        """The most tokens the model takes, special tokens included."""
        positions = int(self.config.max_position_embeddings)
        if self.family.position_offset:
            positions -= int(self.config.pad_token_id) + 1
        return min(positions, int(self.tokenizer.model_max_length))

    @property
    def full_mask(self) -> HeadMask:
        """Every head that the model still has on; removed ones off."""
        return self.present

    # modules ----------------------------------------------------------------------------------

    def module(self, path: str) -> Any:
        """A module below the family's base model."""
        return self.model.base_model.get_submodule(path)  # type: ignore[union-attr]

    def projections(self, layer: int) -> Projections:
        """W_Q, W_K, W_V and W_O of a layer (the same fused matrix three times where a family has one)."""
        paths, where = self.family.attention[ENCODER], self.family.place(self.config, layer)
        return Projections(
            *(self.module(p.format(**where)) for p in (paths.query, paths.key, paths.value, paths.output))
        )

    # input ------------------------------------------------------------------------------------

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Encoding]:
        """Token ids of each text, or pair; texts beyond ``max_length`` are cut, and say so."""
        if len(texts) == 0:
            return []
        args = (list(texts),) if pairs is None else (list(texts), list(pairs))
        options = {
            "return_attention_mask": False,
            "return_token_type_ids": True,
            "return_special_tokens_mask": True,
            "verbose": False,
        }
        whole = self.tokenizer(*args, truncation=False, **options)
        long = [i for i, ids in enumerate(whole["input_ids"]) if len(ids) > self.max_length]
        cut: dict[int, int] = {i: j for j, i in enumerate(long)}
        short = (
            self.tokenizer(
                *([a[i] for i in long] for a in args), truncation=True, max_length=self.max_length, **options
            )
            if long
            else {}
        )
        out = []
        for i in range(len(texts)):
            source, j = (short, cut[i]) if i in cut else (whole, i)
            ids = list(source["input_ids"][j])
            special = [bool(s) for s in source["special_tokens_mask"][j]]
            types = list(source["token_type_ids"][j]) if "token_type_ids" in source else [0] * len(ids)
            out.append(Encoding(ids, types, i in cut, special))
        return out

    @cached_property
    def _takes_types(self) -> bool:
        accepted = "token_type_ids" in inspect.signature(self.model.forward).parameters
        return accepted and int(getattr(self.config, "type_vocab_size", 0) or 0) > 1

    def collate(self, encodings: Sequence[Encoding]) -> dict[str, Tensor]:
        """A right-padded batch on the model's device: input_ids, attention_mask and, where used, token_type_ids."""
        width = max(len(e) for e in encodings)
        pad = int(self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0)
        ids = torch.full((len(encodings), width), pad, dtype=torch.long)
        types = torch.zeros_like(ids)
        mask = torch.zeros_like(ids)
        for i, e in enumerate(encodings):
            ids[i, : len(e)] = torch.tensor(e.ids)
            types[i, : len(e)] = torch.tensor(e.types)
            mask[i, : len(e)] = 1
        batch = {"input_ids": ids, "attention_mask": mask}
        if self._takes_types:
            batch["token_type_ids"] = types
        return {k: v.to(self.device) for k, v in batch.items()}

    def tokens(self, encoding: Encoding) -> list[str]:
        """The tokens as text, for people to read."""
        return [str(t) for t in self.tokenizer.convert_ids_to_tokens(encoding.ids)]

    # output -----------------------------------------------------------------------------------

    def gates(self, mask: HeadMask | None) -> tuple[Gate, ...]:
        return gates_for(mask, self.present, self.dtype, self.device)

    def call(self, mask: HeadMask | None = None, kernel: Kernel = "sdpa", **asked: Any) -> HeadCall:
        """A fresh ``HeadCall`` for one forward pass under a mask."""
        return HeadCall(self.gates(mask), kernel, **asked)

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        """The logits of a batch; gradients flow if the caller has enabled them."""
        logits: Tensor = self.model(**batch, headviz=call).logits
        if not call.finished:
            raise ModelError(
                f"{self.family.title} ran {call.layer} of {self.num_layers} attention layers through headviz: "
                "the mask was not applied everywhere. Please report this model."
            )
        return logits

    @torch.inference_mode()
    def logits(
        self, batch: dict[str, Tensor], mask: HeadMask | None = None, kernel: Kernel = "sdpa"
    ) -> Tensor:
        """The logits [B, C] of a batch under a mask, in float32, without gradients."""
        return self.forward(batch, self.call(mask, kernel)).float()

    # size and disk ----------------------------------------------------------------------------

    def cost(self, mask: HeadMask | None = None, length: int = 128) -> Cost:
        """Parameters and FLOPs for one text of ``length`` tokens once the mask's heads are really removed."""
        from .cost import cost

        return cost(self, mask, length)

    def save(self, folder: str | Path) -> Path:
        """Write a folder that ``headviz.load`` reads back with equal logits."""
        from .saving import save

        return save(self, Path(folder))

    def export_masked(self, folder: str | Path, mask: HeadMask | None = None) -> Path:
        """Write a plain transformers folder with the masked logits; same shapes, no speed gain."""
        from .saving import export_masked

        return export_masked(self, Path(folder), mask)

"""What every model is to the rest of headviz: ``Model``, and ``TransformerModel`` for those with attention heads."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, TypedDict, Unpack

import torch
from torch import Tensor, nn

from ..answers.answer import Answer
from ..answers.number import NUMBER
from ..attention import NAME, Gate, HeadCall, Kernel, RunOrder, gates_for
from ..errors import ModelError, OptionError, UserError
from ..heads import ENCODER, HeadMask
from ..results import Result
from ..storage.exchange import MaskLike
from . import LENGTH
from .families import CROSS, DECODER
from .fast.linear import gpu_products
from .hub import upload
from .network import Network
from .places import PLACES, at, logits_of
from .pruning import OUT, is_map, parts, removed_parameters
from .saving import Measured, export_masked, save
from .stand_in import MEAN, ZERO


@dataclass(frozen=True)
class Cost(Result):
    """Parameters, and floating-point operations for one text of ``length`` tokens.

    A multiply-add counts as two operations. Only matrix products are counted: they take most of
    the time. Embedding look-ups, norms, activations and the classification head are left out
    of the FLOPs; the parameters are all of them. For a translation model ``length`` is that of both
    sentences, and the decoder runs over the whole translation once.
    """

    parameters: int
    flops: int
    length: int


def _cost(clf: Network, kept: HeadMask, length: int) -> Cost:
    """The cost once all heads but these are really removed."""
    parameters = sum(p.numel() for p in clf.model.parameters())
    flops = 0
    for layer in range(clf.num_layers):
        for part in parts(clf, layer, clf.present, kept):
            matrix, size = part.matrix, len(part.index)
            entries = size * matrix.weight.shape[1 - part.dim]
            flops += 2 * length * entries
            if not clf.family.shared_layers:
                biased = part.side == OUT and matrix.bias is not None
                parameters -= matrix.weight.numel() - entries + (matrix.weight.shape[part.dim] - size) * biased
        width = len(kept.kept_in(layer)) * clf.head_size
        removed = len(clf.present.kept_in(layer)) * clf.head_size - width
        parameters -= len(clf.attention(layer)[0].vectors) * removed
        flops += 2 * length * length * width * 2  # scores and the weighted sum
        flops += clf.family.position_flops(clf.model.config, length, width)
    flops += _feed_forward_flops(clf, length)
    parameters -= removed_parameters(clf, kept)
    return Cost(parameters, flops, length)


def _feed_forward_flops(clf: Network, length: int) -> int:
    """The linear layers of the stack that are not attention, as often as they run."""
    rows = range(clf.num_layers)
    attention = {id(part.matrix) for row in rows for part in parts(clf, row, clf.present, clf.present)}
    stacks = [clf.module(stack.modules) for stack in clf.family.layers.values()]
    linear: list[Any] = [m for stack in stacks for m in stack.modules() if is_map(m)]
    once = sum(2 * length * m.weight.numel() for m in linear if id(m) not in attention)
    if not clf.family.shared_layers:
        return once
    distinct = {id(clf.projections(layer).output) for layer in range(clf.num_layers)}
    return once * clf.num_layers // len(distinct)


class Model(Protocol):
    """What ``headviz.load`` gives: a network that can be identified, evaluated, distilled and saved.

    A model without attention heads raises a ``ModelError`` wherever it is asked for heads.
    """

    @property
    def model(self) -> nn.Module: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def job(self) -> str: ...
    @property
    def answer(self) -> Answer: ...
    @property
    def title(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def max_length(self) -> int: ...
    @property
    def classes(self) -> tuple[str, ...] | None: ...
    @property
    def answers(self) -> str: ...
    @property
    def present(self) -> HeadMask: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def num_heads(self) -> int: ...
    @property
    def heads_per_layer(self) -> list[int]: ...
    @property
    def stacks(self) -> Mapping[str, range]: ...
    @property
    def row_names(self) -> tuple[str, ...]: ...

    def row_name(self, row: int) -> str: ...
    def under(self, mask: MaskLike | None) -> HeadMask: ...
    def check_classes(self, refusal: UserError | None = None) -> None: ...
    def check_texts(self, paired: bool) -> None: ...
    def gates(self, mask: MaskLike | None) -> tuple[Gate, ...]: ...
    def save(self, folder: str | Path, portable: bool = False) -> Path: ...


class Encoded(Protocol):
    """One input as token ids, whatever the kind of model."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def types(self) -> list[int]: ...  # 0 = first text, 1 = second
    @property
    def truncated(self) -> bool: ...
    @property
    def special(self) -> list[bool]: ...  # [CLS], [SEP] and the like
    @property
    def target(self) -> list[int] | None: ...  # the reference of a sentence to translate
    def __len__(self) -> int: ...


class CallOptions(TypedDict, total=False):
    """What one forward pass keeps and edits, as ``HeadCall`` has it."""

    keep_probs: bool
    keep_outputs: bool
    edit_probs: Callable[[int, Tensor], Tensor] | None
    edit_outputs: Callable[[int, Tensor], Tensor] | None
    edit_inputs: Callable[[int, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] | None


DEFAULT_LENGTH = 512  # tokens, of models without a bound of their own (relative positions)


@dataclass(frozen=True, eq=False, repr=False)
class TransformerModel(Network, ABC):
    """A transformers model whose heads can be masked per call. The weights are frozen and in evaluation mode."""

    def __post_init__(self) -> None:
        if getattr(self.config, "_attn_implementation", None) != NAME:
            raise ModelError("The model does not use headviz's attention function. Make one with headviz.wrap.")
        self.require_described()
        self.model.eval()
        self.model.requires_grad_(False)

    def __repr__(self) -> str:
        """One line for a notebook; the weights are in ``model``."""
        heads = f"{self.num_layers}×{self.num_heads} heads"
        if self.present.off:
            heads += f", {len(self.present.off)} removed"
        return f"<{type(self).__name__} '{self.name}': {self.title}, {heads}, {self.device}>"

    @property
    @abstractmethod
    def max_length(self) -> int:
        """The most tokens a text may have."""

    def in_stages(self, encodings: Sequence[Any]) -> bool:
        """Whether the stages run these as they are."""
        return True

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes in the order of the logits; None for a model without classes."""
        return None

    @property
    def generation(self) -> str:
        """Generation settings of its own, which the texts that it writes follow; nothing for most models."""
        return ""

    @property
    def ablations(self) -> tuple[str, ...]:
        """What can stand in the place of its heads."""
        return ZERO, MEAN

    @property
    @abstractmethod
    def answer(self) -> Answer:
        """What it answers with: prediction, metrics, loss and all else that depends on the job."""

    @property
    def job(self) -> str:
        """The name of the job: "class", "number", "sentence"; "word" for a masked-language head."""
        return self.answer.job

    @property
    def answers(self) -> str:
        """What it answers with, in words."""
        return self.answer.described(self.classes or ())

    def about_answers(self) -> dict[str, Any]:
        """What it answers with, as ``headviz info --json`` has it."""
        return {
            "job": self.job,
            "labels": list(self.classes or ()),
            "answers": self.answers,
            "regression": self.answer is NUMBER,
            "choice": self.answer.choice(self.config.to_dict()),
        }

    def check_classes(self, refusal: UserError | None = None) -> None:
        """Raise ``refusal``, or a ``ModelError``, unless it answers with a class, or a number, to explain."""
        raise refusal or ModelError(
            f"'{self.name}' is a {self.kind} model and has no classes to explain. Load a classifier."
        )

    def check_maps(self) -> None:
        """Raise a ``ModelError`` where its heads' maps cannot be drawn next to one list of tokens."""
        raise ModelError(
            f"'{self.name}' is a {self.kind} model: its heads look from one text into another. Load a classifier."
        )

    def check_texts(self, paired: bool) -> None:
        """Raise a ``TaskError`` for a pair if the model reads single texts, and for a single text if it reads pairs."""

    @property
    def dropped_token(self) -> int | None:
        """The id of a hidden token where embeddings depend on how many a text has (ESM); None elsewhere."""
        return int(self.config.mask_token_id) if getattr(self.config, "token_dropout", False) else None

    @property
    def mask_token(self) -> int:
        """The id that stands for a hidden token; a ``ModelError`` without a masked-language head."""
        raise ModelError(f"'{self.name}' has no masked-language head. Load the pre-trained one (masked_lm=True).")

    @abstractmethod
    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Sequence[Encoded]:
        """Token ids of each text, or pair."""

    @abstractmethod
    def collate(self, encodings: Sequence[Any]) -> dict[str, Tensor]:
        """A right-padded batch on the model's device."""

    @abstractmethod
    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        """The logits of a batch; gradients flow if the caller has enabled them."""

    @abstractmethod
    def labelled(self, encodings: Sequence[Any], gold: Sequence[float] | None) -> dict[str, Tensor]:
        """A batch with the gold answers as ``labels``; a translation model takes the encodings' references."""

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean loss that the model is trained with."""
        return self.answer.loss(logits, labels)

    def trained_logits(self, model: Any, batch: dict[str, Tensor]) -> Tensor:
        """The logits of a batch in training; ``model`` is the transformers model that learns."""
        places = batch.pop(PLACES, None)
        return logits_of(model(**batch, **self.training_options), places)

    def ranked_in_batch(self, model: Any, batch: dict[str, Tensor], labels: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of a batch and their loss, where each text is set apart from all others of the batch."""
        raise ModelError(f"'{self.name}' is not an embedder, so it cannot be trained with in-batch negatives.")

    def sample(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """A batch of sequences as the model reads them, made of a few texts."""
        return self.collate(self.encode(texts, None if self.answer.num_texts == 1 else texts))

    def graph(self, batch: dict[str, Tensor], call: HeadCall | None = None, model: Any = None) -> tuple[Tensor, ...]:
        """What an exported file gives for a batch of sequences, by the names in ``answer.graph``.

        Without a call transformers' own attention runs, also of another ``model`` of the same class. MobileBERT has
        headviz's forward pass.
        """
        model = self.model if model is None else model
        batch = {name: tensor for name, tensor in batch.items() if name != PLACES}
        if call is not None:
            logits = self.forward(batch, call)
        elif self.family.forward is not None and getattr(self.config, "trigram_input", False):
            logits = self.family.forward(model, batch, {})
        else:
            logits = logits_of(model(**batch))
        return logits.unbind(-1) if len(self.answer.graph) > 1 else (logits,)

    def from_graph(self, outputs: Sequence[Tensor], batch: Mapping[str, Tensor]) -> Tensor:
        """The outputs of the sequences, from what ``graph`` gives for a batch."""
        logits = outputs[0] if len(outputs) == 1 else torch.stack(tuple(outputs), dim=-1)
        return at(logits, batch[PLACES]) if PLACES in batch else logits

    @property
    def training_options(self) -> dict[str, Any]:
        """Further arguments of transformers' forward pass in training."""
        return {}

    @torch.inference_mode()
    def logits(self, batch: dict[str, Tensor], mask: MaskLike | None = None, kernel: Kernel = "sdpa") -> Tensor:
        """The logits of a batch under a mask, in float32, without gradients."""
        with gpu_products(self.device):
            return self.forward(batch, self.call(mask, kernel)).float()

    def real_tokens(self, row: int, batch: dict[str, Tensor]) -> Tensor:
        """[B, Q] which queries of a row of heads are tokens, not padding."""
        return batch["attention_mask"].bool()

    def tokens(self, encoding: Encoded) -> list[str]:
        """The tokens as text, for people to read."""
        return [str(t) for t in self.tokenizer.convert_ids_to_tokens(encoding.ids)]

    def reading(self, prefix: str | None = None, languages: Sequence[str] | None = None) -> Self:
        """The same model with a prefix or languages, which only translation models take."""
        raise OptionError(f"A prefix and languages are for translation models; '{self.name}' is none.")

    @property
    def reads_with(self) -> dict[str, Any]:
        """What besides the tokenizer decides which tokens a text becomes, where it is set; keys of caches hold it."""
        return {}

    # masks ------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> RunOrder | None:
        """The order in which the rows run; None = row by row.

        With two stacks more, the encoder runs once; each decoder layer attends to itself, then to the encoder.
        """
        if not self.family.has_decoder:
            return None
        pairs = zip(self.stacks[DECODER], self.stacks[CROSS], strict=True)
        return RunOrder(tuple(self.stacks[ENCODER]), tuple(row for pair in pairs for row in pair))

    def gates(self, mask: MaskLike | None) -> tuple[Gate, ...]:
        mask = None if mask is None else self.read(mask)
        return gates_for(mask, self.present, self.dtype, self.device, self.stand_in_values)

    def stand_in_values(self, row: int) -> Tensor | None:
        """What stands in the place of a row's heads, [1, h, 1, d]; None = nothing."""
        if self.fill is None:
            return None
        vectors = self.fill.values[row][list(self.present.kept_in(row))]
        return vectors.to(dtype=self.dtype, device=self.device)[None, :, None]

    def call(self, mask: MaskLike | None = None, kernel: Kernel = "sdpa", **options: Unpack[CallOptions]) -> HeadCall:
        """A fresh ``HeadCall`` for one forward pass, or one translated batch, under a mask."""
        return HeadCall(self.gates(mask), kernel, order=self.order, **options)

    # size and disk ----------------------------------------------------------------------------

    def cost(self, mask: MaskLike | None = None, length: int = LENGTH) -> Cost:
        """Parameters and FLOPs for one text of ``length`` tokens once the mask's heads are really removed."""
        return _cost(self, self.under(mask), length)

    def save(self, folder: str | Path, portable: bool = False, measured: Measured | None = None) -> Path:
        """Write a folder that ``headviz.load`` reads back with equal logits.

        After ``import headviz`` transformers opens it too; with ``portable`` also without headviz, by
        ``trust_remote_code`` and a file of modelling code in the folder.
        """
        return save(self, Path(folder), portable, measured)

    def push_to_hub(
        self, repo: str, *, portable: bool = False, measured: Measured | None = None, private: bool | None = None
    ) -> str:
        """Save the model into a repository of the hub, made if it is not there; returns the commit's address.

        The token comes from the environment or from ``hf auth login``.
        """
        with tempfile.TemporaryDirectory() as place:
            return upload(self.save(Path(place) / "model", portable, measured), repo, private)

    def export_masked(self, folder: str | Path, mask: MaskLike | None = None) -> Path:
        """Write a plain transformers folder with the masked logits; same shapes, no speed gain."""
        return export_masked(self, Path(folder), mask)

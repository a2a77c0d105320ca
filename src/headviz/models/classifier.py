"""An encoder with a head for one of the jobs, and its tokenizer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..answers.answer import EACH, Answer
from ..answers.catalogue import answer_in
from ..attention import HeadCall, running
from ..errors import ModelError, TaskError, UserError
from ..heads import CLASSIFICATION, MASKED_LM
from ..progress import Cancel, stop_if
from ..storage.exchange import MaskLike
from ..tasks import TASKS
from ..tasks.tokenizer_lock import alone_with, pieces
from .base import DEFAULT_LENGTH, TransformerModel
from .fast.gpu import put
from .fast.linear import gpu_products
from .places import PLACES, at, logits_of, table_of
from .stand_in import ABLATIONS

# a model may say in its config.json how many texts it reads; headviz writes it when it fine-tunes
NUM_TEXTS = "headviz_num_texts"


class Encoding(NamedTuple):
    """One text, or pair, as token ids."""

    ids: list[int]
    types: list[int]  # 0 = first text, 1 = second
    truncated: bool
    special: list[bool]  # [CLS], [SEP] and the like
    places: tuple[int, ...] | None = None  # the tokens whose outputs are the answer, see ``places``

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def target(self) -> None:
        """A text that is classified has no reference."""
        return None

    @property
    def key_parts(self) -> dict[str, object]:
        """What the model's answer depends on, for a key of the cache. Equal ids may be split into other words."""
        parts = {"ids": self.ids, "types": self.types, "special": self.special}
        return parts if self.places is None else {**parts, "places": self.places}

    @property
    def text_numbers(self) -> np.ndarray:
        """0 for tokens of the first text, 1 for the second. Families without token types get them from delimiters."""
        types = np.array(self.types, dtype=np.int64)
        if not types.any():
            words = np.flatnonzero(~np.array(self.special, dtype=bool))
            gaps = np.flatnonzero(np.diff(words) > 1)
            if len(gaps):
                types[words[gaps[0]] + 2 :] = 1
        return types


@dataclass(frozen=True, eq=False, repr=False)  # one line for a notebook, as every model has
class Classifier(TransformerModel):
    """An encoder with its trained head, whose attention heads can be masked per call. Made by ``headviz.load`` or
    ``headviz.wrap``.

    ``present`` tells which heads the model still has; ``num_layers`` and ``num_heads`` are those of the original
    model. ``logits`` are [B, C]. Where the answer is read from several tokens they are [B, W, C], and with a
    masked-language head (``kind`` "masked-lm") [B, T, V].
    """

    kind: str = CLASSIFICATION
    cut_at: int | None = None  # tokens of a text that are read, where not all that the model can take
    replays: ClassVar[bool] = True

    @property
    def reads_with(self) -> dict[str, Any]:
        return {} if self.cut_at is None else {"cut_at": self.cut_at}

    @property
    def labels(self) -> tuple[str, ...]:
        """The class names, in the order of the logits."""
        names = self.config.id2label
        return tuple(str(names[i]) for i in range(len(names)))

    @property
    def classes(self) -> tuple[str, ...]:
        return self.labels

    @property
    def ablations(self) -> tuple[str, ...]:
        return ABLATIONS

    @property
    def num_labels(self) -> int:
        return int(self.config.num_labels)

    @cached_property
    def answer(self) -> Answer:
        return answer_in(self.kind, self.config.to_dict(), self.num_labels)

    @cached_property
    def max_length(self) -> int:
        """The most tokens of a text that are read, special tokens included: as the model takes, or ``cut_at``."""
        # T5 has no bound of its own: its positions are relative
        positions = int(getattr(self.config, "max_position_embeddings", None) or DEFAULT_LENGTH)
        if self.family.position_offset:
            positions -= int(self.config.pad_token_id) + 1
        longest = min(positions, int(self.tokenizer.model_max_length))
        return longest if self.cut_at is None else min(longest, self.cut_at)

    @property
    def num_texts(self) -> int | None:
        """1 for single texts, 2 for pairs, None when nothing tells.

        The model's config says it, or its class names do when every known task with these classes agrees.
        """
        number = getattr(self.config, NUM_TEXTS, None) or self.answer.num_texts
        if number in (1, 2):
            return int(number)
        names = {name.casefold() for name in self.labels}
        numbers = {
            task.num_texts
            for task in TASKS.values()
            if task.label_names and {n.casefold() for n in task.label_names} == names
        }
        return numbers.pop() if len(numbers) == 1 else None

    def check_texts(self, paired: bool) -> None:
        num_texts, classes = self.num_texts, ", ".join(self.labels)
        if num_texts == 2 and not paired:
            raise TaskError(
                f"'{self.name}' compares two texts ({classes}), but only one was given. Give its pair as well."
            )
        if num_texts == 1 and paired:
            raise TaskError(
                f"'{self.name}' reads one text ({classes}), but a pair was given. "
                f"Leave the pair out; if the model does take pairs, set {NUM_TEXTS} to 2 in its config.json."
            )

    def check_classes(self, refusal: UserError | None = None) -> None:
        if not self.answer.explains:
            super().check_classes(refusal)

    def check_maps(self) -> None:
        if self.family.why_no_maps:
            raise ModelError(
                f"Maps of {self.family.title} cannot be drawn: {self.family.why_no_maps}. "
                "Masks, scores and pruning work."
            )

    @property
    def mask_token(self) -> int:
        if self.kind != MASKED_LM or self.tokenizer.mask_token_id is None:
            return super().mask_token
        return int(self.tokenizer.mask_token_id)

    # input ------------------------------------------------------------------------------------

    def encode(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, cancel: Cancel | None = None
    ) -> list[Encoding]:
        """Token ids of each text, or pair; texts beyond ``max_length`` are cut, and say so."""
        args = (list(texts),) if pairs is None else (list(texts), list(pairs))
        encodings: list[Encoding] = []
        for piece in pieces(len(texts)):
            stop_if(cancel)
            encodings += self._encoded(*(a[piece] for a in args))
        return encodings

    def _encoded(self, *args: list[Any]) -> list[Encoding]:
        each_token = self.answer.read_at == EACH
        if each_token and not self.tokenizer.is_fast:
            raise ModelError(
                f"The tokenizer of '{self.name}' does not tell where in the text a token stands. Save it as a fast "
                "tokenizer (tokenizer.json)."
            )
        options = {
            "return_offsets_mapping": each_token,
            "return_attention_mask": False,
            "return_token_type_ids": True,
            "return_special_tokens_mask": True,
            "verbose": False,
        }
        with alone_with(self.tokenizer):
            whole = self.tokenizer(*args, truncation=False, **options)
            long = [i for i, ids in enumerate(whole["input_ids"]) if len(ids) > self.max_length]
            cut: Any = None
            if long:
                texts = ([a[i] for i in long] for a in args)
                cut = self.tokenizer(*texts, truncation=True, max_length=self.max_length, **options)
        in_cut = {i: j for j, i in enumerate(long)}
        out = []
        for i in range(len(args[0])):
            source, j = (cut, in_cut[i]) if i in in_cut else (whole, i)
            ids = list(source["input_ids"][j])
            special = [bool(s) for s in source["special_tokens_mask"][j]]
            types = list(source["token_type_ids"][j]) if "token_type_ids" in source else [0] * len(ids)
            places = None
            if each_token:
                places = self.answer.places([a[i] for a in args], source["offset_mapping"][j], source.sequence_ids(j))
            out.append(Encoding(ids, types, i in in_cut, special, places))
        return out

    @cached_property
    def _takes_types(self) -> bool:
        accepted = "token_type_ids" in inspect.signature(self.model.forward).parameters
        return accepted and int(getattr(self.config, "type_vocab_size", 0) or 0) > 1

    def collate(self, encodings: Sequence[Encoding], width: int = 0) -> dict[str, Tensor]:
        """A right-padded batch on the model's device: input_ids, attention_mask and, where used, token_type_ids.

        It is as wide as the longest text, or ``width`` if that is more.
        """
        width = max(width, *(len(e) for e in encodings))
        table = np.zeros((3, len(encodings), width), dtype=np.int64)
        table[0] = self.tokenizer.pad_token_id or 0
        for i, e in enumerate(encodings):
            table[:, i, : len(e)] = e.ids, [1] * len(e), e.types
        ids, mask, types = put(torch.from_numpy(table), self.device).unbind()
        batch = {"input_ids": ids, "attention_mask": mask}
        if (places := table_of(encodings)) is not None:
            batch[PLACES] = put(torch.from_numpy(places), self.device)
        return batch | {"token_type_ids": types} if self._takes_types else batch

    # output -----------------------------------------------------------------------------------

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        """The logits of a batch; gradients flow if the caller has enabled them.

        [B, T, C] of every token where the answer is read from several and the batch does not say from which.
        """
        forward, batch = self.family.forward, dict(batch)
        places = batch.pop(PLACES, None)
        with running(call):
            if forward is None:
                logits = logits_of(self.model(**batch, headviz=call))
            else:
                logits = forward(self.model, batch, {"headviz": call})
        if places is not None:
            logits = at(logits, places)
        if not call.finished:
            raise ModelError(
                f"{self.family.title} ran {call.layer} of {self.num_layers} attention layers through headviz: "
                "the mask was not applied everywhere. Please report this model."
            )
        call.sort_rows()
        return logits

    # what an evaluator of many masks runs -----------------------------------------------------

    def sequences(
        self, data: Any, cancel: Cancel | None = None
    ) -> tuple[list[Encoding], Callable[[np.ndarray], np.ndarray]]:
        """Token ids of every example in the data's order; logits are their outputs as they are."""
        return self.encode(data.texts, data.pairs, cancel), lambda outputs: outputs

    @property
    def width(self) -> int:
        """Outputs of a sequence."""
        return self.num_labels

    def outputs(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        """[B, width] of a batch of sequences."""
        return self.forward(batch, call)

    @torch.inference_mode()
    def outputs_under(self, batch: dict[str, Tensor], mask: MaskLike | None = None) -> Tensor:
        """The same under a mask, in float32, without gradients."""
        with gpu_products(self.device):
            return self.outputs(batch, self.call(mask)).float()

    def read_out(self, groups: Sequence[Tensor]) -> Tensor | None:
        """[n, width] from the last states of sequences of equal length, [B, T, D] each; None = as the family does."""
        return None

    # training ---------------------------------------------------------------------------------

    def labelled(self, encodings: Sequence[Encoding], gold: Sequence[float] | None) -> dict[str, Tensor]:
        """A batch with its gold answers as ``labels``: class numbers, or values for a regression."""
        return self.collate(encodings) | {"labels": self.answer.tensor(gold, self.device)}

"""An encoder-decoder model and its tokenizer: three stacks of heads in one grid, masked per call.

Rows of the grid: the encoder's layers, then the decoder's attention to the encoder (``cross``), then the decoder's
attention to itself (``decoder``). Masks, scores and pruning work on rows and need not know which stack is which.

Shapes: B sentences, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ...answers.answer import IGNORED
from ...attention import HeadCall, Kernel, quiet, transformers
from ...errors import MOST_BEAMS, ModelError, OptionError, TaskError, unknown_choice, whole_number
from ...heads import ENCODER, TRANSLATION
from ...models.base import DEFAULT_LENGTH, TransformerModel
from ...models.families.sheet import decoder_layers
from ...models.fast.linear import gpu_products
from ...storage.exchange import MaskLike
from ...tasks.tokenizer_lock import alone_with, pieces
from .sentence import SENTENCE

# generation settings that headviz sets in every call, or that leave the tokens alone
_SET_BY_CALLS = {"do_sample", "max_length", "max_new_tokens", "num_beams", "transformers_version", "use_cache"}


class SentenceEncoding(NamedTuple):
    """A source sentence as token ids, with its reference where one was given."""

    ids: list[int]
    types: list[int]
    truncated: bool  # either side
    special: list[bool]
    target: list[int] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def key_parts(self) -> dict[str, object]:
        return {"ids": self.ids, "types": self.types, "special": self.special}


@dataclass(frozen=True, eq=False, repr=False)  # one line for a notebook, as every model has
class Translator(TransformerModel):
    """An encoder-decoder model whose heads can be masked per call. Made by ``headviz.load`` or ``headviz.wrap``.

    ``logits`` are those of the reference's tokens given the tokens before (teacher forcing), [B, T, V];
    ``generate`` translates. ``prefix`` is put before every source, as T5 wants it; ``languages`` are the codes
    of both sides for models that know several. ``reading`` sets them.
    """

    kind = TRANSLATION
    answer = SENTENCE
    prefix: str = ""
    languages: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        encoder, decoder = int(self.config.num_hidden_layers), decoder_layers(self.config)
        if self.num_layers != encoder + 2 * decoder:
            raise ModelError(
                f"The mask of heads has {self.num_layers} rows, but {self.family.title} has {encoder} "
                f"encoder layers and {decoder} decoder layers with two attentions each."
            )
        # generate() refuses keywords that transformers does not know, and ours must reach the attention function
        self.model._validate_model_kwargs = _any_keyword  # type: ignore[assignment]

    @cached_property
    def generation(self) -> str:
        """What generation settings and tokenizer say otherwise than the configuration implies, as JSON; or nothing.

        Translations follow them; the digests, which are of weights, configuration and token ids, do not hold them.
        """
        config: Any = self.model.generation_config
        configs = config, type(config).from_model_config(self.config)
        settings, implied = (json.loads(c.to_json_string(use_diff=False)) for c in configs)
        skipped = ("_", "output_", "return_")
        other = {
            name: value
            for name, value in settings.items()
            if name not in _SET_BY_CALLS and not name.startswith(skipped) and value not in (None, implied.get(name))
        }
        if getattr(self.tokenizer, "clean_up_tokenization_spaces", False):
            other["clean_up_tokenization_spaces"] = True
        if self.max_length != (getattr(self.config, "max_position_embeddings", None) or DEFAULT_LENGTH):
            other["max_length"] = self.max_length
        return json.dumps(other, sort_keys=True) if other else ""

    # input ------------------------------------------------------------------------------------

    @cached_property
    def max_length(self) -> int:
        """The most tokens either side may have."""
        bounds = (getattr(self.config, "max_position_embeddings", None), self.tokenizer.model_max_length)
        # a tokenizer without a bound says 10^30
        return min((int(n) for n in bounds if n is not None and n < 10**6), default=DEFAULT_LENGTH)

    def reading(self, prefix: str | None = None, languages: Sequence[str] | None = None) -> Self:
        """The same model with a prefix before every source, or with these (source, target) language codes."""
        prefix = self.prefix if prefix is None else prefix
        if languages is None:
            return replace(self, prefix=prefix)
        codes = known_languages(self.tokenizer)
        if not codes:
            raise ModelError(f"'{self.name}' translates one pair of languages; it takes no language codes.")
        if len(languages) != 2:
            raise OptionError("Give two language codes, source and target, such as en_XX,ro_RO.")
        for code in languages:
            if code not in codes:
                raise OptionError(unknown_choice("language", code, codes))
        tokenizer = copy.deepcopy(self.tokenizer)
        tokenizer.src_lang, tokenizer.tgt_lang = languages
        return replace(self, tokenizer=tokenizer, prefix=prefix, languages=(languages[0], languages[1]))

    @property
    def reads_with(self) -> dict[str, Any]:
        options = {"prefix": self.prefix, "languages": self.languages and list(self.languages)}
        return {name: value for name, value in options.items() if value}

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[SentenceEncoding]:
        """Token ids of each source; with ``pairs``, the references, those of each reference as well."""
        if len(texts) == 0:
            return []
        if pairs is not None and len(pairs) != len(texts):
            raise TaskError(f"There are {len(texts)} sources but {len(pairs)} references. Give one for each.")
        sources = self._ids("text", [self.prefix + t for t in texts])
        targets = [(None, False)] * len(texts) if pairs is None else self._ids("text_target", list(pairs))
        special = set(self.tokenizer.all_special_ids)
        out = []
        for (ids, cut), (target_ids, target_cut) in zip(sources, targets, strict=True):
            types, is_special = [0] * len(ids), [i in special for i in ids]
            out.append(SentenceEncoding(ids, types, cut or target_cut, is_special, target_ids))
        return out

    def _ids(self, side: str, texts: list[str]) -> list[tuple[list[int], bool]]:
        options = {"return_attention_mask": False, "verbose": False}
        out = []
        for at in pieces(len(texts)):
            inputs: dict[str, Any] = {side: texts[at], **options}
            with alone_with(self.tokenizer):
                whole = self.tokenizer(**inputs, truncation=False)["input_ids"]
                short = whole
                if any(len(ids) > self.max_length for ids in whole):
                    short = self.tokenizer(**inputs, truncation=True, max_length=self.max_length)["input_ids"]
            out += [(list(s), len(s) < len(w)) for s, w in zip(short, whole, strict=True)]
        return out

    def collate(self, encodings: Sequence[Any]) -> dict[str, Tensor]:
        """A right-padded batch on the model's device: input_ids and attention_mask, and for sentences with a
        reference labels (-100 = padding) and decoder_input_ids."""
        batch = {
            "input_ids": _padded([e.ids for e in encodings], int(self.config.pad_token_id)),
            "attention_mask": _padded([[1] * len(e) for e in encodings], 0),
        }
        if all(getattr(e, "target", None) is not None for e in encodings):
            batch["labels"] = _padded([e.target for e in encodings], IGNORED)
            model: Any = self.model
            batch["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"].clone())
        return {k: v.to(self.device) for k, v in batch.items()}

    # output -----------------------------------------------------------------------------------

    def real_tokens(self, row: int, batch: dict[str, Tensor]) -> Tensor:
        """The encoder's are the source's, the others' the reference's."""
        return super().real_tokens(row, batch) if row in self.stacks[ENCODER] else batch["labels"] != IGNORED

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        """The logits [B, T, V] of the references' tokens; gradients flow if the caller has enabled them.

        Probabilities and outputs that the call keeps are put into the order of the grid's rows.
        """
        if "decoder_input_ids" not in batch:
            raise TaskError("Teacher-forced logits need the references: encode(sources, references).")
        inputs = {k: v for k, v in batch.items() if k != "labels"}
        logits: Tensor = self.model(**inputs, use_cache=False, headviz=call).logits
        self._check(call)
        call.sort_rows()
        return logits

    # training ---------------------------------------------------------------------------------

    def labelled(self, encodings: Sequence[Any], gold: Sequence[float] | None = None) -> dict[str, Tensor]:
        """A batch of sentences whose references are the labels."""
        return self.collate(encodings)

    @property
    def training_options(self) -> dict[str, Any]:
        return {"use_cache": False}

    # translating ------------------------------------------------------------------------------

    @torch.inference_mode()
    def generate(
        self,
        batch: dict[str, Tensor],
        mask: MaskLike | None = None,
        *,
        beams: int = 1,
        max_new_tokens: int | None = None,
        cached: bool = True,
        kernel: Kernel = "sdpa",
    ) -> Tensor:
        """Token ids [B, T] of translations under a mask: greedy, or by beam search.

        The model's own generation settings hold for all but the number of beams and the length.
        ``cached=False`` recomputes every step; it is slow and there to be compared with.
        """
        whole_number(beams, "beams", 1, MOST_BEAMS)
        call = self.call(mask, kernel)
        model: Any = self.model
        options: dict[str, Any] = {}
        if cached:
            options["past_key_values"] = new_cache()
        if self.languages is not None:
            options["forced_bos_token_id"] = self.tokenizer.convert_tokens_to_ids(self.languages[1])
        with quiet(), gpu_products(self.device):
            ids: Tensor = model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                num_beams=beams,
                do_sample=False,
                max_new_tokens=max_new_tokens or self.max_length - 1,
                use_cache=cached,
                headviz=call,
                **options,
            )
        self._check(call)
        return ids

    def decode(self, ids: Tensor | Sequence[Sequence[int]]) -> list[str]:
        """Translations as text, detokenised."""
        texts = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [str(t).strip() for t in texts]

    def _check(self, call: HeadCall) -> None:
        if not call.finished:
            raise ModelError(
                f"{self.family.title} ran {call.layer} attention layers through headviz, which is no whole pass: "
                "the mask was not applied everywhere. Please report this model."
            )


def known_languages(tokenizer: Any) -> tuple[str, ...]:
    """The language codes of a tokenizer that knows several languages; else none."""
    codes = getattr(tokenizer, "lang_code_to_id", None)
    return tuple(sorted(codes)) if codes else ()


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=fill)


def _any_keyword(model_kwargs: dict[str, Any]) -> None:
    """In place of transformers' check of generate()'s keywords: every keyword is allowed."""


class _Layer(transformers.cache_utils.DynamicLayer):
    """Counts the tokens of a layer without heads as well.

    transformers reads the next token's position from the cache. Its own count takes a layer without heads as empty.
    """

    def get_seq_length(self) -> int:
        keys = self.keys
        return 0 if keys is None or keys.ndim != 4 else int(keys.shape[-2])


def new_cache() -> Any:
    """An empty cache that grows layer by layer. transformers would give T5's decoder as many layers as its encoder."""
    caches = transformers.DynamicCache(), transformers.DynamicCache()
    for cache in caches:
        cache.layer_class_to_replicate = _Layer
    return transformers.EncoderDecoderCache(*caches)

"""Tiny random encoder-decoder models of every family, and a tokenizer for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from headviz.models.families import FAMILIES

TRANSLATION_NAMES = tuple(name for name, family in FAMILIES.items() if family.has_decoder)
LAYERS, DECODER_LAYERS, HEADS = 2, 3, 4
ROWS = LAYERS + 2 * DECODER_LAYERS

SOURCES = ["a dog sleeps .", "the red cat sees two birds in the garden", "no man eats", "a woman runs ."]
TARGETS = ["the house runs in a garden", "a bird .", "two red dogs eat before the cat .", "no"]


def sentence_tokenizer(longest: int = 14) -> Any:
    """Words and letters, an end mark behind each sentence.

    A random model hardly ever ends a sentence by itself, so the longest one is what each translation costs. Bounds
    that follow from a source's own length differ between sentences from 40 on.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    from .tiny import WORDS

    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["<pad>", "</s>", "<unk>", "<s>", *WORDS, *letters, *(f"##{c}" for c in letters)]
    vocab = {w: i for i, w in enumerate(dict.fromkeys(pieces))}
    backend = Tokenizer(models.WordPiece(vocab, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", vocab["</s>"])])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="<s>",
        model_max_length=longest,
    )


def tiny_seq2seq(family: str = "marian", seed: int = 0, spread: float = 0.3, **config: Any) -> Any:
    """A random transformers model. ``spread`` widens the weights so that masking a head is visible."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    settings: dict[str, Any] = {
        "vocab_size": len(sentence_tokenizer()),
        "d_model": 32,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 3,
        "decoder_start_token_id": 0,
        "is_encoder_decoder": True,
        **FAMILIES[family].tiny,
        **config,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model(family, **settings))
        for name, weight in model.named_parameters():
            if "relative_attention_bias" in name:
                torch.nn.init.normal_(weight, std=1.0)
            elif weight.ndim > 1 and "embed" not in name and "shared" not in name:
                torch.nn.init.normal_(weight, std=spread)
            elif weight.ndim > 1 and "position" not in name:
                torch.nn.init.normal_(weight, std=0.5)
            elif name.endswith("bias"):
                torch.nn.init.normal_(weight, std=0.1)
    return model.eval()


def sentences() -> Any:
    """These sources with these targets."""
    from headviz.tasks import TASKS, Dataset

    return Dataset(TASKS["custom-translation"], "dev", tuple(SOURCES), tuple(TARGETS))


def tiny_translator(family: str = "marian", longest: int = 14, **options: Any) -> Any:
    """The same, as a headviz translator."""
    import headviz

    clf = headviz.wrap(tiny_seq2seq(family, **options), sentence_tokenizer(longest), name=f"tiny-{family}")
    assert isinstance(clf, headviz.Translator)
    return clf


def tiny_translator_folder(path: Path, family: str = "marian", **options: Any) -> Path:
    """The same, saved as a plain transformers folder."""
    tiny_seq2seq(family, **options).save_pretrained(path)
    sentence_tokenizer().save_pretrained(path)
    return path

"""Tiny random models of every family, and a tokenizer for them. No download, milliseconds to make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headviz.models.families import FAMILIES
from headviz.tasks import TASKS, Dataset

WORDS = (
    "a an the dog cat man woman bird house garden sleeps runs eats sees red blue big small not no "
    "and or two three in on under before after is was by . ,"
).split()

FAMILY_NAMES = tuple("bert roberta electra distilbert camembert xlm-roberta ernie albert modernbert".split())
ALL_FAMILIES = tuple(name for name, family in FAMILIES.items() if family.classifies)
PRUNABLE = tuple(name for name in FAMILY_NAMES if FAMILIES[name].prunable)

# the tiny tokenizer ends a text with [SEP]
DECODING: dict[str, Any] = {
    "d_model": 32,
    "eos_token_id": 3,
    "bos_token_id": 2,
    "decoder_start_token_id": 2,
    "is_encoder_decoder": True,
}

TEXTS = ["a dog sleeps .", "the red cat sees two birds in the garden", "no man eats", "a woman runs before the dog ."]
PAIRS = ["a cat runs", "the bird is blue .", "a man eats in the house", "two women run"]


def pairs_of_texts(count: int) -> Dataset:
    """So many labelled pairs of them."""
    texts, pairs = (tuple(side[(i + at) % len(side)] for i in range(count)) for at, side in enumerate((TEXTS, PAIRS)))
    return Dataset(TASKS["mnli"], "dev", texts, pairs, np.arange(count) % 3)


def tiny_tokenizer(pad_id: int = 0) -> Any:
    """WordPiece over a few words; [PAD] has the id that the family expects."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if pad_id == 1:
        special[0], special[1] = special[1], special[0]
    pieces = [*special, *WORDS, *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
    vocab = {w: i for i, w in enumerate(dict.fromkeys(pieces))}
    backend = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def tiny_model(
    family: str = "bert",
    layers: int = 3,
    heads: int = 4,
    hidden: int = 32,
    labels: tuple[str, ...] = ("entailment", "neutral", "contradiction"),
    seed: int = 0,
    spread: float = 0.25,
    gains: float = 0.0,
    masked_lm: bool = False,
    head: str = "AutoModelForSequenceClassification",
    **config: Any,
) -> Any:
    """A random transformers classifier. ``spread`` widens the weights so that masking a head is visible.

    ``gains`` is the sd of the norms' gains, which are 1 in a fresh model and not in a trained one. ``head`` is
    transformers' class for it.
    """
    import transformers

    settings: dict[str, Any] = {
        "vocab_size": len(tiny_tokenizer()),
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 2 * hidden,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "pad_token_id": 0,
        "id2label": dict(enumerate(labels)),
        "label2id": {v: i for i, v in enumerate(labels)},
        **(DECODING if FAMILIES[family].has_decoder else {}),
        **FAMILIES[family].tiny,
        **config,
    }
    if "layer_types" in settings:  # one for each layer
        settings["layer_types"] = (layers * settings["layer_types"])[:layers]
    if FAMILIES[family].has_decoder:  # these name the sizes of each stack
        for name in ("num_hidden_layers", "num_attention_heads", "max_position_embeddings", "hidden_size"):
            settings.pop(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kind = getattr(transformers, "AutoModelForMaskedLM" if masked_lm else head)
        model = kind.from_config(transformers.AutoConfig.for_model(family, **settings))
        for name, weight in model.named_parameters():
            if "relative_attention_bias" in name:
                torch.nn.init.normal_(weight, std=1.0)
            elif weight.ndim > 1 and "embeddings" not in name and "shared" not in name:
                torch.nn.init.normal_(weight, std=spread)
            elif name.endswith("bias"):
                torch.nn.init.normal_(weight, std=0.1)
            elif weight.ndim == 1 and gains:
                torch.nn.init.normal_(weight, mean=1.0, std=gains)
        words = model.get_input_embeddings().weight
        with torch.no_grad():  # in published models [PAD] is not always 0
            words[settings["pad_token_id"]].normal_(std=float(words.std()))
    return model.eval()


def tiny_classifier(family: str = "bert", **options: Any) -> Any:
    """The same, as a headviz classifier."""
    import headviz

    model = tiny_model(family, **options)
    return headviz.wrap(model, tiny_tokenizer(int(model.config.pad_token_id or 0)), name=f"tiny-{family}")


def worn_model(family: str = "bert", **options: Any) -> Any:
    """One whose norms have gains other than 1, as training leaves them."""
    return tiny_model(family, gains=0.2, **options)


def worn_classifier(family: str = "bert", **options: Any) -> Any:
    """The same, as a headviz classifier."""
    return tiny_classifier(family, gains=0.2, **options)


def tiny_folder(path: Path, family: str = "bert", **options: Any) -> Path:
    """The same, saved as a plain transformers folder."""
    model = tiny_model(family, **options)
    model.save_pretrained(path)
    tiny_tokenizer(int(model.config.pad_token_id or 0)).save_pretrained(path)
    return path


def tiny_embedder(path: Path, family: str = "bert", pooling: str = "mean", **options: Any) -> Path:
    """A folder of sentence-transformers: an encoder, how its tokens are pooled, and that vectors are normalised."""
    model = tiny_model(family, **options)
    model.base_model.save_pretrained(path)
    tiny_tokenizer(int(model.config.pad_token_id or 0)).save_pretrained(path)
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    listed = [
        {"idx": i, "name": str(i), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for i, (place, kind) in enumerate(kinds)
    ]
    (path / "modules.json").write_text(json.dumps(listed))
    (path / "1_Pooling").mkdir()
    mode = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    about = {"word_embedding_dimension": model.config.hidden_size} | (
        mode if pooling == "mean" else {"pooling_mode": pooling}
    )
    (path / "1_Pooling" / "config.json").write_text(json.dumps(about))
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 24}))
    return path

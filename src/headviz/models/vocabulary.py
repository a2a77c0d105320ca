"""A model without the embeddings of pieces that some texts never use; its tokenizer knows these pieces no more.

Texts that were read keep their pieces, so the model's answers to them stay the same. Other texts may be split into
other pieces. Special tokens stay, and so do pieces of one character that occurs in the texts, so that a word that was
never seen can still be spelt.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from ..attention import quiet
from ..errors import ModelError, TaskError
from ..storage.paths import opened
from ..storage.writing import replace_file
from .base import TransformerModel
from .folders import load_tokenizer
from .network import Network

N = TypeVar("N", bound=TransformerModel)
Pieces = set[str]
AT_ONCE = 1000  # texts
FIRST = 100  # a padding token before it keeps its number: some families count positions from it
FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
IDS = "pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id"


def used_pieces(clf: Network, texts: Iterable[str]) -> Pieces:
    """The pieces of these texts, and those of one character that occurs in them."""
    tokenizer, ids, characters = clf.tokenizer, set[int](), set[str]()
    texts = list(texts)
    if not texts:
        raise TaskError("There is no text to take a vocabulary from.")
    for start in range(0, len(texts), AT_ONCE):
        for encoding in _encodings(clf, texts[start : start + AT_ONCE]):
            ids.update(encoding.ids)
            characters.update(*encoding.tokens)
    pieces = set(tokenizer.convert_ids_to_tokens(sorted(ids)))
    # a mark says that a piece continues or begins a word
    return pieces | {p for p in tokenizer.get_vocab() if p.removeprefix("##").removeprefix("▁") in characters}


def smaller_vocabulary(clf: N, file: str | Path, held_out: Sequence[str] | None = None) -> tuple[N, dict[str, Any]]:
    """The model for the texts of a file, one a line, and a record: pieces and parameters before and after, and the
    share of the ``held_out`` texts that are split into other pieces, None without any."""
    with opened(Path(file), "the file of --vocabulary") as lines:
        texts = [line for raw in lines if (line := raw.decode("utf-8", "replace").strip())]
    small = with_pieces(clf, used_pieces(clf, texts))
    return small, {
        "pieces": {"before": len(clf.tokenizer), "after": len(small.tokenizer)},
        "parameters": {"before": clf.cost().parameters, "after": small.cost().parameters},
        "texts": len(texts),
        "changed": held_out and changed_share(clf, small, held_out),
    }


def changed_share(before: Network, after: Network, texts: Sequence[str]) -> float:
    """The share of texts that are split into other pieces."""
    pairs = zip(_encodings(before, texts), _encodings(after, texts), strict=True)
    return sum(old.tokens != new.tokens for old, new in pairs) / max(1, len(texts))


def _encodings(clf: Network, texts: Sequence[str]) -> list[Any]:
    tokenizer = _backend(clf)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encodings: list[Any] = tokenizer.encode_batch(list(texts))
    return encodings


def _backend(clf: Network) -> Any:
    """A copy of the tokenizer of the library tokenizers."""
    backend = getattr(clf.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError("The vocabulary of a tokenizer that is not a fast one cannot be made smaller.")
    return type(backend).from_str(backend.to_str())


def with_pieces(clf: N, pieces: Pieces) -> N:
    """The model with the embeddings of these pieces and of the special tokens alone. The caller's stays as it is."""
    state = json.loads(_backend(clf).to_str())
    kind = state["model"].get("type")
    if kind not in KINDS:
        raise ModelError(
            f"The vocabulary of a tokenizer of type {kind} cannot be made smaller: only {', '.join(KINDS)} are known."
        )
    whole: Any = clf.model
    if whole.get_output_embeddings() is not None:
        raise ModelError("This model also predicts the pieces of its vocabulary, so none of them can go.")
    old = clf.tokenizer.get_vocab()
    kept = pieces | {token["content"] for token in state["added_tokens"]}
    if kind == "BPE":
        kept |= _needed_by_merges(state["model"], pieces)
    if unknown := state["model"].get("unk_token"):
        kept.add(unknown)
    if kind == "Unigram" and state["model"]["unk_id"] is not None:
        kept.add(state["model"]["vocab"][state["model"]["unk_id"]][0])
    pad = clf.tokenizer.pad_token_id
    first = pad if pad is not None and pad < FIRST else -1
    ids = sorted(number for piece, number in old.items() if piece in kept or number <= first)
    new = {number: row for row, number in enumerate(ids)}
    KINDS[kind](state["model"], {piece: new[number] for piece, number in old.items() if number in new})
    _renumber(state, new)
    return dataclasses.replace(clf, model=_with_rows(whole, ids, new), tokenizer=_reloaded(clf, state, new))


def _needed_by_merges(model: Mapping[str, Any], pieces: Pieces) -> Pieces:
    """The pieces with what they are merged from, and all pieces of one character or byte."""
    parts: dict[str, list[str]] = {}
    for a, b in _merges(model):
        parts.setdefault(a + b, []).extend((a, b))
    needed = set[str]()
    to_add = [*pieces, *(piece for piece in model["vocab"] if len(piece) == 1)]
    while to_add:
        if (piece := to_add.pop()) not in needed:
            needed.add(piece)
            to_add += parts.get(piece, ())
    return needed


def _merges(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    return [(a, b) for a, b in pairs]


def _smaller_table(model: dict[str, Any], ids: Mapping[str, int]) -> None:
    model["vocab"] = {piece: ids[piece] for piece in model["vocab"] if piece in ids}


def _smaller_list(model: dict[str, Any], ids: Mapping[str, int]) -> None:
    unknown = None if model["unk_id"] is None else model["vocab"][model["unk_id"]][0]
    model["vocab"] = sorted((row for row in model["vocab"] if row[0] in ids), key=lambda row: ids[row[0]])
    model["unk_id"] = None if unknown is None else [row[0] for row in model["vocab"]].index(unknown)


def _smaller_merges(model: dict[str, Any], ids: Mapping[str, int]) -> None:
    _smaller_table(model, ids)
    model["merges"] = [[a, b] for a, b in _merges(model) if {a, b, a + b} <= ids.keys()]


# type of the tokenizer's model -> what makes its table smaller
KINDS: Mapping[str, Callable[[dict[str, Any], Mapping[str, int]], None]] = {
    "WordPiece": _smaller_table,
    "WordLevel": _smaller_table,
    "Unigram": _smaller_list,
    "BPE": _smaller_merges,
}


def _renumber(state: dict[str, Any], new: Mapping[int, int]) -> None:
    """The tokenizer's special tokens and what it puts around a text, in the new numbers."""
    for token in state["added_tokens"]:
        token["id"] = new[token["id"]]
    state["padding"] = state["truncation"] = None
    for part in _parts(state["post_processor"]):
        for name in ("sep", "cls"):
            if name in part:
                part[name] = [part[name][0], new[part[name][1]]]
        for token in (part.get("special_tokens") or {}).values():
            token["ids"] = [new[number] for number in token["ids"]]


def _parts(processor: Any) -> list[dict[str, Any]]:
    if processor is None:
        return []
    return [part for inner in processor.get("processors", ()) for part in _parts(inner)] or [processor]


def _with_rows(model: Any, ids: Sequence[int], new: Mapping[int, int]) -> Any:
    """A copy with these rows of the embeddings, in this order."""
    old: nn.Embedding = model.get_input_embeddings()
    # the old table is shared, not copied: it goes
    smaller = copy.deepcopy(model, {id(p): p for p in model.parameters()})
    weight = old.weight.detach()[torch.tensor(ids, device=old.weight.device)]
    padding = None if old.padding_idx is None else new.get(old.padding_idx)
    smaller.set_input_embeddings(nn.Embedding.from_pretrained(weight, padding_idx=padding))
    config = smaller.config
    config.vocab_size = len(ids)
    for name in IDS:
        if (number := getattr(config, name, None)) is not None:
            setattr(config, name, new.get(number))
    return smaller.eval()


def _reloaded(clf: Network, state: Mapping[str, Any], new: Mapping[int, int]) -> Any:
    """The tokenizer of this state, with all other settings of the model's."""
    with tempfile.TemporaryDirectory(prefix="headviz-vocabulary-") as place, quiet():
        folder = Path(place)
        clf.tokenizer.save_pretrained(folder)
        for file in folder.iterdir():
            if file.name not in (FILE, SETTINGS):
                file.unlink()  # lists of the pieces in other forms
        replace_file(folder / FILE, json.dumps(state, ensure_ascii=False))
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        if added := settings.get("added_tokens_decoder"):
            settings["added_tokens_decoder"] = {str(new[int(number)]): token for number, token in added.items()}
        replace_file(folder / SETTINGS, json.dumps(settings))
        return load_tokenizer(folder, clf.name, len(new))

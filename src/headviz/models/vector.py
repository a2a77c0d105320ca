"""An embedder of sentence-transformers: each text becomes a vector, and the answer to a pair is the vectors' cosine.

Both texts of a pair stand in one row of a batch, the second behind the first. Neither looks at the other, and each
begins at the first position, so the vectors are those of the texts alone; a pair is one sequence for maps, gates and
the path of embeddings. In a batch ``attention_mask`` is 1 for the first text, 2 for the second and 0 for padding.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..attention import HeadCall, running
from ..errors import ModelError, TaskError
from ..heads import VECTOR
from ..progress import Cancel
from .classifier import Classifier, Encoding
from .fast.gpu import put, runs_by_itself
from .folder_check import MODULES, is_embedder, modules_of, read_json

SCALE = 20.0  # of cosines in the cross-entropy of a batch, as sentence-transformers has it
LENGTH_FILE = "sentence_bert_config.json"
MODES = ("mean", "cls", "lasttoken")
NEW_FILES = {
    MODULES: json.dumps(
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(
                (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
            )
        ],
        indent=2,
    ),
    "2_Normalize/": "",
}
OLD_MODES = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_lasttoken": "lasttoken"}


@dataclass(frozen=True)
class Pooling:
    """How the vectors of tokens become one, and the files that say so to sentence-transformers."""

    mode: str = "mean"
    normalized: bool = True
    length: int | None = None  # tokens of a text that are read
    files: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def read(cls, folder: Path, name: object, new: bool = False) -> Pooling:
        """From a folder of sentence-transformers; a ``ModelError`` for modules that are not read.

        A ``new`` embedder may be made of an encoder that says nothing: the mean of its tokens, normalised.
        """
        if not is_embedder(folder, name):
            if new:
                return cls(files=NEW_FILES)
            raise ModelError(f"'{name}' has no {MODULES} of sentence-transformers that says how tokens are pooled.")
        modules = modules_of(folder, name)
        kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise ModelError(
                f"'{name}' has the modules {', '.join(kinds) or 'none'} of sentence-transformers; an encoder with "
                "Pooling and, if at all, Normalize is read."
            )
        paths = [str(module.get("path", "")) for module in modules]
        config = read_json(folder / paths[1] / "config.json", name)
        modes = [config["pooling_mode"]] if "pooling_mode" in config else [k for k in config if config[k] is True]
        known = [OLD_MODES.get(mode, mode) for mode in modes if mode in OLD_MODES or mode in MODES or "mode" in mode]
        if len(known) != 1 or known[0] not in MODES:
            raise ModelError(
                f"'{name}' pools tokens by {', '.join(map(str, modes))}; one of {', '.join(MODES)} is read."
            )
        names = [MODULES, f"{paths[1]}/config.json", LENGTH_FILE, "config_sentence_transformers.json"]
        names += [f"{path}/config.json" for path in paths[2:]]
        files = {file: (folder / file).read_text(encoding="utf-8") for file in names if (folder / file).is_file()}
        length = json.loads(files[LENGTH_FILE]).get("max_seq_length") if LENGTH_FILE in files else None
        folders = {f"{path}/": "" for path in paths[2:] if f"{path}/config.json" not in files}
        return cls(known[0], "Normalize" in kinds, length, files | folders)

    def write(self, folder: Path, size: int) -> None:
        """The files as they were read, or those of a new embedder whose vectors have this size."""
        config = {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True}
        files = {**self.files, "1_Pooling/config.json": json.dumps(config)} if self.files is NEW_FILES else self.files
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                (folder / name).mkdir(exist_ok=True)
            else:
                (folder / name).write_text(text, encoding="utf-8")


@dataclass(frozen=True, eq=False, repr=False)
class Embedder(Classifier):
    """Logits are [B, 1]: the cosine of the vectors of a pair's texts. ``vectors`` gives those of single texts."""

    kind: str = VECTOR
    pooling: Pooling = field(default_factory=Pooling)
    replays: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        stages = self.family.post_norm or self.family.own_layers
        if stages is None or "position_ids" not in inspect.signature(self.model.forward).parameters:
            raise ModelError(
                f"Embedders of {self.family.title} are not read: their layers cannot keep two texts apart. BERT, "
                "RoBERTa, DistilBERT, MPNet, DeBERTa-v2, ModernBERT, NomicBERT and GTE, among others, can."
            )
        self.family.apart(self.config, torch.ones(1, 1, 1, dtype=torch.bool))  # refuses what cannot be

    @property
    def digest(self) -> str:
        parts = f"{super().digest}|{self.pooling.mode}|{self.pooling.normalized}|{self.pooling.length}"
        return hashlib.sha256(parts.encode()).hexdigest()

    @property
    def labels(self) -> tuple[str, ...]:
        return ("similarity",)

    @property
    def num_labels(self) -> int:
        return 1

    @property
    def num_texts(self) -> int:
        return 2

    def write_more(self, folder: Path) -> None:
        self.pooling.write(folder, self.width)

    # input ------------------------------------------------------------------------------------

    def encode(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, cancel: Cancel | None = None
    ) -> list[Encoding]:
        """Token ids of each text or, one behind the other, of each pair; each text is cut by itself."""
        first = super().encode(texts, cancel=cancel)
        if pairs is None:
            return [Encoding(e.ids, [0] * len(e), e.truncated, e.special) for e in first]
        return [
            Encoding(a.ids + b.ids, [0] * len(a) + [1] * len(b), a.truncated or b.truncated, a.special + b.special)
            for a, b in zip(first, super().encode(pairs, cancel=cancel), strict=True)
        ]

    def collate(self, encodings: Sequence[Encoding], width: int = 0) -> dict[str, Tensor]:
        batch = super().collate(encodings, width)
        numbers = np.zeros(tuple(batch["input_ids"].shape), dtype=np.int64)
        for i, e in enumerate(encodings):
            numbers[i, : len(e)] = np.array(e.types) + 1
        return {"input_ids": batch["input_ids"], "attention_mask": put(torch.from_numpy(numbers), self.device)}

    # output -----------------------------------------------------------------------------------

    def forward(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        numbers = batch["attention_mask"]
        if not runs_by_itself(numbers.device) and not bool((numbers == 2).any()):
            raise TaskError(f"'{self.name}' compares two texts, but only one was given. Give its pair as well.")
        return self._similarity(self._states(self._inputs(batch), call), numbers)

    def trained_logits(self, model: Any, batch: dict[str, Tensor]) -> Tensor:
        return self._similarity(model(**self._inputs(batch))[0], batch["attention_mask"])

    def _similarity(self, states: Tensor, numbers: Tensor) -> Tensor:
        first, second = (self.pooled(states, numbers == number) for number in (1, 2))
        return torch.nn.functional.cosine_similarity(first, second)[:, None]

    def ranked_in_batch(self, model: Any, batch: dict[str, Tensor], labels: Tensor) -> tuple[Tensor, Tensor]:
        """The cosines of the pairs, and the loss of sentence-transformers' MultipleNegativesRankingLoss.

        Each first text of a pair with a similarity (a label of .5 and more) has to find its partner among all second
        texts of the batch. Texts that occur twice, and a query's other relevant passages, are no negatives.
        """
        numbers = batch["attention_mask"]
        states = model(**self._inputs(batch))[0].float()
        first, second = (torch.nn.functional.normalize(self.pooled(states, numbers == n), dim=1) for n in (1, 2))
        cosines = first @ second.T  # [B, B]
        similar = labels >= 0.5
        same_first, same_second = (_same(batch["input_ids"], numbers == n) for n in (1, 2))
        diagonal = torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
        no_negative = ((same_first & similar) | same_second) & ~diagonal
        ranked = (SCALE * cosines).masked_fill(no_negative, -torch.inf)[similar]
        loss = torch.nn.functional.cross_entropy(ranked, similar.nonzero()[:, 0], reduction="sum")
        return cosines.diagonal()[:, None], loss / similar.sum().clamp(min=1)

    def sequences(
        self, data: Any, cancel: Cancel | None = None
    ) -> tuple[list[Encoding], Callable[[np.ndarray], np.ndarray]]:
        """Each text once, and what makes the cosines of the pairs of all vectors [m, D]."""
        place = {text: i for i, text in enumerate(dict.fromkeys((*data.texts, *data.pairs)))}
        first, second = (np.array([place[text] for text in texts]) for texts in (data.texts, data.pairs))

        def joined(vectors: np.ndarray) -> np.ndarray:
            with np.errstate(invalid="ignore"):
                unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-8)
            return np.asarray((unit[first] * unit[second]).sum(axis=1, keepdims=True), dtype=np.float32)

        return self.encode(list(place), cancel=cancel), joined

    @property
    def width(self) -> int:
        return int(self.config.hidden_size)

    def outputs(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        return self.vectors(batch, call)

    def in_stages(self, encodings: Sequence[Encoding]) -> bool:
        """Each text of a pair runs through the stages by itself."""
        return not any(any(e.types) for e in encodings)

    def read_out(self, groups: Sequence[Tensor]) -> Tensor:
        """[n, D] from the last layer's states of texts of equal length, [B, T, D] each."""
        if self.family.own_layers is not None:
            groups = [self.family.own_layers.states(self.model, rows) for rows in groups]
        return torch.cat([self.pooled(rows, rows.new_ones(rows.shape[:2], dtype=torch.bool)) for rows in groups])

    def vectors(self, batch: dict[str, Tensor], call: HeadCall) -> Tensor:
        """[B, D] of single texts, before they are normalised."""
        return self.pooled(self._states(self._inputs(batch), call), batch["attention_mask"] == 1)

    def sample(self, texts: Sequence[str]) -> dict[str, Tensor]:
        return self.collate(self.encode(texts))

    def graph(self, batch: dict[str, Tensor], call: HeadCall | None = None, model: Any = None) -> tuple[Tensor, ...]:
        """The tokens' states, which sentence-transformers pools itself, and the text's vector."""
        states = self._states(batch, call) if call is not None else (self.model if model is None else model)(**batch)[0]
        vectors = self.pooled(states, batch["attention_mask"] == 1)
        return states, torch.nn.functional.normalize(vectors) if self.pooling.normalized else vectors

    def from_graph(self, outputs: Sequence[Tensor], batch: Mapping[str, Tensor]) -> Tensor:
        return outputs[1]

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """[B, D] of the tokens in a mask [B, T]; they follow one another."""
        if self.pooling.mode == "mean":
            return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        first = mask.long().argmax(dim=1)
        index = first if self.pooling.mode == "cls" else first + mask.sum(dim=1) - 1
        return states[torch.arange(len(states), device=states.device), index]

    def _states(self, inputs: dict[str, Tensor], call: HeadCall) -> Tensor:
        """[B, T, D] the last layer's; gradients flow if the caller has enabled them."""
        with running(call):
            states: Tensor = self.model(**inputs, headviz=call)[0]
        if not call.finished:
            raise ModelError(f"{self.family.title} ran {call.layer} of {self.num_layers} layers through headviz.")
        call.sort_rows()
        return states

    def _inputs(self, batch: dict[str, Tensor]) -> dict[str, Any]:
        """What transformers' model takes: a mask that keeps the texts apart, and each token's place in its own."""
        numbers = batch["attention_mask"]
        inputs = {k: v for k, v in batch.items() if k in ("input_ids", "inputs_embeds")}
        place = torch.arange(numbers.shape[1], device=numbers.device).expand_as(numbers)
        place = place - (numbers == 2) * (numbers == 1).sum(dim=1, keepdim=True)
        place = place * (numbers > 0)
        if self.family.position_offset:
            place = place + int(self.config.pad_token_id) + 1
        allowed = numbers[:, :, None] == numbers[:, None]  # [B, T, T]
        return {**inputs, "attention_mask": self.family.apart(self.config, allowed), "position_ids": place}


def _same(ids: Tensor, mask: Tensor) -> Tensor:
    """[B, B] which rows have the same tokens in a mask [B, T]; those of a row follow one another."""
    first = mask.long().argmax(dim=1, keepdim=True)
    places = first + torch.arange(ids.shape[1], device=ids.device)
    inside = places < first + mask.sum(dim=1, keepdim=True)
    rows = ids.gather(1, places.clamp(max=ids.shape[1] - 1)).masked_fill(~inside, -1)
    return (rows[:, None] == rows).all(dim=-1)

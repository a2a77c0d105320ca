"""A recurrent translator: network and vocabularies, saved to and read from a folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Unpack

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ...errors import MOST_BEAMS, ModelError, OptionError, whole_number
from ...heads import TRANSLATION
from ...models.folder_check import naming, numbers_in, read_json
from ...models.saving import size_of, write_folder
from ...storage.paths import outside_path
from .recurrent_network import Rnn, RnnConfig, RnnOptions, beam
from .sentence import SENTENCE

RECORD = "rnn.json"
WEIGHTS = "rnn.safetensors"
FORMAT = 1

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
LONGEST = 64


def words_of(text: str) -> list[str]:
    """Words and single punctuation marks."""
    return re.findall(r"\w+|[^\w\s]", text)


def joined(words: Sequence[str]) -> str:
    """Words as a sentence, without a space before . , ; : ! ?"""
    return re.sub(r" ([.,;:!?])", r"\1", " ".join(words))


@dataclass(frozen=True)
class Vocabulary:
    """Words by number; the first four are special."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str], least: int = 1) -> Vocabulary:
        """Every word seen at least so often, most frequent first, ties in alphabetical order."""
        counts = Counter(w for t in texts for w in words_of(t))
        known = sorted((w for w, n in counts.items() if n >= least), key=lambda w: (-counts[w], w))
        return cls((*SPECIAL, *known))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {w: i for i, w in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        return [self.numbers.get(w, UNKNOWN) for w in words_of(text)] + [END]

    def decode(self, numbers: Iterable[int]) -> str:
        """The words in front of the first END."""
        words = []
        for n in numbers:
            if n == END:
                break
            if n not in (PAD, BEGIN):
                words.append(self.words[n])
        return joined(words)


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Right-padded numbers [B, S] and the mask of what is real."""
    width = max(map(len, rows))
    out = torch.full((len(rows), width), PAD, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = True
    return out.to(device), mask.to(device)


@dataclass(frozen=True, eq=False)
class RnnTranslator:
    """A network with its vocabularies. Weights are frozen and in evaluation mode.

    It translates and can be evaluated and distilled like any other model. It has no attention heads, and raises a
    ``ModelError`` when asked for them.
    """

    model: Rnn
    source: Vocabulary
    target: Vocabulary
    name: str = ""
    max_length: int = LONGEST  # words of a translation
    kind = TRANSLATION
    answer, job, answers = SENTENCE, SENTENCE.job, SENTENCE.described(())

    def __post_init__(self) -> None:
        self.model.eval()
        self.model.requires_grad_(False)

    def __repr__(self) -> str:
        """One line for a notebook; the weights are in ``model``."""
        return f"<{type(self).__name__} '{self.name}': {self.title}, {self.device}>"

    @classmethod
    def new(
        cls, sources: Sequence[str], targets: Sequence[str], seed: int = 0, **config: Unpack[RnnOptions]
    ) -> RnnTranslator:
        """An untrained translator for these sentences. Further keywords are those of ``RnnConfig``."""
        source, target = Vocabulary.of(sources), Vocabulary.of(targets)
        return cls(Rnn(RnnConfig(len(source), len(target), **config), seed), source, target)

    @property
    def device(self) -> torch.device:
        return self.model.output.weight.device

    @cached_property
    def digest(self) -> str:
        sha = hashlib.sha256(json.dumps(self.model.config.record, sort_keys=True).encode())
        sha.update("\n".join((*self.source.words, "", *self.target.words)).encode())
        for name, p in sorted(self.model.named_parameters()):
            sha.update(name.encode())
            sha.update(p.detach().cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()

    @property
    def title(self) -> str:
        """What kind of model it is."""
        attention = "with" if self.model.config.attention else "without"
        return f"an LSTM encoder-decoder {attention} attention"

    @property
    def dtype(self) -> torch.dtype:
        return self.model.output.weight.dtype

    def reading(self, prefix: str | None = None, languages: Sequence[str] | None = None) -> NoReturn:
        """Its vocabularies are those of one pair of languages."""
        raise OptionError(f"'{self.name}' is {self.title} and takes no prefix and no languages.")

    def no_heads(self, *_: object) -> NoReturn:
        """Raised by everything that is about heads."""
        raise ModelError(
            f"'{self.name}' is {self.title} and has no attention heads to look into, to mask or to remove. "
            "It can be evaluated and distilled."
        )

    classes = None
    num_layers = num_heads = heads_per_layer = present = stacks = family = property(no_heads)
    gates = under = row_name = check_classes = check_maps = cost = no_heads

    def check_texts(self, paired: bool) -> None:
        """It reads single sentences; their pairs are references."""

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    def translate(self, texts: Sequence[str], batch: int = 128, beams: int = 1) -> list[str]:
        """Translations in the texts' order: greedy, or by a search with ``beams`` hypotheses."""
        whole_number(beams, "beams", 1, MOST_BEAMS)
        out = [""] * len(texts)
        rows = [self.source.encode(t) for t in texts]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for at in range(0, len(order), batch):
            index = order[at : at + batch]
            given = padded([rows[i] for i in index], self.device)
            if beams == 1:
                numbers = self.model.greedy(*given, begin=BEGIN, end=END, longest=self.max_length)
            else:
                numbers = beam(self.model, *given, begin=BEGIN, end=END, longest=self.max_length, width=beams)
            for i, row in zip(index, numbers.tolist(), strict=True):
                out[i] = self.target.decode(row)
        return out

    def about(self) -> dict[str, Any]:
        """What ``headviz info`` says of it."""
        config = self.model.config
        return {
            "name": self.name,
            "family": self.title,
            "layers": 0,
            "heads": 0,
            "heads_per_layer": [],
            "kind": self.kind,
            "stacks": {},
            "job": self.job,
            "labels": [],
            "answers": self.answers,
            "digest": self.digest,
            "parameters": self.parameters,
            "sizes": {name: getattr(config, name) for name in ("embedding", "hidden", "units")},
            "attention": config.attention,
            "max_length": self.max_length,
            "device": str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
        }

    def forced(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], Tensor]:
        """What the network takes when it is told the words before: source, its mask, the words before each word of the
        target, and where target words are. Then the target."""
        source, mask = padded(sources, self.device)
        gold, real = padded(targets, self.device)
        before = torch.cat([torch.full_like(gold[:, :1], BEGIN), gold[:, :-1]], 1)
        before[before == END] = BEGIN  # after the end of a sentence any word will do: its output is not used
        return (source, mask, before, real), gold

    def save(self, folder: str | Path, portable: bool = False) -> Path:
        """Write a folder that ``RnnTranslator.load`` reads back with equal translations."""
        if portable:
            raise ModelError("A recurrent translator is headviz's own, so it cannot be saved as portable.")

        record = {
            "format": FORMAT,
            "config": self.model.config.record,
            "source": self.source.words[len(SPECIAL) :],
            "target": self.target.words[len(SPECIAL) :],
        }

        def write(into: Path) -> None:
            save_file({n: p.detach().cpu().contiguous() for n, p in self.model.named_parameters()}, into / WEIGHTS)
            (into / RECORD).write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")

        return write_folder(Path(folder), write, size_of(self.model))

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> RnnTranslator:
        folder = outside_path(folder, "the model")
        record = read_json(folder / RECORD, folder)
        if record.get("format") != FORMAT:
            raise ModelError(
                f"'{folder}' has format {str(record.get('format'))[:40]}; this version of headviz reads {FORMAT}."
            )
        with naming(RECORD, folder):
            config = RnnConfig(**record["config"])
            _check_sizes(config, record, folder)
            model = Rnn(config)
        with naming(WEIGHTS, folder):
            model.load_state_dict(load_file(folder / WEIGHTS))
            model.to(device)
            words = [Vocabulary((*SPECIAL, *record[side])) for side in ("source", "target")]
        return cls(model, words[0], words[1], str(folder))


def _check_sizes(config: RnnConfig, record: Mapping[str, Any], folder: Path) -> None:
    """The network is no larger than its weights, and there are as many words as it has rows for."""
    with torch.device("meta"):  # takes no memory
        described = size_of(Rnn(config)) // 4
    if described > numbers_in(folder / WEIGHTS, folder):
        raise ModelError(f"{RECORD} of '{folder}' describes a larger network than {WEIGHTS} holds.")
    for side, rows in (("source", config.source_words), ("target", config.target_words)):
        words = record[side]
        fits = isinstance(words, list) and len(words) + len(SPECIAL) == rows and all(isinstance(w, str) for w in words)
        if not fits:
            raise ModelError(f"{RECORD} of '{folder}': {side} does not list the network's {rows:,} words.")


def open_folder(
    folder: Path, name: str, device: torch.device, dtype: torch.dtype, job: str | None = None
) -> RnnTranslator:
    """What ``headviz.load`` gives for such a folder."""
    if job not in (None, RnnTranslator.job):
        raise ModelError(f"'{name}' is a recurrent translator: it translates, and takes no other head.")
    if dtype != torch.float32:
        raise ModelError(f"'{name}' is a recurrent translator, which computes in float32 only.")
    return replace(RnnTranslator.load(folder, device), name=name)

"""A recurrent translator: network and vocabularies, saved to and read from a folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ...errors import MOST_BEAMS, ModelError, OptionError, unknown_choice, whole_number
from ...heads import TRANSLATION
from ...models.fast.linear import gpu_products
from ...models.folder_check import naming, numbers_in, read_json
from ...models.network import weight_bytes
from ...models.saving import write_folder
from ...storage.paths import outside_path
from .sentence import SENTENCE

# -----------------------------------------------------------------------------------------------
# LSTM encoder-decoder with Bahdanau attention, and the same without: the context is then the encoder states' mean.
#
# The paper's output layer reads the decoder's state alone (its eq. 2.25); ``RnnConfig.reads`` says which it is here.
# Its cell is another one, too (``RnnConfig.cell``): a plain recurrent encoder (eq. 2.14), a decoder whose gates read
# the state and the context alone, no word (eqs. 2.15-2.18), and an attention that is asked by the LSTM's cell state
# (eq. 2.21). Such a decoder does not see what it has written, so neither forcing nor a beam changes anything.
#
# The attention's energies are v_a . tanh(W_a s + U_a h). With v_a = 0 they are all zero, the softmax is uniform over
# the source's words, and the context is their mean: the teacher with v_a at zero is the student, exactly.
#
# Shapes: B sentences, W hypotheses, S source words, T target words, E embedding, H hidden, A attention units, V
# target vocabulary.


LOWEST = torch.finfo(torch.float32).min
BOTH, STATE = "state-and-context", "state"  # what the output layer reads
NORMAL, UNIFORM = "normal", "uniform"  # how embeddings are drawn; uniform also draws the biases
LSTM, PUBLISHED = "lstm", "published"  # which cell
LATER = {"reads": BOTH, "initialisation": NORMAL, "cell": LSTM}  # what fields mean that earlier versions do not have

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")

State = tuple[Tensor, Tensor]  # of the decoder: what it puts out, and the LSTM's cell


class RnnOptions(TypedDict, total=False):
    """What may be chosen of a network whose words are known; see ``RnnConfig``."""

    embedding: int
    hidden: int
    units: int
    attention: bool
    dropout: float
    reads: str
    initialisation: str
    cell: str


@dataclass(frozen=True)
class RnnConfig:
    """The network's sizes. The paper's are 512 for all three."""

    source_words: int
    target_words: int
    embedding: int = 512
    hidden: int = 512
    units: int = 512  # of the attention
    attention: bool = True
    dropout: float = 0.0
    reads: str = BOTH
    initialisation: str = NORMAL
    cell: str = LSTM

    def __post_init__(self) -> None:
        for name in ("source_words", "target_words", "embedding", "hidden", "units"):
            whole_number(getattr(self, name), name, 1)
        if not 0 <= self.dropout < 1:
            raise OptionError(f"dropout is a share below 1, not {self.dropout!r}.")
        choices = {"reads": (BOTH, STATE), "initialisation": (NORMAL, UNIFORM), "cell": (LSTM, PUBLISHED)}
        for name, valid in choices.items():
            if getattr(self, name) not in valid:
                raise OptionError(unknown_choice(name, getattr(self, name), valid))

    @property
    def record(self) -> dict[str, Any]:
        """As it is written. Later fields at their defaults are left out, so that an older model keeps its digest."""
        record = dataclasses.asdict(self)
        return {k: v for k, v in record.items() if k not in LATER or v != LATER[k]}


class Recurrent(nn.Module):
    """One LSTM layer whose weights are plain parameters, so that it can be called with others in their place.

    A ``plain`` one has no gates: tanh of a linear map of the input and the state before.
    """

    def __init__(self, inputs: int, hidden: int, plain: bool = False) -> None:
        super().__init__()
        self.hidden, self.plain = hidden, plain
        rows = hidden if plain else 4 * hidden
        self.weight_input = nn.Parameter(torch.empty(rows, inputs))
        self.weight_hidden = nn.Parameter(torch.empty(rows, hidden))
        self.bias_input = nn.Parameter(torch.empty(rows))
        self.bias_hidden = nn.Parameter(torch.empty(rows))

    def draw(self) -> None:
        for p in self.parameters():
            nn.init.uniform_(p, -(self.hidden**-0.5), self.hidden**-0.5)

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.weight_input, self.weight_hidden, self.bias_input, self.bias_hidden

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        """All hidden states [B, T, H] for inputs [B, T, ·] and a first state [B, H]."""
        options = self.weights, True, 1, 0.0, self.training, False, True
        if self.plain:
            return torch.rnn_tanh(x, h[None], *options)[0]
        return torch.lstm(x, (h[None], c[None]), *options)[0]

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        h, c = torch.lstm_cell(x, (h, c), *self.weights)
        return h, c


class Bahdanau(nn.Module):
    """Additive attention over encoder states."""

    def __init__(self, hidden: int, units: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, units, bias=False)  # W_a
        self.key = nn.Linear(hidden, units)  # U_a
        self.energy = nn.Linear(units, 1, bias=False)  # v_a

    def forward(self, state: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Probabilities [B, S] from a decoder state [B, H], projected encoder states [B, S, A] and their mask."""
        energies = self.energy(torch.tanh(self.query(state)[:, None] + keys))[..., 0]
        return energies.masked_fill(~mask, LOWEST).softmax(-1)


class Rnn(nn.Module):
    """The translator's network, with or without attention; all other weights have the same names and shapes."""

    def __init__(self, config: RnnConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.published = config.cell == PUBLISHED
        e, h = config.embedding, config.hidden
        with torch.random.fork_rng(devices=[]):  # torch's layers draw weights when they are made
            self.source = nn.Embedding(config.source_words, e)
            self.target = None if self.published else nn.Embedding(config.target_words, e)
            self.encoder = Recurrent(e, h, self.published)
            self.bridge = nn.Linear(h, h)
            self.attention = Bahdanau(h, config.units) if config.attention else None
            self.decoder = Recurrent(h if self.published else e + h, h)
            self.output = nn.Linear(2 * h if config.reads == BOTH else h, config.target_words)
            self.drop = nn.Dropout(config.dropout)
        self.draw(seed)

    def draw(self, seed: int) -> None:
        """New random weights. What a network with attention and one without share is drawn with the same numbers."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for name, module in sorted(self.named_modules()):
                if name.startswith("attention"):
                    continue
                _draw(module, self.config.initialisation)
            if self.attention is not None:
                for module in self.attention.modules():
                    _draw(module, self.config.initialisation)

    def forward(
        self, source: Tensor, mask: Tensor, previous: Tensor, places: Tensor | None = None, forcing: float = 1.0
    ) -> Tensor:
        """Logits [B, T, V] after each of the given target words [B, T]; with ``places`` [B, T], of these alone [n, V].

        The output layer is most of the work, so places of padding are better not asked for. ``forcing`` is the share
        of places that get the given word; the others get the likeliest word after the place before.
        """
        states = self.encode(source)
        if forcing < 1:
            return self._free_running(states, mask, previous, places, forcing)
        state = self.first(states, mask)
        words = self.words(previous)
        if self.attention is None:
            context = mean_of(states, mask)[:, None].expand(-1, previous.shape[1], -1)
            out = self.decoder(context if words is None else torch.cat([words, context], -1), *state)
            return self.read(out, context, places)
        keys = self.keys(states)
        outs, contexts = [], []
        for t in range(previous.shape[1]):
            state, context = self.step(None if words is None else words[:, t], state, keys, states, mask)
            outs.append(state[0])
            contexts.append(context)
        return self.read(torch.stack(outs, 1), torch.stack(contexts, 1), places)

    def _free_running(
        self, states: Tensor, mask: Tensor, previous: Tensor, places: Tensor | None, forcing: float
    ) -> Tensor:
        """The forward pass word by word, with the model's own words at some places, drawn from torch's generator."""
        state = self.first(states, mask)
        keys = self.keys(states)
        forced = torch.rand(previous.shape, device=previous.device) < forcing
        word = previous[:, 0]
        steps: list[Tensor] = []
        for t in range(previous.shape[1]):
            if t:
                word = torch.where(forced[:, t], previous[:, t], steps[-1].detach().argmax(-1))
            state, context = self.step(self.words(word), state, keys, states, mask)
            steps.append(self.read(state[0], context))
        logits = torch.stack(steps, 1)
        return logits if places is None else logits[places]

    def words(self, numbers: Tensor) -> Tensor | None:
        """What the decoder reads of words; a published cell reads none."""
        return None if self.target is None else self.drop(self.target(numbers))

    def step(
        self, word: Tensor | None, state: State, keys: Tensor | None, states: Tensor, mask: Tensor
    ) -> tuple[State, Tensor]:
        """The decoder's next state, and the context that it has read."""
        h, c = state
        context = self.look(c if self.published else h, keys, states, mask)
        return self.decoder.step(context if word is None else torch.cat([word, context], -1), h, c), context

    def keys(self, states: Tensor) -> Tensor | None:
        """What the attention compares a decoder's state with: the projected encoder states."""
        return None if self.attention is None else self.attention.key(states)

    def look(self, query: Tensor, keys: Tensor | None, states: Tensor, mask: Tensor) -> Tensor:
        """The context [B, H] for what asks the attention."""
        if self.attention is None or keys is None:
            return mean_of(states, mask)
        return (self.attention(query, keys, mask)[:, None] @ states)[:, 0]

    def read(self, out: Tensor, context: Tensor, places: Tensor | None = None) -> Tensor:
        """Logits of the decoder's states, and of the context where the output layer reads it."""
        seen = self.drop(out)
        if self.config.reads == BOTH:
            seen = torch.cat([seen, context], -1)
        return self.output(seen if places is None else seen[places])

    def encode(self, source: Tensor) -> Tensor:
        """Encoder states [B, S, H]. Padding stands behind the words, so it cannot reach their states."""
        words = self.drop(self.source(source))
        zero = words.new_zeros(len(source), self.config.hidden)
        return self.encoder(words, zero, zero)

    def first(self, states: Tensor, mask: Tensor) -> State:
        """The decoder's first state, from the encoder's last."""
        last = states[torch.arange(len(states)), mask.sum(1) - 1]
        return torch.tanh(self.bridge(last)), torch.zeros_like(last)

    @torch.no_grad()
    def greedy(self, source: Tensor, mask: Tensor, longest: int) -> Tensor:
        """The likeliest next word, again and again: [B, at most ``longest``], with END and whatever follows it."""
        states = self.encode(source)
        state = self.first(states, mask)
        keys = self.keys(states)
        word = torch.full((len(source),), BEGIN, dtype=torch.long, device=source.device)
        done = torch.zeros_like(word, dtype=torch.bool)
        words = []
        for _ in range(longest):
            state, context = self.step(self.words(word), state, keys, states, mask)
            word = self.read(state[0], context).argmax(-1)
            words.append(word)
            done |= word == END
            if bool(done.all()):
                break
        return torch.stack(words, 1)


def mean_of(states: Tensor, mask: Tensor) -> Tensor:
    """The mean [B, H] of the states of real words."""
    weight = mask.to(states.dtype)
    return (weight[:, None] @ states)[:, 0] / weight.sum(1, keepdim=True)


def _draw(module: nn.Module, initialisation: str) -> None:
    uniform = initialisation == UNIFORM
    if isinstance(module, Recurrent):
        module.draw()
    elif isinstance(module, nn.Embedding):
        bound = module.embedding_dim**-0.5
        if uniform:
            nn.init.uniform_(module.weight, -bound, bound)
        else:
            nn.init.normal_(module.weight, std=bound)
    elif isinstance(module, nn.Linear):
        bound = module.in_features**-0.5
        nn.init.uniform_(module.weight, -bound, bound)
        if module.bias is not None and uniform:
            nn.init.uniform_(module.bias, -bound, bound)
        elif module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def beam(model: Rnn, source: Tensor, mask: Tensor, longest: int, width: int) -> Tensor:
    """The best translations [B, at most ``longest``], with END where and after they end.

    A hypothesis that has ended keeps its place among the others, so a beam of every possible translation finds the
    best one. Hypotheses compete by their log-probability; of those left at the end, the best per word is taken, as in
    the beam search of the other translation models.
    """
    states = model.encode(source)
    h, c = model.first(states, mask)
    # every sentence W times, one below the other
    states, mask, h, c = (t.repeat_interleave(width, 0) for t in (states, mask, h, c))
    keys, count = model.keys(states), len(source)
    scores = h.new_full((count, width), -torch.inf)
    scores[:, 0] = 0.0  # the hypotheses are all the same at first: only one may go on
    words = source.new_empty(count, width, 0)
    word = source.new_full((count * width,), BEGIN)
    ended = torch.zeros(count, width, dtype=torch.bool, device=source.device)
    lengths = source.new_zeros(count, width)
    offset = torch.arange(count, device=source.device)[:, None] * width
    for _ in range(longest):
        (h, c), context = model.step(model.words(word), (h, c), keys, states, mask)
        gains = model.read(h, context).log_softmax(-1).view(count, width, -1)
        gains[ended] = -torch.inf
        gains[..., END] = gains[..., END].masked_fill(ended, 0.0)  # an ended hypothesis goes on unchanged
        size = gains.shape[-1]
        scores, chosen = (scores[..., None] + gains).flatten(1).topk(width, 1)  # [B, W]
        origin, new = chosen // size, chosen % size
        lengths = (lengths + (~ended)).gather(1, origin)
        ended = ended.gather(1, origin) | (new == END)
        words = torch.cat([words.gather(1, origin[..., None].expand_as(words)), new[..., None]], -1)
        rows = (offset + origin).flatten()
        h, c, word = h[rows], c[rows], new.flatten()
        if bool(ended.all()):
            break
    best = (scores / lengths).argmax(1)
    return words[torch.arange(count, device=source.device), best]


# -----------------------------------------------------------------------------------------------


RECORD = "rnn.json"
WEIGHTS = "rnn.safetensors"
FORMAT = 1
LONGEST = 64


def words_of(text: str) -> list[str]:
    """Words and single punctuation marks."""
    return re.findall(r"\w+|[^\w\s]", text)


@dataclass(frozen=True)
class Vocabulary:
    """Words by number; the first four are special."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Vocabulary:
        """Every word of the texts, most frequent first, ties in alphabetical order."""
        counts = Counter(w for t in texts for w in words_of(t))
        return cls((*SPECIAL, *sorted(counts, key=lambda w: (-counts[w], w))))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {w: i for i, w in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        return [self.numbers.get(w, UNKNOWN) for w in words_of(text)] + [END]

    def decode(self, numbers: Iterable[int]) -> str:
        """The words in front of the first END as a sentence, without a space before . , ; : ! ?"""
        words = [self.words[n] for n in takewhile(lambda n: n != END, numbers) if n not in (PAD, BEGIN)]
        return re.sub(r" ([.,;:!?])", r"\1", " ".join(words))


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Right-padded numbers [B, S] and the mask of what is real."""
    numbers = pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(numbers.shape[1]) < lengths[:, None]
    return numbers.to(device), mask.to(device)


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
    num_layers = num_heads = heads_per_layer = present = stacks = row_names = family = property(no_heads)
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
            source = padded([rows[i] for i in index], self.device)
            with gpu_products(self.device):
                if beams == 1:
                    numbers = self.model.greedy(*source, longest=self.max_length)
                else:
                    numbers = beam(self.model, *source, longest=self.max_length, width=beams)
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
        """What the network takes with teacher forcing: source, its mask, the words before each word of the
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

        return write_folder(Path(folder), write, weight_bytes(self.model))

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
            source, target = (Vocabulary((*SPECIAL, *record[side])) for side in ("source", "target"))
        return cls(model, source, target, str(folder))


def _check_sizes(config: RnnConfig, record: Mapping[str, Any], folder: Path) -> None:
    """The network is no larger than its weights, and there are as many words as it has rows for."""
    with torch.device("meta"):  # takes no memory
        described = weight_bytes(Rnn(config)) // 4
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

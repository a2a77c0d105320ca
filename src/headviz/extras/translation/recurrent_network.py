"""LSTM encoder-decoder with Bahdanau attention, and the same without: the context is then the encoder states' mean.

The paper's output layer reads the decoder's state alone (its eq. 2.25); ``RnnConfig.reads`` says which it is here.

The attention's energies are v_a . tanh(W_a s + U_a h). With v_a = 0 they are all zero, the softmax is uniform over
the source's words, and the context is their mean: the teacher with v_a at zero is the student, exactly.

Shapes: B sentences, W hypotheses, S source words, T target words, E embedding, H hidden, A attention units, V target
vocabulary.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from ...errors import OptionError, unknown_choice, whole_number

LOWEST = torch.finfo(torch.float32).min
BOTH, STATE = "state-and-context", "state"  # what the output layer reads
NORMAL, UNIFORM = "normal", "uniform"  # how embeddings are drawn; uniform also draws the biases
LATER = {"reads": BOTH, "initialisation": NORMAL}  # fields that earlier versions do not have, as they had it


class RnnOptions(TypedDict, total=False):
    """What may be chosen of a network whose words are known; see ``RnnConfig``."""

    embedding: int
    hidden: int
    units: int
    attention: bool
    dropout: float
    reads: str
    initialisation: str


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

    def __post_init__(self) -> None:
        for name in ("source_words", "target_words", "embedding", "hidden", "units"):
            whole_number(getattr(self, name), name, 1)
        if not 0 <= self.dropout < 1:
            raise OptionError(f"dropout is a share below 1, not {self.dropout!r}.")
        for name, valid in (("reads", (BOTH, STATE)), ("initialisation", (NORMAL, UNIFORM))):
            if getattr(self, name) not in valid:
                raise OptionError(unknown_choice(name, getattr(self, name), valid))

    @property
    def record(self) -> dict[str, Any]:
        """As it is written. Later fields at their defaults are left out, so that an older model keeps its digest."""
        found = dataclasses.asdict(self)
        return {k: v for k, v in found.items() if k not in LATER or v != LATER[k]}


class Recurrent(nn.Module):
    """One LSTM layer whose weights are plain parameters, so that it can be called with others in their place."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.weight_input = nn.Parameter(torch.empty(4 * hidden, inputs))
        self.weight_hidden = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.bias_input = nn.Parameter(torch.empty(4 * hidden))
        self.bias_hidden = nn.Parameter(torch.empty(4 * hidden))

    def draw(self) -> None:
        for p in self.parameters():
            nn.init.uniform_(p, -(self.hidden**-0.5), self.hidden**-0.5)

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.weight_input, self.weight_hidden, self.bias_input, self.bias_hidden

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        """All hidden states [B, T, H] for inputs [B, T, ·] and a first state [B, H]."""
        out, _, _ = torch.lstm(x, (h[None], c[None]), self.weights, True, 1, 0.0, self.training, False, True)
        return out

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
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
        with torch.random.fork_rng(devices=[]):  # torch's layers draw weights when they are made
            self._make(config)
        self.draw(seed)

    def _make(self, config: RnnConfig) -> None:
        e, h = config.embedding, config.hidden
        self.source = nn.Embedding(config.source_words, e)
        self.target = nn.Embedding(config.target_words, e)
        self.encoder = Recurrent(e, h)
        self.bridge = nn.Linear(h, h)
        self.attention = Bahdanau(h, config.units) if config.attention else None
        self.decoder = Recurrent(e + h, h)
        self.output = nn.Linear(2 * h if config.reads == BOTH else h, config.target_words)
        self.drop = nn.Dropout(config.dropout)

    def draw(self, seed: int) -> None:
        """New random weights. What a network with attention and one without share is drawn alike."""
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
        self, source: Tensor, mask: Tensor, given: Tensor, wanted: Tensor | None = None, forcing: float = 1.0
    ) -> Tensor:
        """Logits [B, T, V] after each of the given target words [B, T]; those of the ``wanted`` places [n, V] alone.

        The output layer is most of the work, so places of padding are better not asked for. ``forcing`` is the share
        of places that get the given word; the others get the likeliest word after the place before.
        """
        states = self.encode(source)
        if forcing < 1:
            return self._free(states, mask, given, wanted, forcing)
        h, c = self.first(states, mask)
        words = self.drop(self.target(given))
        if self.attention is None:
            context = mean_of(states, mask)[:, None].expand(-1, given.shape[1], -1)
            out = self.decoder(torch.cat([words, context], -1), h, c)
            return self.read(out, context, wanted)
        keys = self.keys(states)
        outs, contexts = [], []
        for t in range(given.shape[1]):
            context = self.look(h, keys, states, mask)
            h, c = self.decoder.step(torch.cat([words[:, t], context], -1), h, c)
            outs.append(h)
            contexts.append(context)
        return self.read(torch.stack(outs, 1), torch.stack(contexts, 1), wanted)

    def _free(self, states: Tensor, mask: Tensor, given: Tensor, wanted: Tensor | None, forcing: float) -> Tensor:
        """The forward pass word by word, with the model's own words at some places, drawn from torch's generator."""
        h, c = self.first(states, mask)
        keys = self.keys(states)
        forced = torch.rand(given.shape, device=given.device) < forcing
        word = given[:, 0]
        found: list[Tensor] = []
        for t in range(given.shape[1]):
            if t:
                word = torch.where(forced[:, t], given[:, t], found[-1].detach().argmax(-1))
            context = self.look(h, keys, states, mask)
            h, c = self.decoder.step(torch.cat([self.drop(self.target(word)), context], -1), h, c)
            found.append(self.read(h, context))
        logits = torch.stack(found, 1)
        return logits if wanted is None else logits[wanted]

    def keys(self, states: Tensor) -> Tensor | None:
        """What the attention compares a decoder's state with: the projected encoder states."""
        return None if self.attention is None else self.attention.key(states)

    def look(self, h: Tensor, keys: Tensor | None, states: Tensor, mask: Tensor) -> Tensor:
        """The context [B, H] for a decoder's state."""
        if self.attention is None or keys is None:
            return mean_of(states, mask)
        return (self.attention(h, keys, mask)[:, None] @ states)[:, 0]

    def read(self, out: Tensor, context: Tensor, wanted: Tensor | None = None) -> Tensor:
        """Logits of the decoder's states, and of the context where the output layer reads it."""
        seen = self.drop(out)
        if self.config.reads == BOTH:
            seen = torch.cat([seen, context], -1)
        return self.output(seen if wanted is None else seen[wanted])

    def encode(self, source: Tensor) -> Tensor:
        """Encoder states [B, S, H]. Padding stands behind the words, so it cannot reach their states."""
        words = self.drop(self.source(source))
        zero = words.new_zeros(len(source), self.config.hidden)
        return self.encoder(words, zero, zero)

    def first(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The decoder's first state, from the encoder's last."""
        last = states[torch.arange(len(states)), mask.sum(1) - 1]
        return torch.tanh(self.bridge(last)), torch.zeros_like(last)

    @torch.no_grad()
    def greedy(self, source: Tensor, mask: Tensor, begin: int, end: int, longest: int) -> Tensor:
        """The likeliest next word, again and again: [B, at most ``longest``], with ``end`` and whatever follows it."""
        states = self.encode(source)
        h, c = self.first(states, mask)
        keys = self.keys(states)
        word = torch.full((len(source),), begin, dtype=torch.long, device=source.device)
        done = torch.zeros_like(word, dtype=torch.bool)
        words = []
        for _ in range(longest):
            context = self.look(h, keys, states, mask)
            h, c = self.decoder.step(torch.cat([self.target(word), context], -1), h, c)
            word = self.read(h, context).argmax(-1)
            words.append(word)
            done |= word == end
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
def beam(model: Rnn, source: Tensor, mask: Tensor, begin: int, end: int, longest: int, width: int) -> Tensor:
    """The best translations [B, at most ``longest``], with ``end`` where and after they end.

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
    word = source.new_full((count * width,), begin)
    ended = torch.zeros(count, width, dtype=torch.bool, device=source.device)
    lengths = source.new_zeros(count, width)
    offset = torch.arange(count, device=source.device)[:, None] * width
    for _ in range(longest):
        context = model.look(h, keys, states, mask)
        h, c = model.decoder.step(torch.cat([model.target(word), context], -1), h, c)
        gains = model.read(h, context).log_softmax(-1).view(count, width, -1)
        gains[ended] = -torch.inf
        gains[..., end] = gains[..., end].masked_fill(ended, 0.0)  # an ended hypothesis goes on unchanged
        size = gains.shape[-1]
        scores, chosen = (scores[..., None] + gains).flatten(1).topk(width, 1)  # [B, W]
        origin, new = chosen // size, chosen % size
        lengths = (lengths + (~ended)).gather(1, origin)
        ended = ended.gather(1, origin) | (new == end)
        words = torch.cat([words.gather(1, origin[..., None].expand_as(words)), new[..., None]], -1)
        rows = (offset + origin).flatten()
        h, c, word = h[rows], c[rows], new.flatten()
        if bool(ended.all()):
            break
    best = (scores / lengths).argmax(1)
    return words[torch.arange(count, device=source.device), best]

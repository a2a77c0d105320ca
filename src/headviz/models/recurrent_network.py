"""LSTM encoder-decoder with Bahdanau attention, and the same without: the context is then the encoder states' mean.

The attention's energies are v_a . tanh(W_a s + U_a h). With v_a = 0 they are all zero, the softmax is uniform over
the source's words, and the context is their mean: the teacher with v_a at zero is the student, exactly.

Shapes: B sentences, S source words, T target words, E embedding, H hidden, A attention units, V target vocabulary.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import OptionError

LOWEST = torch.finfo(torch.float32).min


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

    def __post_init__(self) -> None:
        for name in ("source_words", "target_words", "embedding", "hidden", "units"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"{name} is a whole number of at least 1, not {value!r}.")
        if not 0 <= self.dropout < 1:
            raise OptionError(f"dropout is a share below 1, not {self.dropout!r}.")


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
        self.output = nn.Linear(2 * h, config.target_words)
        self.drop = nn.Dropout(config.dropout)

    def draw(self, seed: int) -> None:
        """New random weights. What a network with attention and one without share is drawn alike."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for name, module in sorted(self.named_modules()):
                if name.startswith("attention"):
                    continue
                _draw(module)
            if self.attention is not None:
                for module in self.attention.modules():
                    _draw(module)

    def forward(self, source: Tensor, mask: Tensor, given: Tensor, wanted: Tensor | None = None) -> Tensor:
        """Logits [B, T, V] after each of the given target words [B, T]; those of the ``wanted`` places [n, V] alone.

        The output layer is most of the work, so places of padding are better not asked for.
        """
        states = self.encode(source)
        h, c = self.first(states, mask)
        words = self.drop(self.target(given))
        if self.attention is None:
            context = mean_of(states, mask)[:, None].expand(-1, given.shape[1], -1)
            out = self.decoder(torch.cat([words, context], -1), h, c)
            return self._read(out, context, wanted)
        keys = self.attention.key(states)
        outs, contexts = [], []
        for t in range(given.shape[1]):
            context = (self.attention(h, keys, mask)[:, None] @ states)[:, 0]
            h, c = self.decoder.step(torch.cat([words[:, t], context], -1), h, c)
            outs.append(h)
            contexts.append(context)
        out, context = torch.stack(outs, 1), torch.stack(contexts, 1)
        return self._read(out, context, wanted)

    def _read(self, out: Tensor, context: Tensor, wanted: Tensor | None) -> Tensor:
        both = torch.cat([self.drop(out), context], -1)
        return self.output(both if wanted is None else both[wanted])

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
        keys = None if self.attention is None else self.attention.key(states)
        context = mean_of(states, mask)
        word = torch.full((len(source),), begin, dtype=torch.long, device=source.device)
        done = torch.zeros_like(word, dtype=torch.bool)
        words = []
        for _ in range(longest):
            if self.attention is not None:
                context = (self.attention(h, keys, mask)[:, None] @ states)[:, 0]
            h, c = self.decoder.step(torch.cat([self.target(word), context], -1), h, c)
            word = self.output(torch.cat([h, context], -1)).argmax(-1)
            words.append(word)
            done |= word == end
            if bool(done.all()):
                break
        return torch.stack(words, 1)


def mean_of(states: Tensor, mask: Tensor) -> Tensor:
    """The mean [B, H] of the states of real words."""
    weight = mask.to(states.dtype)
    return (weight[:, None] @ states)[:, 0] / weight.sum(1, keepdim=True)


def _draw(module: nn.Module) -> None:
    if isinstance(module, Recurrent):
        module.draw()
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    elif isinstance(module, nn.Linear):
        nn.init.uniform_(module.weight, -(module.in_features**-0.5), module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def redrawn(model: Rnn, seed: int) -> Rnn:
    """A copy with new random weights."""
    own = copy.deepcopy(model)
    own.draw(seed)
    return own

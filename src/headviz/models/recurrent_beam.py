"""Beam search of a recurrent translator.

A hypothesis that has ended keeps its place among the others, so a beam of every possible translation finds the best
one. Hypotheses compete by their log-probability; of those left at the end, the best per word is taken, as in the beam
search of the other translation models.

Shapes: B sentences, W hypotheses, S source words, T target words, H hidden, V target vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .recurrent_network import Rnn


@torch.no_grad()
def beam(model: Rnn, source: Tensor, mask: Tensor, begin: int, end: int, longest: int, width: int) -> Tensor:
    """The best translations found [B, at most ``longest``], with ``end`` where and after they end."""
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

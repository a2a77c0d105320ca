"""Taking the attention out of an LSTM encoder-decoder."""

from __future__ import annotations

import dataclasses

import torch

from ...errors import ModelError
from ...models.layer_removal import Piece
from ...models.recurrent_network import Rnn
from .partition import Partition

ZEROED = {
    "": ("energy.weight",),  # Theorem 3
    "2": ("energy.weight", "query.weight", "key.weight", "key.bias"),  # nothing is left over
    "4": ("query.weight", "key.weight"),
    "keys": ("key.weight",),  # none of the paper's
}


def without_attention(model: Rnn, by: str = "") -> tuple[Rnn, Partition]:
    """The student with the teacher's weights, and the partition: ``ZEROED``, and the rest of the attention.

    All of them give every source word the same energy.
    """
    if model.attention is None:
        raise ModelError("This translator has no attention that could be removed.")
    student = Rnn(dataclasses.replace(model.config, attention=False))
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, p in student.named_parameters():
            p.copy_(weights[name])
    shapes = {name: p.shape for name, p in weights.items()}
    kept = {name: Piece(name) for name, _ in student.named_parameters()}
    return student.eval(), Partition(shapes, kept, tuple(Piece(f"attention.{name}") for name in ZEROED[by]))

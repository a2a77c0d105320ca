"""Taking the attention out of an LSTM encoder-decoder."""

from __future__ import annotations

import dataclasses

import torch

from ...errors import ModelError
from ...models.layer_removal import Piece
from ...models.recurrent_network import Rnn
from .partition import Partition


def without_attention(model: Rnn, by: str = "") -> tuple[Rnn, Partition]:
    """The student with the teacher's weights, and the partition: v2 is v_a, v1 is W_a and U_a.

    By ``keys`` it is the other way round: with U_a at zero all source words have the same energy, too.
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
    zeroed = Piece("attention.key.weight" if by == "keys" else "attention.energy.weight")
    return student.eval(), Partition(shapes, kept, (zeroed,))

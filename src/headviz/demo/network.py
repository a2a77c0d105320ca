"""The demo network: its shape, how it grows from 6 to 12 layers, and gates on its heads while it is trained."""

import math
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from .example import LABELS

LAYERS, HEADS, HIDDEN, INTERMEDIATE, POSITIONS = 12, 12, 96, 192, 64


def configuration(vocabulary: int, layers: int = LAYERS) -> BertConfig:
    """BERT's architecture at 8 dimensions per head, without dropout: no head is trained to have a spare."""
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        intermediate_size=INTERMEDIATE,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )


@torch.no_grad()
def grow(small: BertForMaskedLM) -> BertForMaskedLM:
    """A network of twice the depth that computes (almost) the same: each layer is followed by one that adds nothing.

    A new layer's two output matrices are zero, and its layer norms restore mean and spread as they find them.
    """
    layers = small.config.num_hidden_layers
    big = BertForMaskedLM(configuration(small.config.vocab_size, 2 * layers))
    big.bert.embeddings.load_state_dict(small.bert.embeddings.state_dict())
    big.cls.load_state_dict(small.cls.state_dict())
    for index, layer in enumerate(small.bert.encoder.layer):
        big.bert.encoder.layer[2 * index].load_state_dict(layer.state_dict())
        new: Any = big.bert.encoder.layer[2 * index + 1]
        norm = layer.output.LayerNorm
        spread = math.sqrt(float(norm.weight.square().mean() + norm.bias.var(correction=0)))
        for part in (new.attention.output, new.output):
            part.dense.weight.zero_()
            part.dense.bias.zero_()
            part.LayerNorm.weight.fill_(spread)
            part.LayerNorm.bias.fill_(float(norm.bias.mean()))
    return big


class HeadGates(nn.Module):
    """A factor per head, learned with a price on every head left open (hard concrete, Louizos et al. 2018)."""

    def __init__(self, model: BertForSequenceClassification, start: float = 2.0) -> None:
        super().__init__()
        layers = model.config.num_hidden_layers
        self.log_alpha = nn.Parameter(torch.full((layers, HEADS), start))
        self.sampled = torch.ones(layers, HEADS)
        for index, layer in enumerate(model.bert.encoder.layer):
            layer.attention.output.dense.register_forward_pre_hook(self._hook(index))

    def _hook(self, index: int) -> Any:
        def scale(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
            context = inputs[0]  # [batch, tokens, hidden]
            return (context * self.sampled[index].repeat_interleave(HIDDEN // HEADS),)

        return scale

    def sample(self, generator: torch.Generator | None) -> None:
        """Draw this step's gates; without a generator, take their settled values."""
        if generator is None:
            s = torch.sigmoid(self.log_alpha)
        else:
            u = torch.rand(self.log_alpha.shape, generator=generator).clamp(1e-6, 1 - 1e-6)
            s = torch.sigmoid((u.log() - (1 - u).log() + self.log_alpha) / 0.66)
        self.sampled = (s * 1.2 - 0.1).clamp(0, 1)

    def price(self) -> torch.Tensor:
        """The expected number of open heads."""
        return torch.sigmoid(self.log_alpha - 0.66 * math.log(0.1 / 1.1)).sum()

    @torch.no_grad()
    def fold(self, model: BertForSequenceClassification) -> None:
        """Multiply the settled gates into the output matrices and leave them all at one."""
        self.sample(None)
        for index, layer in enumerate(model.bert.encoder.layer):
            layer.attention.output.dense.weight.mul_(self.sampled[index].repeat_interleave(HIDDEN // HEADS))
        self.sampled = torch.ones_like(self.sampled)

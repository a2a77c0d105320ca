"""The demo network: its shape, how it grows from 6 to 12 layers, and gates on its heads while it is trained."""

import math
import re
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM

from headviz.attention import NAME, HeadCall
from headviz.demo.reading import LABELS
from headviz.heads import ENCODER
from headviz.models.families import family_of

LAYERS, HEADS, HIDDEN, INTERMEDIATE, POSITIONS = 12, 12, 96, 192, 64
_BERT = family_of("bert")
_LAYERS, _OUTPUT = _BERT.layers[ENCODER].modules, _BERT.attention[ENCODER].output


def configuration(vocabulary: int, layers: int = LAYERS) -> BertConfig:
    """BERT's architecture at 8 dimensions per head, without dropout: no head is trained to have a spare."""
    config = BertConfig(
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
    config._attn_implementation = NAME
    return config


@torch.no_grad()
def grow(small: BertForMaskedLM) -> BertForMaskedLM:
    """A network of twice the depth that computes (almost) the same: each layer is followed by one that adds nothing.

    A new layer's two output matrices are zero, and its layer norms restore mean and spread as they find them.
    """
    old = small.state_dict()
    big = BertForMaskedLM(configuration(small.config.vocab_size, 2 * small.config.num_hidden_layers))
    new = big.state_dict()
    place = re.compile(rf"(.*{re.escape(_LAYERS)}\.)(\d+)\.(.*)")
    for name in new:
        match = place.fullmatch(name)
        if match is None:
            new[name] = old[name]
            continue
        layer, rest = int(match[2]), match[3]
        if layer % 2 == 0:
            new[name] = old[f"{match[1]}{layer // 2}.{rest}"]
        elif {"output", "dense"} <= set(rest.split(".")):
            new[name] = torch.zeros_like(new[name])
        elif "LayerNorm" in rest:
            last = f"{match[1]}{layer // 2}.output.LayerNorm"
            gain, shift = old[f"{last}.weight"], old[f"{last}.bias"]
            spread = math.sqrt(float(gain.square().mean() + shift.var(correction=0)))
            new[name] = torch.full_like(gain, spread if rest.endswith("weight") else float(shift.mean()))
    big.load_state_dict(new)
    return big


class HeadGates(nn.Module):
    """A factor per head, learned with a price on every head left open (hard concrete, Louizos et al. 2018)."""

    def __init__(self, layers: int = LAYERS, start: float = 2.0) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((layers, HEADS), start))

    def sampled(self, generator: torch.Generator) -> torch.Tensor:
        """One draw of all gates, [layers, heads]."""
        u = torch.rand(self.log_alpha.shape, generator=generator).clamp(1e-6, 1 - 1e-6)
        s = torch.sigmoid((u.log() - (1 - u).log() + self.log_alpha) / 0.66)
        return (s * 1.2 - 0.1).clamp(0, 1)

    @torch.no_grad()
    def settled(self, floor: float = 0.0) -> torch.Tensor:
        """The gates without noise, none of them below `floor`; [layers, heads]."""
        return (torch.sigmoid(self.log_alpha) * 1.2 - 0.1).clamp(floor, 1)

    def price(self) -> torch.Tensor:
        """The expected share of open heads."""
        return torch.sigmoid(self.log_alpha - 0.66 * math.log(0.1 / 1.1)).mean()


def gated(gates: torch.Tensor | None, layers: int = LAYERS) -> HeadCall:
    """One forward pass with these gates; None leaves every head as it is."""
    if gates is None:
        return HeadCall((None,) * layers)
    return HeadCall(tuple(row.view(1, -1, 1, 1) for row in gates))


@torch.no_grad()
def fold(model: Any, gates: torch.Tensor) -> None:
    """Multiply gates into the output matrices, so that the model needs them no longer."""
    weights = dict(model.named_parameters())
    for layer, row in enumerate(gates):
        name = f"{model.base_model_prefix}.{_OUTPUT.format(i=layer)}.weight"
        weights[name].mul_(row.repeat_interleave(HIDDEN // HEADS))  # [hidden, hidden] columns are heads

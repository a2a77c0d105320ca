"""Encoder-decoder models that classify: the decoder reads the text again, one place later; its last state answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .sheet import Forward

WHY_NO_MAPS = "its decoder reads the text one place later, so its maps have other tokens at their sides"


def shifted(last_in_front: bool = False) -> Forward:
    """How to run one: transformers takes token ids only, so with embeddings we shift these ourselves.

    A decoder begins with a token of its own, or with the text's last one (``last_in_front``, mBART).
    """

    def forward(model: Any, batch: Mapping[str, Tensor], keywords: Mapping[str, Any]) -> Tensor:
        if "inputs_embeds" not in batch:
            logits: Tensor = model(**batch, use_cache=False, **keywords).logits
            return logits
        words = batch["inputs_embeds"]
        rows = torch.arange(len(words), device=words.device)
        last = batch["attention_mask"].sum(dim=1) - 1
        if last_in_front:
            first = words[rows, last]
        else:
            start = torch.full_like(last, model.config.decoder_start_token_id)
            first = model.get_input_embeddings()(start)
        shifted_words = torch.cat([first[:, None], words[:, :-1]], dim=1)
        states = model.base_model(**batch, decoder_inputs_embeds=shifted_words, use_cache=False, **keywords)[0]
        found: Tensor = model.classification_head(states[rows, last])
        return found

    return forward

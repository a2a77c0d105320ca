"""Attention of headviz's own, for families whose modules never call transformers' attention interface.

A class of ours goes in front of the module's own class, so that weights, names and everything but ``forward`` stay.
A model in which such a module would be passed over raises: the number of calls is checked after every pass.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from torch import Tensor, nn

from ...attention import HeadCall, headviz_attention, running_call


class OwnAttention:
    """What attention modules of ours share. ``replaces`` names transformers' class."""

    replaces: str

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scaling: float,
        bias: Tensor | None,
        wanted: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """([B, Q, heads · d], probabilities if ``wanted``) of [B, h, T, d] under the call that is running."""
        module: Any = self
        dropout = module.dropout.p if module.training else 0.0
        call = running_call() or (HeadCall((None,), "eager") if wanted else None)
        out, probs = headviz_attention(
            module, query, key, value, mask, scaling, dropout, headviz=call, position_bias=bias
        )
        return out.flatten(2), probs


def put_in(model: nn.Module, own: type[OwnAttention]) -> None:
    """Give every attention module of a model our ``forward``. In place; a second time changes nothing."""
    for module in model.modules():
        if type(module).__name__ == own.replaces and not isinstance(module, own):
            theirs: Any = type(module)
            module.__class__ = _joined(cast(Any, own), theirs)


@cache
def _joined(own: type[OwnAttention], theirs: type) -> type:
    return type(theirs.__name__, (own, theirs), {})

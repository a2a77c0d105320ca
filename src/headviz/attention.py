"""The attention function headviz registers with transformers: masks go in, probabilities come out.

A model loaded with ``attn_implementation="headviz"`` calls ``headviz_attention`` in every layer.
What one forward pass wants is one ``HeadCall``, passed as the keyword ``headviz=call``; without it
the pass is plain sdpa attention. Nothing is hooked and nothing is shared between calls, so threads
may run one model under different masks at the same time.

Shapes: B examples, h heads present in the layer, Q queries, K keys, d head size.

A *row* is one attention module's heads in the grid. In an encoder classifier rows are layers and run in their order;
in a translation model they run in another order, and those of the decoder once for each new token (``RunOrder``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
import transformers
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

from .errors import ModelError
from .heads import HeadMask

# transformers loads its modules at first use, and two threads that do so at once meet half-loaded ones. So everyone
# takes transformers from here: Python lets one thread load this module, and all others wait until it is there.
for _name in (
    "AutoConfig",
    "AutoModelForMaskedLM",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSequenceClassification",
    "AutoTokenizer",
    "DynamicCache",
    "EncoderDecoderCache",
    "GenerationConfig",
    "PreTrainedModel",
):
    getattr(transformers, _name)

NAME = "headviz"
Kernel = Literal["sdpa", "eager"]


class Filled(NamedTuple):
    """Gates of a layer in which something stands in the place of heads that are off: ``factor``·head + ``add``."""

    factor: Tensor  # [1, h, 1, 1]
    add: Tensor  # [1, h, 1, d], 0 for heads that are on; for single texts [B, h, Q, d], in packed stages rows [N, h·d]


# One factor per head of a layer, broadcast over [B, h, Q, d]; None = every head as it is.
Gate = Tensor | Filled | None


def factor_of(gate: Gate) -> Tensor | None:
    """What a gate multiplies heads with; None = nothing."""
    return gate.factor if isinstance(gate, Filled) else gate


def gate_of(factor: Tensor, stands: Tensor | None) -> Gate:
    """factor·head + (1 − factor)·``stands``, which is what stands in the heads' place; None = nothing."""
    return factor if stands is None else Filled(factor, (1 - factor) * stands)


@dataclass(frozen=True)
class RunOrder:
    """The rows in the order in which their modules run: ``once``, then ``cycle`` as often as the decoder steps."""

    once: tuple[int, ...]
    cycle: tuple[int, ...]

    def row(self, step: int) -> int:
        """The row of the attention module that runs as number ``step``."""
        decoder_step = step - len(self.once)
        return self.once[step] if decoder_step < 0 else self.cycle[decoder_step % len(self.cycle)]

    def complete(self, steps: int) -> bool:
        """Whether this many steps are the encoder and whole passes of the decoder, at least one."""
        decoder_steps = steps - len(self.once)
        return decoder_steps > 0 and decoder_steps % len(self.cycle) == 0


@dataclass
class HeadCall:
    """What one forward pass asks of its attention, and what it got back.

    Use one object per forward pass, or per translated batch. Layers take their entry in the order in
    which they run, which also serves families whose layers share one module (ALBERT); ``layer`` may be
    set beforehand when a pass starts in the middle of the model.
    """

    gates: tuple[Gate, ...]
    kernel: Kernel = "sdpa"
    keep_probs: bool = False  # implies the eager kernel: sdpa never forms the probabilities
    keep_outputs: bool = False
    edit_probs: Callable[[int, Tensor], Tensor] | None = None  # (row, [B, h, Q, K]) -> the same shape
    edit_outputs: Callable[[int, Tensor], Tensor] | None = None  # (row, [B, h, Q, d] before the gate) -> the same shape
    # (row, queries, keys, values of each head [B, h, T, d]) -> the same shapes
    edit_inputs: Callable[[int, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] | None = None
    order: RunOrder | None = None  # None: row by row

    layer: int = 0  # how many attention modules have run
    probs: list[Tensor] = field(default_factory=list)  # per layer [B, h, Q, K]
    outputs: list[Tensor] = field(default_factory=list)  # per layer [B, h, Q, d], before gate and W_O

    @property
    def finished(self) -> bool:
        """Whether every layer has asked for its entry: false means that a mask was not applied."""
        return self.layer == len(self.gates) if self.order is None else self.order.complete(self.layer)

    def sort_rows(self) -> None:
        """Put what was kept of one whole pass into the order of the grid's rows."""
        if self.order is None:
            return
        rows = [self.order.row(step) for step in range(len(self.gates))]
        for tensors in (self.probs, self.outputs):
            if tensors:
                tensors[:] = [t for _, t in sorted(zip(rows, tensors, strict=True), key=lambda pair: pair[0])]


# The call of the pass that this thread runs, for attention modules of headviz's own: their models hand no keyword on.
_RUNNING: ContextVar[HeadCall | None] = ContextVar("headviz_running", default=None)


@contextmanager
def running(call: HeadCall) -> Generator[None]:
    """Give a call to the attention modules of headviz's own that run inside the block."""
    token = _RUNNING.set(call)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def running_call() -> HeadCall | None:
    """The call of the pass that is running in this thread, if any."""
    return _RUNNING.get()


def gates_for(
    mask: HeadMask | None,
    present: HeadMask,
    dtype: torch.dtype,
    device: torch.device,
    stand_in_of: Callable[[int], Tensor | None],
) -> tuple[Gate, ...]:
    """One gate per layer; None where the mask changes nothing, so that full heads stay bit-identical.

    ``present`` says which heads the model still has: rows of a gate are its heads, in order. ``stand_in_of`` gives
    what stands in the place of a layer's heads, [1, h, 1, d]; None = nothing.
    """
    if mask is None:
        return (None,) * present.num_layers
    present.check_grid(mask)
    gates: list[Gate] = []
    for layer in range(present.num_layers):
        off = set(mask.off_in(layer))
        heads = present.kept_in(layer)
        row = [0.0 if h in off else 1.0 for h in heads]
        if all(row):
            gates.append(None)
            continue
        factor = torch.tensor(row, dtype=dtype, device=device).view(1, -1, 1, 1)
        gates.append(gate_of(factor, stand_in_of(layer)))
    return tuple(gates)


def gated(outputs: Tensor, gate: Gate) -> Tensor:
    """The heads' outputs [B, h, Q, d] as a gate lets them through."""
    if gate is None:
        return outputs
    return outputs * gate.factor + gate.add if isinstance(gate, Filled) else outputs * gate


def headviz_attention(
    module: torch.nn.Module,
    query: Tensor,  # [B, h, Q, d]
    key: Tensor,  # [B, h, K, d], or fewer heads where groups of queries share theirs
    value: Tensor,
    attention_mask: Tensor | None,  # bool or additive, broadcast to [B, h, Q, K]
    scaling: float | None = None,
    dropout: float = 0.0,
    headviz: HeadCall | None = None,
    position_bias: Tensor | None = None,  # [1 or B, heads of the table, Q, K], added to the scores
    softcap: float | None = None,  # scores are squeezed between -softcap and softcap
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one layer, with the entry of ``headviz`` applied. Returns ([B, Q, h, d], probabilities)."""
    if s_aux is not None:
        raise ModelError(f"{type(module).__name__} has attention sinks, which headviz's attention does not compute.")
    key, value = _per_head(module, query, key), _per_head(module, query, value)
    # a decoder's causal mask is left out where the kernel can do without it
    causal = attention_mask is None and getattr(module, "is_causal", False) and query.shape[2] > 1
    if position_bias is not None:
        index: Tensor | None = getattr(module, "bias_heads", None)  # all layers of a stack share one bias
        bias = position_bias if index is None else position_bias[:, index]
        attention_mask = _with_bias(bias, attention_mask, causal)
        causal = False
    if headviz is None and softcap is None:
        out = _sdpa(query, key, value, attention_mask, scaling, dropout, causal)
        return out.transpose(1, 2).contiguous(), None
    if headviz is None:
        headviz = HeadCall((None,))
    layer = headviz.layer
    headviz.layer = layer + 1
    if headviz.order is not None:
        layer = headviz.order.row(layer)
    if headviz.edit_inputs is not None:
        query, key, value = headviz.edit_inputs(layer, query, key, value)
    probs = None
    if headviz.kernel == "eager" or headviz.keep_probs or headviz.edit_probs is not None or softcap is not None:
        if causal:
            attention_mask = _causal_mask(query.shape[2], key.shape[2], query.device)
        probs = _probabilities(query, key, attention_mask, scaling, softcap)
        if headviz.edit_probs is not None:
            probs = headviz.edit_probs(layer, probs)
        if headviz.keep_probs:
            headviz.probs.append(probs)
        out = torch.nn.functional.dropout(probs.to(value.dtype), dropout, module.training) @ value
    else:
        out = _sdpa(query, key, value, attention_mask, scaling, dropout, causal)
    if headviz.keep_outputs:
        headviz.outputs.append(out)
    if headviz.edit_outputs is not None:
        out = headviz.edit_outputs(layer, out)
    out = gated(out, headviz.gates[layer])
    return out.transpose(1, 2).contiguous(), None if probs is None else probs.to(query.dtype)


def _per_head(module: torch.nn.Module, query: Tensor, shared: Tensor) -> Tensor:
    """Keys or values that groups of heads share, once for each head; pruned modules say which are whose."""
    heads, groups = query.shape[1], shared.shape[1]
    if heads == groups:
        return shared
    index: Tensor | None = getattr(module, "key_heads", None)
    return shared.repeat_interleave(heads // groups, dim=1) if index is None else shared[:, index]


def _with_bias(bias: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """A position bias and a mask as one additive mask, as transformers joins them for sdpa."""
    if causal:
        mask = _causal_mask(bias.shape[2], bias.shape[3], bias.device)
    if mask is None:
        return bias.contiguous()
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, torch.finfo(bias.dtype).min).contiguous()
    return (bias + mask).contiguous()


def _causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """[1, 1, Q, K]: a query sees its own place and those before it."""
    place = torch.arange(max(queries, keys), device=device)
    return (place[:queries, None] >= place[None, :keys])[None, None]


def _sdpa(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None, dropout: float, causal: bool
) -> Tensor:
    if query.shape[1] == 0:  # every head of the layer was removed: W_O's bias is all that is left of it
        return query.new_zeros(query.shape[0], 0, query.shape[2], value.shape[3])
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, scale=scaling, is_causal=causal
    )


def _probabilities(
    query: Tensor, key: Tensor, mask: Tensor | None, scaling: float | None, softcap: float | None
) -> Tensor:
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = (query @ key.transpose(2, 3)) * scale
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    if mask is not None:
        if mask.dtype == torch.bool:
            # the lowest finite number, not -inf: a row without any key must not become NaN
            logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
        else:
            logits = logits + mask
    # at least float32, and kept so: differences of half-precision probabilities would be mostly rounding
    return torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


@contextmanager
def quiet() -> Iterator[None]:
    """transformers logs errors only and shows no progress bars while the block runs: headviz shows its own."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


AttentionInterface.register(NAME, headviz_attention)
AttentionMaskInterface.register(NAME, AttentionMaskInterface()["sdpa"])

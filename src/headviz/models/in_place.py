"""Masks and pruning for a transformers model of the caller's own, as it is: what transformers 4 offered.

``masked`` gates the input of W_O, so it holds for any attention kernel. ``prune_heads`` is the one function of
headviz that edits the caller's model.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..storage.exchange import MaskLike
from .as_described import inside, is_peft, refuse_parallel
from .families.own_attention import put_in
from .network import Network
from .pruning import cut, require_even, require_prunable, weight_of
from .recorded import Bare, present_in, record


class _Switched:
    """One ``with``: the factors of each W_O by the rows that it serves, and which rows were gated."""

    def __init__(self, place: Network, off: dict[int, list[int]]) -> None:
        self.model = place.model
        self.rows: dict[nn.Module, list[int]] = {}  # of each W_O, in the order in which they run
        self.gates: dict[nn.Module, list[Tensor | None]] = {}  # one for each of these rows
        self.calls: dict[nn.Module, int] = {}  # since the pass began
        self.gated: set[int] = set()
        for row in range(place.num_layers):
            output = _output(place, row)
            factors = torch.tensor([0.0 if head in off[row] else 1.0 for head in place.present.kept_in(row)])
            self.rows.setdefault(output, []).append(row)
            self.gates.setdefault(output, []).append(factors.repeat_interleave(place.head_size) if off[row] else None)

    def apply(self, module: nn.Module, states: Tensor) -> Tensor:
        """``states`` [..., heads · head size], with the heads that are off at zero."""
        place = self.calls.get(module, 0) % len(self.rows[module])
        self.calls[module] = place + 1
        gate = self.gates[module][place]
        if gate is None:
            return states
        self.gated.add(self.rows[module][place])
        return states * gate.to(device=states.device, dtype=states.dtype)


_ACTIVE: ContextVar[tuple[_Switched, ...]] = ContextVar("headviz_masked", default=())
_HOOKED: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()  # model -> how many `with` blocks are open
_HANDLES: WeakKeyDictionary[nn.Module, list[Any]] = WeakKeyDictionary()
_PASSED_OVER: WeakSet[nn.Module] = WeakSet()  # W_O that ran while a block was open, but in none of this thread
_LOCK = threading.Lock()


@contextmanager
def masked(model: Any, mask: MaskLike) -> Generator[None]:
    """Switch heads of a transformers model off inside a ``with`` block. The model's weights are not touched.

    ``mask`` is a ``HeadMask``, the heads that are off by layer such as ``{3: [5, 7]}``, or a table [L, H] of 1 (kept)
    and 0. No weight is read, so adapters and quantised layers may be inside. Every call of the model in the
    block is masked: by hand, by ``Trainer``, by a ``pipeline``. Blocks may be nested, and threads may use different
    masks at the same time: a thread obeys the blocks that it opened itself. Raises ``UserError`` for a family that
    headviz does not know, for a compiled model, and if the model did not run in the block.

    >>> import headviz, torch
    >>> clf = headviz.load("demo")
    >>> model = clf.model.eval()
    >>> inputs = clf.tokenizer("The dog is not sleeping.", "The dog is sleeping.", return_tensors="pt")
    >>> with torch.no_grad(), headviz.masked(model, {3: [5]}):
    ...     logits = model(**inputs).logits
    """
    place = _place(model)
    off = _off(place, mask)
    switched = _Switched(place, off)
    _open(place)
    token = _ACTIVE.set((*_ACTIVE.get(), switched))
    try:
        yield
        missed = {row for row, heads in off.items() if heads} - switched.gated
        if missed:
            names = ", ".join(place.row_name(row) for row in sorted(missed))
            raise ModelError(f"The mask was not applied to {names}: {_why_missed(switched, missed)}")
    finally:
        _ACTIVE.reset(token)
        _close(place.model)


def prune_heads(model: Any, heads: MaskLike) -> None:
    """Remove heads from a transformers model for good, in place, as ``model.prune_heads`` did in transformers 4.

    ``heads`` are those to remove by layer, ``{3: [5, 7]}``, or a mask (heads that are off go). Heads keep
    their original numbers, also in later calls: a head that has gone already is skipped. ``config.pruned_heads``
    names all that have gone. Parameters are replaced, so make an optimizer afterwards. Raises ``UserError`` for a
    family whose heads cannot be removed. To save the smaller model use ``headviz.wrap(model, tokenizer).save(folder)``.

    >>> import copy, headviz
    >>> model = copy.deepcopy(headviz.load("demo").model)
    >>> headviz.prune_heads(model, {3: [5], 7: [0, 1]})
    >>> model.config.pruned_heads
    {3: [5], 7: [0, 1]}
    """
    place = _place(model)
    place.require_described()
    require_prunable(place)
    kept = place.present | place.read(heads)
    require_even(place, kept)
    if place.family.own_attention is not None:  # transformers' module expects the same heads in every layer
        put_in(place.model, place.family.own_attention)
    record(cut(place, kept), place.config)
    place.config.pruned_heads = {row: list(kept.off_in(row)) for row in range(place.num_layers) if kept.off_in(row)}


def _why_missed(switched: _Switched, missed: set[int]) -> str:
    """The cause, as far as it can be seen, and what to do."""
    if any(output in _PASSED_OVER for output, rows in switched.rows.items() if missed & set(rows)):
        return (
            "these layers ran in another thread than the block. Open the block in the thread that calls the model, or "
            "start the thread with contextvars.copy_context().run."
        )
    if sum(torch._dynamo.utils.counters["frames"].values()):
        return (
            "the model did not run these layers inside the block, or ran them as they were compiled before. Call the "
            "model itself, or compile it inside `with headviz.masked(…)`."
        )
    return (
        "the model did not run these layers inside the block. "
        "Call the same model object inside `with headviz.masked(…)`."
    )


def _place(network: Any) -> Network:
    """The model with the paths to its rows of heads. Neither its tokenizer nor its head is needed."""
    model: Any = network
    refuse_parallel(model)
    if isinstance(model, nn.Sequential) and len(model) and isinstance(getattr(model[0], "auto_model", None), nn.Module):
        model = network = model[0].auto_model  # of sentence-transformers
    if isinstance(model, Network):
        raise ModelError("This is headviz's own model: give the mask to the call instead (mask=).")
    if not isinstance(network, nn.Module) or not hasattr(getattr(model, "config", None), "model_type"):
        hint = " Give what its attribute 'model' is." if hasattr(model, "model") else ""  # a pipeline, a Trainer
        raise ModelError(f"A transformers model is needed, such as BertForSequenceClassification.{hint}")
    if hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None:
        raise ModelError("This model is compiled, so a mask could be passed over. Give the model before torch.compile.")
    if is_peft(model):
        model = inside(model)
    if not hasattr(model, "base_model"):
        raise ModelError(f"{type(model).__name__} hides the model that it runs. Give the transformers model inside it.")
    place = Bare(model, None, present_in(model.config), type(model).__name__)
    for row in range(place.num_layers):
        _check_width(place, row)
    return place


def _output(place: Network, row: int) -> Any:
    """W_O of a row, whatever stands there: only its input is gated, and no weight is read."""
    paths, where = place.attention(row)
    return place.module(paths.output.format(**where))


def _check_width(place: Network, row: int) -> None:
    try:
        output = _output(place, row)
        is_plain = isinstance(output.weight, Tensor)  # of a quantised layer it is a method
        width = weight_of(output).shape[1] if is_plain else output.in_features
    except AttributeError as error:
        raise ModelError(f"{place.title} without its usual modules cannot be masked: {error}.") from error
    heads = len(place.present.kept_in(row))
    if width != heads * place.head_size:
        raise ModelError(
            f"W_O of {place.row_name(row)} reads {width} numbers, but {heads} heads of {place.head_size} make "
            f"{heads * place.head_size}. Were heads removed without naming them in config.pruned_heads?"
        )


def _off(place: Network, heads: MaskLike) -> dict[int, list[int]]:
    """The heads to switch off that the model still has, by row, in order."""
    mask = place.read(heads)
    return {row: [h for h in mask.off_in(row) if h in place.present.kept_in(row)] for row in range(place.num_layers)}


def _open(place: Network) -> None:
    with _LOCK:
        _HOOKED[place.model] = _HOOKED.get(place.model, 0) + 1
        if _HOOKED[place.model] > 1:
            return
        outputs = dict.fromkeys(_output(place, row) for row in range(place.num_layers))
        base: Any = place.model.base_model
        _HANDLES[place.model] = [
            base.register_forward_pre_hook(_begin),
            *(output.register_forward_pre_hook(_gate) for output in outputs),
        ]


def _close(model: nn.Module) -> None:
    with _LOCK:
        _HOOKED[model] -= 1
        if not _HOOKED[model]:
            del _HOOKED[model]
            _PASSED_OVER.clear()
            for handle in _HANDLES.pop(model):
                handle.remove()


def _begin(base: nn.Module, _: Any) -> None:
    for switched in _ACTIVE.get():
        if switched.model.base_model is base:
            switched.calls.clear()


def _gate(output: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What W_O reads, under the masks of the blocks that this thread has open."""
    blocks = [switched for switched in _ACTIVE.get() if output in switched.rows]
    if not blocks:
        _PASSED_OVER.add(output)
        if getattr(output, "_is_replica", False) or torch._C._current_graph_task_id() != -1:
            raise ModelError(
                "This pass runs in a thread that PyTorch started (DataParallel, or gradient checkpointing on a GPU), "
                "which the mask does not reach. Use one device and no gradient checkpointing, or headviz.prune_heads."
            )
    states = inputs[0]
    for switched in blocks:
        states = switched.apply(output, states)
    return (states, *inputs[1:])

"""Copies from this process's memory to a device and back. Neither direction waits: results are read later.

Whatever is computed on a GPU comes back through ``fetch``, a few tables at a time, so the number of times that a GPU is
waited for can be counted here.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from ..network import weights_state
from .linear import GPU

if TYPE_CHECKING:
    from ..base import TransformerModel

P = TypeVar("P")
T = TypeVar("T")
AHEAD = 2  # pieces of work that a GPU may have before the first one's results are waited for


def runs_by_itself(device: torch.device) -> bool:
    """Whether a device computes while this process goes on: then nothing should wait for it, and its work be large."""
    return device.type not in ("cpu", "mps")


def put(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor from the processor to the device, without waiting for what a GPU is doing."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def free(device: torch.device) -> int:
    """Bytes of a GPU's memory that are not in use."""
    unused, _ = torch.cuda.mem_get_info(device)
    return unused + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def exact(tensor: Tensor) -> Tensor:
    """In float64; on the processor where the device has no such numbers (MPS)."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def fetch(tensors: Sequence[Tensor]) -> Callable[[], list[np.ndarray]]:
    """Begin to copy tensors to the processor; the function that is returned waits for them."""
    if not tensors or tensors[0].device.type != "cuda":
        return lambda: [t.detach().cpu().numpy() for t in tensors]
    copies = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
    for copy, tensor in zip(copies, tensors, strict=True):
        copy.copy_(tensor.detach(), non_blocking=True)
    done = torch.cuda.Event()
    done.record()

    def wait() -> list[np.ndarray]:
        done.synchronize()
        return [copy.numpy() for copy in copies]

    return wait


def in_turn(begun: Iterable[T], device: torch.device) -> Iterator[T]:
    """Each piece of work in turn; on a GPU once the next ones have begun."""
    waiting: deque[T] = deque()
    for piece in begun:
        waiting.append(piece)
        if len(waiting) > (AHEAD if runs_by_itself(device) else 0):
            yield waiting.popleft()
    yield from waiting


# -----------------------------------------------------------------------------------------------
# Work as large as a GPU's memory allows: an estimate says where to begin, and where it was too high, smaller pieces
# take their turn.


def token_bytes(clf: TransformerModel, length: int) -> int:
    """About what a layer makes of one token of a text of this length: maps, attention and feed-forward network."""
    config = clf.config
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", 0) or getattr(config, "hidden_dim", 4 * hidden))
    return 4 * (3 * clf.num_heads * length + 12 * hidden + 3 * inner)


def split_when_full(pieces: Iterable[P], run: Callable[[P], T], smaller: Callable[[P], Sequence[P]]) -> Iterator[T]:
    """``run(piece)`` of each in turn. Where the device's memory is full, ``smaller(piece)`` take the piece's place.

    ``smaller`` may free memory and return the piece itself. Where it returns nothing, the error goes on.
    """
    for piece in pieces:
        waiting = [piece]
        while waiting:
            piece = waiting.pop()
            try:
                result = run(piece)
            except torch.OutOfMemoryError:
                parts = smaller(piece)
                if not parts:
                    raise
            else:
                yield result
                del result  # the next piece may need its memory
                continue
            # behind `except`: until its end the error holds what has filled the memory
            torch.cuda.empty_cache()
            waiting += reversed(parts)


def halves(part: slice) -> list[slice]:
    """Both halves of some items; nothing of a single one."""
    middle = (part.start + part.stop) // 2
    return [] if middle == part.start else [slice(part.start, middle), slice(middle, part.stop)]


# -----------------------------------------------------------------------------------------------
# Passes that a GPU repeats by itself: recorded once as a CUDA graph, and started by one call instead of hundreds.
#
# A small pass takes a GPU less time than a processor takes to start its kernels one by one. What is recorded reads
# its inputs from places of its own and leaves its results in others; all recorded passes share their memory, so
# results are copied before the next one starts. Where nothing can be recorded, the caller computes as always.


MOST = 16  # recorded passes of a model
Run = Callable[[dict[str, Tensor]], Sequence[Tensor]]


@dataclass(eq=False)
class _Recorded:
    """One pass with the places of its inputs and results."""

    inputs: dict[str, Tensor]
    graph: Any
    results: Sequence[Tensor]


@dataclass(eq=False)
class _Passes:
    """What was recorded of a model as its weights are; None = it cannot be."""

    state: list[Any]
    pool: Any = None
    refusals: list[str] = field(default_factory=list)  # why something could not be recorded
    by_key: OrderedDict[Hashable, _Recorded | None] = field(default_factory=OrderedDict)


_PASSES: WeakKeyDictionary[nn.Module, _Passes] = WeakKeyDictionary()


def repeated(model: nn.Module, key: Hashable, inputs: dict[str, Tensor], run: Run) -> list[Tensor] | None:
    """``run(inputs)`` from its record, which is made at the first use; None where it cannot be recorded.

    The key holds all that decides the work besides the shapes of the inputs. ``run`` may not look at a number.
    """
    with GPU:
        state = weights_state(model)
        passes = _PASSES.get(model)
        if passes is None or passes.state != state:
            passes = _PASSES[model] = _Passes(state)
        whole_key = (key, *((name, t.shape, t.dtype) for name, t in inputs.items()))
        if whole_key not in passes.by_key:
            passes.by_key[whole_key] = _record(passes, inputs, run)
            if len(passes.by_key) > MOST:
                passes.by_key.popitem(last=False)
        passes.by_key.move_to_end(whole_key)
        recorded = passes.by_key[whole_key]
        if recorded is None:
            return None
        for name, place in recorded.inputs.items():
            place.copy_(inputs[name])
        recorded.graph.replay()
        return [result.clone() for result in recorded.results]


def refusals(model: nn.Module) -> list[str]:
    """Why passes of a model could not be recorded."""
    passes = _PASSES.get(model)
    return [] if passes is None else passes.refusals


def _record(passes: _Passes, inputs: dict[str, Tensor], run: Run) -> _Recorded | None:
    places = {name: t.clone() for name, t in inputs.items()}
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run(places)  # libraries load what they need
        torch.cuda.current_stream().wait_stream(side)
        graph: Any = torch.cuda.CUDAGraph()
        if passes.pool is None:
            passes.pool = torch.cuda.graph_pool_handle()
        # other threads may ask for memory meanwhile
        with torch.cuda.graph(graph, pool=passes.pool, stream=side, capture_error_mode="thread_local"):
            results = run(places)
    except RuntimeError as error:
        if any(isinstance(e, torch.OutOfMemoryError) for e in (error, error.__context__)):
            raise torch.OutOfMemoryError(str(error)) from error  # not remembered: another time there may be room
        passes.refusals.append(str(error))  # a model that looks at its numbers
        return None
    return _Recorded(places, graph, results)

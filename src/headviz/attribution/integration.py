"""The straight path of word embeddings from a baseline to the input, and one sweep along it.

Every node of the path is one forward and one backward pass that serves all layers and heads at once.
Nodes and examples are cut into chunks of a byte budget, which changes the time but not the values.

Shapes: B examples, N nodes of a chunk, L layers, H heads, h heads present in a layer, T tokens, E embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..errors import ModelError, whole_number
from ..models.fast.linear import FastLinear
from ..progress import Cancel, Progress, after, tracked
from ..storage.exchange import MaskLike
from .path_sum import PathSum
from .rules import DEFAULT_STEPS, ENOUGH, PathOptions, check
from .visited import Points, Visited

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier, Encoding

BUDGET = 2**30  # bytes
GPU_SHARE = 32  # of its memory by default, where that is more: several processes may share a GPU
# More tokens in one pass are not faster on a processor: the activations no longer fit in its cache.
TOKENS_AT_ONCE, GPU_TOKENS = 2048, 2**14


@dataclass(frozen=True, eq=False)
class ExampleMaps:
    """One example without its padding. Heads that the model no longer has are NaN."""

    attention: np.ndarray  # float32 [L, H, T, T]
    attribution: np.ndarray  # float32 [L, H, T, T]
    error: np.ndarray  # [L, H] estimated L2 norm of the attribution's error; NaN = no estimate
    logits: np.ndarray  # [C]
    target: int


# the class to explain; None = the one that the model predicts under the mask
Target = int | None


class Walk:
    """Both ends of the path for a few examples, and what is needed to run the model at points between."""

    def __init__(
        self, clf: Classifier, encodings: Sequence[Encoding], targets: Sequence[Target], mask: MaskLike | None
    ) -> None:
        self.clf, self.encodings, self.targets, self.mask = clf, encodings, targets, mask
        self.batch = clf.collate(encodings)
        ids = self.batch.pop("input_ids")
        self.size, self.length = ids.shape
        if clf.dropped_token is not None and (ids == clf.dropped_token).any():
            raise ModelError(
                f"The embeddings of '{clf.name}' depend on which tokens are hidden, so no path of embeddings leads to "
                "a text with such tokens. Leave them out; in place of a masked-language answer, use fresh heads."
            )
        # word embeddings, before position and type are added: those stay the input's own
        words: Any = clf.model.get_input_embeddings()  # type: ignore[operator]
        self.end: Tensor = words(ids)  # [B, T, E]
        self.start: Tensor = words(baseline_ids(clf, encodings, ids))
        self.classes: Tensor | None = None  # [B], known once the logits at the input are

    def nodes_at_once(self, budget: int) -> int:
        rows = min(budget // 2 // _row_bytes(self.clf, self.length), tokens_at_once(self.clf) // self.length)
        return max(1, rows // self.size)

    def point(self, alphas: Tensor) -> Tensor:
        """[N] -> embeddings [N·B, T, E], node by node."""
        return (self.start + alphas.view(-1, 1, 1, 1) * (self.end - self.start)).flatten(0, 1)

    def rows(self, x: Tensor) -> dict[str, Tensor]:
        """The model's input for embeddings [N·B, T, E]."""
        count = len(x) // self.size
        return {"inputs_embeds": x, **{k: v.repeat(count, 1) for k, v in self.batch.items()}}

    def at_input(self, keep: bool) -> tuple[Tensor, list[Tensor]]:
        """Logits [B, C] and, if kept, probabilities per layer [B, h, T, T] of the input itself."""
        call = self.clf.call(self.mask, "eager", keep_probs=keep)
        with torch.no_grad():
            logits = self.clf.forward(self.rows(self.end), call)
        return self.choose(logits), call.probs

    def choose(self, logits: Tensor) -> Tensor:
        """Fix the classes to explain, from the logits at the input; gives the logits back."""
        if not torch.isfinite(logits).all():
            raise ModelError(
                f"'{self.clf.name}' answers NaN or infinity: its weights are damaged or overflow in {self.clf.dtype}."
            )
        given = torch.tensor([-1 if t is None else t for t in self.targets], device=logits.device)
        self.classes = torch.where(given < 0, logits.argmax(dim=1), given)
        return logits

    def pick(self, logits: Tensor) -> Tensor:
        """The logit to explain of each row [N·B]."""
        assert self.classes is not None
        return logits.gather(1, self.classes.repeat(len(logits) // self.size).view(-1, 1))

    def examples(
        self, logits: Tensor, attention: list[Tensor], values: list[Tensor], errors: list[Tensor] | None
    ) -> list[ExampleMaps]:
        """Cut the padding off, and put the heads at their original numbers."""
        clf, classes = self.clf, self.classes
        assert classes is not None
        shape = (clf.num_layers, clf.num_heads)
        heads = [list(clf.present.kept_in(x)) for x in range(clf.num_layers)]
        out = []
        for i, e in enumerate(self.encodings):
            t = len(e)
            maps = [np.full((*shape, t, t), np.nan, np.float32) for _ in (attention, values)]
            error = np.full(shape, np.nan)
            for layer, kept in enumerate(heads):
                for table, source in zip(maps, (attention, values), strict=True):
                    table[layer, kept] = source[layer][i, :, :t, :t].float().cpu().numpy()
                if errors is not None:
                    wrong = torch.linalg.vector_norm(errors[layer][i, :, :t, :t].cpu().double(), dim=(1, 2))
                    error[layer, kept] = wrong.numpy()
            out.append(ExampleMaps(maps[0], maps[1], error, logits[i].float().cpu().numpy(), int(classes[i])))
        return out


def baseline_ids(clf: Classifier, encodings: Sequence[Encoding], ids: Tensor) -> Tensor:
    """Every token replaced by padding, except [CLS] and [SEP], which stay where they are."""
    pad = clf.tokenizer.pad_token_id
    if pad is None:
        raise ModelError(f"The tokenizer of '{clf.name}' has no padding token, which the baseline is made of.")
    stay = torch.zeros_like(ids, dtype=torch.bool)
    for i, e in enumerate(encodings):
        stay[i, : len(e)] = torch.tensor(e.special, device=ids.device)
    return torch.where(stay, ids, int(pad))


def sweep(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: PathOptions,
    mask: MaskLike | None = None,
    budget: int = BUDGET,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    walk: Callable[..., Walk] = Walk,
    visited: Visited | None = None,
    width: int = 0,
) -> list[ExampleMaps]:
    """Attention and attribution of every example, all layers in one pass per node.

    Give examples of similar length next to each other: those that share a pass are padded. Progress is told in
    nodes of the path, over all examples. ``walk`` makes the path; ``width`` is what its maps are padded to. ``visited``
    supplies the nodes of half as many steps and stores those of this call. Examples that share a pass are recomputed.
    """
    out: list[ExampleMaps] = []
    nodes = len(check(options.rule, options.steps).nodes(options.steps))
    for part in groups(clf, encodings, options.steps, budget, width):
        told = after(progress, len(out) * nodes, len(encodings) * nodes)
        one = visited if len(encodings[part]) == 1 else None
        out += _sweep_group(walk(clf, encodings[part], targets[part], mask), options, budget, told, cancel, one)
    return out


def _sweep_group(
    walk: Walk,
    options: PathOptions,
    budget: int,
    progress: Progress | None,
    cancel: Cancel | None,
    visited: Visited | None = None,
) -> list[ExampleMaps]:
    rule, clf = check(options.rule, options.steps), walk.clf
    alphas = torch.tensor(rule.nodes(options.steps), dtype=walk.end.dtype, device=walk.end.device)
    text = id(walk.encodings[0])  # what is visited belongs to one call, which holds its encodings
    known = visited.take(text, alphas) if visited is not None else None
    new, pace = (alphas, 1) if known is None else (alphas[1::2], 2)  # a new node stands for ``pace`` in the sums
    per_chunk = walk.nodes_at_once(budget)
    one_pass = rule.ends_at_input and per_chunk >= len(alphas)
    sums = [PathSum(rule, options.steps) for _ in range(clf.num_layers)]
    kept: list[tuple[Tensor, Tensor]] = []  # by chunk and layer
    size = points_bytes(clf, walk.length, options.steps)
    keeps = visited is not None and visited.wants(options.steps, size)
    with FastLinear(options.precision == "bfloat16"):
        if known is not None:
            logits, attention = walk.choose(known.logits), known.attention
        elif not one_pass:  # the class to explain must be known before the first gradient
            logits, attention = walk.at_input(keep=not rule.ends_at_input)
        chunks = [(first, new[first : first + per_chunk]) for first in range(0, len(new), per_chunk)]
        for first, nodes in tracked(chunks, progress, cancel, size=partial(_covered, walk.size, pace, len(new))):
            count = len(nodes)
            call = clf.call(walk.mask, "eager", keep_probs=True)
            with torch.enable_grad():
                scores = clf.forward(walk.rows(walk.point(nodes).requires_grad_(True)), call)  # [N·B, C]
                if known is None and one_pass:
                    logits = walk.choose(scores[-walk.size :].detach())
                grads = gradients(walk.pick(scores).sum(), call.probs)
            probs = [p.detach() for p in call.probs]
            del call, scores  # the graph goes before the sums need memory
            for layer, total in enumerate(sums):
                shape = (count, walk.size, *probs[layer].shape[1:])
                maps, slopes = probs[layer].view(shape), grads[layer].view(shape)
                if known is not None:
                    maps, slopes = known.woven(layer, first, maps, slopes)
                total.add(pace * first, maps, slopes)
                if keeps:
                    kept.append((maps, slopes))
            if known is None and rule.ends_at_input and first + count == len(alphas):
                attention = [p[-walk.size :].clone() for p in probs]
            del probs, grads
    del known
    if visited is not None and keeps:
        visited.keep(text, _points(alphas, logits, kept, clf.num_layers))
    del kept
    results = [total.result() for total in sums]
    del sums  # and the nodes that they hold
    errors = [error for _, error in results if error is not None]
    return walk.examples(logits, attention, [value for value, _ in results], errors or None)


def _covered(size: int, pace: int, new: int, chunk: tuple[int, Tensor]) -> int:
    """How many nodes of the path a chunk settles; the last one brings the input itself, if that is known."""
    first, nodes = chunk
    return size * (pace * len(nodes) + (pace - 1) * (first + len(nodes) == new))


def _points(alphas: Tensor, logits: Tensor, kept: list[tuple[Tensor, Tensor]], layers: int) -> Points:
    maps, grads = ([torch.cat([pair[i] for pair in kept[k::layers]]) for k in range(layers)] for i in (0, 1))
    return Points(alphas, logits, maps, grads)


def gradients(of: Tensor, by: Sequence[Tensor]) -> list[Tensor]:
    """Derivatives by tensors of the graph; zeros for those it does not depend on, such as a layer without heads."""
    live = [t for t in by if t.requires_grad and t.numel()]
    found = iter(torch.autograd.grad(of, live, materialize_grads=True) if live else ())
    return [next(found) if t.requires_grad and t.numel() else torch.zeros_like(t) for t in by]


def groups(clf: Classifier, encodings: Sequence[Encoding], steps: int, budget: int, width: int = 0) -> Iterator[slice]:
    """Examples that share their passes: as many as the budget holds, up to ``tokens_at_once``."""
    longest = max(len(e) for e in encodings)
    # what one example keeps for the whole sweep: value and error, the last nodes of three strides, its maps
    kept = clf.num_layers * clf.num_heads * max(width, longest) ** 2 * 4 * 10
    size = max(1, min(budget // 2 // kept, tokens_at_once(clf) // ((steps + 1) * longest)))
    for start in range(0, len(encodings), size):
        yield slice(start, start + size)


def tokens_at_once(clf: TransformerModel) -> int:
    """Of one pass that keeps gradients. A GPU starts one kernel after the other: there few large passes are faster."""
    return TOKENS_AT_ONCE if clf.device.type == "cpu" else GPU_TOKENS


def room_on(device: torch.device) -> int:
    """The budget in bytes where none is given."""
    if device.type != "cuda":
        return BUDGET
    return max(BUDGET, torch.cuda.get_device_properties(device).total_memory // GPU_SHARE)


def maps_bytes(clf: Classifier, length: int) -> int:
    """What attention and attribution of all heads take for one text of so many tokens."""
    return 2 * clf.num_layers * clf.num_heads * length**2 * 4


def points_bytes(clf: Classifier, length: int, steps: int) -> int:
    """What the nodes of one text take if they are kept."""
    return (steps + 1) * maps_bytes(clf, length)


def peak_bytes(clf: Classifier, length: int) -> int:
    """About what explaining one text of so many tokens takes at its most, besides the model."""
    kept = 7 * maps_bytes(clf, length)  # sums, strides, the maps that are handed out, and what the C library holds
    row = _row_bytes(clf, length)
    if points_bytes(clf, length, DEFAULT_STEPS) <= room_for(BUDGET):
        kept += min(points_bytes(clf, length, ENOUGH), 2 * room_for(BUDGET))
    return kept + row * max(1, min(BUDGET // 2 // row, tokens_at_once(clf) // length))


def room_for(budget: int) -> int:
    """The part of a budget that may hold nodes between two sweeps; the next one has them twice for a while."""
    whole_number(budget, "budget (bytes of memory)", 1, 2**62)
    return budget // 2


def _row_bytes(clf: Classifier, length: int) -> int:
    """What one node of one example needs during its pass: probabilities, gradients, and the graph."""
    config = clf.config
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", 0) or getattr(config, "hidden_dim", 4 * hidden))
    per_token = 12 * hidden + 3 * inner
    return 4 * clf.num_layers * (3 * clf.num_heads * length**2 + per_token * length)

"""One sweep along a ``Walk``: its nodes in chunks, their gradients, and the weighted sum of them.

Every node of the path is one forward and one backward pass that serves all layers and heads at once.
Nodes and examples are cut into chunks of a byte budget, which changes the time but not the values. ``PathSum`` takes
the nodes in as they are computed. ``Visited`` keeps them, so that twice the steps compute only the nodes between.

Shapes: B examples, N nodes of a chunk, n of a whole path, L layers, H heads, h heads present in a layer, T tokens, E
embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..answers.answer import Target
from ..errors import whole_number
from ..models.fast.gpu import free, halves, in_turn, put, repeated, runs_by_itself, split_when_full, token_bytes
from ..models.fast.linear import products
from ..progress import Cancel, Progress, after, tracked
from ..storage.exchange import MaskLike
from .rules import DEFAULT_STEPS, ENOUGH, RULES, PathOptions, Rule
from .walk import ExampleMaps, Swept, Walk, side_by_side

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..models.classifier import Classifier, Encoding

Layers = list[Tensor]  # [n, 1, h, T, T] of each layer, or of all side by side


@dataclass(frozen=True, eq=False)
class Points:
    """What was found at evenly spaced points of one text's path: probabilities and gradients of every layer."""

    alphas: Tensor
    logits: Tensor  # at the input
    maps: Layers
    grads: Layers

    @property
    def attention(self) -> Layers:
        """The probabilities at the input, [1, h, T, T] of each layer."""
        return [m[-1].clone() for m in self.maps]

    def woven(self, layer: int, first: int, maps: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
        """Points of a layer in order: from the ``first`` visited one on, each visited one and the new one behind it."""
        woven = []
        for visited, new in ((self.maps[layer], maps), (self.grads[layer], grads)):
            end = first + len(new)
            pairs = torch.stack([visited[first:end], new], dim=1).flatten(0, 1)
            woven.append(torch.cat([pairs, visited[end:]]) if end == len(visited) - 1 else pairs)
        return woven[0], woven[1]


@dataclass(eq=False)
class Visited:
    """The points of several texts, as long as they take no more than ``room`` bytes; what does not fit is dropped.

    Points are kept only while doubling the steps would not exceed ``most``.
    """

    room: int
    most: int
    _points: dict[Hashable, Points] = field(default_factory=dict)

    def take(self, text: Hashable, alphas: Tensor) -> Points | None:
        """The points of every other alpha, which are forgotten here; None if these were not visited."""
        points = self._points.pop(text, None)
        if points is None:
            return None
        self.room += _bytes(points)
        return points if torch.equal(points.alphas, alphas[::2]) else None

    def wants(self, steps: int, text_bytes: int) -> bool:
        """Whether the points of a text would be kept."""
        return 2 * steps <= self.most and text_bytes <= self.room

    def keep(self, text: Hashable, points: Points) -> None:
        self.room -= _bytes(points)
        self._points[text] = points


def _bytes(points: Points) -> int:
    return sum(t.nbytes for t in (*points.maps, *points.grads))


class PathSum:
    """The integral of one layer and its error map, fed with nodes in the order of the path, any number at a time."""

    def __init__(self, rule: Rule, steps: int) -> None:
        self.rule, self.last = rule.over(steps), steps
        self._totals: list[Tensor | None] = [None, None]  # value and error
        self._previous: list[tuple[Tensor, Tensor] | None] = [None] * len(self.rule.parts)

    def add(self, first: int, maps: Tensor, grads: Tensor) -> None:
        """Nodes ``first``, ``first`` + 1, … as [nodes, B, h, T, T]."""
        nodes = range(first, first + len(maps))
        copies: dict[int, tuple[Tensor, Tensor]] = {}
        for i, part in enumerate(self.rule.parts):
            picked = [k for k in nodes if k % part.stride == 0 or k == self.last]
            if not picked:
                continue
            a, g = (_picked(t, first, part.stride, self.last) for t in (maps, grads))
            previous = self._previous[i]
            if previous is not None:
                a, g = torch.cat([previous[0][None], a]), torch.cat([previous[1][None], g])
            # a copy: a view would keep the whole chunk alive until the next one is done
            if nodes[-1] != self.last:
                if picked[-1] not in copies:
                    copies[picked[-1]] = a[-1].clone(), g[-1].clone()
                self._previous[i] = copies[picked[-1]]
            if len(a) == 1:  # the first node: no step ends here
                continue
            step = g[:-1] * part.left if part.right == 0 else torch.add(g[:-1] * part.left, g[1:], alpha=part.right)
            step = step.mul_(a[1:] - a[:-1]).sum(dim=0)
            for t, weight in enumerate((self.rule.value[i], self.rule.error[i])):
                if weight:
                    total = self._totals[t]
                    self._totals[t] = step * weight if total is None else total.add_(step, alpha=weight)

    def result(self) -> tuple[Tensor, Tensor | None]:
        """The integral's estimate and the error map (None: a single step allows no estimate)."""
        value, error = self._totals
        assert value is not None
        if self.last == 1 and self.rule.parts[1].stride > 1:
            return value, None  # both sums are over the same two nodes
        return value, error


def _picked(table: Tensor, first: int, stride: int, last: int) -> Tensor:
    """Of nodes from ``first`` on, every ``stride``-th of the path and the last one, by slices: they copy no numbers."""
    picked = table[-first % stride :: stride]
    last_missing = first + len(table) - 1 == last and last % stride
    return torch.cat([picked, table[-1:]]) if last_missing else picked


BUDGET = 2**30  # bytes
LEAST = 2**28  # with which a GPU begins that has less
GPU_SHARE = 0.6  # of the memory that nobody uses, by default: several processes may share a GPU
# More tokens in one pass are not faster on a processor: the activations no longer fit in its cache.
TOKENS_AT_ONCE, GPU_TOKENS = 2048, 2**15
# on a GPU, a pass of so many tokens takes no text more than so many times as long as its first
LARGE_PASS, TIMES_LONGER = 2**14, 1.2
REPEATED = 2**12  # tokens up to which the pass of a single text is recorded: larger ones take longer than their start
EVERY = 8  # tokens; recorded passes are padded to a multiple, so that there are few of them


def sweep(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: PathOptions,
    mask: MaskLike | None = None,
    budget: int = BUDGET,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    visited: Visited | None = None,
) -> list[ExampleMaps]:
    """Attention and attribution of every example, all layers in one pass per node.

    Give examples of similar length next to each other: those that share a pass are padded. Progress is reported in
    nodes of the path, over all examples. ``visited`` supplies the nodes of half as many steps and stores those of this
    call. Examples that share a pass are recomputed.
    """
    result = sweep_groups(clf, encodings, targets, options, mask, budget, cancel, progress, visited)
    return [maps for wait in in_turn(map(Swept.maps, result), clf.device) for maps in wait()]


def sweep_groups(
    clf: Classifier,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    options: PathOptions,
    mask: MaskLike | None = None,
    budget: int = BUDGET,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
    visited: Visited | None = None,
) -> Iterator[Swept]:
    """Like ``sweep``, but yields one ``Swept`` for each group of examples that share passes; its tensors stay on the
    device."""
    nodes = len(RULES[options.rule].nodes(options.steps))

    def run(part: slice, room: int) -> Swept:
        part_progress = after(progress, part.start * nodes, len(encodings) * nodes)
        part_visited = visited if len(encodings[part]) == 1 else None
        with products(clf.device, options.precision):
            width = _recorded_width(clf, encodings[part], nodes, options)
            walk = Walk(clf, encodings[part], targets[part], mask, width)
            return sweep_walk(walk, options, room, part_progress, cancel, part_visited, width > 0)

    return in_groups(clf, encodings, options.steps, nodes, budget, run)


def sweep_walk(
    walk: Walk,
    options: PathOptions,
    budget: int,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    visited: Visited | None = None,
    recorded: bool = False,
) -> Swept:
    """The sweep of the examples of one walk."""
    grid = torch.tensor(RULES[options.rule].nodes(options.steps), dtype=walk.end.dtype)
    per_chunk = nodes_at_once(walk.clf, walk.size, walk.length, budget)
    if recorded and per_chunk >= len(grid):
        result = _from_record(walk, options, grid)
        if result is not None:
            if progress is not None:
                progress(walk.size * len(grid), walk.size * len(grid))
            return result
    return _sum_nodes(walk, options, grid, put(grid, walk.clf.device), per_chunk, progress, cancel, visited)


def _recorded_width(clf: Classifier, encodings: Sequence[Encoding], nodes: int, options: PathOptions) -> int:
    """What a sweep's one pass is padded to if a GPU records it; 0 if it does not.

    Only a single short text without stand-ins is recorded. Its length is rounded up, so that many texts share a
    recording.
    """
    longest = max(len(e) for e in encodings)
    width = min(-(-longest // EVERY) * EVERY, max(longest, clf.max_length))
    one_small_pass = RULES[options.rule].ends_at_input and len(encodings) == 1 and nodes * width <= REPEATED
    plain = clf.replays and clf.fill is None
    return width if runs_by_itself(clf.device) and one_small_pass and plain else 0


def _from_record(walk: Walk, options: PathOptions, grid: Tensor) -> Swept | None:
    """The sweep of one pass; None where it cannot be recorded."""
    clf = walk.clf
    on = clf.under(walk.mask)
    heads = [h in on.kept_in(row) for row in range(clf.num_layers) for h in clf.present.kept_in(row)]
    gates = put(torch.tensor(heads).to(grid), clf.device)
    inputs = walk.inputs | {"gates": gates, "alphas": put(grid, clf.device)}

    def run(entered: dict[str, Tensor]) -> list[Tensor]:
        walk.enter(entered)
        result = _sum_nodes(walk, options, grid, entered["alphas"], len(grid), None, None, None)
        return [*result.attention, *result.attribution, *result.errors, result.logits, result.chosen]

    results = repeated(clf.model, (options, clf.present), inputs, run)
    if results is None:
        walk.enter(walk.inputs)  # a failed recording leaves tensors without values there
        return None
    attention, attribution, *errors, logits, chosen = results
    return Swept(clf, walk.lengths, [attention], [attribution], errors, logits, chosen)


def _sum_nodes(
    walk: Walk,
    options: PathOptions,
    grid: Tensor,
    alphas: Tensor,
    per_chunk: int,
    progress: Progress | None,
    cancel: Cancel | None,
    visited: Visited | None,
) -> Swept:
    """Run the nodes of the path in chunks and sum them. ``grid`` is on the CPU, ``alphas`` has the same numbers on the
    device."""
    rule, clf = RULES[options.rule], walk.clf
    text = id(walk.encodings[0])  # what is visited belongs to one call, which holds its encodings
    points = visited.take(text, grid) if visited is not None else None
    new, pace = (alphas, 1) if points is None else (alphas[1::2], 2)  # a new node stands for ``pace`` in the sums
    one_pass = rule.ends_at_input and per_chunk >= len(alphas)
    together = runs_by_itself(clf.device)  # one sum of all layers instead of many small ones
    sums = [PathSum(rule, options.steps) for _ in range(1 if together else clf.num_layers)]
    kept: list[tuple[Tensor, Tensor]] = []  # by chunk and layer
    size = points_bytes(clf, walk.length, options.steps)
    keeps = visited is not None and visited.wants(options.steps, size)
    if points is not None:
        logits, attention = walk.choose(points.logits), points.attention
    elif not one_pass:  # the class to explain must be known before the first gradient
        logits, attention = walk.at_input(keep=not rule.ends_at_input)
    chunks = [(first, new[first : first + per_chunk]) for first in range(0, len(new), per_chunk)]

    def nodes_of(chunk: tuple[int, Tensor]) -> int:
        """How many nodes of the path a chunk settles; the last one brings the input itself, if that is visited."""
        first, nodes = chunk
        return walk.size * (pace * len(nodes) + (pace - 1) * (first + len(nodes) == len(new)))

    for first, nodes in tracked(chunks, progress, cancel, size=nodes_of):
        count = len(nodes)
        call = walk.call(keep_probs=True)
        with torch.enable_grad():
            scores = clf.forward(walk.rows(walk.point(nodes).requires_grad_(True)), call)  # [N·B, C]
            if points is None and one_pass:
                logits = walk.choose(scores[-walk.size :].detach())
            grads = gradients(walk.pick(scores).sum(), call.probs)
        probs = [p.detach() for p in call.probs]
        del call, scores  # the graph goes before the sums need memory
        if together:
            probs = side_by_side(probs)
            grads = side_by_side(grads)
        for layer, total in enumerate(sums):
            shape = (count, walk.size, *probs[layer].shape[1:])
            maps, slopes = probs[layer].view(shape), grads[layer].view(shape)
            if points is not None:
                maps, slopes = points.woven(layer, first, maps, slopes)
            total.add(pace * first, maps, slopes)
            if keeps:
                kept.append((maps, slopes))
        if points is None and rule.ends_at_input and first + count == len(alphas):
            attention = [p[-walk.size :].clone() for p in probs]
        del probs, grads
    del points
    if visited is not None and keeps:
        visited.keep(text, _points(grid, logits, kept, len(sums)))
    del kept
    results = [total.result() for total in sums]
    del sums  # and the nodes that they hold
    errors = [error for _, error in results if error is not None]
    return walk.swept(logits, attention, [value for value, _ in results], errors)


def _points(alphas: Tensor, logits: Tensor, kept: list[tuple[Tensor, Tensor]], layers: int) -> Points:
    maps, grads = ([torch.cat([pair[i] for pair in kept[k::layers]]) for k in range(layers)] for i in (0, 1))
    return Points(alphas, logits, maps, grads)


def gradients(of: Tensor, by: Sequence[Tensor]) -> list[Tensor]:
    """Derivatives by tensors of the graph; zeros for those it does not depend on, such as a layer without heads."""
    inputs = [t for t in by if t.requires_grad and t.numel()]
    gradients = iter(torch.autograd.grad(of, inputs, materialize_grads=True) if inputs else ())
    return [next(gradients) if t.requires_grad and t.numel() else torch.zeros_like(t) for t in by]


def groups(clf: Classifier, encodings: Sequence[Encoding], steps: int, budget: int) -> Iterator[slice]:
    """Examples that share their passes: as many as the budget holds, up to ``tokens_at_once``.

    On a GPU, whose passes are large, texts that are much longer than a pass's first begin another one.
    """
    lengths = [len(e) for e in encodings]
    most = tokens_at_once(clf) // (steps + 1)
    gpu, start = runs_by_itself(clf.device), 0
    while start < len(lengths):
        stop, longest = start, 0 if gpu else max(lengths)
        while stop < len(lengths):
            longest, count = max(longest, lengths[stop]), stop - start
            # what one example keeps for the whole sweep: value and error, the last nodes of three strides, its maps
            kept = clf.num_layers * clf.num_heads * longest**2 * 4 * 10
            uneven = gpu and longest > TIMES_LONGER * lengths[start] and count * longest * (steps + 1) >= LARGE_PASS
            if count and (count >= min(budget // 2 // kept, most // longest) or uneven):
                break
            stop += 1
        yield slice(start, stop)
        start = stop


def in_groups(
    clf: Classifier,
    encodings: Sequence[Encoding],
    steps: int,
    nodes: int,
    budget: int,
    run: Callable[[slice, int], Swept],
) -> Iterator[Swept]:
    """``run(group, budget)`` of each of the groups; a pass that did not fit is halved, and so are those to come."""
    most = budget

    def smaller(piece: tuple[slice, int]) -> list[tuple[slice, int]]:
        nonlocal most
        part, room = piece[0], min(piece[1], most)
        size, longest = part.stop - part.start, max(len(e) for e in encodings[part])
        rows = size * min(nodes, nodes_at_once(clf, size, longest, room))
        if rows == 1:
            return []
        most = rows * _row_bytes(clf, longest)  # half of what is for rows: whatever has bounded this pass, half of it
        return [(half, most) for half in halves(part) or [part]]

    pieces = ((part, budget) for part in groups(clf, encodings, steps, budget))
    return split_when_full(pieces, lambda piece: run(piece[0], min(piece[1], most)), smaller)


def nodes_at_once(clf: Classifier, size: int, length: int, budget: int) -> int:
    """Nodes of the path that share a pass of ``size`` examples."""
    rows = min(budget // 2 // _row_bytes(clf, length), tokens_at_once(clf) // length)
    return max(1, rows // size)


def tokens_at_once(clf: TransformerModel) -> int:
    """Of one pass that keeps gradients. A GPU starts one kernel after the other: there few large passes are faster."""
    return TOKENS_AT_ONCE if clf.device.type == "cpu" else GPU_TOKENS


def room_on(device: torch.device, budget: int | None = None) -> int:
    """The budget in bytes; where none is given, on a GPU what is free now counts."""
    if budget is not None:
        whole_number(budget, "budget (bytes of memory)", 1, 2**62)
        return budget
    return max(LEAST, int(GPU_SHARE * free(device))) if device.type == "cuda" else BUDGET


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
    return budget // 2


def _row_bytes(clf: Classifier, length: int) -> int:
    """What one node of one example needs: probabilities, gradients and the graph; on a GPU then six maps for a sum."""
    of_pass = clf.num_layers * length * token_bytes(clf, length)
    return max(of_pass, 3 * maps_bytes(clf, length)) if runs_by_itself(clf.device) else of_pass

"""``headviz.paths``: by which way a head moves the answer. Path patching, from a sending head to a receiving one.

The sender's output is that of the donor; all other heads keep what they gave for the text, and feed-forward blocks are
computed again. What then reaches the receiver's queries, keys or values goes into a pass of the text, in which
everything behind the receiver is computed as usual. Without a receiver it is what reaches the answer itself.

Shapes: S senders, T tokens, d head size, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy
import torch
from torch import Tensor

from ..attention import HeadCall
from ..errors import OptionError, whole_number
from ..heads import HeadId, HeadMask, in_order
from ..models.fast.linear import gpu_products
from ..models.network import require_model
from ..progress import Cancel, Progress, after, stop_if, tracked
from ..results import Result
from ..statistics.significance import LEVEL
from ..storage.exchange import MaskLike
from .alignment import ALL, aligned_by, places
from .patching import SMALLEST_SPAN, Swap, Text, check_pairs, encoded, lots_of, numbers_of

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding

Into = Literal["answer", "queries", "keys", "values"]
ANSWER: Into = "answer"
INPUTS: tuple[Into, ...] = ("queries", "keys", "values")
RECEIVERS, DEPTH = 4, 2  # heads that are asked what reaches them, and how many times


@dataclass(frozen=True)
class Edge:
    """One path. ``effect`` is the mean share of the way to the donor's answer; the interval is 95 % over pairs."""

    sender: HeadId
    receiver: HeadId | None  # None = the answer
    into: Into
    effect: float
    low: float  # NaN for a single pair
    high: float


@dataclass(frozen=True, eq=False)
class Paths(Result):
    """The strongest paths, the strongest first. Each head that receives something has a path on to the answer.

    ``n`` pairs were used; ``same_answer`` and ``small`` are left out for the reasons of ``patch_pairs``.
    """

    edges: tuple[Edge, ...]
    n: int
    same_answer: int
    small: int
    positions: str
    texts: int  # passed through the model


def paths(
    clf: Classifier,
    pairs: Sequence[tuple[Text, Text]],
    *,
    positions: str = ALL,
    receivers: int = RECEIVERS,
    depth: int = DEPTH,
    edges: int = 20,
    alignment: Mapping[int, int] | None = None,
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Paths:
    """The strongest paths by which heads carry (text, donor) differences to the answer; one pair is enough.

    First every head's path to the answer is measured. The ``receivers`` heads with the strongest ones are then asked
    what reaches their queries, keys and values, and so on, ``depth`` times. ``edges`` paths are kept. ``alignment`` is
    that of a single pair, as in ``patch``.

    Raises ``OptionError`` where no pair has two different answers, and what ``patch`` raises for a pair.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> no, yes = ("The dog is not sleeping.", "The dog is sleeping."), ("The dog is sleeping.", "The dog is sleeping.")
    >>> result = headviz.paths(clf, [(no, yes)], receivers=1, depth=1, edges=5)
    >>> len(result.edges)
    5
    """
    for name, value, least in (("receivers", receivers, 1), ("depth", depth, 0), ("edges", edges, 1)):
        whole_number(value, name, least)
    check_pairs(pairs)
    require_model(clf)
    if alignment is not None and len(pairs) != 1:
        raise OptionError(f"An alignment belongs to one pair of texts, and there are {len(pairs)}. Leave it out.")
    waves = 1 + depth
    used, same, small = [], 0, 0
    for text, donor in pairs:
        stop_if(cancel)
        pair = _Pair(clf, text, donor, positions, mask, alignment)
        if len(pairs) == 1 and abs(pair.span) >= SMALLEST_SPAN:  # a single pair is shown as it is
            used.append(pair)
        elif pair.same_answer:
            same += 1
        elif abs(pair.span) < pair.measured.least:
            small += 1
        else:
            used.append(pair)
    if not used:
        raise OptionError(
            f"Of {len(pairs)} pairs {same} have one answer for both texts and {small} hardly move it, so there is no "
            "way to follow. Give pairs of which the model answers differently."
        )
    targets: list[HeadId | None] = [None]
    all_edges: list[Edge] = []
    needed: list[Edge] = []  # what made a head a receiver
    for wave in range(waves):
        wave_progress = after(progress, wave * len(used), waves * len(used))
        grids = [pair.into_each(targets, cancel) for pair in tracked(used, wave_progress, cancel)]
        new_edges = [edge for key in grids[0] for edge in _edges(*key, np.array([grid[key] for grid in grids]))]
        all_edges += new_edges
        targets = []
        for edge in _strongest(new_edges):
            chosen = {e.sender for e in needed}
            if len(targets) < receivers and edge.sender not in chosen and used[0].before(edge.sender):
                targets.append(edge.sender)
                needed.append(edge)
        if not targets:
            break
    if progress is not None:
        progress(waves * len(used), waves * len(used))
    others = [edge for edge in _strongest(all_edges) if edge not in needed]
    measured_receivers = {e.receiver for e in all_edges}
    needed = [edge for edge in needed if edge.sender in measured_receivers]
    kept = _strongest(needed + others[: max(0, edges - len(needed))])[:edges]
    return Paths(tuple(kept), len(used), same, small, positions, sum(pair.texts for pair in used))


def texts_at_most(mask: HeadMask, pairs: int) -> int:
    """How many texts ``paths`` passes through the model at most, with these heads on and its defaults."""
    heads = len(mask.kept)
    return pairs * (2 + heads + DEPTH * heads * (1 + len(INPUTS) * RECEIVERS))


class _Pair:
    """One text and its donor: what each head gives for both, and what becomes of the answer by single paths."""

    def __init__(
        self,
        clf: Classifier,
        text: Text,
        donor: Text,
        positions: str | Sequence[int],
        mask: MaskLike | None,
        alignment: Mapping[int, int] | None = None,
    ) -> None:
        self.text, donor_encoding = encoded(clf, text), encoded(clf, donor)
        aligned = aligned_by(alignment, self.text, donor_encoding)
        self.swap = Swap.of(places(positions, self.text, donor_encoding, aligned), aligned)
        self.clf, self.mask, self.texts = clf, clf.under(mask), 0
        call, start = self._run(1, keep_outputs=True)
        self.outputs = [outputs[0] for outputs in call.outputs]  # per row [h, T, d]
        call, end = self._run(1, donor_encoding, keep_outputs=True)
        self.donor_outputs = [outputs[0] for outputs in call.outputs]
        self.measured = clf.answer.lead(start[0], end[0], None, clf.labels)
        self.same_answer = self.measured.text == self.measured.donor
        self.start = self.measured.of(start[0])
        self.span = float(self.measured.of(end[0]) - self.start)
        steps = range(clf.num_layers)
        rows = steps if call.order is None else [call.order.row(step) for step in steps]
        self.step = {row: step for step, row in enumerate(rows)}
        self.senders = [HeadId(row, head) for row in rows for head in self.mask.kept_in(row)]

    def before(self, receiver: HeadId | None) -> list[HeadId]:
        """The heads that run before a receiver."""
        if receiver is None:
            return self.senders
        return [head for head in self.senders if self.step[head.layer] < self.step[receiver.layer]]

    def into_each(
        self, receivers: Sequence[HeadId | None], cancel: Cancel | None
    ) -> dict[tuple[HeadId | None, Into], np.ndarray]:
        """[L, H] for each receiver and each of its inputs: the share of the way by senders through it alone."""
        heads = [receiver for receiver in receivers if receiver is not None]
        grids = {
            (r, into): np.full((self.clf.num_layers, self.clf.num_heads), np.nan)
            for r in receivers
            for into in ((ANSWER,) if r is None else INPUTS)
        }
        last = max((self.step[h.layer] for h in heads), default=-1)
        senders = [s for s in self.senders if None in receivers or self.step[s.layer] < last]
        for lot in lots_of(senders, len(self.text)):
            stop_if(cancel)
            logits, reached = self._send(lot, heads)
            if None in receivers:
                self._fill(grids[None, ANSWER], lot, logits)
            for receiver in heads:
                behind = [n for n, s in enumerate(lot) if self.step[s.layer] < self.step[receiver.layer]]
                for into, values in zip(INPUTS, reached[receiver], strict=True):
                    if behind:
                        stop_if(cancel)
                        moved = self._receive(receiver, into, values[behind])
                        self._fill(grids[receiver, into], [lot[n] for n in behind], moved)
        return grids

    def _fill(self, grid: np.ndarray, senders: Sequence[HeadId], logits: np.ndarray) -> None:
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = (self.measured.of(logits) - self.start) / self.span if self.span else np.nan
        grid[tuple(np.array(senders).T)] = moved

    def _row(self, head: HeadId) -> int:
        return self.clf.present.kept_in(head.layer).index(head.head)

    def _send(
        self, senders: Sequence[HeadId], receivers: Sequence[HeadId]
    ) -> tuple[np.ndarray, dict[HeadId, tuple[Tensor, Tensor, Tensor]]]:
        """Each sender's output is the donor's and all other heads are frozen: the logits [S, C], and what reaches each
        receiver: its queries, keys and values [S, T, d]."""
        tokens, donor_tokens = list(self.swap.tokens), list(self.swap.donor_tokens)
        reached: dict[HeadId, tuple[Tensor, Tensor, Tensor]] = {}

        def freeze(layer: int, outputs: Tensor) -> Tensor:
            frozen = self.outputs[layer].expand_as(outputs).clone()
            for copy, sender in enumerate(senders):
                if sender.layer == layer:
                    row = self._row(sender)
                    frozen[copy, row, tokens] = self.donor_outputs[layer][row, donor_tokens]
            return frozen

        def look(layer: int, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            for receiver in receivers:
                if receiver.layer == layer:
                    row = self._row(receiver)
                    reached[receiver] = (query[:, row].clone(), key[:, row].clone(), value[:, row].clone())
            return query, key, value

        _, logits = self._run(len(senders), edit_outputs=freeze, edit_inputs=look)
        return logits, reached

    def _receive(self, receiver: HeadId, into: Into, values: Tensor) -> np.ndarray:
        """The logits [S, C] where one input of the receiver has these values [S, T, d]."""
        index, row = INPUTS.index(into), self._row(receiver)

        def put(layer: int, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            inputs = [query, key, value]
            if layer == receiver.layer:
                inputs[index] = inputs[index].clone()
                inputs[index][:, row] = values
            return inputs[0], inputs[1], inputs[2]

        return self._run(len(values), edit_inputs=put)[1]

    @torch.inference_mode()
    def _run(self, copies: int, text: Encoding | None = None, **options: Any) -> tuple[HeadCall, np.ndarray]:
        """One pass of so many copies of a text, and the logits [copies, C]."""
        call = self.clf.call(self.mask, **options)
        self.texts += copies
        with gpu_products(self.clf.device):
            return call, numbers_of(self.clf.forward(self.clf.collate([text or self.text] * copies), call))


def _edges(receiver: HeadId | None, into: Into, effects: np.ndarray) -> list[Edge]:
    """One for each sender, from [pairs, L, H]."""
    n, mean = len(effects), effects.mean(axis=0)
    half = np.full_like(mean, np.nan)
    if n > 1:
        half = scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2) * effects.std(axis=0, ddof=1) / np.sqrt(n)
    return [
        Edge(HeadId(int(i), int(j)), receiver, into, *(float(x[i, j]) for x in (mean, mean - half, mean + half)))
        for i, j in np.argwhere(np.isfinite(mean))
    ]


def _strongest(edges: Sequence[Edge]) -> list[Edge]:
    return in_order(edges, [-abs(e.effect) for e in edges], seed=0)

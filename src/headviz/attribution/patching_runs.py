"""The passes of patching: a text's, with heads' outputs of a donor put in, one head or a set of heads at a time.

Shapes: T tokens, D hidden size, W = heads present · head size, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from ..heads import HeadId, HeadMask
from ..models.fast.packing import Chunk, Group
from ..models.fast.stages import Stages, stages_for
from ..progress import Cancel, Progress, tracked
from .alignment import Alignment

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


@dataclass(frozen=True)
class Swap:
    """Tokens of the text and the tokens of the donor whose values they take."""

    here: tuple[int, ...]
    there: tuple[int, ...]

    @classmethod
    def of(cls, chosen: Sequence[int], alignment: Alignment) -> Swap:
        """Chosen tokens of the text, each with its partner in the donor."""
        return cls(tuple(chosen), tuple(j for i in chosen if (j := alignment[i]) is not None))


class Run(Protocol):
    def answer(self) -> np.ndarray: ...

    def donor_answer(self) -> np.ndarray: ...

    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray: ...

    def each_set(self, sets: Sequence[Sequence[HeadId]], swap: Swap) -> np.ndarray:
        """The logits [sets, C] with all heads of a set patched."""
        ...


def run_of(clf: Classifier, text: Encoding, donor: Encoding, mask: HeadMask, swap: Swap) -> Run:
    """The fastest run for this swap: of the last layer the stages have the first tokens alone."""
    stages, first = stages_for(clf), dict(zip(swap.here, swap.there, strict=True)).get(0, 0)
    return Staged(clf, stages, text, donor, mask) if stages.splits and first == 0 else Whole(clf, text, donor, mask)


class Staged:
    """By the fast stages: what lies before the patched layer is computed once, the rest for all its heads at a time."""

    def __init__(self, clf: Classifier, stages: Stages, text: Encoding, donor: Encoding, mask: HeadMask) -> None:
        self.clf, self.stages, self.gates = clf, stages, clf.gates(mask)
        self.length = len(text)
        self.states, self.contexts, self._answer = self._pass(text)
        _, self.donor_contexts, self._donor_answer = self._pass(donor)

    def _pass(self, text: Encoding) -> tuple[list[Tensor], list[Tensor], np.ndarray]:
        """What each layer reads, its heads' outputs, and the logits."""
        chunk, states, contexts = _copies(1, len(text)), [], []
        hidden = self.stages.embed(chunk, [text])
        for layer in range(self.clf.num_layers):
            states.append(hidden)
            contexts.append(self.stages.context(layer, hidden, chunk))
            entry = self.stages.entry(layer, hidden, chunk)
            hidden = self.stages.finish(layer, entry, contexts[-1], self.gates)
        return states, contexts, numbers_of(self.stages.read_out(hidden, chunk))[0]

    def answer(self) -> np.ndarray:
        return self._answer

    def donor_answer(self) -> np.ndarray:
        return self._donor_answer

    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray:
        """The logits [heads, C] with one head of the layer patched. A head that is the same in both changes nothing."""
        own, size = self.contexts[layer], self.clf.head_size
        rows = [self.clf.present.kept_in(layer).index(head) for head in heads]
        patched = self._swapped(layer, own, swap)
        differs = [bool((patched != own)[:, row * size : (row + 1) * size].any()) for row in rows]
        out = np.repeat(self._answer[None], len(heads), axis=0)
        live = [row for row, other in zip(rows, differs, strict=True) if other]
        if not live:
            return out
        chunk = _copies(len(live), self.length)
        context = own.repeat(len(live), 1).view(len(live), *own.shape)
        for copy, row in enumerate(live):
            columns = slice(row * size, (row + 1) * size)
            context[copy, :, columns] = patched[:, columns]
        hidden = self.states[layer].repeat(len(live), 1)
        hidden = self.stages.finish(layer, self.stages.entry(layer, hidden, chunk), context.flatten(0, 1), self.gates)
        for later in range(layer + 1, self.clf.num_layers):
            hidden = self.stages.layer(later, hidden, chunk, self.gates)
        out[np.array(differs)] = numbers_of(self.stages.read_out(hidden, chunk))
        return out

    def each_set(self, sets: Sequence[Sequence[HeadId]], swap: Swap) -> np.ndarray:
        chunk, size = _copies(len(sets), self.length), self.clf.head_size
        hidden = self.states[0].repeat(len(sets), 1)
        for layer in range(self.clf.num_layers):
            context = self.stages.context(layer, hidden, chunk).clone()
            copies = context.view(len(sets), len(context) // len(sets), context.shape[-1])
            present = self.clf.present.kept_in(layer)
            for copy, heads in zip(copies, sets, strict=True):
                rows = [present.index(head.head) for head in heads if head.layer == layer]
                patched = self._swapped(layer, copy, swap) if rows else copy
                for row in rows:
                    columns = slice(row * size, (row + 1) * size)
                    copy[:, columns] = patched[:, columns]
            hidden = self.stages.finish(
                layer, self.stages.entry(layer, hidden, chunk), copies.flatten(0, 1), self.gates
            )
        return numbers_of(self.stages.read_out(hidden, chunk))

    def _swapped(self, layer: int, context: Tensor, swap: Swap) -> Tensor:
        donor = self.donor_contexts[layer]
        if context.shape[0] < self.length:  # first tokens alone, which belong together
            return donor.clone() if 0 in swap.here else context
        out = context.clone()
        out[list(swap.here)] = donor[list(swap.there)]
        return out


class Whole:
    """By whole passes of the model, for families without fast stages, and first tokens that take another's values."""

    def __init__(self, clf: Classifier, text: Encoding, donor: Encoding, mask: HeadMask) -> None:
        self.clf, self.text, self.mask = clf, text, mask
        self._answer, self.outputs = self._pass(text)
        self._donor_answer, self.donor_outputs = self._pass(donor)

    @torch.inference_mode()
    def _pass(self, text: Encoding) -> tuple[np.ndarray, list[Tensor]]:
        call = self.clf.call(self.mask, keep_outputs=True)
        return numbers_of(self.clf.forward(self.clf.collate([text]), call))[0], call.outputs

    def answer(self) -> np.ndarray:
        return self._answer

    def donor_answer(self) -> np.ndarray:
        return self._donor_answer

    @torch.inference_mode()
    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray:
        rows = [self.clf.present.kept_in(layer).index(head) for head in heads]
        here, there = list(swap.here), list(swap.there)
        own, donor = self.outputs[layer][0], self.donor_outputs[layer][0]  # [h, T, d]
        out = np.repeat(self._answer[None], len(heads), axis=0)
        live = [n for n, row in enumerate(rows) if not torch.equal(own[row, here], donor[row, there])]
        if not live:
            return out

        def edit(at: int, outputs: Tensor) -> Tensor:
            if at != layer:
                return outputs
            outputs = outputs.clone()
            for copy, n in enumerate(live):
                outputs[copy, rows[n], here] = donor[rows[n], there]
            return outputs

        call = self.clf.call(self.mask, edit_outputs=edit)
        out[live] = numbers_of(self.clf.forward(self.clf.collate([self.text] * len(live)), call))
        return out

    @torch.inference_mode()
    def each_set(self, sets: Sequence[Sequence[HeadId]], swap: Swap) -> np.ndarray:
        here, there = list(swap.here), list(swap.there)

        def edit(at: int, outputs: Tensor) -> Tensor:
            outputs, present = outputs.clone(), self.clf.present.kept_in(at)
            for copy, heads in enumerate(sets):
                for row in (present.index(head.head) for head in heads if head.layer == at):
                    outputs[copy, row, here] = self.donor_outputs[at][0][row, there]
            return outputs

        call = self.clf.call(self.mask, edit_outputs=edit)
        return numbers_of(self.clf.forward(self.clf.collate([self.text] * len(sets)), call))


def without_each(
    clf: Classifier, text: Encoding, mask: HeadMask, progress: Progress | None = None, cancel: Cancel | None = None
) -> np.ndarray:
    """[L, H, C] the logits of one text without each head that is on; NaN for the others. For families with fast stages.

    It is a patch by a donor whose every head gives what stands in a head's place.
    """
    run = Staged(clf, stages_for(clf), text, text, mask)
    everywhere = tuple(range(len(text)))
    out = np.full((clf.num_layers, clf.num_heads, clf.num_labels), np.nan)
    for layer in tracked(range(clf.num_layers), progress, cancel):
        given = torch.zeros_like(run.contexts[layer])
        if clf.fill is not None:
            given += clf.fill.values[layer][list(clf.present.kept_in(layer))].reshape(1, -1).to(given)
        run.donor_contexts[layer] = given
        if heads := mask.kept_in(layer):
            out[layer, list(heads)] = run.each_head(layer, heads, Swap(everywhere, everywhere))
    return out


def _copies(count: int, length: int) -> Chunk:
    """The same text several times, side by side."""
    return Chunk(tuple([0] * count), (Group(0, count * length, count, length, 0),))


def numbers_of(logits: Tensor) -> np.ndarray:
    values: np.ndarray = logits.float().cpu().numpy()
    return values

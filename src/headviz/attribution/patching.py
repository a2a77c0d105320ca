"""``headviz.patch``: what each head carries. Its output for a donor text is put into the pass of another text.

Two texts that differ in one thing get different answers. A head whose output, taken from one and put into the other,
moves the answer carries the difference. Shapes: T tokens, D hidden size, W = heads present · head size, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from ..errors import ModelError, OptionError
from ..heads import HeadMask
from ..models.fast.packing import Chunk, Group
from ..models.fast.stages import Stages, stages_for
from ..models.network import require_model
from ..progress import Cancel, Progress, tracked
from ..results import Result
from .alignment import ALL, Alignment, align, checked, places
from .inputs import encode, resolve_target

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding

Text = str | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Patching(Result):
    """How far each head, patched alone, moves the answer: 0 = as for the text, 1 = as for the donor.

    ``effect`` [L, H] can lie outside 0 to 1, and is NaN for a removed head, and everywhere if the two texts have the
    same value of what is measured. ``whole`` are the logits with every head patched and the text's own embeddings.
    """

    effect: np.ndarray  # [L, H]
    logits: np.ndarray  # [L, H, C] with one head patched
    whole: np.ndarray  # [C]
    from_logits: np.ndarray  # [C] of the text
    to_logits: np.ndarray  # [C] of the donor
    from_label: str  # the answer for the text
    to_label: str
    measured: str  # what is measured, in words
    tokens: tuple[str, ...]
    donor_tokens: tuple[str, ...]
    alignment: Alignment
    positions: tuple[int, ...]  # tokens of the text that took the donor's values
    span: float  # what is measured, of the donor minus of the text


def patch(
    clf: Classifier,
    text: Text,
    donor: Text,
    *,
    positions: str | Sequence[int] = ALL,
    target: str | int | None = None,
    alignment: Mapping[int, int] | None = None,
    mask: HeadMask | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Patching:
    """Put the output of each head for ``donor`` into the pass of ``text``, one head at a time.

    A text is a string, or two for models that compare two texts. ``positions`` are the tokens of ``text`` that take
    the donor's values: "all", "changed" (those with another token in the donor), "first", or token numbers. Texts of
    equal shape are aligned place by place, others by common words, or as ``alignment`` says: {token of the text: token
    of the donor}. Measured is the logit of the donor's answer minus that of the text's answer, or of the one class if
    both answers are equal; ``target`` names a class to measure instead. ``mask`` holds for both texts.

    Raises ``UserError`` if the texts cannot be aligned, and for models that do not classify.

    >>> import headviz
    >>> clf = headviz.load("demo")
    >>> no, yes = ("The dog is not sleeping.", "The dog is sleeping."), ("The dog is sleeping.", "The dog is sleeping.")
    >>> found = headviz.patch(clf, no, yes)
    >>> found.effect.shape
    (12, 12)
    """
    (one,), (other,) = encoded(clf, text), encoded(clf, donor)
    alignment_ = align(one, other) if alignment is None else checked(alignment, one, other)
    chosen = places(positions, one, other, alignment_)
    wanted = None if target is None else resolve_target(clf, target, None)
    present = clf.under(mask)
    run = _run_of(clf, one, other, present)
    start, end = run.answer(), run.donor_answer()
    a, b = int(start.argmax()), int(end.argmax())
    measured = Measured(wanted, None, clf.labels) if isinstance(wanted, int) else Measured.between(a, b, clf.labels)
    swap = Swap.of(chosen, alignment_)
    grid = np.full((clf.num_layers, clf.num_heads, len(start)), np.nan, dtype=np.float32)
    for layer in tracked(range(clf.num_layers), progress, cancel):
        heads = present.kept_in(layer)
        if heads:
            grid[layer, list(heads)] = run.each_head(layer, heads, swap)
    whole = run.every_head(swap)
    span = measured.of(end) - measured.of(start)
    with np.errstate(invalid="ignore"):
        moved = measured.of(grid) - measured.of(start)
        effect = moved / span if span != 0 else np.full_like(moved, np.nan)
    return Patching(
        effect,
        grid,
        whole,
        start,
        end,
        clf.labels[a],
        clf.labels[b],
        measured.words,
        tuple(clf.tokens(one)),
        tuple(clf.tokens(other)),
        alignment_,
        chosen,
        float(span),
    )


def check_pairs(pairs: object) -> None:
    """Refuse what is no list of (text, donor)."""
    if not isinstance(pairs, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        raise OptionError("pairs are a list of (text, donor), such as [('a dog sleeps', 'no dog sleeps')].")


def encoded(clf: Classifier, text: Text) -> list[Encoding]:
    require_model(clf)
    if clf.classes is None:
        raise ModelError(f"'{clf.name}' does not classify texts, so no answer can be patched.")
    if isinstance(text, str):
        return encode(clf, [text], None)
    if not isinstance(text, (tuple, list)) or len(text) != 2:
        raise OptionError("A text is a string, or two strings for a model that compares two texts.")
    return encode(clf, [text[0]], [text[1]])


@dataclass(frozen=True)
class Measured:
    """The logit of one class, or its lead over another."""

    toward: int
    away: int | None
    labels: tuple[str, ...]

    @classmethod
    def between(cls, text: int, donor: int, labels: tuple[str, ...]) -> Measured:
        """The donor's answer against the text's, or the one answer of both."""
        return cls(donor, None if text == donor else text, labels)

    def of(self, logits: np.ndarray) -> np.ndarray:
        value = logits[..., self.toward].astype(np.float64)
        return value if self.away is None else value - logits[..., self.away]

    @property
    def words(self) -> str:
        lead = "" if self.away is None else f" minus the logit of {self.labels[self.away]}"
        return f"logit of {self.labels[self.toward]}{lead}"


@dataclass(frozen=True)
class Swap:
    """Tokens of the text and the tokens of the donor whose values they take."""

    here: tuple[int, ...]
    there: tuple[int, ...]

    @classmethod
    def of(cls, chosen: Sequence[int], alignment: Alignment) -> Swap:
        """Chosen tokens of the text, each with its partner in the donor."""
        return cls(tuple(chosen), tuple(j for i in chosen if (j := alignment[i]) is not None))


class _Run(Protocol):
    def answer(self) -> np.ndarray: ...

    def donor_answer(self) -> np.ndarray: ...

    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray: ...

    def every_head(self, swap: Swap) -> np.ndarray: ...


def _run_of(clf: Classifier, text: Encoding, donor: Encoding, mask: HeadMask) -> _Run:
    stages = stages_for(clf)
    return _Staged(clf, stages, text, donor, mask) if stages.splits else _Whole(clf, text, donor, mask)


class _Staged:
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

    def every_head(self, swap: Swap) -> np.ndarray:
        chunk = _copies(1, self.length)
        hidden = self.states[0]
        for layer in range(self.clf.num_layers):
            context = self._swapped(layer, self.stages.context(layer, hidden, chunk), swap)
            hidden = self.stages.finish(layer, self.stages.entry(layer, hidden, chunk), context, self.gates)
        return numbers_of(self.stages.read_out(hidden, chunk))[0]

    def _swapped(self, layer: int, context: Tensor, swap: Swap) -> Tensor:
        donor = self.donor_contexts[layer]
        if context.shape[0] < self.length:  # first tokens alone
            return donor.clone() if 0 in swap.here else context
        out = context.clone()
        out[list(swap.here)] = donor[list(swap.there)]
        return out


class _Whole:
    """By whole passes of the model, for families without fast stages."""

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
    def every_head(self, swap: Swap) -> np.ndarray:
        here, there = list(swap.here), list(swap.there)

        def edit(at: int, outputs: Tensor) -> Tensor:
            outputs = outputs.clone()
            outputs[0][:, here] = self.donor_outputs[at][0][:, there]
            return outputs

        call = self.clf.call(self.mask, edit_outputs=edit)
        return numbers_of(self.clf.forward(self.clf.collate([self.text]), call))[0]


def without_each(
    clf: Classifier, text: Encoding, mask: HeadMask, progress: Progress | None = None, cancel: Cancel | None = None
) -> np.ndarray:
    """[L, H, C] the logits of one text without each head that is on; NaN for the others. For families with fast stages.

    It is a patch by a donor whose every head gives what stands in a head's place.
    """
    run = _Staged(clf, stages_for(clf), text, text, mask)
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

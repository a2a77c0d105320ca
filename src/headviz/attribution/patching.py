"""``headviz.patch``: what each head carries. Its output for a donor text is put into the pass of another text.

Two texts that differ in one thing get different answers. A head whose output, taken from one and put into the other,
moves the answer carries the difference. ``headviz.patch_pairs`` patches many minimal pairs, with an interval and a test
for each head. Shape: C classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import scipy
import torch
from torch import Tensor

from ..errors import ModelError, OptionError, TaskError, shown
from ..heads import HeadId, HeadMask, head_of, highest
from ..models.fast.linear import gpu_products
from ..models.fast.packing import Chunk, Group
from ..models.fast.stages import Stages, stages_for
from ..models.network import require_model
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..statistics.significance import LEVEL, benjamini_hochberg
from ..storage.exchange import MaskLike
from .alignment import ALL, Alignment, aligned_by, places
from .conductance import encode_one, resolve_target

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding
    from ..tasks.readers import Table


# -----------------------------------------------------------------------------------------------
# The passes of patching: a text's, with heads' outputs of a donor put in, one head or a set of heads at a time.
#
# Shapes: T tokens, D hidden size, W = heads present · head size, C classes.


@dataclass(frozen=True)
class Swap:
    """Tokens of the text and the tokens of the donor whose values they take."""

    tokens: tuple[int, ...]
    donor_tokens: tuple[int, ...]

    @classmethod
    def of(cls, chosen: Sequence[int], alignment: Alignment) -> Swap:
        """Chosen tokens of the text, each with its partner in the donor."""
        return cls(tuple(chosen), tuple(j for i in chosen if (j := alignment[i]) is not None))


class Run(Protocol):
    answer: np.ndarray  # the logits of the text
    donor_answer: np.ndarray

    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray: ...

    def each_set(self, sets: Sequence[Sequence[HeadId]], swap: Swap) -> np.ndarray:
        """The logits [sets, C] with all heads of a set patched."""
        ...


def run_of(clf: Classifier, text: Encoding, donor: Encoding, mask: HeadMask, swap: Swap) -> Run:
    """The fastest run for this swap: in the last layer the stages compute the first tokens alone."""
    stages, first = stages_for(clf), dict(zip(swap.tokens, swap.donor_tokens, strict=True)).get(0, 0)
    staged = stages.splits and first == 0 and clf.in_stages([text, donor])
    return Staged(clf, stages, text, donor, mask) if staged else Whole(clf, text, donor, mask)


class Staged:
    """By the fast stages: what lies before the patched layer is computed once, the rest for all its heads at a time."""

    def __init__(self, clf: Classifier, stages: Stages, text: Encoding, donor: Encoding, mask: HeadMask) -> None:
        self.clf, self.stages, self.gates = clf, stages, clf.gates(mask)
        self.length = len(text)
        self.states, self.contexts, self.answer = self._pass(text)
        self.text = text
        _, self.donor_contexts, self.donor_answer = self._pass(donor)

    def _pass(self, text: Encoding) -> tuple[list[Tensor], list[Tensor], np.ndarray]:
        """What each layer reads, its heads' outputs, and the logits."""
        chunk, states, contexts = copies_of(1, len(text)), [], []
        hidden = self.stages.embed(chunk, [text])
        for layer in range(self.clf.num_layers):
            states.append(hidden)
            contexts.append(self.stages.context(layer, hidden, chunk))
            entry = self.stages.entry(layer, hidden, chunk)
            hidden = self.stages.finish(layer, entry, contexts[-1], self.gates)
        return states, contexts, numbers_of(self.stages.read_out(hidden, chunk, [text]))[0]

    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray:
        """The logits [heads, C] with one head of the layer patched. A head that is the same in both changes nothing."""
        context, size = self.contexts[layer], self.clf.head_size
        rows = [self.clf.present.kept_in(layer).index(head) for head in heads]
        patched = self._swapped(layer, context, swap)
        differs = [bool((patched != context)[:, row * size : (row + 1) * size].any()) for row in rows]
        logits = np.repeat(self.answer[None], len(heads), axis=0)
        differing = list(compress(rows, differs))
        if not differing:
            return logits
        count = len(differing)
        chunk = copies_of(count, self.length)
        copies = context.repeat(count, 1).view(count, *context.shape)
        for copy, row in zip(copies, differing, strict=True):
            columns = slice(row * size, (row + 1) * size)
            copy[:, columns] = patched[:, columns]
        hidden = self.states[layer].repeat(count, 1)
        hidden = self.stages.finish(layer, self.stages.entry(layer, hidden, chunk), copies.flatten(0, 1), self.gates)
        for later in range(layer + 1, self.clf.num_layers):
            hidden = self.stages.layer(later, hidden, chunk, self.gates)
        logits[np.array(differs)] = numbers_of(self.stages.read_out(hidden, chunk, [self.text]))
        return logits

    def each_set(self, sets: Sequence[Sequence[HeadId]], swap: Swap) -> np.ndarray:
        chunk, size = copies_of(len(sets), self.length), self.clf.head_size
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
        return numbers_of(self.stages.read_out(hidden, chunk, [self.text]))

    def _swapped(self, layer: int, context: Tensor, swap: Swap) -> Tensor:
        donor = self.donor_contexts[layer]
        if context.shape[0] < self.length:  # first tokens alone, which belong together
            return donor.clone() if 0 in swap.tokens else context
        swapped = context.clone()
        swapped[list(swap.tokens)] = donor[list(swap.donor_tokens)]
        return swapped


class Whole:
    """By whole passes of the model, for families without fast stages, and first tokens that take another's values."""

    def __init__(self, clf: Classifier, text: Encoding, donor: Encoding, mask: HeadMask) -> None:
        self.clf, self.text, self.mask = clf, text, mask
        self.answer, self.outputs = self._pass(text)
        self.donor_answer, self.donor_outputs = self._pass(donor)

    @torch.inference_mode()
    def _pass(self, text: Encoding) -> tuple[np.ndarray, list[Tensor]]:
        call = self.clf.call(self.mask, keep_outputs=True)
        return numbers_of(self.clf.forward(self.clf.collate([text]), call))[0], call.outputs

    @torch.inference_mode()
    def each_head(self, layer: int, heads: Sequence[int], swap: Swap) -> np.ndarray:
        rows = [self.clf.present.kept_in(layer).index(head) for head in heads]
        tokens, donor_tokens = list(swap.tokens), list(swap.donor_tokens)
        text, donor = self.outputs[layer][0], self.donor_outputs[layer][0]  # [h, T, d]
        logits = np.repeat(self.answer[None], len(heads), axis=0)
        differing = [n for n, row in enumerate(rows) if not torch.equal(text[row, tokens], donor[row, donor_tokens])]
        if not differing:
            return logits

        def edit(edited: int, outputs: Tensor) -> Tensor:
            if edited != layer:
                return outputs
            outputs = outputs.clone()
            for copy, n in enumerate(differing):
                outputs[copy, rows[n], tokens] = donor[rows[n], donor_tokens]
            return outputs

        call = self.clf.call(self.mask, edit_outputs=edit)
        logits[differing] = numbers_of(self.clf.forward(self.clf.collate([self.text] * len(differing)), call))
        return logits

    @torch.inference_mode()
    def each_set(self, sets: Sequence[Sequence[HeadId]], swap: Swap) -> np.ndarray:
        tokens, donor_tokens = list(swap.tokens), list(swap.donor_tokens)

        def edit(layer: int, outputs: Tensor) -> Tensor:
            outputs, present = outputs.clone(), self.clf.present.kept_in(layer)
            for copy, heads in enumerate(sets):
                for row in (present.index(head.head) for head in heads if head.layer == layer):
                    outputs[copy, row, tokens] = self.donor_outputs[layer][0][row, donor_tokens]
            return outputs

        call = self.clf.call(self.mask, edit_outputs=edit)
        return numbers_of(self.clf.forward(self.clf.collate([self.text] * len(sets)), call))


def without_each(
    clf: Classifier, text: Encoding, mask: HeadMask, progress: Progress | None = None, cancel: Cancel | None = None
) -> np.ndarray:
    """[L, H, C] the logits of one text without each head that is on; NaN for the others. For families with fast stages.

    It is a patch by a donor whose every head gives what stands in a head's place.
    """
    with gpu_products(clf.device):
        run = Staged(clf, stages_for(clf), text, text, mask)
    everywhere = tuple(range(len(text)))
    logits = np.full((clf.num_layers, clf.num_heads, clf.num_labels), np.nan)
    for layer in tracked(range(clf.num_layers), progress, cancel):
        contexts = torch.zeros_like(run.contexts[layer])
        if clf.fill is not None:
            contexts += clf.fill.values[layer][list(clf.present.kept_in(layer))].reshape(1, -1).to(contexts)
        run.donor_contexts[layer] = contexts
        if heads := mask.kept_in(layer):
            with gpu_products(clf.device):
                logits[layer, list(heads)] = run.each_head(layer, heads, Swap(everywhere, everywhere))
    return logits


def copies_of(count: int, length: int) -> Chunk:
    """The same text several times, side by side."""
    return Chunk((0,) * count, (Group(0, count * length, count, length, 0),))


def numbers_of(logits: Tensor) -> np.ndarray:
    values: np.ndarray = logits.float().cpu().numpy()
    return values


# -----------------------------------------------------------------------------------------------


Text = str | tuple[str, str]
T = TypeVar("T")
LOT = 4096  # tokens of one batch
SMALLEST_SPAN = 1e-3  # of the measured logits: a share of less is one of rounding


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
    least: float  # of a smaller span an effect says nothing
    together: np.ndarray  # [S] the effect of each of ``sets`` patched as one


def patch(
    clf: Classifier,
    text: Text,
    donor: Text,
    *,
    positions: str | Sequence[int] = ALL,
    target: str | int | None = None,
    alignment: Mapping[int, int] | None = None,
    sets: Sequence[Sequence[HeadId | tuple[int, int]]] = (),
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Patching:
    """Put the output of each head for ``donor`` into the pass of ``text``, one head at a time.

    A text is a string, or two for models that compare two texts. ``positions`` are the tokens of ``text`` that take
    the donor's values: "all", "changed" (those with another token in the donor), "first", or token numbers. Texts of
    equal shape are aligned place by place, others by common words, or as ``alignment`` says: {token of the text: token
    of the donor}. Measured is the logit of the donor's answer minus that of the text's answer, or of the one class if
    both answers are equal; ``target`` names a class to measure instead. ``mask`` holds for both texts. ``sets`` are
    heads that are patched together, each set as one.

    Raises ``UserError`` if the texts cannot be aligned, and for models that do not classify.

    >>> import headviz
    >>> clf = headviz.load("demo")
    >>> no, yes = ("The dog is not sleeping.", "The dog is sleeping."), ("The dog is sleeping.", "The dog is sleeping.")
    >>> result = headviz.patch(clf, no, yes)
    >>> result.effect.shape
    (12, 12)
    """
    encoding, donor_encoding = encoded(clf, text), encoded(clf, donor)
    aligned = aligned_by(alignment, encoding, donor_encoding)
    chosen = places(positions, encoding, donor_encoding, aligned)
    output = None if target is None else resolve_target(clf, target)
    present = clf.under(mask)
    joined = [_checked_set(heads, present) for heads in sets]
    swap = Swap.of(chosen, aligned)
    with gpu_products(clf.device):
        run = run_of(clf, encoding, donor_encoding, present, swap)
    start, end = run.answer, run.donor_answer
    measured = clf.answer.lead(start, end, output, clf.labels)
    grid = np.full((clf.num_layers, clf.num_heads, *start.shape), np.nan, dtype=np.float32)
    for layer in tracked(range(clf.num_layers), progress, cancel):
        heads = present.kept_in(layer)
        if heads:
            with gpu_products(clf.device):
                grid[layer, list(heads)] = run.each_head(layer, heads, swap)
    lots = lots_of([present.kept, *joined], len(encoding))
    with gpu_products(clf.device):
        whole, *logits = (row for lot in lots for row in run.each_set(lot, swap))
    span = measured.of(end) - measured.of(start)

    def share(logits: np.ndarray) -> np.ndarray:
        moved = measured.of(logits) - measured.of(start)
        return moved / span if abs(span) >= SMALLEST_SPAN else np.full_like(moved, np.nan)

    with np.errstate(invalid="ignore"):
        effect, together = share(grid), share(np.array(logits).reshape(-1, *start.shape))
    return Patching(
        effect,
        grid,
        whole,
        start,
        end,
        measured.text,
        measured.donor,
        measured.words,
        tuple(clf.tokens(encoding)),
        tuple(clf.tokens(donor_encoding)),
        aligned,
        chosen,
        float(span),
        measured.least,
        together,
    )


def _checked_set(heads: Sequence[HeadId | tuple[int, int]], present: HeadMask) -> tuple[HeadId, ...]:
    """Heads that are patched together; refused where the model has not got them, or they are off."""
    if isinstance(heads, str) or not isinstance(heads, Iterable):
        raise OptionError(f"Each of sets is a list of heads, such as [(3, 5), (7, 0)], not {shown(heads)}.")
    chosen = tuple(head_of(head) for head in heads)
    present.without(chosen)  # refuses what is not on the grid
    off = [head.dotted for head in chosen if head not in present.kept]
    if off:
        raise OptionError(f"Head {off[0]} is off, so it cannot be patched.")
    return chosen


def lots_of(items: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    """As many at once as copies of a text of so many tokens fit into a batch."""
    size = max(1, LOT // length)
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def check_pairs(pairs: object) -> None:
    """Refuse what is no list of (text, donor)."""
    if not isinstance(pairs, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        raise OptionError("pairs are a list of (text, donor), such as [('a dog sleeps', 'no dog sleeps')].")


def encoded(clf: Classifier, text: Text) -> Encoding:
    require_model(clf)
    clf.check_classes(ModelError(f"'{clf.name}' does not classify texts, so no answer can be patched."))
    if isinstance(text, str):
        return encode_one(clf, text, None)
    if not isinstance(text, (tuple, list)) or len(text) != 2:
        raise OptionError("A text is a string, or two strings for a model that compares two texts.")
    return encode_one(clf, *text)


@dataclass(frozen=True, eq=False)
class PatchingSet(Result):
    """The effect of each head over a set of pairs, [L, H]: 0 = the answer stays the text's, 1 = it is the donor's.

    ``mean`` has a 95 % interval of Student's t over pairs, ``p_value`` is that of a mean of 0, ``q_value`` by
    Benjamini and Hochberg over all heads. ``n`` pairs were used; ``same_answer`` got one answer for both texts, and
    ``small`` hardly moved what is measured: both say nothing and are left out.
    """

    mean: np.ndarray
    interval_low: np.ndarray
    interval_high: np.ndarray
    p_value: np.ndarray
    q_value: np.ndarray
    n: int
    same_answer: int
    small: int
    positions: str
    together: np.ndarray  # [n, S] the effect of each of ``sets`` patched as one, in each pair

    def ranked(self) -> list[HeadId]:
        """Heads with a value, the largest mean effect first."""
        return highest(np.abs(self.mean))

    def extra(self) -> dict[str, Any]:
        return {"ranking": self.ranked()}


def pairs_of(table: Table) -> list[tuple[Text, Text]]:
    """The (text, donor) of each row of a table.

    Its columns are text and donor, and text_pair and donor_pair for models that compare two texts; a donor without a
    pair has the text's. Or it has two columns of any name, whose cells may hold two texts with ``|`` between them.
    """
    columns = table.columns
    if len(columns) == 2 and not {"text", "donor"} & set(columns):
        first, second = columns.values()
        return [(_split(a), _split(b)) for a, b in zip(first, second, strict=True)]
    for name in ("text", "donor"):
        if name not in columns:
            raise TaskError(
                f"{table.name} has no column '{name}'. It needs text and donor, and pairs if any, or just two columns."
            )
    pairs = columns.get("text_pair", [None] * len(table))
    donor_pairs = columns.get("donor_pair", pairs)
    rows = zip(columns["text"], pairs, columns["donor"], donor_pairs, strict=True)
    return [(_joined(text, pair), _joined(donor, donor_pair or pair)) for text, pair, donor, donor_pair in rows]


def _joined(first: Any, second: Any) -> Text:
    return (str(first), str(second)) if second else _split(first)


def _split(cell: Any) -> Text:
    parts = [part.strip() for part in str(cell).split("|")]
    return (parts[0], parts[1]) if len(parts) == 2 else str(cell)


def patch_pairs(
    clf: Classifier,
    pairs: Sequence[tuple[Text, Text]],
    *,
    positions: str = ALL,
    sets: Sequence[Sequence[HeadId | tuple[int, int]]] = (),
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PatchingSet:
    """Patch each (text, donor) as ``headviz.patch`` does, and average the effect of each head over the pairs.

    A pair that is there twice counts once. Raises ``OptionError`` where fewer than two pairs have different answers,
    and what ``patch`` raises for a pair.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> no, yes = ("The dog is not sleeping.", "The dog is sleeping."), ("The dog is sleeping.", "The dog is sleeping.")
    >>> result = headviz.patch_pairs(clf, [(no, yes), (yes, no)])
    >>> result.n, result.mean.shape
    (2, (12, 12))
    """
    check_pairs(pairs)
    require_model(clf)
    pairs = list({repr(pair): pair for pair in pairs}.values())
    effects, together, same, small = [], [], 0, 0
    for text, donor in tracked(pairs, progress, cancel):
        result = patch(clf, text, donor, positions=positions, sets=sets, mask=mask, cancel=cancel)
        if result.from_label == result.to_label:
            same += 1
        elif abs(result.span) < result.least:
            small += 1
        else:
            effects.append(result.effect)
            together.append(result.together)
    if len(effects) < 2:
        raise OptionError(
            f"Of {len(pairs)} pairs {same} have one answer for both texts and {small} hardly move it, so there are "
            "too few to average. Give pairs of which the model answers differently."
        )
    values = np.array(effects)  # [n, L, H]
    n, mean = len(values), values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(n)
    half = scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * scipy.special.stdtr(n - 1, -np.abs(mean) / error)
    p = np.where((error == 0) & (mean == 0), 1.0, p)  # a head that never moves anything
    q = benjamini_hochberg(p)
    return PatchingSet(mean, mean - half, mean + half, p, q, n, same, small, positions, np.array(together))

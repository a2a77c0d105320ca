"""What a mask does to one text: what each further head would change, which heads give the full model's answer back,
and how far attention moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..attention import Gate, HeadCall, factor_of, gate_of
from ..errors import MaskError
from ..heads import HeadId, HeadMask, in_order
from ..models.fast.linear import gpu_products
from ..progress import Cancel, Progress, stop_if, tracked
from ..results import Result
from .conductance import encode_one

if TYPE_CHECKING:
    from ..answers.answer import Answer
    from ..models.classifier import Classifier

AT_ONCE = 48  # masks in one batch
TRIALS = 1500  # forward passes of one text before the search stops being exhaustive


@torch.inference_mode()
def toggled_each(
    clf: Classifier,
    text: str,
    pair: str | None,
    mask: HeadMask,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> np.ndarray:
    """The answer with each head in turn switched off, or on where the mask has it off: [L, H, outputs].

    NaN for heads that the model does not have. All masks of a batch run at once, each in a row of its own.
    """
    encoding, mask = encode_one(clf, text, pair), clf.under(mask)
    heads = clf.present.kept
    answers = np.full((clf.num_layers, clf.num_heads, len(clf.labels)), np.nan, np.float32)
    for start in range(0, len(heads), AT_ONCE):
        stop_if(cancel)
        lot = heads[start : start + AT_ONCE]
        batch = clf.collate([encoding] * len(lot))
        with gpu_products(clf.device):
            logits = clf.forward(batch, _call_of_rows(clf, [mask.toggled([h]) for h in lot])).float().cpu().numpy()
        answers[tuple(np.transpose(lot))] = clf.answer.values(logits)
        if progress is not None:
            progress(start + len(lot), len(heads))
    return answers


def _call_of_rows(clf: Classifier, masks: Sequence[HeadMask]) -> HeadCall:
    """One forward pass in which each row of the batch has its own mask."""
    gates: list[Gate] = []
    for layer, of_rows in enumerate(zip(*map(clf.gates, masks), strict=True)):
        factors = [factor_of(gate) for gate in of_rows]
        example = next((f for f in factors if f is not None), None)
        if example is None:
            gates.append(None)
            continue
        factor = torch.cat([torch.ones_like(example) if f is None else f for f in factors])
        gates.append(gate_of(factor, clf.stand_in_values(layer)))
    return HeadCall(tuple(gates), order=clf.order)


@dataclass(frozen=True)
class Restored(Result):
    """The heads whose return restores the answer. ``smallest``: no smaller set does (all were tried).

    When a greedy search found the set, none of its heads can be left out, but a smaller set may exist.
    """

    heads: tuple[HeadId, ...]
    smallest: bool
    trials: int
    full: Any  # answer of the full model: the number of a class, for several labels 0 and 1 for each
    masked: Any  # under the mask


def which_heads(
    clf: Classifier,
    text: str,
    pair: str | None,
    mask: HeadMask,
    *,
    answer: Answer | None = None,
    trials: int = TRIALS,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Restored | None:
    """Search sets of growing size, most promising heads first; None if the mask changes no answer.

    Not a causal account: other sets of the same size may restore the answer as well. ``answer`` decides in place of the
    model's own, with other thresholds.
    """
    deciding = clf.answer if answer is None else answer
    if not deciding.flips:
        raise MaskError(f"The job '{clf.job}' has no single decision to restore; compare its answers instead.")
    batch = clf.collate([encode_one(clf, text, pair)])
    mask = clf.under(mask)
    off = _switched_off(clf, mask)
    count = 0

    def logits(back: Iterable[HeadId]) -> np.ndarray:
        nonlocal count
        stop_if(cancel)
        count += 1
        if progress is not None:
            progress(min(count, trials), trials)
        return clf.logits(batch, mask.with_(back)).cpu().numpy()[0]

    full_logits = clf.logits(batch, clf.full_mask).cpu().numpy()[0]
    full, masked = (deciding.plain(z[None])[0].tolist() for z in (full_logits, logits(())))
    if full == masked:
        return None

    def margin(back: Iterable[HeadId]) -> float:
        return deciding.margin(logits(back), full)

    singles = {h: margin([h]) for h in off}
    order = in_order(off, [-singles[h] for h in off], seed=0)
    if singles[order[0]] > 0:
        return Restored((order[0],), True, count, full, masked)
    tried_all = True
    for size in range(2, len(off)):
        if count + comb(len(off), size) > trials:
            tried_all = False
            break
        for group in combinations(order, size):
            if margin(group) > 0:
                return Restored(tuple(sorted(group)), True, count, full, masked)
    if tried_all:
        return Restored(tuple(off), True, count, full, masked)
    return Restored(_greedy(order, margin), False, count, full, masked)


@dataclass(frozen=True)
class Moved(Result):
    """The head whose return brings a probability nearest to the full model's; None if no head brings it nearer.

    The probabilities are of the full model's answer, for several labels of that which moves most: with all heads, under
    the mask, and with this head back on.
    """

    head: HeadId | None
    target: int
    full: float
    masked: float
    back: float


def which_moves(
    clf: Classifier,
    text: str,
    pair: str | None,
    mask: HeadMask,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Moved:
    """Switch every masked head on alone. For masks that leave the answer, where ``which_heads`` has nothing to say."""
    if not clf.answer.flips:
        raise MaskError(f"The job '{clf.job}' has no probability of a single class; compare its answers instead.")
    batch = clf.collate([encode_one(clf, text, pair)])
    mask = clf.under(mask)

    def shares(under: HeadMask) -> torch.Tensor:
        return clf.answer.probable(clf.logits(batch, under))[0]

    probabilities, without = shares(clf.full_mask), shares(mask)
    target = int((probabilities if clf.answer.decides else (probabilities - without).abs()).argmax())
    full = float(probabilities[target])
    masked = back = float(without[target])
    head: HeadId | None = None
    for h in tracked(_switched_off(clf, mask), progress, cancel):
        with_head = float(shares(mask.with_([h]))[target])
        if abs(full - with_head) < abs(full - back):
            head, back = h, with_head
    return Moved(head, target, full, masked, back)


def _switched_off(clf: Classifier, mask: HeadMask) -> list[HeadId]:
    """The heads that are off and were not removed."""
    removed = set(clf.present.off)
    return [head for head in mask.off if head not in removed]


def _greedy(order: list[HeadId], margin: Callable[[Iterable[HeadId]], float]) -> tuple[HeadId, ...]:
    """Add the head that helps most until the answer is back, then drop every head that is not needed."""
    chosen: list[HeadId] = []
    while len(chosen) < len(order):
        candidates = [h for h in order if h not in chosen]
        chosen.append(max(candidates, key=lambda h: margin([*chosen, h])))
        if margin(chosen) > 0:
            break
    for h in list(chosen):
        others = [other for other in chosen if other != h]
        if others and margin(others) > 0:
            chosen = others
    return tuple(sorted(chosen))


@torch.inference_mode()
def attention_shift(clf: Classifier, text: str, pair: str | None, mask: HeadMask) -> np.ndarray:
    """[L, H] mean over queries of half the sum of absolute differences, 0 = the same, 1 = nothing in common.

    NaN for a head that is off or removed. Not a measure of importance.
    """
    batch = clf.collate([encode_one(clf, text, pair)])
    maps = []
    for under in (clf.full_mask, mask):
        call = clf.call(under, "eager", keep_probs=True)
        with gpu_products(clf.device):
            clf.forward(batch, call)
        maps.append([p[0].float().cpu().numpy() for p in call.probs])  # per layer [h, T, T]
    shift = np.full((clf.num_layers, clf.num_heads), np.nan)
    for layer, (before, after) in enumerate(zip(*maps, strict=True)):
        present = list(clf.present.kept_in(layer))
        shift[layer, present] = 0.5 * np.abs(after - before).sum(-1).mean(-1)
    for head in mask.off:
        shift[head] = np.nan
    return shift


@torch.inference_mode()
def attention_of(
    clf: Classifier, text: str, pair: str | None, mask: HeadMask, head: HeadId
) -> tuple[list[str], np.ndarray]:
    """The tokens of a text and one head's attention to it [T, T] under a mask. Not for a head that was removed."""
    encoding = encode_one(clf, text, pair)
    call = clf.call(mask, "eager", keep_probs=True)
    with gpu_products(clf.device):
        clf.forward(clf.collate([encoding]), call)
    present = list(clf.present.kept_in(head.layer))
    if head.head not in present:
        raise MaskError(f"{head} was removed from '{clf.name}': it attends to nothing.")
    return clf.tokens(encoding), call.probs[head.layer][0, present.index(head.head)].float().cpu().numpy()

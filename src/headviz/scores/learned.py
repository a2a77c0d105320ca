"""Gates on all heads, learned by gradient on a sample: as scores (high = keep), and as mask searches ask for them.

The model's weights stay as they are.

Single ablations and single derivatives miss redundancy: with gates on all heads at once, one of two heads that do the
same can close. Every update reads a few examples and needs one forward and one backward pass.
Draws depend on the seed and the number of the update alone, so an interrupted learning continues bit for bit.

Shapes: n heads with a gate, L rows, H heads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..attention import Gate, gate_of
from ..heads import HeadId, levels
from ..models.fast.linear import products
from ..progress import stop_if
from .measures import Inputs
from .options import CountOptions, GateOptions, PriceOptions
from .scoring import Scoring
from .whole import Whole

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

OPEN = 2.5  # the logit of a gate before the first update: 0.92 open
BETA, LOW, HIGH = 0.33, -0.1, 1.1  # of hard-concrete gates (Louizos et al. 2018)
ADAM = (0.9, 0.999, 1e-8)


class Drawn(NamedTuple):
    """The gates of one update, what they cost besides the loss, and how far each head counts as kept; [n]."""

    gates: Tensor
    price: Tensor | float
    kept: Tensor


# (logits [n], share of the updates that are done, the update's own noise) -> Drawn
Rule = Callable[[Tensor, float, torch.Generator], Drawn]


@dataclass(frozen=True)
class Learned:
    """The result for each head that has a gate; [L, H], NaN elsewhere."""

    kept: np.ndarray  # the mean over the updates of how far the head was kept
    logits: np.ndarray  # of the gates after the last update


# rules ----------------------------------------------------------------------------------------


def rising_price(price: float, noise: bool = False) -> Rule:
    """All open gates together cost more and more, up to ``price``; with ``noise`` they are hard concrete."""

    def draw(logits: Tensor, done: float, generator: torch.Generator) -> Drawn:
        if noise:
            gates, opened = hard_concrete(logits, generator)
        else:
            gates = opened = torch.sigmoid(logits)
        return Drawn(gates, price * done * opened.mean(), opened)

    return draw


def hard_concrete(logits: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One draw of gates that are exactly 0 or 1 with some chance, and the chance that each is above 0."""
    u = torch.rand(logits.shape, generator=generator).clamp(1e-6, 1 - 1e-6).to(logits)
    s = torch.sigmoid((u.log() - (1 - u).log() + logits) / BETA)
    return (s * (HIGH - LOW) + LOW).clamp(0, 1), torch.sigmoid(logits - BETA * log(-LOW / HIGH))


def falling_count(first: int, last: int, temperature: float = 1.0) -> Rule:
    """Exactly so many heads are kept, from ``first`` before the first update to ``last`` at the end.

    Kept are the highest of the logits with Gumbel noise, which falls to 0. The gradient is that of ``soft_subset``. Li,
    Cotterell and Sachan (2021) keep the noise and let the temperature of that softmax fall, which keeps less here
    (``study/gate_temperatures.py``).
    """

    def draw(logits: Tensor, done: float, generator: torch.Generator) -> Drawn:
        count = max(1, round(first + (last - first) * done))
        noise_scale = temperature * (1 - done)
        u = torch.rand(logits.shape, generator=generator).clamp(1e-9, 1 - 1e-7).to(logits)
        perturbed = logits - noise_scale * torch.log(-torch.log(u))
        hard = torch.zeros_like(logits)
        hard[np.lexsort((u.numpy(), levels(perturbed.detach().numpy())))[-count:]] = 1  # ties are drawn
        soft = soft_subset(perturbed, count)
        return Drawn(hard + soft - soft.detach(), 0.0, hard)

    return draw


def soft_subset(logits: Tensor, count: int) -> Tensor:
    """How far each head is among the ``count`` highest; sums to ``count``. It is the sum of ``count`` softmaxes: the
    logits of each are lowered where those before it were high."""
    membership = torch.zeros_like(logits)
    for _ in range(count):
        probabilities = torch.softmax(logits, dim=0)
        membership = membership + probabilities
        logits = logits + torch.log((1 - probabilities).clamp_min(1e-6))
    return membership


# learning -------------------------------------------------------------------------------------


def learn(
    whole: Whole, rule: Rule, options: GateOptions, work: str, start: np.ndarray | None = None, part: str = ""
) -> Learned:
    """The gates of all heads that are on, by Adam. ``start`` [L, H] are logits to begin with; NaN = no gate, stays on.

    ``work`` and the options identify the checkpoint; ``part`` names these arrays in it where one work learns several
    times.
    """
    logits = np.full((whole.mask.num_layers, whole.mask.num_heads), OPEN) if start is None else start
    heads = [h for h in whole.heads if np.isfinite(logits[h])]
    if not heads:
        return Learned(_table(whole, heads, torch.zeros(0)), _table(whole, heads, torch.zeros(0)))
    z = torch.tensor([logits[h] for h in heads], dtype=torch.float32)
    state = {"z": z, "first": torch.zeros_like(z), "second": torch.zeros_like(z), "kept": torch.zeros_like(z)}
    begin, checkpoint = 0, whole.checkpoint_of(work, options, part)
    if (stored := checkpoint.load()) is not None:
        begin = int(stored.pop("updates"))
        state = {name: torch.from_numpy(values.copy()) for name, values in stored.items()}
    for update in range(begin, options.steps):
        stop_if(whole.cancel)
        if whole.progress is not None:
            whole.progress(update, options.steps)
        _update(whole, heads, state, rule, options, update)
        arrays = {name: t.numpy() for name, t in state.items()}
        checkpoint.save({**arrays, "updates": np.array(update + 1)}, done=update + 1 == options.steps)
    if whole.progress is not None:
        whole.progress(options.steps, options.steps)
    return Learned(_table(whole, heads, state["kept"] / options.steps), _table(whole, heads, state["z"]))


def _update(
    whole: Whole, heads: Sequence[HeadId], state: dict[str, Tensor], rule: Rule, options: GateOptions, update: int
) -> None:
    """One step of Adam on the logits."""
    generator = torch.Generator().manual_seed(noise_seed(options.seed, update))
    z = state["z"].detach().requires_grad_(True)
    rows = drawn_examples(len(whole.encodings), options.batch, options.seed, update)
    with torch.enable_grad():
        drawn = rule(z, update / options.steps, generator)
        with products(whole.clf.device):
            loss = loss_under(whole, rows, heads, drawn.gates)
            (gradient,) = torch.autograd.grad(loss + drawn.price, z)
    beta1, beta2, epsilon = ADAM
    state["first"] = beta1 * state["first"] + (1 - beta1) * gradient
    state["second"] = beta2 * state["second"] + (1 - beta2) * gradient**2
    mean = state["first"] / (1 - beta1 ** (update + 1))
    spread = (state["second"] / (1 - beta2 ** (update + 1))).sqrt()
    state["z"] = state["z"] - options.rate * mean / (spread + epsilon)
    state["kept"] = state["kept"] + drawn.kept.detach()


def loss_under(whole: Whole, rows: Sequence[int], heads: Sequence[HeadId], gates: Tensor) -> Tensor:
    """The mean training loss of some examples, with these heads' gates [n]."""
    clf = whole.clf
    gold = None if whole.gold is None else [whole.gold[i].tolist() for i in rows]
    batch = clf.labelled([whole.encodings[i] for i in rows], gold)
    labels = batch.pop("labels")
    call = clf.call(whole.mask)
    call.gates = gates_of(whole, heads, gates)
    return clf.loss(clf.forward(batch, call).float(), labels)


def gates_of(whole: Whole, heads: Sequence[HeadId], gates: Tensor) -> tuple[Gate, ...]:
    """One gate for each row: these heads' own, those of the mask for all others."""
    clf = whole.clf
    table = torch.tensor(whole.mask.array(), dtype=clf.dtype, device=clf.device)  # [L, H]
    index = torch.tensor([h.layer * clf.num_heads + h.head for h in heads], device=clf.device)
    table = table.flatten().scatter(0, index, gates.to(clf.device, clf.dtype)).view_as(table)
    rows = [list(clf.present.kept_in(row)) for row in range(clf.num_layers)]
    factors = [table[row, present].view(1, -1, 1, 1) if present else None for row, present in enumerate(rows)]
    return tuple(None if f is None else gate_of(f, clf.stand_in_values(row)) for row, f in enumerate(factors))


def drawn_examples(examples: int, batch: int, seed: int, update: int) -> list[int]:
    """The examples of one update: every one is read once before any is read again."""
    drawn: list[int] = []
    while len(drawn) < batch:
        epoch, begin = divmod(update * batch + len(drawn), examples)
        order = np.random.default_rng([seed, epoch]).permutation(examples)
        drawn += order[begin : begin + batch - len(drawn)].tolist()
    return drawn


def noise_seed(seed: int, update: int) -> int:
    return int(np.random.SeedSequence([seed, update]).generate_state(1)[0])


def _table(whole: Whole, heads: Sequence[HeadId], values: Tensor) -> np.ndarray:
    out = np.full((whole.mask.num_layers, whole.mask.num_heads), np.nan)
    for head, value in zip(heads, values.tolist(), strict=True):
        out[head] = value
    return out


MIN_UPDATES = 20  # for one exact number of heads


def gates(inputs: Inputs, options: PriceOptions) -> np.ndarray:
    """[L, H]: the mean of each gate while the price rises."""
    assert inputs.whole is not None
    return learn(inputs.whole, rising_price(options.price, options.noise), options, "gates").kept


def gates_exact(inputs: Inputs, options: CountOptions) -> np.ndarray:
    """[L, H]: the share of the updates in which each head was kept, from all heads down to one."""
    assert inputs.whole is not None
    rule = falling_count(len(inputs.whole.heads), 0, options.temperature)
    return learn(inputs.whole, rule, options, "gates-exact").kept


def learn_count(scoring: Scoring, start: np.ndarray | None, first: int, last: int) -> np.ndarray:
    """[L, H] logits of gates while the number of kept heads falls from ``first`` to ``last``.

    ``start`` has the logits to begin with; NaN = a head that stays on. Does a share of the updates, as large as the
    fall from first to last is of the full range, but no fewer than ``MIN_UPDATES``.
    """
    whole, options = scoring.sample(), scoring.options
    steps = max(MIN_UPDATES, round(options.steps * (first - last) / len(whole.heads)))
    rule = falling_count(first, last, options.temperature)
    start_digest = "" if start is None else hashlib.sha256(np.ascontiguousarray(start).tobytes()).hexdigest()
    return learn(whole, rule, replace(options, steps=steps), f"count {first} {last} {start_digest}", start).logits


def gate_gradients(
    clf: Classifier,
    data: Dataset,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> np.ndarray:
    """∂Loss(x)/∂ξ of every example and head, as the score ``fisher`` squares it: [n, L, H], 0 for removed heads."""
    scoring = Scoring(clf, data, "fisher", cache=False, label_order=label_order, progress=progress, cancel=cancel)
    for _ in scoring.grow():
        pass
    assert scoring.collector is not None
    return np.nan_to_num(scoring.collector.rows["signed"])

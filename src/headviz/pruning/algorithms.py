"""The pruning algorithms and their table.

θ0 = pre-trained weights, θ* = fine-tuned weights, κ = the share of the heads that a step removes.

An algorithm is a generator. It gets the full mask and ``sizes``, the numbers of heads that are off after each step.

    scores = yield Score(mask)                # sends back scores [L, H]: high = keep, NaN = not measured
    mask = yield Remove(scores, mask, size)   # one for each step: sends back the mask of this step

Under each mask θ* is evaluated, or θ0 is pruned and fine-tuned, as the table says (``retrains``). S(model) are the
scores of a model's heads, FT(model) is the fine-tuned model.

The runner handles seeds, ties, repairs, checkpoints and the parts of a scoring. A resumed run sends back what is
stored. So an algorithm depends only on what it is sent, and yields at most one ``Score`` or ``LearnGates`` before each
mask.

To add an algorithm, write a generator and an entry. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..errors import OptionError
from ..heads import HeadMask

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Score:
    """Scores of θ* under ``mask``, or of the model that was trained under ``trained`` (θ* where that is full)."""

    mask: HeadMask | None = None
    trained: HeadMask | None = None


@dataclass(frozen=True, eq=False)
class LearnGates:
    """Logits of gates, learned on θ*. At first the heads of ``mask`` are open, then fewer, until ``size`` are off. They
    start from ``gates``, or all open."""

    size: int
    mask: HeadMask
    gates: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Remove:
    """The mask of ``size`` heads off: ``mask`` without the heads of lowest score."""

    scores: np.ndarray
    mask: HeadMask
    size: int


@dataclass(frozen=True)
class FisherSearch:
    """The mask of ``size`` heads off that costs least by the Fisher information of θ*, rearranged within each layer."""

    size: int


GENERATOR = "masks is a generator function of (full, sizes) that yields Score(mask) and masks (docs/plugins.md)."

Question = Score | LearnGates
Masks = Generator[Question | Remove | FisherSearch | HeadMask, Any, None]


def score_once(full: HeadMask, sizes: Sequence[int]) -> Masks:
    """S(θ*) once; the lowest heads go first."""
    scores = yield Score(full)
    mask = full
    for size in sizes:
        mask = yield Remove(scores, mask, size)


def score_masked(full: HeadMask, sizes: Sequence[int]) -> Masks:
    """Repeat: S(θ* under the mask so far); remove the lowest heads of those left."""
    mask = full
    for size in sizes:
        scores = yield Score(mask)
        mask = yield Remove(scores, mask, size)


def score_trained(full: HeadMask, sizes: Sequence[int]) -> Masks:
    """Start with all heads and model = θ*. Repeat: S(model); remove the lowest heads; model = FT(θ0 pruned)."""
    mask = full
    for size in sizes:
        scores = yield Score(trained=mask)
        mask = yield Remove(scores, mask, size)


def search_by_fisher(full: HeadMask, sizes: Sequence[int]) -> Masks:
    """For each size: search by the gradients of θ*'s gates, then rearrange."""
    for size in sizes:
        yield FisherSearch(size)


def exact_gates(full: HeadMask, sizes: Sequence[int]) -> Masks:
    """For each size: learn which heads to keep, starting from the gates of the previous step. A head may come back."""
    gates, mask = None, full
    for size in sizes:
        gates = yield LearnGates(size, mask, gates)
        mask = yield Remove(gates, full, size)


@dataclass(frozen=True)
class Algorithm:
    """One algorithm. Forms, plans, the command line, docs/tables.md and reports are made from these fields."""

    name: str
    title: str
    what: str  # what it does, in one sentence
    cost: str  # what it costs, in one sentence
    source: str
    masks: Callable[[HeadMask, Sequence[int]], Masks]
    retrains: bool = False  # evaluates θ0 pruned and fine-tuned, so a base model is needed; otherwise θ* masked
    rescores: bool = False  # scores before every step; forecasts count on it
    scores_trained: bool = False  # scores the models that it trains; a plan needs scores of θ* then
    of_remaining: bool = False  # κ counts the heads that are left, not all heads
    only_score: str | None = None  # the score that the method is defined by
    default_repair: str = "none"
    after: str = ""  # the algorithm that it stands after in lists; empty = it stands last

    def __post_init__(self) -> None:
        if not isgeneratorfunction(self.masks):
            raise OptionError(f"Algorithm '{self.name}': {GENERATOR}")


_ENTRIES = (
    Algorithm(
        "one-importance",
        "One importance",
        "Score θ* once; remove k·κ of all heads for k = 1, 2, …; evaluate θ* under each mask.",
        "One scoring, no training.",
        "Michel et al. 2019; thesis baseline",
        score_once,
    ),
    Algorithm(
        "iterative",
        "Iterative",
        "Score θ* under the mask so far, remove κ of all heads more, repeat; evaluate θ* under each mask.",
        "One scoring per step, no training.",
        "thesis alg. 6.1; Michel et al.'s exact variant",
        score_masked,
        rescores=True,
    ),
    Algorithm(
        "igspf",
        "IGSPF",
        "The masks of 'iterative'; at each, prune θ0, fine-tune, evaluate.",
        "One scoring and one training per step; the trainings are independent of each other.",
        "thesis",
        score_masked,
        retrains=True,
        rescores=True,
    ),
    Algorithm(
        "igspp",
        "IGSPP",
        "Score the model of the step before (first θ*), remove κ of all heads more, fine-tune θ0 pruned by the mask.",
        "One scoring and one training per step, one after the other.",
        "thesis",
        score_trained,
        retrains=True,
        rescores=True,
        scores_trained=True,
    ),
    Algorithm(
        "isp",
        "ISP",
        "As 'igspp', but κ of the remaining heads each round.",
        "One scoring and one training per round; more rounds for the same sparsity.",
        "thesis alg. 6.2",
        score_trained,
        retrains=True,
        rescores=True,
        scores_trained=True,
        of_remaining=True,
    ),
    Algorithm(
        "one-shot-isp",
        "One-shot ISP",
        "Score θ* once; at each sparsity prune θ0, fine-tune, evaluate.",
        "One scoring, one training per step; the trainings are independent of each other.",
        "thesis",
        score_once,
        retrains=True,
    ),
    Algorithm(
        "mask-search",
        "Fisher mask search",
        "Remove the heads of lowest Fisher information, then rearrange each layer for the interactions of its heads; "
        "the kept heads may be tuned (repair 'tune'). The weights stay frozen.",
        "One scoring, no training; tuning adds one pass over a sample per layer.",
        "Kwon et al. 2022",
        search_by_fisher,
        only_score="fisher",
        default_repair="tune",
    ),
    Algorithm(
        "gates",
        "Learned gates",
        "Learn gates on all heads of θ* under a rising price; remove the heads whose gates close first; evaluate θ* "
        "under each mask.",
        "One learning, no training of the weights: some 200 forward and backward passes of 32 examples.",
        "after Voita et al. 2019, with plain gates",
        score_once,
        only_score="gates",
    ),
    Algorithm(
        "gates-exact",
        "Learned gates, exact number",
        "At each step learn which heads to keep when exactly so many may stay, from the gates of the step before on; "
        "evaluate θ* under each mask. A head may come back.",
        "One learning in pieces, no training of the weights: some 200 forward and backward passes of 32 examples.",
        "after Li, Cotterell and Sachan 2021",
        exact_gates,
        only_score="gates-exact",
    ),
)

ALGORITHMS: Mapping[str, Algorithm] = plugins.Entries("algorithms", _ENTRIES)
WITHOUT_TRAINING = tuple(entry.name for entry in _ENTRIES if not (entry.retrains or entry.only_score))
DEFAULT = WITHOUT_TRAINING[0]


def of_one_scoring(retrains: bool) -> str:
    """The algorithm whose masks come from one scoring of θ*, with or without a training under each mask."""
    return next(e.name for e in _ENTRIES if e.masks is score_once and e.retrains == retrains)


def retrains(name: str) -> bool:
    """Whether a recorded run trained its pruned models; False for a plugin's algorithm that is not loaded here."""
    return name in ALGORITHMS and ALGORITHMS[name].retrains


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """A plugin of the older interface imports these."""
        if name in ("masked", "retrained", "Loop"):
            raise OptionError(f"An algorithm has no 'choose' and 'result' any more: {GENERATOR}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


NOTHING = "none"


@dataclass(frozen=True)
class Repair:
    name: str
    title: str
    what: str
    cost: str


_TABLE = (
    Repair(NOTHING, "Nothing", "The kept weights stay as they are.", "Nothing."),
    Repair(
        "bias",
        "Bias compensation",
        "The removed heads' mean output, over the real tokens of a sample, is added to W_O's bias.",
        "One pass of the full model over the sample, which then serves for every mask.",
    ),
    Repair(
        "tune",
        "Mask tuning",
        "Each kept head gets the factor that rebuilds the full model's layer outputs best (least squares).",
        "Two passes over the sample per mask (in some families per layer); as many unknowns as a layer has heads.",
    ),
    Repair(
        "refit",
        "Refit of W_O",
        "Each layer's W_O and bias are solved again, so that the kept heads rebuild the full model's layer outputs.",
        "Two passes over the sample per mask (in some families per layer); as many unknowns as W_O has columns.",
    ),
)

REPAIRS: dict[str, Repair] = {r.name: r for r in _TABLE}

"""The table of pruning algorithms: how each step's mask is chosen, and which model is evaluated with it.

θ0 = pre-trained weights, θ* = fine-tuned weights, κ = the share of the heads that a step removes. To add an
algorithm, add an entry with its two functions. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .records import Chosen, Result, Scored

if TYPE_CHECKING:
    from ..heads import HeadId, HeadMask


class Loop(Protocol):
    """What an algorithm may call during one step of one seed. No call changes the run."""

    @property
    def full(self) -> HeadMask:
        """The mask with every head on."""

    @property
    def mask(self) -> HeadMask:
        """The mask of the previous step; at the first step the full one."""

    @property
    def size(self) -> int:
        """How many heads are off after this step."""

    @property
    def candidates(self) -> tuple[HeadId, ...]:
        """The heads that may still be removed."""

    def first_scores(self) -> Scored:
        """Scores of θ* with all heads, measured once at the first step."""

    def score_masked(self, mask: HeadMask) -> Scored:
        """Scores of θ* under a mask."""

    def score_trained(self) -> Scored:
        """Scores of the model that the previous step has trained; at the first step of θ*."""

    def without_lowest(self, scores: Scored) -> Chosen:
        """The mask of the previous step without the heads of lowest score, so many that this step's size is reached."""

    def search_by_fisher(self) -> Chosen:
        """The mask of this step's size that costs least according to the Fisher information of θ*."""

    def search_by_gates(self) -> Chosen:
        """The mask of this step's size that gates find when exactly so many heads are kept, from the step before on."""

    def masked(self, mask: HeadMask) -> Result:
        """θ* under a mask, repaired as the plan says and evaluated."""

    def retrained(self, mask: HeadMask) -> Result:
        """θ0 without the masked heads, repaired as the plan says, fine-tuned and evaluated."""


# how the next mask is chosen


def by_first_scores(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.first_scores())


def by_masked_scores(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.score_masked(loop.mask))


def by_trained_scores(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.score_trained())


def by_fisher_search(loop: Loop) -> Chosen:
    return loop.search_by_fisher()


def by_exact_gates(loop: Loop) -> Chosen:
    return loop.search_by_gates()


# which model is evaluated under the mask


def masked(loop: Loop, mask: HeadMask) -> Result:
    return loop.masked(mask)


def retrained(loop: Loop, mask: HeadMask) -> Result:
    return loop.retrained(mask)


@dataclass(frozen=True)
class Algorithm:
    """One algorithm. Forms, plans, the command line, the README and reports are made from these fields."""

    name: str
    title: str
    what: str  # what it does, in one sentence
    cost: str  # what it costs, in one sentence
    source: str
    choose: Callable[[Loop], Chosen]
    result: Callable[[Loop, HeadMask], Result]
    retrains: bool = False  # evaluates θ0 pruned and fine-tuned, so a base model is needed; otherwise θ* masked
    rescores: bool = False  # scores again before every step
    scores_trained: bool = False  # a step's scores need the model that the previous step has trained
    of_remaining: bool = False  # κ counts the heads that are left, not all heads
    only_score: str | None = None  # the score that the method is defined by
    default_repair: str = "none"
    thesis_row: str | None = None  # its row in the thesis's tables of winning tickets


_ENTRIES = (
    Algorithm(
        "one-importance",
        "One importance",
        "Score θ* once; remove k·κ of all heads for k = 1, 2, …; evaluate θ* under each mask.",
        "One scoring, no training.",
        "Michel et al. 2019; thesis baseline",
        by_first_scores,
        masked,
    ),
    Algorithm(
        "iterative",
        "Iterative",
        "Score θ* under the mask so far, remove κ of all heads more, repeat; evaluate θ* under each mask.",
        "One scoring per step, no training.",
        "thesis alg. 6.1; Michel et al.'s exact variant",
        by_masked_scores,
        masked,
        rescores=True,
    ),
    Algorithm(
        "igspf",
        "IGSPF",
        "The masks of 'iterative'; at each, prune θ0, fine-tune, evaluate.",
        "One scoring and one training per step; the trainings are independent of each other.",
        "thesis",
        by_masked_scores,
        retrained,
        retrains=True,
        rescores=True,
        thesis_row="IGSPF",
    ),
    Algorithm(
        "igspp",
        "IGSPP",
        "Score the model of the step before (first θ*), remove κ of all heads more, fine-tune θ0 pruned by the mask.",
        "One scoring and one training per step, one after the other.",
        "thesis",
        by_trained_scores,
        retrained,
        retrains=True,
        rescores=True,
        scores_trained=True,
        thesis_row="IGSPP",
    ),
    Algorithm(
        "isp",
        "ISP",
        "As 'igspp', but κ of the remaining heads each round.",
        "One scoring and one training per round; more rounds for the same sparsity.",
        "thesis alg. 6.2",
        by_trained_scores,
        retrained,
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
        by_first_scores,
        retrained,
        retrains=True,
        thesis_row="one-shot ISP",
    ),
    Algorithm(
        "mask-search",
        "Fisher mask search",
        "Remove the heads of lowest Fisher information, then rearrange each layer for the interactions of its heads; "
        "the kept heads may be tuned (repair 'tune'). The weights stay frozen.",
        "One scoring, no training; tuning adds one pass over a sample per layer.",
        "Kwon et al. 2022",
        by_fisher_search,
        masked,
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
        by_first_scores,
        masked,
        only_score="gates",
    ),
    Algorithm(
        "gates-hard",
        "Learned gates, hard concrete",
        "As 'gates', but with gates that are drawn at random and are often exactly open or closed.",
        "One learning, no training of the weights: some 200 forward and backward passes of 32 examples.",
        "Louizos et al. 2018, Voita et al. 2019",
        by_first_scores,
        masked,
        only_score="gates-hard",
    ),
    Algorithm(
        "gates-exact",
        "Learned gates, exact number",
        "At each step learn which heads to keep when exactly so many may stay, from the gates of the step before on; "
        "evaluate θ* under each mask. A head may come back.",
        "One learning in pieces, no training of the weights: some 200 forward and backward passes of 32 examples.",
        "after Li, Cotterell and Sachan 2021",
        by_exact_gates,
        masked,
        only_score="gates-exact",
    ),
    Algorithm(
        "gates-causal",
        "Causal gates",
        "Learn gates on all heads of θ*, then press them to close and to open; remove first the heads that close by "
        "themselves, and last those that stay open; evaluate θ* under each mask.",
        "Three learnings, no training of the weights: some 600 forward and backward passes of 32 examples.",
        "Nam et al. 2025",
        by_first_scores,
        masked,
        only_score="gates-causal",
    ),
)

ALGORITHMS: dict[str, Algorithm] = {entry.name: entry for entry in _ENTRIES}
WITHOUT_TRAINING = tuple(entry.name for entry in _ENTRIES if not (entry.retrains or entry.only_score))
DEFAULT = WITHOUT_TRAINING[0]


def of_one_scoring(retrains: bool) -> str:
    """The algorithm whose masks come from one scoring of θ*, with or without a training under each mask."""
    return next(e.name for e in _ENTRIES if e.choose is by_first_scores and e.retrains == retrains)


def retrains(name: str) -> bool:
    """Whether a recorded run trained its pruned models; False for a plugin's algorithm that is not loaded here."""
    return name in ALGORITHMS and ALGORITHMS[name].retrains


def thesis_row(name: str) -> str | None:
    """The algorithm's row in the thesis's tables; None if it has none, or is not loaded here."""
    return ALGORITHMS[name].thesis_row if name in ALGORITHMS else None

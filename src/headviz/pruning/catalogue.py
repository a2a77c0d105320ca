"""The table of pruning algorithms. Adding one is one file with ``choose`` and ``result``, and one line here.

θ0 = pre-trained weights, θ* = fine-tuned weights, S = scoring, FT = fine-tuning, κ = the plan's step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import igspf, igspp, isp, iterative, mask_search, one_importance, one_shot_isp

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


@dataclass(frozen=True)
class Algorithm:
    """One line of the table.

    ``choose`` picks the next mask and ``result`` makes the model that is evaluated under it. The flags are what
    planners need to know without running anything.
    """

    name: str
    title: str
    what: str  # what it does, in one sentence
    cost: str  # what it costs, in one sentence
    source: str
    choose: Callable[[Loop], Chosen]
    result: Callable[[Loop, HeadMask], Result]
    retrains: bool = False  # result fine-tunes θ0: a base model is needed
    rescores: bool = False  # scores again before every step
    scores_trained: bool = False  # a step's scores need the model that the step before has trained
    of_remaining: bool = False  # κ counts the heads that are left, not all heads
    only_score: str | None = None  # the method fixes its own score
    default_repair: str = "none"


# fmt: off
_TABLE = (
    Algorithm("one-importance", "One importance",
        "Score θ* once; remove k·κ of all heads for k = 1, 2, …; evaluate θ* under each mask.",
        "One scoring, no training.", "Michel et al. 2019; thesis baseline",
        one_importance.choose, one_importance.result),
    Algorithm("iterative", "Iterative",
        "Score θ* under the mask so far, remove κ of all heads more, repeat; evaluate θ* under each mask.",
        "One scoring per step, no training.", "thesis alg. 6.1; Michel et al.'s exact variant",
        iterative.choose, iterative.result, rescores=True),
    Algorithm("igspf", "IGSPF",
        "The masks of 'iterative'; at each, prune θ0, fine-tune, evaluate.",
        "One scoring and one training per step; the trainings are independent of each other.", "thesis",
        igspf.choose, igspf.result, retrains=True, rescores=True),
    Algorithm("igspp", "IGSPP",
        "Score the model of the step before (first θ*), remove κ of all heads more, fine-tune θ0 pruned by the mask.",
        "One scoring and one training per step, one after the other.", "thesis",
        igspp.choose, igspp.result, retrains=True, rescores=True, scores_trained=True),
    Algorithm("isp", "ISP",
        "As 'igspp', but κ of the remaining heads each round.",
        "One scoring and one training per round; more rounds for the same sparsity.", "thesis alg. 6.2",
        isp.choose, isp.result, retrains=True, rescores=True, scores_trained=True, of_remaining=True),
    Algorithm("one-shot-isp", "One-shot ISP",
        "Score θ* once; at each sparsity prune θ0, fine-tune, evaluate.",
        "One scoring, one training per step; the trainings are independent of each other.", "thesis",
        one_shot_isp.choose, one_shot_isp.result, retrains=True),
    Algorithm("mask-search", "Fisher mask search",
        "Remove the heads of lowest Fisher information, then rearrange each layer for the interactions of its heads; "
        "the kept heads may be tuned (repair 'tune'). The weights stay frozen.",
        "One scoring, no training; tuning adds one pass over a sample per layer.", "Kwon et al. 2022",
        mask_search.choose, mask_search.result, only_score="fisher", default_repair="tune"),
)
# fmt: on

ALGORITHMS: dict[str, Algorithm] = {a.name: a for a in _TABLE}

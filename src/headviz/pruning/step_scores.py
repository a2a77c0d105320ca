"""The plan's score: its keywords, its checks, and its table as a state keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plugins
from ..errors import ModelError, OptionError
from .algorithms import ALGORITHMS
from .measure import none
from .state import Scored, Table

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from .context import ScoreFunction
    from .plan import PruningPlan


def keywords(plan: PruningPlan, seed: int, **how: Any) -> dict[str, Any]:
    """Keywords for ``score_heads``; ``how`` = mask, progress, cancel, checkpoint."""
    # Not cached: an interrupted scoring's values come from other batches, so their last bits may differ.
    options = table_options(plan.score, dict(plan.score_options), seed)
    return {**how, "label_order": plan.label_order, "cache": False, **options}


def scored(found: Any, clf: Classifier, data: Dataset, plan: PruningPlan, mask: HeadMask | None) -> Scored:
    """Scores as a state keeps them; a ``ModelError`` for a table of another shape or without any number."""
    values = np.asarray(found.values, dtype=float)
    if values.shape != (clf.num_layers, clf.num_heads):
        raise ModelError(f"Score '{plan.score}' gave a table of {values.shape}, not of the model's heads.")
    kept = clf.under(mask).array()
    if not np.isfinite(values[kept]).any() and kept.any():
        raise ModelError(f"Score '{plan.score}' could not be measured for any head of '{clf.name}'.")
    return Scored(plain_table(values), _optional(found, "interval_low"), _optional(found, "interval_high"), len(data))


def require_score(plan: PruningPlan, function: ScoreFunction | None) -> None:
    """An ``OptionError`` for an unknown score or option, or a score that the algorithm does not take."""
    only = ALGORITHMS[plan.algorithm].only_score
    if only is not None and plan.score != only:
        raise OptionError(
            f"'{plan.algorithm}' is defined by the score '{only}' and takes no other, such as '{plan.score}'."
        )
    if function is None:
        table_options(plan.score, dict(plan.score_options), 0)


def table_options(score: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Keywords for ``score_heads``: the score or preset, its options, and the seed if the score draws at random."""
    from ..scores import PRESETS, SCORES

    if score in PRESETS:
        preset = PRESETS[score]
        entry, chosen, named = SCORES[preset.score], {**preset.options, **options}, {"preset": score}
    elif score in SCORES:
        entry, chosen, named = SCORES[score], options, {"score": score}
    else:
        raise OptionError(plugins.unknown("score", score, (*SCORES, *PRESETS)))
    entry.options_from(chosen)
    if entry.seeded:
        options = {"seed": seed, **options}
    return {**named, **options}


def parts_of(plan: PruningPlan, function: ScoreFunction | None, examples: int) -> int:
    """Into how many parts each scoring of a plan can be split; 1 = it cannot be split."""
    own = function is not None or plan.score_source != "fine-tuned" or ALGORITHMS[plan.algorithm].only_score
    if own:
        return 1
    from ..scores.parts import count

    return count(plan.score, examples)


def plain_table(values: np.ndarray) -> Table:
    """Rows of numbers, None for NaN."""
    return tuple(tuple(none(float(v)) for v in row) for row in values)


def _optional(found: Any, name: str) -> Table | None:
    values = getattr(found, name, None)
    return None if values is None else plain_table(np.asarray(values, dtype=float))

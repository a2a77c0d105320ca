"""Scores for the algorithms: from the table of ``headviz.scores``, or from the caller's own function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    from ..progress import Cancel, Progress
    from ..tasks import Dataset
    from .context import ScoreFunction
    from .plan import PruningPlan


@dataclass(frozen=True)
class Scoring:
    """How a model is scored: random seed, mask, progress and cancel."""

    seed: int
    mask: HeadMask | None
    progress: Progress | None = None
    cancel: Cancel | None = None
    checkpoint: Path | None = None  # a file in which a score that learns keeps what it has

    @property
    def given(self) -> dict[str, Any]:
        """What a score function of the caller's is given."""
        return {name: getattr(self, name) for name in ("seed", "mask", "progress", "cancel")}


def score_table(
    function: ScoreFunction | None,
    clf: Classifier,
    data: Dataset,
    plan: PruningPlan,
    how: Scoring,
    parts: Sequence[Mapping[str, np.ndarray]] | None = None,
) -> Scored:
    """One scoring by the plan's score, or by the caller's own function.

    ``parts`` are the values of its examples if they were measured before; then they are only joined.
    """
    if parts is not None:
        from ..scores.parts import join
        from ..scores.scoring import Scoring as HeadScoring

        found: Any = join(HeadScoring(clf, data, **_keywords(plan, how)), [dict(p) for p in parts])
    elif function is None:
        from ..scores import score_heads

        found = score_heads(clf, data, **_keywords(plan, how))
    else:
        options = dict(plan.score_options)
        found = function(clf, data, plan.score, options=options, label_order=plan.label_order, **how.given)
    return scored(found, clf, data, plan, how.mask)


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
    from ..scores.options import build

    if score in PRESETS:
        preset = PRESETS[score]
        entry, chosen, named = SCORES[preset.score], {**preset.options, **options}, {"preset": score}
    elif score in SCORES:
        entry, chosen, named = SCORES[score], options, {"score": score}
    else:
        raise OptionError(plugins.unknown("score", score, (*SCORES, *PRESETS)))
    build(entry.options, entry.name, chosen)
    if entry.seeded:
        options = {"seed": seed, **options}
    return {**named, **options}


def _keywords(plan: PruningPlan, how: Scoring) -> dict[str, Any]:
    # Not cached: an interrupted scoring's values come from other batches, so their last bits may differ.
    return {
        "mask": how.mask,
        "label_order": plan.label_order,
        "progress": how.progress,
        "cancel": how.cancel,
        "cache": False,
        "checkpoint": how.checkpoint,
        **table_options(plan.score, dict(plan.score_options), how.seed),
    }


def exact_gates(
    clf: Classifier, data: Dataset, plan: PruningPlan, how: Scoring, start: np.ndarray, counts: tuple[int, int]
) -> np.ndarray:
    """[L, H] logits of the gates once only ``counts[1]`` of them are kept, learned from ``counts[0]`` on.

    ``start`` has the logits to begin with; NaN in it = a head that stays on.
    """
    from ..scores.gate_scores import learn_count
    from ..scores.scoring import Scoring as HeadScoring

    scoring = HeadScoring(clf, data, **_keywords(plan, how))
    return learn_count(scoring, start, *counts)


def parts_of(plan: PruningPlan, function: ScoreFunction | None, examples: int) -> int:
    """Into how many parts each scoring of a plan can be split; 1 = it cannot be split."""
    own = function is not None or plan.score_source != "fine-tuned" or ALGORITHMS[plan.algorithm].only_score
    if own:
        return 1
    from ..scores.parts import count

    return count(plan.score, examples)


def measured_part(
    clf: Classifier, data: Dataset, plan: PruningPlan, part: int, how: Scoring, memory: dict[Any, Any]
) -> Mapping[str, np.ndarray]:
    """The values of one part's examples. ``memory`` keeps the encoded texts for the other parts."""
    from ..scores.parts import measure
    from ..scores.scoring import Scoring as HeadScoring

    key = (clf.digest, clf.under(how.mask).hex, data.digest, plan.digest, how.seed)
    known = memory.get("scoring")
    if known is None or known[0] != key:
        known = memory["scoring"] = (key, HeadScoring(clf, data, **_keywords(plan, how)))
    known[1].progress, known[1].cancel = how.progress, how.cancel
    return measure(known[1], part)


def plain_table(values: np.ndarray) -> Table:
    """Rows of numbers, None for NaN."""
    return tuple(tuple(none(float(v)) for v in row) for row in values)


def _optional(found: Any, name: str) -> Table | None:
    values = getattr(found, name, None)
    return None if values is None else plain_table(np.asarray(values, dtype=float))

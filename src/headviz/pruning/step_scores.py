"""Scores for the algorithms: the table of ``headviz.scores``, or a function of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, OptionError, unknown_choice
from .algorithms import ALGORITHMS
from .measure import none
from .records import Scored
from .state import Table

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset
    from .context import ScoreFunction
    from .plan import PruningPlan


def score_table(
    function: ScoreFunction | None,
    clf: Classifier,
    data: Dataset,
    plan: PruningPlan,
    *,
    seed: int,
    mask: HeadMask | None,
    progress: Progress | None,
    cancel: Cancel | None,
    parts: Sequence[Mapping[str, np.ndarray]] | None = None,
) -> Scored:
    """One scoring, checked: a table of another shape or without any number is a fault, not a result.

    ``parts`` are its examples' values, measured before: then they are only joined.
    """
    measure = function or _from_table
    given: dict[str, Any] = {} if parts is None else {"parts": parts}
    found = measure(
        clf,
        data,
        plan.score,
        mask=mask,
        seed=seed,
        options=dict(plan.score_options),
        label_order=plan.label_order,
        progress=progress,
        cancel=cancel,
        **given,
    )
    values = np.asarray(found.values, dtype=float)
    if values.shape != (clf.num_layers, clf.num_heads):
        raise ModelError(f"Score '{plan.score}' gave a table of {values.shape}, not of the model's heads.")
    kept = clf.under(mask).array()
    if not np.isfinite(values[kept]).any() and kept.any():
        raise ModelError(f"Score '{plan.score}' could not be measured for any head of '{clf.name}'.")
    return Scored(plain_table(values), _optional(found, "interval_low"), _optional(found, "interval_high"), len(data))


def require_score(plan: PruningPlan, function: ScoreFunction | None) -> None:
    """An unknown score or option, or one that an algorithm does not take, before anything is computed."""
    only = ALGORITHMS[plan.algorithm].only_score
    if only is not None and plan.score != only:
        raise OptionError(
            f"'{plan.algorithm}' is defined by the score '{only}' and takes no other, such as '{plan.score}'."
        )
    if function is None:
        table_options(plan.score, dict(plan.score_options), 0)


def table_options(score: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Keywords for ``score_heads``: a score or a preset by its name, its options, the seed where it draws."""
    from ..scores import PRESETS, SCORES
    from ..scores.options import build

    if score in PRESETS:
        preset = PRESETS[score]
        entry, chosen, named = SCORES[preset.score], {**preset.options, **options}, {"preset": score}
    elif score in SCORES:
        entry, chosen, named = SCORES[score], options, {"score": score}
    else:
        raise OptionError(unknown_choice("score", score, (*SCORES, *PRESETS)))
    build(entry.options, entry.name, chosen)
    if entry.seeded:
        options = {"seed": seed, **options}
    return {**named, **options}


def _from_table(
    clf: Classifier,
    data: Dataset,
    score: str,
    *,
    mask: HeadMask | None,
    seed: int,
    options: dict[str, Any],
    label_order: tuple[str, ...] | None,
    progress: Progress | None,
    cancel: Cancel | None,
    parts: Sequence[Mapping[str, np.ndarray]] | None = None,
) -> Any:
    from ..scores import score_heads
    from ..scores.parts import join

    # No cache: values of an interrupted scoring come from other batches, and their last bits may differ.
    about: dict[str, Any] = {
        "mask": mask,
        "label_order": label_order,
        "progress": progress,
        "cancel": cancel,
        "cache": False,
        **table_options(score, options, seed),
    }
    if parts is not None:
        return join(clf, data, [dict(p) for p in parts], **about)
    return score_heads(clf, data, **about)


def parts_of(plan: PruningPlan, function: ScoreFunction | None, examples: int) -> int:
    """Into how many parts each scoring of a plan can be split; 1 = it is done in one go."""
    own = function is not None or plan.score_source != "fine-tuned" or ALGORITHMS[plan.algorithm].only_score
    if own:
        return 1
    from ..scores.parts import count

    return count(plan.score, examples)


def measured_part(
    clf: Classifier,
    data: Dataset,
    plan: PruningPlan,
    part: int,
    *,
    seed: int,
    mask: HeadMask | None,
    memory: dict[Any, Any],
    progress: Progress | None,
    cancel: Cancel | None,
) -> Mapping[str, np.ndarray]:
    """The values of one part's examples. Reading the texts is done once for several parts of a scoring."""
    from ..scores.parts import measure
    from ..scores.scoring import Job

    on = clf.under(mask)
    key = (clf.digest, on.hex, data.digest, plan.digest, seed)
    known = memory.get("scoring")
    if known is None or known[0] != key:
        job = Job(
            clf,
            data,
            mask=mask,
            label_order=plan.label_order,
            cache=False,
            **table_options(plan.score, dict(plan.score_options), seed),
        )
        known = memory["scoring"] = (key, job)
    known[1].progress, known[1].cancel = progress, cancel
    return measure(known[1], part)


def plain_table(values: np.ndarray) -> Table:
    """Rows of numbers, None for NaN."""
    return tuple(tuple(none(float(v)) for v in row) for row in values)


def _optional(found: Any, name: str) -> Table | None:
    values = getattr(found, name, None)
    return None if values is None else plain_table(np.asarray(values, dtype=float))

"""What each head costs: exact ablation. Where it is not known yet it is computed in the background, after Taylor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...display.figures.palette import Scale, scale_for, scale_of_losses
from ...evaluation.verdict import undecided
from ...scores.catalogue import TO_PRUNE_BY, correlates
from ..shell import jobs, loaders
from ..shell.view import COST, IN_LOSS, View
from . import scoring

if TYPE_CHECKING:
    from ...heads import HeadScores

ENOUGH = 256  # examples that costs are measured on without being asked for
LOSSES = (COST, IN_LOSS)  # scores above 0 where something is lost without the head
MEANWHILE = "taylor"  # an estimate of the cost that takes one pass forth and back


def table(view: View) -> HeadScores | None:
    """The exact costs, else the estimate; None while there is neither."""
    return scoring.scores(view, COST) or scoring.scores(view, MEANWHILE)


def in_points(found: HeadScores) -> HeadScores:
    """The same costs in points of the task's metric, to be shown; other scores stay as they are."""
    from ...answers.metrics import points_in
    from ...tasks import TASKS

    if found.score != COST:
        return found
    task = TASKS.get(str(found.settings.get("task")))
    scale = points_in(found.settings.get("metric") or (task.primary_metric if task else "accuracy"))
    tables = ("values", "stderr", "interval_low", "interval_high")
    return replace(found, **{name: scale * getattr(found, name) for name in tables})


def colours(found: HeadScores) -> Scale:
    """The colours of a score."""
    values = [float(v) for v in found.values.ravel()]
    return (
        scale_of_losses(values) if found.score in LOSSES else scale_for(values, signed=correlates(found.score) or None)
    )


def called(found: HeadScores) -> str:
    """A score at the foot of its grid; a cost with the examples that it was measured on."""
    return f"cost, points, on {scoring.examples_of(found)}" if found.score == COST else found.score


def grey(found: HeadScores) -> Any:
    """The heads whose cost is not told apart from 0, as a table; None for a score that is no cost."""
    return undecided(found.interval_low, found.interval_high) if found.score in LOSSES else None


def ordering(view: View) -> HeadScores | None:
    """The table that heads are ordered by: the user's choice, else their cost, else what is known in its place."""
    found = scoring.scores(view, view.order)
    if found is None and view.order == COST:
        return scoring.scores(view, MEANWHILE) or scoring.scores(view, view.score)
    return found


def removing(view: View) -> str:
    """The score that a run removes heads by where the user has not said another: the best of the grades of this
    model, else the usual one."""
    shape = loaders.shape(view)
    return view.told_order if view.told_order in shape.scores else TO_PRUNE_BY


def _enough(view: View, score: str) -> bool:
    """Whether there is a table of as many examples as are asked for."""
    found = scoring.scores(view, score)
    return found is not None and found.samples >= view.samples


def compute(view: View) -> None:
    """Measure the costs in the background, with progress and *Stop* on the page. Loads the model."""
    view = replace(view, samples=min(view.samples, ENOUGH))
    if _enough(view, COST):
        return
    key = ("cost", *scoring.key_of(view, COST))
    clf = loaders.model(view)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> bool:
        import headviz

        data = scoring.sample(view, clf)
        for score in (MEANWHILE, COST):
            if _enough(view, score):
                continue
            found = headviz.score_heads(clf, data, score, progress=progress, cancel=cancel)
            scoring.keep(view, found)
            jobs.offer(key, found)
        return True

    jobs.need(key, "Measuring what each head costs", work, patience=0.0, rank=1)

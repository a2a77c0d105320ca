"""Bayesian distillation: the teacher's posterior, conditioned on the removal of a part, is the student's prior.

``remove`` takes a part out of a model and partitions its weights; ``Posterior`` is a Gaussian around the teacher's
weights; ``Prior`` is that Gaussian given that the removed part's weights are zero. Students start at random, from
copied weights, from the prior's mean, or are trained by variational inference against it.
"""

from ...plugins import Command, RunKind

_ABOUT = "remove a part and train students in its place, from several starts"
_JOB = "headviz.extras.distillation.job"
_PAGES = "headviz.extras.distillation.pages"
COMMANDS = [Command("distill", _ABOUT, _JOB, after="prune")]
RUNS = [
    RunKind(
        "distill",
        "Distillation",
        _ABOUT,
        f"{_JOB}:make",
        draw=f"{_PAGES}.results:detail",
        form=f"{_PAGES}.distil:form",
        side_by_side=True,
    )
]
NAMES = {"distil": _JOB, "DistillationPlan": "headviz.extras.distillation.plan"}

"""Training dynamics: from which epoch on can heads go? [M §6, Fig. 5]

Every checkpoint of a training run is scored and pruned in its own score's order. What is left is corrected for chance,
as in Runs: the share that is left of what the unpruned checkpoint has above the best constant answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from numpy.typing import NDArray

from ...analyses.ablation import ablate
from ...analyses.analysis import SEED, arguments
from ...analyses.common import ORACLE, check_score
from ...analyses.pruning_curve import PruningCurves, one_class_remark, pruning_curves, ties_of_curves
from ...answers.metrics import constant_name
from ...display.figures.style import FAINT, frame, safe
from ...display.numbers import metric
from ...display.recipes import Code, call
from ...display.table import Picture, Table, View, columns
from ...errors import ModelError
from ...evaluation.dispatch import evaluator_of
from ...models import loading
from ...options import changed
from ...progress import Cancel, Progress, tracked
from ...results import Result
from ...tasks.dataset import require_dataset

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ...analyses.analysis import Request
    from ...evaluation.mask_evaluator import MaskEvaluator
    from ...models.classifier import Classifier
    from ...tasks import Dataset

KEPT = 0.95  # of what the unpruned checkpoint has above the best constant answer
Scorer = Callable[["MaskEvaluator"], NDArray]  # an L×H table, high = keep


@dataclass(frozen=True)
class Checkpoint(Result):
    """One checkpoint's curve; ``relative`` is metric / unpruned metric at each point, NaN without a baseline > 0."""

    name: str
    baseline: float
    sparsities: tuple[float, ...]
    relative: tuple[float, ...]
    curves: PruningCurves

    @property
    def left(self) -> tuple[float, ...]:
        """What is left at each point, corrected for chance; of a metric without a constant answer, as it is."""
        if self.curves.constant is None:
            return self.relative
        return tuple(p.corrected for p in self.curves.curves[0].points)

    @property
    def spare(self) -> float | None:
        """The largest share of heads off that leaves ``KEPT``; None of a checkpoint that has nothing to lose."""
        points = [(s, v) for s, v in zip(self.sparsities, self.left, strict=True) if v == v]
        return max((s for s, v in points if v >= KEPT), default=0.0) if points else None

    @property
    def surely(self) -> float | None:
        """The largest share of heads off up to which the lower end of every interval leaves ``KEPT``."""
        above = self.baseline - (self.curves.constant or 0.0)
        if self.spare is None or above <= 0:
            return None
        last = 0.0
        for share, left, point in zip(self.sparsities, self.left, self.curves.curves[0].points, strict=True):
            if not left + (point.interval_low - point.delta) / above >= KEPT:
                break
            last = share
        return last


@dataclass(frozen=True)
class Dynamics(Result):
    """Checkpoints in the order of training."""

    folder: str
    score: str
    checkpoints: tuple[Checkpoint, ...]


def dynamics(
    folder: str | Path,
    data: Dataset,
    score: str,
    scorer: Scorer,
    *,
    step: float = 0.1,
    metric: str | None = None,
    seed: int = 0,
    evaluator: Callable[[Dataset, Classifier], MaskEvaluator] | None = None,
    load: Callable[[Path], Classifier] | None = None,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Dynamics:
    """One pruning curve per checkpoint in ``folder``. ``score`` is only the name that ``scorer`` goes by.

    Heads that tie go in ten orders, drawn from ``seed``. ``label_order`` is as in ``evaluate``; your own ``evaluator``
    has its own.

    >>> import headviz
    >>> folder, data = headviz.demo_folder("checkpoints"), headviz.load_task("demo", limit=4)
    >>> scorer = lambda evaluator: headviz.score_heads(evaluator.clf, data, "magnitude").values
    >>> result = headviz.dynamics(folder, data, "magnitude", scorer, step=1.0)
    >>> len(result.checkpoints) > 2
    True
    """
    require_dataset(data)
    checkpoints = []
    for place in tracked(find_checkpoints(folder), progress, cancel):
        clf: Any = (load or loading.load)(place)
        of_clf = evaluator(data, clf) if evaluator is not None else evaluator_of(clf, data, label_order=label_order)
        curves = pruning_curves(of_clf, {score: scorer(of_clf)}, step=step, metric=metric, seed=seed, cancel=cancel)
        points, full = curves.curves[0].points, curves.baseline
        relative = tuple(p.value / full if full > 0 else float("nan") for p in points)
        checkpoints.append(Checkpoint(place.name, full, tuple(p.sparsity for p in points), relative, curves))
    return Dynamics(str(folder), score, tuple(checkpoints))


def find_checkpoints(folder: str | Path) -> list[Path]:
    """The model folders inside a folder, by the numbers in their names."""
    root = Path(folder)
    if not root.is_dir():
        raise ModelError(f"There is no folder '{folder}'. Give the folder that holds the checkpoints.")
    places = [p for p in root.iterdir() if (p / "config.json").is_file()]
    if not places:
        raise ModelError(
            f"'{folder}' holds no checkpoint: none of its folders has a config.json. "
            "Fine-tune with checkpoints kept, or give the folder above them."
        )
    return sorted(places, key=lambda p: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", p.name)])


def run(request: Request) -> Dynamics:
    score = request.option("score")
    check_score(score)

    def scorer(evaluator: MaskEvaluator) -> NDArray:
        if score == ORACLE:
            return ablate(evaluator, metric=request.option("metric"), cancel=request.cancel).values
        table: NDArray = request.score(evaluator.clf, score, request.sample(evaluator.clf))
        return table

    return dynamics(
        request.option("checkpoints"),
        request.data,
        score,
        scorer,
        evaluator=request.on,
        load=request.load,
        **arguments(request, "step", "metric", "seed"),
    )


def figure(result: Dynamics) -> Figure:
    """One line per checkpoint, later ones stronger: percentage pruned against percentage left."""
    fig = go.Figure()
    last = max(1, len(result.checkpoints) - 1)
    for k, checkpoint in enumerate(result.checkpoints):
        age = k / last  # more ink and more width: both read on a light and on a dark page
        fig.add_scatter(
            x=[100 * s for s in checkpoint.sparsities],
            y=[100 * r for r in checkpoint.left],
            mode="lines+markers",
            name=checkpoint.name,
            line={"color": f"rgba(28,140,163,{0.5 + 0.5 * age:.2f})", "width": 1.5 + 1.5 * age},
            marker={"size": 5 + 2 * age},
            hovertemplate="%{x:.0f} % pruned: %{y:.1f} % left, " + f"{checkpoint.baseline:.3f} unpruned"
            "<extra>" + safe(checkpoint.name) + "</extra>",
        )
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.add_hline(y=0, line={"color": FAINT, "dash": "dot", "width": 1})
    fig.update_yaxes(title="% left, corrected for chance" if _corrected(result) else "% of the unpruned metric")
    return frame(fig, 400, top=34, showlegend=True)


def _corrected(result: Dynamics) -> bool:
    return result.checkpoints[0].curves.constant is not None


def finding(result: Dynamics) -> str:
    """How many heads the first and the last checkpoint can spare."""
    first, last = result.checkpoints[0], result.checkpoints[-1]
    level = constant_name(last.curves.subject.metric)

    def spares(c: Checkpoint) -> str:
        if c.spare is None:
            return f"{c.name} none: " + (
                f"it is no better than {level}" if _corrected(result) else "it has none to lose"
            )
        bound = "" if c.surely is None else f" ({100 * c.surely:.0f} % by the lower ends of the intervals)"
        return f"{c.name} {100 * c.spare:.0f} %{bound}"

    whole = f"what they have above {level}" if _corrected(result) else "their metric"
    shares = ", ".join(spares(c) for c in ((first, last) if first is not last else (first,)))
    remark = one_class_remark(last.curves.curves[0])
    return f"{remark}Share of heads that can be off with {100 * KEPT:.0f} % of {whole} left: {shares}."


def view(result: Dynamics) -> View:
    last = result.checkpoints[-1]
    subject = last.curves.subject
    shares = columns("%.3f", "unpruned", "share off", "share of unpruned", "corrected")
    ties = ties_of_curves([replace(c.curves.curves[0], name=c.name) for c in result.checkpoints], "in")
    return View(
        finding(result),
        (
            Picture(
                "dynamics_curves",
                lambda: figure(result),
                f"Each line is one checkpoint, pruned in the order of its own {result.score} score, later ones "
                f"stronger; the last one reaches {metric(last.baseline, subject.scale)} unpruned. Dotted: "
                f"{constant_name(subject.metric) if _corrected(result) else 'nothing left'}.",
                r"(m(\text{masked}) - m(\text{constant})) / (m(\text{full}) - m(\text{constant}))"
                if _corrected(result)
                else r"m(\text{masked}) / m(\text{full})",
            ),
            Table(
                "dynamics_table",
                ("checkpoint", *shares),
                [
                    [c.name, c.baseline, s, r, p.corrected]
                    for c in result.checkpoints
                    for s, r, p in zip(c.sparsities, c.relative, c.curves.curves[0].points, strict=True)
                ],
                "The metric as a share of each checkpoint's own unpruned metric; corrected: of what that has above the "
                f"best constant answer.{ties}",
                height=300,
            ),
        ),
        about=(("data", f"{subject.data}, {subject.n:,} examples"), ("metric", subject.called)),
        note="Checkpoints are models on the way; the one that was saved at the end may be another.",
    )


def recipe(options: Mapping[str, Any]) -> str:
    score = Code("lambda e: headviz.score_heads(e.clf, some, score='taylor').values")
    code = call("headviz.dynamics", Code("checkpoints"), Code("data"), "taylor", score, **changed(options, (SEED,)))
    return f"result = {code}"

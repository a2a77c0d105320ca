"""The analyses of translation models, stack by stack. [M §3.2, §3.3, §5; Tables 1, 2, 5, Fig. 4]

The measuring is that of the other analyses: a stack is a range of rows of the same grid. Here their results are cut
into stacks, with the published figures next to ours. Those are of another model on other data; they are there to
compare the pattern, not the size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...analyses import pruning_curve
from ...analyses.ablation import Ablation, ablate
from ...analyses.all_but_one import AllButOne, Select, all_but_one
from ...analyses.analysis import SEED
from ...analyses.common import Subject, require_evaluator, subject_of
from ...analyses.pruning_curve import Curve, PruningCurves, check_steps, measured, ordered_by
from ...display import numbers
from ...display.recipes import Code, call
from ...display.table import Table, View
from ...errors import MaskError
from ...evaluation.verdict import MARGIN, MARGIN_OPTION
from ...options import changed
from ...progress import Cancel, Progress, part
from ...reference import find
from ...results import Result

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ...analyses.analysis import Request
    from ...evaluation.mask_evaluator import MaskEvaluator
    from ...models.base import TransformerModel

MARKED = 0.01  # p values below it are marked, as in the published tables
REFERENCE = "michel-wmt"


@dataclass(frozen=True, eq=False)
class StackTable(Result):
    """One stack's single-head ablation: changes of the metric (masked - full), as Table 1 prints them."""

    stack: str
    deltas: NDArray[np.float64]  # [layers of the stack, H]; NaN where a head is not there
    p_value: NDArray[np.float64]  # raw

    @property
    def marked(self) -> NDArray[np.bool_]:
        """Heads whose removal changes the metric with p < 0.01."""
        return np.nan_to_num(self.p_value, nan=1.0) < MARKED

    @property
    def heads(self) -> int:
        """How many heads the stack has."""
        return int(np.isfinite(self.deltas).sum())

    def extra(self) -> dict[str, Any]:
        marked = self.marked
        return {
            "marked": marked,
            "significant": int(marked.sum()),
            "better_without": int((marked & (self.deltas > 0)).sum()),
            "heads": self.heads,
        }


@dataclass(frozen=True)
class StackRow(Result):
    """One layer of one stack reduced to its best head."""

    stack: str
    layer: int
    head: int
    delta: float
    p_value: float

    @property
    def marked(self) -> bool:
        return self.p_value < MARKED

    def extra(self) -> dict[str, Any]:
        return {"marked": self.marked}


def by_stack(clf: TransformerModel, ablation: Ablation) -> list[StackTable]:
    """A table of single-head ablations cut into the model's stacks."""
    return [
        StackTable(stack, ablation.delta[rows.start : rows.stop], ablation.p_value[rows.start : rows.stop])
        for stack, rows in clf.stacks.items()
    ]


def rows_by_stack(clf: TransformerModel, result: AllButOne) -> list[StackRow]:
    """All-but-one results with the layers counted inside their stacks."""
    return [StackRow(*clf.place(row.layer), row.head, row.delta, row.p_value) for row in result.rows]


def stack_curves(
    evaluator: MaskEvaluator,
    scores: NDArray,
    *,
    step: float = 0.1,
    metric: str | None = None,
    margin: float = MARGIN,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PruningCurves:
    """Prune each stack alone, lowest score first, ``step`` of its heads at a time, until it has none left.

    A point's ``sparsity`` is the share of the *stack's* heads that are off, as in Fig. 4. Heads that tie go in ten
    orders, drawn from ``seed``.
    """
    subject, clf = subject_of(evaluator, metric), evaluator.clf
    present = clf.present
    check_steps(step, 1.0, 0, present.num_heads)
    if np.shape(scores) != (present.num_layers, present.num_heads):
        raise MaskError(
            f"The scores have shape {np.shape(scores)}; the model has {present.num_layers} rows × "
            f"{present.num_heads} heads."
        )
    stacks = {stack: [h for h in present.kept if h.layer in rows] for stack, rows in clf.stacks.items()}
    orders = {
        stack: ordered_by(present, scores, step, among=heads, seed=seed) for stack, heads in stacks.items() if heads
    }
    curves = measured(evaluator, orders, subject, margin, progress, cancel)

    def of_stack(curve: Curve) -> Curve:
        absent, size = len(present.off), len(stacks[curve.name])
        points = (replace(p, sparsity=(len(p.mask.off) - absent) / size) for p in curve.points)
        return replace(curve, points=tuple(points))

    return replace(curves, curves=tuple(map(of_stack, curves.curves)))


@dataclass(frozen=True)
class StackReport(Result):
    """All of it for one model: Table 1 for every stack, Tables 2 or 5, Fig. 4, and the published figures."""

    subject: Subject
    baseline: float
    tables: tuple[StackTable, ...]
    select: str
    rows: tuple[StackRow, ...]
    score: str
    curves: PruningCurves
    published: dict[str, Any]


def stack_report(
    evaluator: MaskEvaluator,
    score: str,
    scores: NDArray,
    other: MaskEvaluator | None = None,
    *,
    step: float = 0.1,
    margin: float = MARGIN,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> StackReport:
    """Ablate, reduce and prune stack by stack. ``other`` is the data that the kept heads are chosen on (Table 5);
    without it they are chosen on the reported data (Table 2). ``score`` is only the name of ``scores``.

    >>> import headviz
    >>> clf, data = headviz.load("demo-translation", device="cpu"), headviz.load_task("demo-translation", limit=2)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(clf.num_layers, clf.num_heads, ["0.0", "4.0", "8.0"]))
    >>> scores = headviz.score_heads(small, data, "magnitude").values
    >>> report = headviz.stack_report(headviz.evaluator_of(small, data), "magnitude", scores, step=0.5)
    >>> [table.stack for table in report.tables]
    ['encoder', 'cross', 'decoder']
    """
    require_evaluator(evaluator)
    clf = evaluator.clf
    select: Select = "same" if other is None else "other"
    table = ablate(evaluator, progress=part(progress, 0, 3), cancel=cancel)
    best = all_but_one(evaluator, select, other, progress=part(progress, 1, 3), cancel=cancel)
    third = part(progress, 2, 3)
    curves = stack_curves(evaluator, scores, step=step, margin=margin, seed=seed, progress=third, cancel=cancel)
    return StackReport(
        table.subject,
        table.baseline,
        tuple(by_stack(clf, table)),
        select,
        tuple(rows_by_stack(clf, best)),
        score,
        curves,
        {"single_encoder_head": published_single(), "one_head_kept": published_best(select)},
    )


def published_single() -> dict[str, list[float]]:
    """Table 1: the published changes of BLEU by encoder layer, and which of them are marked."""
    table = find(REFERENCE, "layer 1")
    return {name: table.numbers(name) for name in table.rows}


def published_best(select: str) -> Mapping[str, list[tuple[float, bool]]]:
    """Table 2 (``same``) or 5 (``other``): by stack, each layer's change of BLEU and whether it is marked."""
    table = find(REFERENCE, f"{select} encoder")
    published = {}
    for name, cells in table.rows.items():
        stack = name.split()[1]
        published[stack] = [(value, cell.endswith("*")) for value, cell in zip(table.numbers(name), cells, strict=True)]
    return published


def run(request: Request) -> StackReport:
    sample, score = request.sample(), request.option("score")
    return stack_report(
        request.evaluator,
        score,
        request.score(request.clf, score, sample),
        request.on(sample) if request.option("select") == "other" else None,
        step=request.option("step"),
        margin=request.option("margin"),
        seed=request.option("seed"),
        progress=request.progress,
        cancel=request.cancel,
    )


def figure(result: StackReport) -> Figure:
    return pruning_curve.figure(result.curves)


def view(result: StackReport) -> View:
    subject = result.subject
    free = [f"{100 * c.free:.0f} % of {c.name}" for c in result.curves.curves]
    single = [
        [f"{t.stack} {i}", *(_marked(subject.scale * v, m) for v, m in zip(row, t.marked[i], strict=True))]
        for t in result.tables
        for i, row in enumerate(t.deltas)
    ]
    kept = [[f"{r.stack} {r.layer}", f"H{r.head}", _marked(subject.scale * r.delta, r.marked)] for r in result.rows]
    return View(
        f"Lowest {result.score} first, a loss of more than {result.curves.margin:g} points is excluded up to: "
        f"{', '.join(free)}.",
        (
            *pruning_curve.parts(
                result.curves,
                "stack_curves",
                f"Each stack's heads masked alone, lowest {result.score} first; bands are the 95 % paired intervals.",
            ),
            Table(
                "stack_single",
                ("stack and layer", *(f"H{h}" for h in range(result.tables[0].deltas.shape[1]))),
                single,
                f"Change of {subject.metric} in points without one head; * p < 0.01.",
            ),
            Table(
                "stack_kept",
                ("stack and layer", "head kept", "change"),
                kept,
                "One head of a layer kept, all others of that layer off; * p < 0.01.",
            ),
        ),
        about=subject.lines(result.baseline),
        rows=subject.rows,
    )


def _marked(points: float, mark: bool) -> str:
    return "–" if points != points else numbers.points(points, 1) + ("*" if mark else "")


def recipe(options: Mapping[str, Any]) -> str:
    other = [Code("headviz.evaluator_of(clf, some)")] if options["select"] == "other" else []
    keywords = changed(options, (MARGIN_OPTION, SEED))
    report = call("headviz.stack_report", Code("evaluator"), "taylor", Code("scores"), *other, **keywords)
    return f"scores = headviz.score_heads(clf, some, score='taylor').values\nresult = {report}"

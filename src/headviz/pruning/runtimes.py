"""A model and its pruned one in PyTorch, ONNX Runtime and int8: how fast, how large, and what each changes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import torch

from ..answers.metrics import metric_title, points_in
from ..display.figures.style import BETTER, FAINT, NEUTRAL, WORSE, frame, whisker
from ..display.numbers import change
from ..display.table import Column, Picture, Table, View
from ..errors import ModelError, OptionError
from ..evaluation.paired import Paired, paired_change
from ..evaluation.verdict import excluded
from ..models.classifier import Classifier
from ..models.loading import load
from ..models.network import require_model, weight_bytes
from ..models.onnx import Session, export_onnx, require_onnx
from ..models.pruning import prune
from ..progress import Cancel, Progress, require_functions
from ..results import Result
from .export import FILE, answers, quantise, size_of
from .latency import PAIRS, Speed, Timer, in_pairs

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.request import Request
    from ..storage.exchange import MaskLike
    from ..tasks import Dataset

PYTORCH, ONNX, INT8 = RUNTIMES = ("PyTorch", "ONNX", "ONNX int8")


@dataclass(frozen=True)
class RuntimeRow(Result):
    """One model in one runtime. ``speedup`` and ``change`` are against the first row: the whole model in PyTorch."""

    model: str  # "full" or "pruned"
    runtime: str
    bytes: int  # of the weights, or of the ONNX file
    seconds: float  # of a batch
    speedup: float
    speedup_low: float
    speedup_high: float
    value: float | None = None  # of the task's first metric
    change: Paired | None = None

    @property
    def name(self) -> str:
        return f"{self.model}, {self.runtime}"


@dataclass(frozen=True)
class Runtimes(Result):
    """``n`` examples, timed with batches of ``batch`` texts of ``length`` tokens.

    >>> import headviz
    >>> result = headviz.runtimes(headviz.load("demo", device="cpu"), {4: [10]})  # doctest: +SKIP
    """

    model: str
    pruned: str  # what the pruned model is called; empty without one
    task: str
    metric: str
    n: int
    batch: int
    length: int
    threads: int
    rows: tuple[RuntimeRow, ...]


def runtimes(
    clf: Classifier,
    pruned: Classifier | MaskLike | str | Path | None = None,
    data: Dataset | None = None,
    *,
    batch: int = 32,
    length: int | None = None,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Runtimes:
    """Time and compare a model, and a pruned one, in PyTorch, in ONNX Runtime and in int8, on the processor.

    The pruned one is a model, the folder of one, or a mask.

    Each way is timed in turn with the model in PyTorch, on the same threads; the answers are to all of ``data``. It
    needs the extra ``headviz[onnx]``.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> data = headviz.load_task("demo", limit=100)
    >>> result = headviz.runtimes(clf, {4: [10]}, data)  # doctest: +SKIP
    >>> [row.name for row in result.rows][-1]  # doctest: +SKIP
    'pruned, ONNX int8'
    """
    require_model(clf)
    require_functions(progress, cancel)
    require_onnx(clf)
    small: Any
    if isinstance(pruned, str | Path):
        small = load(pruned, device="cpu")
    elif pruned is None or hasattr(pruned, "present"):
        small = pruned
    else:
        mask = clf.read(pruned)
        small = None if mask == clf.present else prune(clf, mask)
    models = {"full": clf, **({} if small is None else {"pruned": small})}
    for name, model in models.items():
        if model.device.type != "cpu":
            raise ModelError(f"Runtimes are compared on the processor. Load the {name} model there (device='cpu').")
    if small is not None and small.labels != clf.labels:
        raise ModelError(f"The pruned model has other classes ({small.labels}) than the model ({clf.labels}).")
    data = None if data is None else clf.answer.judged(data)
    timer = Timer(clf, batch, length)
    parts = 2 * len(RUNTIMES)  # of the progress for a model: its answers, and the times
    total, rows, baseline = len(models) * parts, list[RuntimeRow](), np.zeros(0)
    metric = "" if data is None else data.task.metrics[0]
    for number, (name, model) in enumerate(models.items()):
        with tempfile.TemporaryDirectory() as folder:
            file = export_onnx(model, Path(folder) / FILE)
            files = {ONNX: file, INT8: quantise(file, file.with_name(f"int8-{FILE}"))}
            sessions = {runtime: Session(model, path, torch.get_num_threads()) for runtime, path in files.items()}
            predictions = list[Any]([None] * len(RUNTIMES))
            if data is not None:
                part = _part(progress, number * parts, len(RUNTIMES), total)
                ways = (model.outputs_under, *(session.outputs for session in sessions.values()))
                logits, order = answers(model, data, ways, label_order, part, cancel)
                predictions = [data.answer.predicted(scores, order) for scores in logits]
                baseline = baseline if rows else predictions[0]
            for at, (runtime, predicted) in enumerate(zip(RUNTIMES, predictions, strict=True), len(RUNTIMES)):
                part = _part(progress, number * parts + at, 1, total)
                if rows:
                    call = partial(timer, model)
                    if runtime in sessions:
                        call = partial(timer.seconds, partial(sessions[runtime].outputs, timer.texts))
                    speed = in_pairs(partial(timer, clf), call, progress=part, cancel=cancel)
                else:
                    seconds = float(np.median([timer(clf) for _ in range(PAIRS[0])]))
                    speed = Speed(1.0, 1.0, 1.0, seconds, seconds, 0)
                size = size_of(files[runtime]) if runtime in files else weight_bytes(model.model)
                times = (speed.speedup, speed.low, speed.high)
                value, change = None, None
                if data is not None and data.labels is not None:
                    compared = data.answer.answers(data.gold, baseline, data.label_names)
                    value = compared.measure(predicted, metric)
                    change = paired_change(compared, predicted, metric) if rows else None
                rows.append(RuntimeRow(name, runtime, size, speed.after, *times, value, change))
    return Runtimes(
        clf.name,
        "" if small is None else _less(clf, small),
        "" if data is None else data.task.name,
        metric,
        0 if data is None else len(data),
        batch,
        timer.length,
        torch.get_num_threads(),
        tuple(rows),
    )


def _less(clf: Classifier, small: Classifier) -> str:
    heads = len(small.present.off) - len(clf.present.off)
    share = small.cost().parameters / clf.cost().parameters
    return f"{heads} of {clf.present.size} heads removed, {share:.1%} of the parameters left"


def _part(progress: Progress | None, before: int, size: int, total: int) -> Progress | None:
    """The progress of a part that is ``size`` of ``total``, whatever it counts itself."""
    if progress is None:
        return None
    return lambda done, whole: progress(before + size * done // whole, total) if whole else None


# ---- as an analysis


def run(request: Request) -> Runtimes:
    clf, mask, folder = request.clf, request.mask(), request.option("pruned")
    if mask is not None and folder is not None:
        raise OptionError("The pruned model is that of the mask or the one in a folder (--pruned). Give one of them.")
    pruned = mask if folder is None else request.load(folder)
    return runtimes(
        clf,
        pruned,
        request.data,
        batch=request.option("batch"),
        length=request.option("length"),
        label_order=request.label_order,
        progress=request.progress,
        cancel=request.cancel,
    )


def figure(result: Runtimes) -> Figure:
    """How many times as fast as the whole model in PyTorch, with intervals."""
    fig, rows = go.Figure(), result.rows[::-1]
    fig.add_scatter(
        x=[r.speedup for r in rows],
        y=[r.name for r in rows],
        mode="markers+text",
        text=[f"{r.speedup:.2f}×" for r in rows],
        textposition="top center",
        cliponaxis=False,
        showlegend=False,
        marker={"size": 11, "color": [_colour(r) for r in rows]},
        error_x=whisker(*([getattr(r, name) for r in rows] for name in ("speedup", "speedup_low", "speedup_high"))),
        hovertemplate="%{y}: %{x:.3f}×<extra></extra>",
    )
    fig.add_vline(x=1.0, line={"color": FAINT, "width": 1})
    top = max(r.speedup_high for r in rows)
    fig.update_xaxes(title="times as fast", range=[0, 1.12 * top])
    fig.update_yaxes(automargin=True)
    return frame(fig, 90 + 44 * len(rows), top=24)


def _colour(row: RuntimeRow) -> str:
    if row.speedup_low <= 1 <= row.speedup_high:
        return NEUTRAL
    return BETTER if row.speedup > 1 else WORSE


def finding(result: Runtimes) -> str:
    """The fastest way, with what it changes."""
    best, whole = max(result.rows, key=lambda r: r.speedup_low), result.rows[0]
    if best is whole:
        return "No way is clearly faster than the whole model in PyTorch."
    sentence = (
        f"The fastest is {best.name}: {best.speedup:.2f} times [{best.speedup_low:.2f}, {best.speedup_high:.2f}] as "
        f"fast as the whole model in PyTorch, and {_megabytes(best)} MB in place of {_megabytes(whole)}"
    )
    if best.change is None:
        return f"{sentence}."
    scale = points_in(result.metric)
    changed = change(best.change.difference, best.change.low, best.change.high, scale)
    metric = metric_title(result.metric)
    return (
        f"{sentence}. {metric[0].upper()}{metric[1:]} changes by {changed} points: {excluded(best.change.low, scale)}."
    )


def _megabytes(row: RuntimeRow) -> str:
    return f"{row.bytes / 1e6:,.1f}"


def view(result: Runtimes) -> View:
    scale = points_in(result.metric) if result.metric else 1.0
    threads = "1 thread" if result.threads == 1 else f"{result.threads} threads"
    measured = f"batches of {result.batch} texts of {result.length} tokens, {threads}"

    def change_of(row: RuntimeRow) -> float | None:
        return None if row.change is None else scale * row.change.difference

    def ends(row: RuntimeRow) -> tuple[float | None, float | None]:
        return (None, None) if row.change is None else (scale * row.change.low, scale * row.change.high)

    def possible(row: RuntimeRow) -> float | None:
        return None if row.change is None else scale * row.change.excludes

    return View(
        finding(result),
        (
            Picture(
                "runtimes_speed",
                lambda: figure(result),
                f"Speed against the whole model in PyTorch, {measured}; bars are 95 % intervals of interleaved pairs. "
                "Grey is not clearly different.",
            ),
            Table.of(
                "runtimes_table",
                (
                    Column("model", value=attrgetter("model")),
                    Column("runtime", value=attrgetter("runtime")),
                    Column(
                        "times as fast", "%.2f", attrgetter("speedup"), ends=lambda r: (r.speedup_low, r.speedup_high)
                    ),
                    Column("s a batch", "%.4f", attrgetter("seconds"), "seconds of one batch, the median"),
                    Column("MB", "%.1f", lambda r: r.bytes / 1e6, "of the weights, or of the ONNX file"),
                    Column(result.metric or "metric", "%.4f", attrgetter("value")),
                    Column("change", "%+.2f", change_of, "in points, against the first row", ends=ends),
                    Column("a loss above this is excluded", "%.2f", possible, "in points, at 97.5 %, one-sided"),
                ),
                result.rows,
                caption=f"{result.n:,} examples of {result.task}. {result.pruned}".strip()
                if result.n
                else result.pruned,
            ).filled(),
        ),
        about=(("model", result.model), ("pruned", result.pruned), ("measured", measured)),
    )


def recipe(options: Mapping[str, Any]) -> str:
    return "result = headviz.runtimes(clf, mask, data)"

"""Examples per second before and after really removing heads. [M §4.3, Table 4]

The arithmetic ceiling stands next to the measurement: heads are only a part of the work, so removing half of them
can never double the speed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from plotly.subplots import make_subplots

from ..display.figures.style import BETTER, FAINT, MODELS, NEUTRAL, SMALL, WORSE, frame, whisker
from ..display.table import Column, Picture, Table, View
from ..errors import OptionError
from ..heads import HeadMask
from ..models import LENGTH
from ..models.network import random_batch
from ..models.pruning import prune
from ..progress import Cancel, Progress, after, tracked
from ..results import Result
from ..statistics.intervals import interval_of_series
from ..storage.exchange import MaskLike
from .analysis import REPEATS, arguments

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
    from torch import Tensor

    from ..models.classifier import Classifier
    from .analysis import Request

BATCHES = (1, 4, 16, 64)
SCATTER = 0.2  # sd as a share of the mean above which a timing is no measurement


@dataclass(frozen=True)
class SpeedRow(Result):
    """One batch size. Speeds are examples per second, with their standard deviation over the repeats.

    They come from the geometric mean of the times, so that ``ratio`` is pruned / full. Its interval is that of the
    paired repeats, in which the two models were timed one right after the other, in three blocks: timings resemble
    those before them.
    """

    batch: int
    full: float
    full_sd: float
    pruned: float
    pruned_sd: float
    ratio: float
    ratio_low: float = float("nan")
    ratio_high: float = float("nan")

    def extra(self) -> dict[str, Any]:
        return {"examples_per_second": [self.full, self.pruned]}


@dataclass(frozen=True)
class Speed(Result):
    """``ceiling`` is the ratio of the matrix products' FLOPs: they alone cannot be faster than that."""

    model: str
    mask: HeadMask
    length: int
    repeats: int
    threads: int
    device: str
    ceiling: float
    parameters: tuple[int, int]
    flops: tuple[int, int]
    rows: tuple[SpeedRow, ...]
    gone: int = 0  # heads that the model lacked before

    @property
    def removed(self) -> int:
        return len(self.mask.off) - self.gone


def speed(
    clf: Classifier,
    mask: MaskLike,
    *,
    batches: Sequence[int] = BATCHES,
    length: int | None = None,
    repeats: int = REPEATS,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Speed:
    """Time both models in turn on random texts of ``length`` tokens; the first round warms up and is not counted.

    Without ``length`` it is 128, or what the model can take if that is less.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> result = headviz.speed(clf, clf.full_mask.without(["0.0"]), batches=(1,), length=16, repeats=2)
    >>> [row.batch for row in result.rows]
    [1]
    """
    small = prune(clf, mask)
    if repeats < 2:
        raise OptionError("A standard deviation needs at least 2 repeats.")
    if length is None:
        length = min(LENGTH, clf.max_length)
    if not 1 <= length <= clf.max_length:
        raise OptionError(f"length must be between 1 and {clf.max_length} tokens, not {length}.")
    rows, total = [], len(batches) * (repeats + 1)
    for number, size in enumerate(batches):
        batch = random_batch(clf, size, length)
        seconds: tuple[list[float], list[float]] = ([], [])
        step_progress = after(progress, number * (repeats + 1), total)
        for turn in tracked(range(repeats + 1), step_progress, cancel):
            for place in (0, 1) if turn % 2 else (1, 0):  # a machine that slows down harms both
                spent = _time((clf, small)[place], batch)
                if turn:
                    seconds[place].append(spent)
        rows.append(_row(size, *seconds))
    full, pruned = clf.cost(length=length), small.cost(length=length)
    return Speed(
        clf.name,
        small.present,
        length,
        repeats,
        torch.get_num_threads(),
        str(clf.device),
        full.flops / pruned.flops,
        (full.parameters, pruned.parameters),
        (full.flops, pruned.flops),
        tuple(rows),
        len(clf.present.off),
    )


def _row(size: int, full: Sequence[float], pruned: Sequence[float]) -> SpeedRow:
    """Of paired times of one batch of this size, in seconds."""
    times = np.log(full), np.log(pruned)
    rates = [(float(size / np.exp(t.mean())), float((size / np.exp(t)).std(ddof=1))) for t in times]
    ratio, low, high = (float(np.exp(v)) for v in interval_of_series(times[0] - times[1]))
    return SpeedRow(size, *rates[0], *rates[1], ratio, low, high)


def _time(clf: Classifier, batch: dict[str, Tensor]) -> float:
    wait = torch.cuda.synchronize if clf.device.type == "cuda" else int
    wait()
    start = time.perf_counter()
    clf.outputs_under(batch)
    wait()
    return time.perf_counter() - start


def run(request: Request) -> Speed:
    batches = request.option("batches")
    try:
        sizes = [int(size) for size in batches.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise OptionError(f"'{batches}' is not a list of batch sizes, such as 1,4,16,64.")
    mask = request.mask()
    if mask is None:
        share, present = request.option("remove"), request.clf.present
        if not 0 < share < 1:
            raise OptionError(f"The share of heads to remove lies between 0 and 1, and {share} does not (--remove).")
        mask = present.without_random(max(0, round(share * present.size) - len(present.off)))
    return speed(request.clf, mask, batches=sizes, **arguments(request, "length", "repeats"))


def figure(result: Speed) -> Figure:
    """Examples per second of both models, and their ratio below the arithmetic ceiling."""
    fig = make_subplots(1, 2, column_widths=[0.58, 0.42], horizontal_spacing=0.12)
    names = [f"batch {r.batch}" for r in result.rows]
    for name, rates, shade in (
        ("model as it is" if result.gone else "full model", [(r.full, r.full_sd) for r in result.rows], NEUTRAL),
        (f"{result.removed} heads removed", [(r.pruned, r.pruned_sd) for r in result.rows], MODELS[0]),
    ):
        fig.add_bar(
            x=names,
            y=[mean for mean, _ in rates],
            name=name,
            marker={"color": shade},
            row=1,
            col=1,
            error_y={"type": "data", "array": [sd for _, sd in rates], "thickness": 1.2, "width": 4},
            hovertemplate="%{x}: %{y:.1f}/s<extra></extra>",
        )
    fig.add_scatter(
        x=names,
        y=[r.ratio for r in result.rows],
        mode="markers+text",
        showlegend=False,
        textposition="top center",
        cliponaxis=False,
        text=[f"{r.ratio:.2f}×" for r in result.rows],
        marker={
            "size": 11,
            "color": [_colour(r, result) for r in result.rows],
            "symbol": ["x" if _noise(r, result) else "circle" for r in result.rows],
        },
        error_y=whisker(*([getattr(r, name) for r in result.rows] for name in ("ratio", "ratio_low", "ratio_high"))),
        row=1,
        col=2,
        hovertemplate="%{x}: %{y:.3f}×<extra></extra>",
    )
    fig.add_hline(y=result.ceiling, line={"dash": "dash", "color": NEUTRAL}, row=1, col=2)
    fig.add_hline(y=1.0, line={"color": FAINT, "width": 1}, row=1, col=2)
    fig.add_annotation(
        x=0,
        xref="x2 domain",
        y=result.ceiling,
        yref="y2",
        yanchor="bottom",
        xanchor="left",
        showarrow=False,
        text=f"arithmetic ceiling {result.ceiling:.2f}×",
        font={"size": SMALL},
    )
    top = max([result.ceiling, *(v for r in result.rows for v in (r.ratio, r.ratio_high) if v == v)])
    low = min([0.9, *(v - 0.1 for r in result.rows for v in (r.ratio, r.ratio_low) if v == v)])
    fig.update_yaxes(title="examples per second", row=1, col=1)
    fig.update_yaxes(title="times as fast", range=[low, top * 1.06], row=1, col=2)
    return frame(fig, 360, top=34, barmode="group", least=260 + 84 * len(names))


def _colour(row: SpeedRow, result: Speed) -> str:
    """Blue is faster and orange slower where the interval excludes 1; grey is not significant, or noise."""
    if _noise(row, result) or not (row.ratio_low > 1 or row.ratio_high < 1):
        return NEUTRAL
    return BETTER if row.ratio > 1 else WORSE


def _noise(row: SpeedRow, result: Speed) -> bool:
    """Whether a ratio is above what arithmetic allows, and so tells of the machine and not of the models."""
    return row.ratio_low > result.ceiling if row.ratio_low == row.ratio_low else row.ratio > result.ceiling


def finding(result: Speed) -> str:
    """The ratio at the largest batch whose timing can be true; none where no timing can."""
    heads = f"{result.removed} of {result.mask.size - result.gone} heads removed"
    credible = [r for r in result.rows if not _noise(r, result)]
    refused = [f"batch {r.batch} (×{r.ratio:.2f})" for r in result.rows if _noise(r, result)]
    if not credible:
        return (
            f"No speed is known: every timing says more than the ×{result.ceiling:.2f} that arithmetic allows, so "
            f"it is noise of the machine, or of what is no product of matrices ({heads})."
        )
    largest = max(credible, key=lambda r: r.batch)
    sentence = f"×{largest.ratio:.2f} [{largest.ratio_low:.2f}, {largest.ratio_high:.2f}] at batch {largest.batch}"
    if largest.ratio_low <= 1 <= largest.ratio_high:
        sentence = f"No change of speed is clear: {sentence}"
    noise = f" Refused as noise, because above that: {', '.join(refused)}." if refused else ""
    return f"{sentence}; arithmetic allows ×{result.ceiling:.2f} ({heads}).{noise}"


def view(result: Speed) -> View:
    scatter = max(sd / mean for r in result.rows for mean, sd in ((r.full, r.full_sd), (r.pruned, r.pruned_sd)))
    threads = "1 thread" if result.threads == 1 else f"{result.threads} threads"
    return View(
        finding(result),
        (
            Picture(
                "speed_bars",
                lambda: figure(result),
                f"Examples per second, texts of {result.length} tokens, {threads}, {result.device}; "
                f"± sd of {result.repeats} repeats. "
                "Right: the ratio with its 95 % interval over three blocks of the pairs; grey is not significantly "
                "different from 1, a cross is above what arithmetic allows.",
                r"\text{ceiling} = \text{FLOPs}(\text{full}) / \text{FLOPs}(\text{pruned})",
                "The ceiling is the ratio of the matrix products' FLOPs: they alone cannot "
                "beat it; softmax and copies shrink with the heads, too.",
            ),
            Table.of(
                "speed_table",
                (
                    Column("batch", value=attrgetter("batch")),
                    Column("full, ex/s", "%.1f", attrgetter("full")),
                    Column("sd", "%.1f", attrgetter("full_sd")),
                    Column("pruned, ex/s", "%.1f", attrgetter("pruned")),
                    Column("sd pruned", "%.1f", attrgetter("pruned_sd")),
                    Column("ratio", "%.2f", attrgetter("ratio"), ends=lambda r: (r.ratio_low, r.ratio_high)),
                ),
                result.rows,
                caption="Both models timed in turn, pair by pair; the ratio is that of the two speeds.",
            ),
        ),
        about=(("model", result.model), ("device", f"{result.device}, {threads}")),
        warning=f"These timings scatter by up to {100 * scatter:.0f} %: the machine did other work meanwhile. "
        "Run it again when it is quiet before quoting a ratio."
        if scatter > SCATTER
        else "",
    )


def recipe(options: Mapping[str, Any]) -> str:
    return f"result = headviz.speed(clf, mask, length={options['length']!r})"

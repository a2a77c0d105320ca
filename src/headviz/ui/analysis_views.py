"""How each analysis is shown: a figure, a table, and one sentence that says what it shows.

An analysis without a line in ``VIEWS`` is shown by its figure and the table of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from .. import charts, charts_analyses
from ..heads import HeadId
from . import show, state
from .grid import Look, head_grid

if TYPE_CHECKING:
    from ..analyses.ablation import Ablation

COST = r"c_h = m(\text{full}) - m(\text{full without } h)"
PAIRED = "q: Benjamini-Hochberg over all heads; intervals: paired on the same examples, 95 %."


@dataclass(frozen=True)
class Place:
    """What a view knows beside the result: the task, and the names of the grid's rows where it has stacks."""

    task: str
    rows: tuple[str, ...] | None = None

    def head(self, layer: int, head: int) -> str:
        return show.head_name(HeadId(layer, head), self.rows)


def show_result(name: str, found: Any, place: Place) -> None:
    VIEWS.get(name, _plain)(found, place)


def _select(head: HeadId) -> None:
    state.update(head=head.dotted)


def _points(table: np.ndarray, scale: float) -> list[list[str]]:
    return [[show.points(float(v), scale) for v in row] for row in table]


def cost_grid(found: Ablation, key: str, place: Place, width: float = 34) -> None:
    """The cost of every head in points, significant ones marked."""
    marks = [HeadId(int(i), int(j)) for i, j in np.argwhere(found.significant())]
    scale = found.subject.scale
    low, high = _points(found.interval_low, scale), _points(found.interval_high, scale)
    spread = [[f"[{a}, {b}]" for a, b in zip(x, y, strict=True)] for x, y in zip(low, high, strict=True)]
    head_grid(
        key,
        found.base,
        scale * found.values,
        selected=state.head(found.base),
        tips={"cost, points": _points(found.values, scale), "95 %": spread, "q": _numbers(found.q_value)},
        marks=marks,
        mark_name="significant (q < 0.05)",
        rows=place.rows,
        look=Look(
            name=f"cost: points of {found.subject.metric} lost", numbers=state.view().numbers, width=width,
            file="headviz-ablation",
        ),
        on_select=_select,
    )  # fmt: skip


def _numbers(table: np.ndarray) -> list[list[str]]:
    return [[show.number(float(v)) for v in row] for row in table]


def ablation(found: Ablation, place: Place) -> None:
    clear = int((found.significant() & (found.values > 0)).sum())
    hurts = found.harmful()
    tested = int(np.isfinite(found.p_value).sum())
    free = int((found.values <= 0).sum())
    show.finding(
        f"{clear} of {tested} heads cost{'s' if clear == 1 else ''} something for certain; "
        f"{free} cost nothing or less; {len(hurts) or 'none'} {'does' if len(hurts) == 1 else 'do'} harm."
    )
    about = found.subject
    left, right = st.columns([5, 4], gap="large")
    with left:
        cost_grid(found, "ablation_grid", place)
        show.note(
            f"Points of {about.metric} that the model loses without each head, on {about.n} examples.",
            formula=COST,
            source=PAIRED,
            key="ablation_note",
            saves=False,
        )
    with right:
        show.figure(
            charts.value_histogram(
                about.scale * found.values, found.significant(), f"cost, points of {about.metric}"
            ),
            "ablation_histogram",
            f"How many heads cost how much; the full model has {about.metric} {show.number(found.baseline)}.",
            formula=COST,
        )
        show.table(
            ["head", "cost", "95 % low", "95 % high", "p", "q"], _head_rows(found, place), "ablation_table",
            caption="All heads, the costliest first; costs in points.", height=300,
        )  # fmt: skip


def _head_rows(found: Ablation, place: Place) -> list[list[Any]]:
    known = [HeadId(int(i), int(j)) for i, j in np.argwhere(np.isfinite(found.values))]
    known.sort(key=lambda h: (-found.values[h], h))
    scale = found.subject.scale
    costs = (found.values, found.interval_low, found.interval_high)
    return [
        [
            place.head(*h),
            *(scale * float(t[h]) for t in costs),
            float(found.p_value[h]),
            float(found.q_value[h]),
        ]
        for h in known
    ]


def all_but_one(found: Any, place: Place) -> None:
    scale = found.subject.scale
    worst = min(found.rows, key=lambda r: r.delta, default=None)
    if worst is not None:
        enough = sum(r.interval_high >= 0 for r in found.rows)
        layer = place.rows[worst.layer] if place.rows else f"layer {worst.layer}"
        show.finding(
            f"In {enough} of {len(found.rows)} layers one head is enough; "
            f"{layer} suffers most ({show.points(worst.delta, scale)} points)."
        )
    where = "the reported data" if found.select == "same" else "training examples"
    show.figure(
        charts_analyses.figure(found),
        "all_but_one_bars",
        f"Change of {found.subject.metric} when only the best head of one layer is left, chosen on {where}.",
        formula=r"\Delta_l = \max_h m(\text{only } h \text{ of layer } l) - m(\text{full})",
        source="Choosing and reporting on the same data flatters; 'training examples' does not.",
    )
    rows = [
        [
            place.head(r.layer, r.head),
            *(scale * v for v in (r.delta, r.interval_low, r.interval_high)),
            r.p_value,
            r.q_value,
        ]
        for r in found.rows
    ]
    show.table(
        ["best head", "change", "95 % low", "95 % high", "p", "q"], rows, "all_but_one_table",
        caption="The best single head of each layer; changes in points.",
    )  # fmt: skip


def cross_dataset(found: Any, place: Place) -> None:
    a, b = found.first.subject, found.second.subject
    names = [f"{s.task} {s.split}" for s in (a, b)]
    show.finding(
        f"Costs on both data sets correlate with r = {show.number(found.pearson)} "
        f"[{show.number(found.interval_low)}, {show.number(found.interval_high)}], {show.p_text(found.p_value)}."
    )
    show.figure(
        charts_analyses.figure(found),
        "cross_scatter",
        f"Each point is one head: what it costs on {names[0]} and on {names[1]}.",
        formula=COST,
        source="r: Pearson over heads; its interval by Fisher's transform, heads taken as independent.",
    )
    rows = [
        [place.head(int(i), int(j)), *(s.subject.scale * float(s.values[i, j]) for s in (found.first, found.second))]
        for i, j in np.argwhere(np.isfinite(found.first.values))
    ]  # fmt: skip
    show.table(
        ["head", *names], rows, "cross_table", caption="The cost of each head on both, in points.", height=300
    )


def curves(found: Any, place: Place) -> None:
    best = max(found.curves, key=lambda c: c.free)
    show.finding(
        f"{100 * best.free:.0f} % of the heads can go without a clear loss in the order of {best.name}."
    )
    _curves(
        found,
        "pruning_curves",
        "Heads masked lowest score first; bands are the 95 % paired intervals. The oracle knows the answers: it shows "
        "what a score could reach.",
    )


def _curves(found: Any, key: str, caption: str) -> None:
    show.figure(
        charts_analyses.figure(found),
        key,
        caption,
        formula=r"m(\text{masked}) \text{ against } |\text{off}| / |\text{heads}|",
    )
    scale = found.subject.scale
    rows = [
        [c.name, p.sparsity, len(p.mask.off), p.value,
         *(scale * v for v in (p.delta, p.interval_low, p.interval_high)), p.p_value]
        for c in found.curves
        for p in c.points
    ]  # fmt: skip
    header = ["order", "share off", "heads off", found.subject.metric, "change", "95 % low", "95 % high", "p"]
    event = show.table(
        header, rows, f"{key}_table",
        caption="Changes in points.", hint="Choose a row to take its mask to the Mask lab.", height=300,
        on_select="rerun", selection_mode="single-row",
    )  # fmt: skip
    _open_mask(event, [p.mask for c in found.curves for p in c.points], f"{key}_opened")


def _open_mask(event: Any, masks: Sequence[Any], memory: str) -> None:
    chosen = event.selection.rows if hasattr(event, "selection") else []
    if chosen and st.session_state.get(memory) != masks[chosen[0]].hex:
        st.session_state[memory] = masks[chosen[0]].hex
        state.set_mask(masks[chosen[0]])
        st.switch_page("pages/masklab.py")


def stacks(found: Any, place: Place) -> None:
    """The report of a translation model: single heads, one head kept, and curves, each by stack."""
    scale = found.subject.scale
    free = [f"{100 * c.free:.0f} % of {c.name}" for c in found.curves.curves]
    show.finding(f"Without a clear loss, lowest {found.score} first, can go: {', '.join(free)}.")
    _curves(
        found.curves,
        "stack_curves",
        f"Each stack's heads masked alone, lowest {found.score} first; bands are the 95 % paired intervals.",
    )
    header = ["stack and layer", *(f"H{h}" for h in range(found.tables[0].deltas.shape[1]))]
    rows = [
        [f"{t.stack} {i}", *(_marked(scale * v, m) for v, m in zip(row, t.marked[i], strict=True))]
        for t in found.tables
        for i, row in enumerate(t.deltas)
    ]
    show.table(
        header, rows, "stack_single",
        caption=f"Change of {found.subject.metric} in points without one head; * p < 0.01.",
    )  # fmt: skip
    kept = [[f"{r.stack} {r.layer}", f"H{r.head}", _marked(scale * r.delta, r.marked)] for r in found.rows]
    show.table(
        ["stack and layer", "head kept", "change"], kept, "stack_kept",
        caption="One head of a layer kept, all others of that layer off; * p < 0.01.",
    )  # fmt: skip


def _marked(points: float, mark: bool) -> str:
    return "–" if points != points else show.points(points, 1) + ("*" if mark else "")


def speed(found: Any, place: Place) -> None:
    at = max(found.rows, key=lambda r: r.ratio)
    show.finding(
        f"×{at.ratio:.2f} at batch {at.batch}; arithmetic allows ×{found.ceiling:.2f} "
        f"({len(found.mask.off)} of {found.mask.size} heads removed)."
    )
    show.figure(
        charts_analyses.figure(found),
        "speed_bars",
        f"Examples per second, texts of {found.length} tokens, {found.threads} threads, {found.device}; "
        f"mean ± sd of {found.repeats} repeats.",
        formula=r"\text{ceiling} = \text{FLOPs}(\text{full}) / \text{FLOPs}(\text{pruned})",
        source="The ceiling is the ratio of the matrix products' FLOPs: removing heads alone cannot beat it.",
    )
    rows = [[r.batch, r.full, r.full_sd, r.pruned, r.pruned_sd, r.ratio] for r in found.rows]
    show.table(
        ["batch", "full, ex/s", "sd", "pruned, ex/s", "sd pruned", "ratio"], rows, "speed_table",
        caption="Both models timed in turn.",
    )  # fmt: skip


def harmful(found: Any, place: Place) -> None:
    scale, many = found.subject.scale, len(found.heads)
    show.finding(
        f"{many or 'No'} of {found.tested} heads {'does' if many == 1 else 'do'} harm at q < {found.level:g}."
        if many
        else f"No head of {found.tested} does harm at q < {found.level:g}."
    )
    show.figure(
        charts_analyses.figure(found), "harmful_bars", "What the model gains without each of these heads.",
        formula=r"\Delta_h = m(\text{full without } h) - m(\text{full})", source=PAIRED,
    )  # fmt: skip
    rows = [
        [
            place.head(*r.head),
            *(scale * v for v in (r.delta, r.interval_low, r.interval_high)),
            r.p_value,
            r.q_value,
        ]
        for r in found.heads
    ]
    show.table(
        ["head", "gain", "95 % low", "95 % high", "p", "q"], rows, "harmful_table",
        caption="Gains in points. They are the best of many, so expect less on new data.",
    )  # fmt: skip


def redundant(found: Any, place: Place) -> None:
    many, scale = len(found.pairs), found.subject.scale
    show.finding(
        f"{many or 'No'} pair{'s' if many != 1 else ''} of harmless heads "
        f"cost{'' if many != 1 else 's'} something together ({found.evaluated} of {found.candidates} pairs tried)."
    )
    show.figure(
        charts_analyses.figure(found), "redundant_bars", "What both heads of a pair cost apart and together.",
        formula=r"c_{gh} - (c_g + c_h)", source=PAIRED,
    )  # fmt: skip
    rows = [
        [
            f"{place.head(*p.first)} + {place.head(*p.second)}",
            *(scale * v for v in (p.cost, p.cost_first, p.cost_second, p.excess, p.interval_low, p.interval_high)),
            p.q_value,
        ]
        for p in found.pairs
    ]  # fmt: skip
    show.table(
        ["pair", "cost", "first alone", "second alone", "excess", "95 % low", "95 % high", "q"], rows,
        "redundant_table",
        caption=f"Costs in points of pairs that cost more together; {found.harmless} heads are harmless alone.",
    )  # fmt: skip


def dynamics(found: Any, place: Place) -> None:
    last = found.checkpoints[-1]
    show.finding(_when(found))
    show.figure(
        charts_analyses.figure(found),
        "dynamics_curves",
        f"Each line is one checkpoint, pruned in the order of its own {found.score} score, later ones darker; "
        f"the last one reaches {show.number(last.baseline)} unpruned.",
        formula=r"m(\text{masked}) / m(\text{full})",
    )
    rows = [
        [c.name, c.baseline, s, r]
        for c in found.checkpoints
        for s, r in zip(c.sparsities, c.relative, strict=True)
    ]
    show.table(
        ["checkpoint", "unpruned", "share off", "share of unpruned"], rows, "dynamics_table",
        caption="The metric as a share of each checkpoint's own unpruned metric.", height=300,
    )  # fmt: skip


KEPT = 0.95  # of the unpruned metric


def _when(found: Any) -> str:
    """How much each end of the training can spare."""

    def spare(c: Any) -> float:
        return max((s for s, r in zip(c.sparsities, c.relative, strict=True) if r >= KEPT), default=0.0)

    first, last = found.checkpoints[0], found.checkpoints[-1]
    return (
        f"{100 * KEPT:.0f} % of the metric stays with {100 * spare(first):.0f} % of the heads off at {first.name}, "
        f"and with {100 * spare(last):.0f} % off at {last.name}."
    )


def _plain(found: Any, place: Place) -> None:
    """Any other result: its figure, and the first table of rows that it has."""
    name = type(found).__name__
    show.figure(charts_analyses.figure(found), f"{name}_figure".lower(), name)
    rows = next(
        (
            v
            for f in fields(found)
            if isinstance(v := getattr(found, f.name), tuple) and v and is_dataclass(v[0])
        ),
        (),
    )
    if rows:
        header = [f.name for f in fields(rows[0])]
        show.table(
            header, [[getattr(r, h) for h in header] for r in rows], f"{name}_table".lower(), caption=name
        )


VIEWS: dict[str, Callable[[Any, Place], None]] = {
    "ablation": ablation,
    "all-but-one": all_but_one,
    "cross-dataset": cross_dataset,
    "pruning-curves": curves,
    "stacks": stacks,
    "speed": speed,
    "harmful": harmful,
    "redundant": redundant,
    "dynamics": dynamics,
}

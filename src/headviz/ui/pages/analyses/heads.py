"""Analyses of single heads: each has a cost, and a table of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ....charts import analyses as charts_analyses
from ....charts import style as charts
from ....heads import HeadId
from ...shell import show, state
from ...widgets.grid import Look, head_grid
from .shared import COST, PAIRED, Place, in_points

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation
    from ....analyses.by_slice import BySlice


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
            name=f"cost: points of {found.subject.metric} lost", numbers=state.view().numbers, width=width, digits=1,
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
            f"How many heads cost how much; the full model has {about.metric} "
            f"{show.metric(found.baseline, about.scale)}.",
            formula=COST,
        )
        show.table(
            ["head", "cost", "95 % low", "95 % high", "p", "q"], _head_rows(found, place), "ablation_table",
            caption="All heads, the costliest first; costs in points.", height=300, column_config=in_points("cost"),
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


def by_slice(found: BySlice, place: Place) -> None:
    scale, metric = found.subject.scale, found.subject.metric
    clear = [k for k in found.slices if k.significant]
    said = (
        f"{len(clear)} of {len(found.slices)} kinds of examples "
        f"lose{'s' if len(clear) == 1 else ''} something for certain without a single head"
    )
    first = found.slices[0]
    if not clear:
        sizes = [k.n for k in found.slices]
        said = (
            "No kind of examples loses something for certain without a single head; with "
            f"{min(sizes)} to {max(sizes)} examples of a kind, only large costs can be told from chance"
        )
    if clear and first.head is not None:
        said += (
            f"; {first.name} most, without {place.head(*first.head)}: {show.points(-first.cost, scale)} points, and "
            f"{show.points(-first.elsewhere, scale)} on all others."
            if np.isfinite(first.elsewhere)
            else f"; {first.name} most, without {place.head(*first.head)}: {show.points(-first.cost, scale)} points."
        )
    else:
        said += "."
    show.finding(said)
    heads = len(found.telling())
    show.figure(
        charts_analyses.figure(found), "by_slice_map",
        f"Points of {metric} that each kind of examples loses without a head: every kind's costliest, and others that "
        "cost it something for certain (rings: q < 0.05).",
        formula=r"c_{h,k} = m_k(\text{full}) - m_k(\text{full without } h)",
        source="m over the examples of kind k alone. q: Benjamini-Hochberg over all heads and kinds; intervals: paired "
        "on the same examples, 95 %.",
        wide="40" if heads > 12 else "",
    )  # fmt: skip
    rows = [
        [
            k.name, k.n, k.baseline, place.head(*k.head) if k.head else None,
            *(scale * v for v in (k.cost, k.elsewhere, k.interval_low, k.interval_high)), k.p_value, k.q_value,
            k.significant,
        ]
        for k in found.slices
    ]  # fmt: skip
    event = show.table(
        [found.slice_name, "examples", metric, "costliest head", "cost", "elsewhere", "95 % low", "95 % high", "p",
         "q", "heads that cost"], rows, "by_slice_table",
        caption="Costs in points. Elsewhere: what the same head costs all other examples. The costliest of many heads "
        "was chosen on these very examples, so expect a little less on new ones.",
        hint="Choose a row to switch its head off in the Mask lab.",
        column_config=in_points("cost", "elsewhere") | {
            metric: st.column_config.NumberColumn(format="%.2f" if scale == 1 else "%.3f")
        },
        height="content" if len(rows) <= 24 else 400, on_select="rerun", selection_mode="single-row",
    )  # fmt: skip
    row = show.chosen_row(event, "by_slice_opened", tuple(k.name for k in found.slices))
    if row is not None and (head := found.slices[row].head) is not None:
        state.set_mask(found.base.without([head]))
        st.switch_page("pages/masklab.py")


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
        caption="The best single head of each layer; changes in points.", column_config=in_points("change"),
        height="content" if len(rows) <= 24 else 400,
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
    rows.sort(key=lambda r: -r[1])
    show.table(
        ["head", *names], rows, "cross_table", height=300, column_config=in_points(*names),
        caption=f"The cost of each head on both, in points, the costliest on {names[0]} first.",
    )  # fmt: skip


def harmful(found: Any, place: Place) -> None:
    scale, many = found.subject.scale, len(found.heads)
    show.finding(
        f"{many or 'No'} of {found.tested} heads {'does' if many == 1 else 'do'} harm at q < {found.level:g}."
        if many
        else f"No head of {found.tested} does harm at q < {found.level:g}."
    )
    if not found.heads:
        st.caption(f"So there is nothing to draw. {PAIRED}")
        return
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
        column_config=in_points("gain"),
    )  # fmt: skip


def redundant(found: Any, place: Place) -> None:
    many, scale = len(found.pairs), found.subject.scale
    show.finding(
        f"{many or 'No'} pair{'s' if many != 1 else ''} of harmless heads "
        f"cost{'' if many != 1 else 's'} something together ({found.evaluated} of {found.candidates} pairs tried)."
    )
    if not found.pairs:
        st.caption(f"So there is nothing to draw; {found.harmless} heads are harmless alone. {PAIRED}")
        return
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
        caption=f"Costs in points, of pairs whose heads are harmless one by one, as {found.harmless} heads are. "
        "Excess: what the pair costs beyond the sum of both.",
        column_config=in_points("cost", "first alone", "second alone", "excess"),
    )  # fmt: skip

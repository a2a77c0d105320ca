"""How each analysis is shown: a figure, a table, and one sentence that says what it shows."""

from __future__ import annotations

from collections.abc import Sequence
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


def _select(head: HeadId) -> None:
    state.update(head=head.dotted)


def _points(table: np.ndarray, digits: int = 1) -> list[list[str]]:
    return [["–" if v != v else f"{100 * v:+.{digits}f}".replace("-", "−") for v in row] for row in table]


def cost_grid(found: Ablation, key: str, width: float = 34) -> None:
    """The cost of every head in points, significant ones marked."""
    marks = [HeadId(int(i), int(j)) for i, j in np.argwhere(found.significant())]
    low, high = _points(found.interval_low), _points(found.interval_high)
    spread = [[f"[{a}, {b}]" for a, b in zip(x, y, strict=True)] for x, y in zip(low, high, strict=True)]
    head_grid(
        key,
        found.base,
        100 * found.values,
        selected=state.head(found.base),
        tips={"cost, points": _points(found.values), "95 %": spread, "q": _numbers(found.q_value)},
        marks=marks,
        mark_name="significant (q < 0.05)",
        look=Look(
            name=f"cost: points of {found.subject.metric} lost", digits=1, numbers=state.view().numbers, width=width,
            file="headviz-ablation",
        ),
        on_select=_select,
    )  # fmt: skip


def _numbers(table: np.ndarray) -> list[list[str]]:
    return [[show.number(float(v)) for v in row] for row in table]


def ablation(found: Ablation, bench: Any) -> None:
    clear = int((found.significant() & (found.values > 0)).sum())
    hurts = found.harmful()
    tested = int(np.isfinite(found.p_value).sum())
    free = int((found.values <= 0).sum())
    st.markdown(
        f"### {clear} of {tested} heads cost something for certain; {free} cost nothing or less; "
        f"{len(hurts) or 'none'} {'does' if len(hurts) == 1 else 'do'} harm."
    )
    left, right = st.columns([5, 4], gap="large")
    with left:
        cost_grid(found, "ablation_grid")
        show.note(
            f"Points of {found.subject.metric} that the model loses without each head, on {found.subject.n} examples.",
            formula=COST,
            source="q: Benjamini-Hochberg over all heads of exact McNemar p values; intervals: paired bootstrap, 95 %.",
            key="ablation_note",
            saves=False,
        )
    with right:
        show.figure(
            charts.value_histogram(
                100 * found.values, found.significant(), f"cost, points of {found.subject.metric}"
            ),
            "ablation_histogram",
            f"Most heads cost little: baseline {found.subject.metric} {found.baseline:.3f}.",
        )
        rows = _head_rows(found)
        show.table(
            ["head", "cost", "95 % low", "95 % high", "p", "q"], rows, "ablation_table",
            caption="All heads, the costliest first.", height=300,
        )  # fmt: skip


def _head_rows(found: Ablation) -> list[list[Any]]:
    known = [HeadId(int(i), int(j)) for i, j in np.argwhere(np.isfinite(found.values))]
    known.sort(key=lambda h: (-found.values[h], h))
    tables = (found.values, found.interval_low, found.interval_high, found.p_value, found.q_value)
    return [[str(h), *(float(t[h]) for t in tables)] for h in known]


def all_but_one(found: Any, bench: Any) -> None:
    best = max(found.rows, key=lambda r: r.delta, default=None)
    worst = min(found.rows, key=lambda r: r.delta, default=None)
    if best is not None and worst is not None:
        enough = sum(r.interval_high >= 0 for r in found.rows)
        st.markdown(
            f"### In {enough} of {len(found.rows)} layers one head is enough; "
            f"layer {worst.layer} suffers most ({show.points(worst.delta)} points)."
        )
    where = "the reported data" if found.select == "same" else "training examples"
    show.figure(
        charts_analyses.figure(found),
        "all_but_one_bars",
        f"Change of {found.subject.metric} when only the best head of one layer is left, chosen on {where}.",
        source="Choosing and reporting on the same data flatters; 'training examples' does not.",
    )
    rows = [
        [f"L{r.layer}·H{r.head}", r.delta, r.interval_low, r.interval_high, r.p_value, r.q_value]
        for r in found.rows
    ]
    show.table(
        ["best head", "change", "95 % low", "95 % high", "p", "q"], rows, "all_but_one_table",
        caption="The best single head of each layer.",
    )  # fmt: skip


def cross_dataset(found: Any, bench: Any) -> None:
    a, b = found.first.subject, found.second.subject
    names = [f"{s.task} {s.split}" for s in (a, b)]
    st.markdown(
        f"### Costs on both data sets correlate with r = {show.number(found.pearson)} "
        f"[{show.number(found.interval_low)}, {show.number(found.interval_high)}], {show.p_text(found.p_value)}."
    )
    show.figure(
        charts_analyses.figure(found),
        "cross_scatter",
        f"Each point is one head: what it costs on {names[0]} and on {names[1]}.",
        formula=COST,
    )
    rows = [
        [str(HeadId(int(i), int(j))), float(found.first.values[i, j]), float(found.second.values[i, j])]
        for i, j in np.argwhere(np.isfinite(found.first.values))
    ]
    show.table(["head", *names], rows, "cross_table", caption="The cost of each head on both.")


def curves(found: Any, bench: Any) -> None:
    best = max(found.curves, key=lambda c: c.free)
    st.markdown(
        f"### {100 * best.free:.0f} % of the heads can go without a clear loss in the order of {show.plain(best.name)}."
    )
    show.figure(
        charts_analyses.figure(found),
        "pruning_curves",
        "Heads masked lowest score first; bands are the 95 % paired intervals. The oracle knows the answers: it shows "
        "what a score could reach.",
    )
    rows = [
        [c.name, p.sparsity, len(p.mask.off), p.value, p.delta, p.interval_low, p.interval_high, p.p_value]
        for c in found.curves
        for p in c.points
    ]
    header = ["order", "share off", "heads off", "value", "change", "95 % low", "95 % high", "p"]
    event = show.table(
        header, rows, "curves_table", caption="Choose a row to take its mask to the Mask lab.", height=300,
        on_select="rerun", selection_mode="single-row",
    )  # fmt: skip
    _open_mask(event, [p.mask for c in found.curves for p in c.points], "curves_opened")


def _open_mask(event: Any, masks: Sequence[Any], memory: str) -> None:
    chosen = event.selection.rows if hasattr(event, "selection") else []
    if chosen and st.session_state.get(memory) != masks[chosen[0]].hex:
        st.session_state[memory] = masks[chosen[0]].hex
        state.set_mask(masks[chosen[0]])
        st.switch_page("pages/masklab.py")


def speed(found: Any, bench: Any) -> None:
    at = max(found.rows, key=lambda r: r.ratio)
    st.markdown(
        f"### ×{at.ratio:.2f} at batch {at.batch}; arithmetic allows ×{found.ceiling:.2f} "
        f"({len(found.mask.off)} of {found.mask.size} heads removed)."
    )
    show.figure(
        charts_analyses.figure(found),
        "speed_bars",
        f"Examples per second, texts of {found.length} tokens, {found.threads} threads, {found.device}; "
        f"mean ± sd of {found.repeats} repeats.",
        source="The ceiling is the ratio of the matrix products' FLOPs: removing heads alone cannot beat it.",
    )
    rows = [[r.batch, r.full, r.full_sd, r.pruned, r.pruned_sd, r.ratio] for r in found.rows]
    show.table(
        ["batch", "full, ex/s", "sd", "pruned, ex/s", "sd pruned", "ratio"], rows, "speed_table",
        caption="Both models timed in turn.",
    )  # fmt: skip


def redundant(found: Any, bench: Any) -> None:
    st.markdown(
        f"### {len(found.pairs) or 'No'} pair{'s' if len(found.pairs) != 1 else ''} of harmless heads "
        f"cost{'' if len(found.pairs) != 1 else 's'} something together "
        f"({found.evaluated} of {found.candidates} pairs tried)."
    )
    rows = [
        [
            f"{p.first} + {p.second}",
            p.cost,
            p.cost_first,
            p.cost_second,
            p.excess,
            p.interval_low,
            p.interval_high,
            p.q_value,
        ]
        for p in found.pairs
    ]
    if rows:
        show.figure(
            charts_analyses.figure(found),
            "redundant_bars",
            "What both heads of a pair cost apart and together.",
        )
        header = ["pair", "cost", "first alone", "second alone", "excess", "95 % low", "95 % high", "q"]
        show.table(
            header,
            rows,
            "redundant_table",
            caption="Pairs whose joint removal costs more than their two costs.",
        )
    else:
        st.caption(
            f"{found.harmless} heads are harmless alone, and no pair that was tried is significant together."
        )


def dynamics(found: Any, bench: Any) -> None:
    last = found.checkpoints[-1]
    show.figure(
        charts_analyses.figure(found),
        "dynamics_curves",
        f"Each line is one checkpoint, pruned in the order of its own {found.score} score, later ones darker; "
        f"the last one reaches {last.baseline:.3f} unpruned.",
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

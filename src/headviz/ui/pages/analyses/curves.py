"""Analyses that draw curves or bars: how much can go, how fast it gets, when in the training it could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from ....charts import analyses as charts_analyses
from ...shell import show, state
from .shared import Place, in_points

KEPT = 0.95  # of the unpruned metric
SCATTER = 0.2  # sd as a share of the mean above which a timing is no measurement


# beside the view's own score, where they are at hand: more lines than these nobody can tell apart
USUAL = ("taylor", "ablation", "magnitude", "random")


def shown_orders(names: Sequence[str], score: str, chosen: str) -> list[str]:
    """The orders whose curves are drawn: those chosen, else the usual ones; the oracle stands last."""
    wanted = chosen.split(",") if chosen else [score, *USUAL, names[-1]]
    return [n for n in names if n in wanted] or list(names)


def _choose_orders(names: Sequence[str]) -> list[str]:
    """Which curves to look at; all have been computed, so that another choice shows at once."""
    view = state.view()
    shown = shown_orders(names, view.score, view.orders)
    if view.present or len(names) <= 2:
        return shown
    st.session_state["curve_orders"] = shown

    def take() -> None:
        state.update(orders=",".join(st.session_state["curve_orders"]))

    st.multiselect("Orders", names, key="curve_orders", on_change=take, placeholder="the usual ones")
    return shown


def curves(found: Any, place: Place) -> None:
    shown = _choose_orders([c.name for c in found.curves])
    found = replace(found, curves=tuple(c for c in found.curves if c.name in shown))
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
        on_select="rerun", selection_mode="single-row", column_config=in_points("change") | {
            "share off": st.column_config.NumberColumn(format="%.3f"),
            found.subject.metric: st.column_config.NumberColumn(format="%.2f" if scale == 1 else "%.4f"),
        },
    )  # fmt: skip
    _open_mask(event, [p.mask for c in found.curves for p in c.points], f"{key}_opened")


def _open_mask(event: Any, masks: Sequence[Any], memory: str) -> None:
    if (row := show.chosen_row(event, memory, tuple(m.hex for m in masks))) is not None:
        state.set_mask(masks[row])
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
    at = max(found.rows, key=lambda r: r.batch)
    scatter = max(
        sd / mean for r in found.rows for mean, sd in ((r.full, r.full_sd), (r.pruned, r.pruned_sd))
    )
    show.finding(
        f"×{at.ratio:.2f} at batch {at.batch}; arithmetic allows ×{found.ceiling:.2f} "
        f"({len(found.mask.off)} of {found.mask.size} heads removed)."
    )
    show.figure(
        charts_analyses.figure(found),
        "speed_bars",
        f"Examples per second, texts of {found.length} tokens, {found.threads} "
        f"thread{'s' if found.threads > 1 else ''}, {found.device}; mean ± sd of {found.repeats} repeats.",
        formula=r"\text{ceiling} = \text{FLOPs}(\text{full}) / \text{FLOPs}(\text{pruned})",
        source="The ceiling is the ratio of the matrix products' FLOPs: removing heads alone cannot beat it.",
        wide="40",
    )
    if scatter > SCATTER:
        st.warning(
            f"These timings scatter by up to {100 * scatter:.0f} %: the machine did other work meanwhile. "
            "Run it again when it is quiet before quoting a ratio.",
            icon=":material/timer_off:",
        )
    rows = [[r.batch, r.full, r.full_sd, r.pruned, r.pruned_sd, r.ratio] for r in found.rows]
    show.table(
        ["batch", "full, ex/s", "sd", "pruned, ex/s", "sd pruned", "ratio"], rows, "speed_table",
        caption="Both models timed in turn.",
        column_config={
            name: st.column_config.NumberColumn(format="%.2f" if name == "ratio" else "%.1f")
            for name in ("full, ex/s", "sd", "pruned, ex/s", "sd pruned", "ratio")
        },
    )  # fmt: skip


def dynamics(found: Any, place: Place) -> None:
    last = found.checkpoints[-1]
    show.finding(_when(found))
    show.figure(
        charts_analyses.figure(found),
        "dynamics_curves",
        f"Each line is one checkpoint, pruned in the order of its own {found.score} score, later ones stronger; "
        f"the last one reaches {show.metric(last.baseline, last.curves.subject.scale)} unpruned.",
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
        column_config=dict.fromkeys(
            ("unpruned", "share off", "share of unpruned"), st.column_config.NumberColumn(format="%.3f")
        ),
    )  # fmt: skip


def _when(found: Any) -> str:
    """How much each end of the training can spare."""

    def spare(c: Any) -> float:
        return max((s for s, r in zip(c.sparsities, c.relative, strict=True) if r >= KEPT), default=0.0)

    first, last = found.checkpoints[0], found.checkpoints[-1]
    return (
        f"{100 * KEPT:.0f} % of the metric stays with {100 * spare(first):.0f} % of the heads off at {first.name}, "
        f"and with {100 * spare(last):.0f} % off at {last.name}."
    )

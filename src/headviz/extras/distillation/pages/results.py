"""The results of a distillation: learning curves, students, and the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

from ....answers.metrics import metric_title
from ....display.figures.style import CLASSES, NEUTRAL, band, constant_line, frame
from ....display.numbers import number
from ....display.table import Table
from ....runs.files import RunFiles
from ....ui.pages.runs import models
from ....ui.shell import show
from ..curves import students_table
from ..job import DistillationJob, outcome
from ..plan import METHODS, STUDENTS, DistillationPlan

if TYPE_CHECKING:
    from ....runs.reading import RunView


# -----------------------------------------------------------------------------------------------
# Learning curves of students: mean over seeds, interval as a band, the teacher dashed, one class for all dotted.


# colour and mark by start, the same in every figure
LOOKS = {
    "random": (NEUTRAL, "circle"),
    "copy": (CLASSES[1], "square"),
    "conditional": (CLASSES[0], "diamond"),
    "variational": (CLASSES[3], "triangle-up"),
    "kd": (CLASSES[2], "x"),
    "kd-copy": (CLASSES[4], "cross"),
}


def learning_curves(
    students: Sequence[Mapping[str, Any]], teacher: float | None, metric: str, constant: float | None = None
) -> go.Figure:
    """``students`` as ``distillation.job.outcome`` gives them; ``constant``: what one class for all reaches."""
    fig = go.Figure()
    last = 0
    for student in students:
        colour, mark = LOOKS[student["init"]]
        points = [p for p in student["curve"] if p["metrics"].get(metric) is not None]
        steps = [p["step"] for p in points]
        last = max([last, *steps])
        low, high = ([p[name].get(metric) for p in points] for name in ("interval_low", "interval_high"))
        if points and None not in low and None not in high:
            band(fig, steps, low, high, colour, legendgroup=student["init"])
        fig.add_scatter(
            x=steps,
            y=[p["metrics"][metric] for p in points],
            mode="lines+markers",
            name=student["title"],
            line={"color": colour, "width": 2.2},
            marker={"size": 6, "symbol": mark},
            legendgroup=student["init"],
            hovertemplate=f"{student['title']}<br>step %{{x}}: %{{y:.4g}}<extra></extra>",
        )
    if teacher is not None:
        fig.add_scatter(
            x=[0, last],
            y=[teacher, teacher],
            mode="lines",
            name="teacher",
            line={"color": NEUTRAL, "width": 1.6, "dash": "dash"},
            hovertemplate="teacher %{y:.4g}<extra></extra>",
        )
    if constant is not None:
        constant_line(fig, constant, metric)
    fig.update_xaxes(title="training steps", rangemode="tozero")
    fig.update_yaxes(title=metric_title(metric))
    return frame(fig, 400)


# -----------------------------------------------------------------------------------------------


PUBLISHED = (23.70, 13.35, 17.73)  # BLEU in the 2023 paper: teacher, student from random, from the teacher
PRIOR = (
    r"m = \mu_v - \Sigma_{v,v_2}\Sigma_{v_2}^{-1}\mu_{v_2},\quad "
    r"R = \Sigma_v - \Sigma_{v,v_2}\Sigma_{v_2}^{-1}\Sigma_{v_2,v}"
)


def detail(view: RunView) -> None:
    """What the Runs page shows of a distillation: its students' learning curves and their end."""
    outcome = outcome_of(view)
    if not outcome["students"] or outcome["teacher"] is None:
        return
    metric = next(iter(outcome["teacher"]["metrics"]))
    level = (outcome["teacher"].get("constant") or {}).get(metric)
    show.finding(finding(outcome, metric))
    show.figure(
        learning_curves(outcome["students"], outcome["teacher"]["metrics"][metric], metric, level),
        "distil_curves",
        curves_caption(outcome["students"], metric, level),
        formula=PRIOR,
        source="Prior of the student: the teacher's posterior with the removed part's weights at zero.",
    )
    show.table(students_table(outcome, [metric]))
    _open(view)


def curves_caption(students: Sequence[dict[str, Any]], metric: str, level: float | None = None) -> str:
    """What the learning curves show. With one seed there are no intervals, so it names none."""
    dotted = "" if level is None else f"; dotted: one class for all ({level:.2f})"
    has_intervals = any(p["interval_low"].get(metric) is not None for s in students for p in s["curve"])
    bands = "Bands are 95 % intervals over seeds." if has_intervals else "One seed, so there are no intervals."
    return f"{metric_title(metric)} on dev while the students learn. Dashed: the teacher{dotted}. {bands}"


def outcome_of(view: RunView) -> dict[str, Any]:
    """The results of a run so far, finished or not."""
    plan = DistillationPlan.from_dict(view.record.spec)
    state = DistillationJob(plan).begin()
    for step in (*view.baseline, *view.steps):
        if step["name"] == "teacher":
            state["teacher"] = {**step, "notes": []}
        else:
            state["students"][step["name"]] = {**step, "model": None}
    return outcome(plan, state)


def finding(outcome: dict[str, Any], metric: str) -> str:
    """One sentence: does it help to start from the teacher's weights?"""
    ends = {s["init"]: s for s in outcome["students"]}
    informed = [s for name, s in ends.items() if METHODS[name].start != "random"]
    if "random" not in ends or not informed:
        best = max(outcome["students"], key=lambda s: s["metrics"][metric] or 0)
        return f"Best so far: {best['title']}, {metric_title(metric)} {number(best['metrics'][metric])}."
    base, best = ends["random"], max(informed, key=lambda s: s["metrics"][metric] or 0)
    low, high = best["interval_low"][metric], base["interval_high"][metric]
    steps = f"{best['curve'][-1]['step']:,} training steps"
    if low is None or high is None:
        sentence = f"After {steps} with one seed nobody can tell whether a start from the teacher helps"
    elif low > high:
        sentence = f"After {steps} a start from the teacher helps: the intervals do not overlap"
    elif base["interval_low"][metric] > best["interval_high"][metric]:
        sentence = (
            f"After {steps} random weights reach more than a start from the teacher: the intervals do not overlap"
        )
    else:
        sentence = f"After {steps} it is not clear whether a start from the teacher helps: the intervals overlap"
    title, reached, without = best["title"], best["metrics"][metric], base["metrics"][metric]
    level, least = (outcome["teacher"].get("constant") or {}).get(metric), base["interval_low"][metric]
    at_chance = level is not None and least is not None and least <= level
    chance = ", not significantly better than one class for all" if at_chance else ""
    if at_chance and without is not None and without <= level:
        chance = ", no more than one class for all: nothing learnt in these steps"
    numbers = f"{number(reached)} from {title}, {number(without)} from random weights{chance}"
    return f"{sentence} ({metric_title(metric)} {numbers})."


def _open(view: RunView) -> None:
    """A menu to use a finished student as the current model, the best one first."""
    best = sorted(view.steps, key=lambda s: next(iter(s["metrics"].values())) or 0, reverse=True)
    students = RunFiles(view.record.id).results / STUDENTS
    folders = {s["name"]: folder for s in best if (folder := students / s["name"]).is_dir()}
    if not folders:
        return
    with st.popover("Open a student", icon=":material/model_training:"):
        chosen = st.selectbox("Student", list(folders), key="distil_student", format_func=_student_name)
        st.code(f'headviz.load("{folders[chosen]}")', language="python", wrap_lines=True)
        # no callback: in a fragment it would not redraw the rest of the page
        if st.button("Use as the current model", key="distil_use"):
            models.use(str(folders[chosen]))
            st.rerun()


def _student_name(piece: str) -> str:
    init, _, seed = piece.rpartition("-s")
    return f"{METHODS[init].title}, seed {seed}"


def published() -> None:
    """The figures of the paper, in a box of their own."""
    with st.expander("Published figures", icon=":material/menu_book:"):
        st.caption(
            "BLEU in the 2023 paper: an LSTM encoder-decoder (512-512-512) without its Bahdanau attention. Another "
            "model and another corpus: compare the order, not the numbers."
        )
        models = ["teacher", "student from random weights", "student from the teacher"]
        rows = list(zip(models, PUBLISHED, strict=True))
        show.table(Table("distil_published", ("model", "BLEU"), rows, "As printed."))

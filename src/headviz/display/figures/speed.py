"""What a faster model keeps: a metric against the measured speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import plotly

from ...answers.metrics import metric_title
from ...evaluation.verdict import excluded, points_up, possible_loss, verdict, within
from ...statistics.intervals import LEVEL
from ...statistics.significance import holm
from ...tasks import points_in
from .. import numbers
from ..sentences import points_changed
from ..table import FILES, PAGE, TERMINAL, Column, Ends, Table
from .style import FAINT, MODELS, NEUTRAL, band, frame, limits, safe, whisker

if TYPE_CHECKING:
    import plotly.graph_objects as go

NAMES = {"both": "heads and neurons", "heads": "heads only"}
_SHADES = {"both": MODELS[0], "heads": MODELS[1]}


def step_name(step: Mapping[str, Any]) -> str:
    """What a model of a search is called among the others."""
    return f"{step['target']:g}× as fast (removed: {NAMES[step['remove']]})"


def kept_against_speed(
    steps: Sequence[Mapping[str, Any]], metric: str, baseline: float | None, chosen: Mapping[str, Any] | None = None
) -> go.Figure:
    """One line for each way of removing, with the intervals of speed and of the change, and the speed that the
    operations alone would allow. ``steps`` are a run's; the ``chosen`` one is marked."""
    fig = plotly.graph_objects.Figure()
    for remove, name in NAMES.items():
        rows = sorted(
            (s for s in steps if s["remove"] == remove and s.get("speedup") and s["metrics"].get(metric) is not None),
            key=lambda s: s["speedup"],
        )
        if not rows:
            continue
        values = [s["metrics"][metric] for s in rows]
        changes = [c if (c := s.get("change") or {}).get("metric") == metric else {} for s in rows]
        speeds = [s["speedup"] for s in rows]
        least, most = limits([metric], values) or (-math.inf, math.inf)
        low = [max(v + _distance(c, "low"), least) for v, c in zip(values, changes, strict=True)]
        high = [min(v + _distance(c, "high"), most) for v, c in zip(values, changes, strict=True)]
        band(fig, speeds, low, high, _SHADES[remove], legendgroup=remove)
        fig.add_scatter(
            x=speeds,
            y=values,
            mode="lines+markers",
            name=name,
            legendgroup=remove,
            line={"color": _SHADES[remove], "width": 2},
            marker={"size": 8},
            error_x=whisker(speeds, *([s[f"speedup_{end}"] for s in rows] for end in ("low", "high"))),
            error_y=whisker(values, low, high),
            hovertemplate=f"%{{x:.2f}}×: {safe(metric)} %{{y:.4f}}<extra>{name}</extra>",
        )
        if all(s.get("ceiling") for s in rows):
            fig.add_scatter(
                x=[s["ceiling"] for s in rows],
                y=values,
                mode="lines+markers",  # of one model the line has no length
                name=f"{name}: by arithmetic alone",
                line={"color": _SHADES[remove], "width": 1.5, "dash": "dot"},
                marker={"size": 7, "symbol": "circle-open"},
                hovertemplate="%{x:.2f}× fewer operations<extra></extra>",
            )
    if baseline is not None:
        fig.add_scatter(
            x=[1.0], y=[baseline], mode="markers", name="as given", marker={"size": 10, "color": NEUTRAL, "symbol": "x"}
        )
    if chosen is not None:
        fig.add_vline(x=chosen["speedup"], line={"color": FAINT, "width": 1})
    fig.update_xaxes(title="times as fast, measured", zeroline=False)
    fig.update_yaxes(title=safe(metric_title(metric)), zeroline=False)
    return frame(fig, 360)


def _distance(change: Mapping[str, Any], end: str) -> float:
    """From the change to the ``low`` or ``high`` end of its interval; 0 without an interval."""
    bound, difference = change.get(end), change.get("difference")
    return 0.0 if bound is None or difference is None else bound - difference


def faster_table(models: Sequence[Mapping[str, Any]], metric: str) -> Table:
    """One row for each model: its speed, and what the metric loses. The models are a run's steps, or the command's."""
    scale = points_in(metric)

    def value(field: str, key: str) -> Callable[[Any], float | None]:
        return lambda model: (model.get(field) or {}).get(key)

    def ends(field: str) -> Callable[[Any], Ends]:
        return lambda model: (value(field, "low")(model), value(field, "high")(model))

    def possible(model: Any) -> float | None:
        low = value("change", "low")(model)
        return None if low is None else scale * possible_loss(low)

    def rise(key: str) -> Callable[[Any], float | None]:
        return lambda model: None if (fall := value("calibration", key)(model)) is None else -fall

    wide = (PAGE, FILES)
    in_points: dict[str, Any] = {
        "format": lambda v: numbers.points(v, scale),
        "ends_format": lambda low, high: numbers.interval(low, high, scale),
    }
    columns = (
        Column("removed", value=lambda model: NAMES.get(model.get("remove", "")), places=wide),
        Column("target", "{:g}×".format, itemgetter("target")),
        Column("speed", "%.2f", itemgetter("speedup"), ends=itemgetter("speedup_low", "speedup_high")),
        Column(f"{metric_title(metric)} before", numbers.fixed, value("baseline", metric), places=(TERMINAL,)),
        Column(metric_title(metric), numbers.fixed, value("metrics", metric)),
        Column("change, points", value=value("change", "difference"), ends=ends("change"), **in_points),
        Column("a loss above this is excluded", points_up, possible, "in points, at 97.5 %, one-sided"),
        Column("same answers", numbers.share, lambda model: model.get("agreement"), "as the model before, on dev"),
        Column("classes that lost", value=lambda model: "; ".join(_lost_classes(model)), meaning="in F1", places=wide),
        Column(
            "calibration error, points",
            value=rise("difference"),
            meaning="its change; a rise is worse",
            ends=lambda model: (rise("high")(model), rise("low")(model)),
            places=wide,
            **in_points,
        ),
        Column("by arithmetic", "%.2f", lambda model: model.get("ceiling"), "times fewer operations", places=wide),
        Column("heads remaining", value=lambda model: sum(model["heads_per_layer"]), places=wide),
        Column("neurons remaining", value=lambda model: sum(model["neurons_per_layer"]), places=wide),
        Column("parameters", "{:,}".format, lambda model: model["parameters"][1], places=wide),
        Column("saved", value=lambda model: model.get("out"), places=(TERMINAL,)),
    )
    return Table.of("faster_table", columns, models, caption="Speed by interleaved pairs of passes of both models.")


LOSS = 1.0  # points: one that a user may accept for speed


def decision(models: Sequence[Mapping[str, Any]], metric: str, margin: float = LOSS) -> str:
    """The fastest model for which a loss of more than so many points is excluded, and the warnings of every model."""
    scale = points_in(metric)
    judged = [m for m in models if (m.get("change") or {}).get("low") is not None]

    def name(model: Mapping[str, Any]) -> str:
        removed = f" ({NAMES[model['remove']]})" if len({m.get("remove") for m in models}) > 1 else ""
        return f"{model['target']:g}×{removed}"

    def name_and_speed(model: Mapping[str, Any]) -> str:
        low, high = (numbers.number(model[end]) for end in ("speedup_low", "speedup_high"))
        return f"{name(model)}, {numbers.number(model['speedup'])} times as fast [{low}, {high}]"

    warnings = "".join(f" {name(m)}: {warning}" for m in models for warning in _warnings(m))
    if not judged:
        return warnings.strip()

    loss = f"a loss of more than {margin:g} {'point' if margin == 1 else 'points'} of {metric_title(metric)}"
    acceptable = [m for m in judged if within(m["change"]["low"], margin / scale)]
    if acceptable:
        best = max(acceptable, key=lambda m: float(m["speedup"]))
        return f"The fastest model for which {loss} is excluded: {name_and_speed(best)}.{warnings}"
    nearest = max(judged, key=lambda m: float(m["change"]["low"]))
    result = excluded(nearest["change"]["low"], scale, margin)
    return f"For no model is {loss} excluded. {name_and_speed(nearest)}: {result}.{warnings}"


def learning_rates(model: Mapping[str, Any]) -> str:
    """How far each learning rate that was tried stayed from the whole model, and which was taken; empty without a
    choice."""
    rows = model.get("rates") or ()
    if not rows:
        return ""

    def result(row: Mapping[str, Any]) -> str:
        if row["distance"] is None:
            return "diverged"
        same = "" if row["agreement"] is None else f" ({row['agreement']:.1%} the same)"
        return f"{numbers.number(row['distance'])}{same}"

    tried = ", ".join(f"{row['rate']:.1g} {result(row)}" for row in rows)
    sentence = f"learning rates, by their distance from the whole model's answers: {tried}"
    if "taken" not in rows[0]:  # of an earlier version, which did not keep that
        return sentence
    taken = [row for row in rows if row["taken"]]
    ending = f"{taken[0]['rate']:.1g} was taken" if taken else "the training was not taken, it brought them no nearer"
    return f"{sentence}; {ending}"


def _lost_classes(model: Mapping[str, Any]) -> list[str]:
    """The classes whose F1 falls significantly, all classes of the model taken together (Holm), with the change."""
    classes = model.get("classes") or {}
    p_values = holm([math.nan if c["p"] is None else c["p"] for c in classes.values()])
    return [
        f"{name} {points_changed(c['difference'], c['low'], c['high'], 100)}"
        for (name, c), p in zip(classes.items(), p_values, strict=True)
        if verdict(c["low"], c["high"]) == "loss" and p < 1 - LEVEL
    ]


def _warnings(model: Mapping[str, Any]) -> list[str]:
    """Sentences about answers of one class, the classes that lose and the calibration."""
    lost, calibration = _lost_classes(model), model.get("calibration") or {}
    warnings = [model["one_class"]] if model.get("one_class") else []
    if lost:
        warnings.append(f"F1 falls of {', '.join(lost)}.")
    if verdict(calibration.get("low"), calibration.get("high")) == "loss":
        warnings.append("its probabilities are less well calibrated.")
    return warnings


def tried_table(models: Sequence[Mapping[str, Any]]) -> Table:
    """What each importance of units kept on train, after each step of the repair; one row for each target and
    importance."""
    rows = [(m, row) for m in models for row in m.get("tried") or ()]
    titles = {"none": "cut", "bias": "with the means in the biases", "tune": "tuned", "refit": "solved again"}
    repairs = [repair for repair in titles if any(repair in row for _, row in rows)]

    def value(repair: str, field: str) -> Callable[[Any], float | None]:
        return lambda pair: pair[1].get(repair, {}).get(field)

    def chosen(pair: Any) -> str:
        model, row = pair
        return f"chosen, {titles[model.get('repair', 'refit')]}" if row["importance"] == model["importance"] else ""

    columns = (
        Column("removed", value=lambda pair: NAMES.get(pair[0].get("remove", "")), places=(PAGE, FILES)),
        Column("target", "{:g}×".format, lambda pair: pair[0]["target"]),
        Column("worth of a unit", value=lambda pair: pair[1]["importance"]),
        Column("", value=chosen, name="chosen"),
        *(
            Column(f"{titles[r]}: {title}", form, value(r, field))
            for r in repairs
            for title, field, form in (("same answers", "agreement", numbers.share), ("distance", "distance", "%.4f"))
        ),
    )
    caption = (
        "Train examples that nothing was chosen on: how many answers stay as the whole model's, and how far they "
        "are from these (the mean divergence; of numbers, the squared error)."
    )
    return Table.of("faster_tried", columns, rows, caption=caption)

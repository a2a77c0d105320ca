"""Every analysis draws as one figure, with its own numbers in it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz import HeadMask
from headviz.analyses import ablation, by_slice, pruning_curve
from headviz.analyses.ablation import Ablation
from headviz.analyses.by_slice import BySlice
from headviz.analyses.catalogue import ANALYSES, figure
from headviz.analyses.common import Subject
from headviz.analyses.pruning_curve import Curve, CurvePoint, PruningCurves
from headviz.answers.comparison import Delta
from headviz.answers.metrics import constant_name, metric_title
from headviz.display.figures import answers
from headviz.display.figures.heads import relation_map
from headviz.display.figures.style import write_html
from headviz.display.table import Picture, Table
from support.gallery import RESULTS, by_kind
from support.jobs import data_of, model_of

SUBJECT = Subject("m", "d", "mnli", "dev", "x", 500, "accuracy", "float32")
FULL = HeadMask.full(12, 12)
NAMES = {Ablation: "ablation", BySlice: "by-slice", PruningCurves: "pruning-curves"}


def table(seed: int = 0) -> Ablation:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.02, (12, 12))
    values[2, 3] = np.nan
    p = rng.random((12, 12))
    p[0, 0], p[1, 1], p[2, 3] = 1e-9, 1e-9, np.nan
    values[0, 0], values[1, 1] = 0.08, -0.08
    q = np.where(p < 1e-6, 1e-6, 0.9)
    q[2, 3] = np.nan
    return Ablation(SUBJECT, FULL, 0.9, values, values - 0.01, values + 0.01, p, q, 1.0)


def curves() -> PruningCurves:
    points = tuple(
        CurvePoint(s, FULL.without_random(round(144 * s)), 0.9 - s / 2, -s / 2, -s / 2 - 0.02, -s / 2 + 0.02, 0.1)
        for s in (0.0, 0.5, 1.0)
    )
    return PruningCurves(SUBJECT, 0.9, (Curve("taylor", points), Curve("oracle (ablation)", points)))


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_draws_and_has_a_sentence_and_tables_whose_rows_fit(name: str) -> None:
    assert any(len(trace.to_plotly_json()) for trace in figure(RESULTS[name]()).data)
    view = ANALYSES[name].view(RESULTS[name]())
    assert view.finding.endswith(".")
    tables = [part for part in view.parts if isinstance(part, Table)]
    assert tables
    for table in tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert len(table.masks) in (0, len(table.rows))
    assert all(part.draw().data for part in view.parts if isinstance(part, Picture))


def test_significant_heads_are_marked_and_the_baseline_is_drawn() -> None:
    fig = ablation.figure(table())
    marks = next(t for t in fig.data if t.name and t.name.startswith("significant"))
    assert sorted(zip(marks.y, marks.x, strict=True)) == [(0, 0), (1, 1)]
    heat = fig.data[0]
    assert (heat.z[0, 0], heat.customdata[0, 0]) == (8, 8)
    unclear = np.abs(heat.customdata) < 1  # the intervals are one point to each side
    assert unclear.any()
    assert not heat.z[unclear].any()
    assert np.isnan(heat.z[2, 3])
    assert any(shape.x0 == shape.x1 == 0.9 for shape in fig.layout.shapes)
    histogram = next(t for t in fig.data if t.type == "histogram")
    assert len(histogram.x) == 143


def test_kinds_are_drawn_in_the_order_of_their_cost_and_rings_are_significant() -> None:
    fig = figure(by_kind())
    heat, rings = fig.data
    assert list(heat.x) == ["L8·H6", "L4·H2"]
    assert list(heat.y) == ["&lt;b&gt;role&lt;/b&gt;", "time"]
    np.testing.assert_allclose(heat.z, [[80, 0], [0, 0]])  # the interval of the 10 reaches 0: grey, as on every grid
    assert heat.customdata[1][1].startswith("+10.00 points")
    assert (list(rings.x), list(rings.y)) == (["L8·H6"], ["&lt;b&gt;role&lt;/b&gt;"])


def test_kinds_of_examples_are_called_abilities_where_they_are() -> None:
    assert " of 2 kinds of examples " in by_slice.finding(by_kind())
    assert " of 2 abilities " in by_slice.finding(replace(by_kind(), slice_name="ability"))


def test_every_head_has_a_place_of_its_own_in_the_map_of_relations() -> None:
    """Names such as 0.1 and 0.10 would be one number on the axis."""
    points = np.arange(2 * 12 * 3, dtype=float).reshape(2, 12, 3)
    (heat,) = relation_map(points, ("next", "itself", "[CLS]")).data
    assert np.shape(heat.z) == (3, 24)
    for at, name in ((1, "L0·H1"), (10, "L0·H10"), (13, "L1·H1")):
        assert heat.customdata[0][at] == name
        assert [row[at] for row in heat.z] == points.reshape(24, 3)[at].tolist()


def test_band_of_a_curve_is_its_interval() -> None:
    fig = pruning_curve.figure(curves())
    band = fig.data[0]
    assert list(band.y[:3]) == pytest.approx([0.92, 0.67, 0.42])
    assert list(band.y[3:]) == pytest.approx([0.38, 0.63, 0.88])
    points = tuple(replace(p, interval_low=-2.0, interval_high=0.5) for p in curves().curves[0].points)
    fig = pruning_curve.figure(replace(curves(), curves=(Curve("taylor", points),)))
    (area,) = (trace.y for trace in fig.data if trace.fill == "toself")
    assert (min(area), max(area)) == (0, 1)  # where a share ends


def test_changes_of_bleu_are_drawn_as_they_are() -> None:
    from headviz.extras.analyses import cross_dataset
    from headviz.extras.analyses.cross_dataset import relate

    about = replace(SUBJECT, metric="bleu")
    shares, points = table(), replace(table(), subject=about)
    gains = [[p.rows[0][1] for p in ablation.view(t).parts if p.key == "harmful_table"] for t in (points, shares)]
    assert len(gains[0]) == 1
    assert gains[1] == pytest.approx([100 * gains[0][0]])
    drawn = cross_dataset.figure(relate(points, points)).data[0].x
    assert np.allclose(sorted(drawn), sorted(points.values[np.isfinite(points.values)]))
    bleu = Delta("bleu", 10, 40.0, 38.0, -3.0, -1.0, 0.01, "passive")
    fig = answers.slices([bleu, replace(bleu, name="plain")], "bleu")
    assert fig.data[-1].customdata[0] == ["−2.0", "[−3.0, −1.0]", 10]
    matthews = Delta("matthews", 10, 0.3, 0.1, -0.6, 0.2, 0.5, "all")
    masked = answers.slices([matthews], "matthews").data[-1]
    assert masked.error_x.arrayminus[0] == pytest.approx(0.4)  # it was cut at 0, as a share's


def test_a_checkpoint_surely_spares_what_its_intervals_leave() -> None:
    """What is left at the lower end of the interval counts, and only as far as it has been enough all the way."""
    from headviz.extras.analyses.dynamics import Checkpoint, Dynamics, finding

    def at(share: float, delta: float, low: float) -> CurvePoint:
        left = (0.9 + delta - 0.4) / 0.5
        return CurvePoint(share, FULL.without_random(round(144 * share)), 0.9 + delta, delta, low, 0.0, 0.1, left)

    points = (at(0.0, 0.0, 0.0), at(0.25, -0.005, -0.02), at(0.5, -0.015, -0.04), at(0.75, -0.01, -0.02))
    result = PruningCurves(SUBJECT, 0.9, (Curve("taylor", points),), 0.4)
    sparsities = tuple(p.sparsity for p in points)
    checkpoint = Checkpoint("epoch-1", 0.9, sparsities, tuple(p.value / 0.9 for p in points), result)
    assert (checkpoint.spare, checkpoint.surely) == (0.75, 0.25)
    assert "75 % (25 % by the lower ends" in finding(Dynamics("f", "taylor", (checkpoint,)))


def test_a_written_figure_loads_nothing_and_has_no_cloud_button(tmp_path: Path) -> None:
    page = write_html(figure(RESULTS["speed"]()), tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"showSendToCloud": false' in page
    assert 'src="https://' not in page


@pytest.mark.parametrize("job", ["labels", "span", "rank"])
def test_a_view_names_the_metric_and_the_constant_answer_of_its_job(job: str) -> None:
    data = data_of(job)
    data = replace(data, slices=tuple("ab"[i // 4 % 2] for i in range(len(data))), slice_name="kind")
    evaluator = headviz.evaluator_of(model_of(job), data)
    metric = data.task.primary_metric
    orders = {"one": np.arange(12.0).reshape(3, 4)}
    made = headviz.by_slice(evaluator), headviz.pruning_curves(evaluator, orders, step=0.5), headviz.ablate(evaluator)
    for result in made:
        view = ANALYSES[NAMES[type(result)]].view(result)
        said = " ".join([view.finding, *(str(line) for line in view.about)])
        for part in view.parts:
            said += f" {part.caption} {' '.join(part.titles('page')) if isinstance(part, Table) else ''}"
        assert metric_title(metric) in said
        assert metric not in said
        assert "one class" not in said
        if not isinstance(result, Ablation):
            assert constant_name(metric) in said.lower()

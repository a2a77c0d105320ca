"""Figures hold the numbers they were given, and no text of theirs is markup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headviz.answers.comparison import Delta
from headviz.attribution.maps import Arc
from headviz.attribution.paths import Edge
from headviz.display.figures import answers, bars, heads, maps
from headviz.display.figures import maps as charts_maps
from headviz.display.figures.maps import head_maps, symmetric_log
from headviz.display.figures.speed import kept_against_speed
from headviz.heads import HeadId

EVIL = "<a href='javascript:alert(1)'>x</a> %{y} & co"


def texts(value: object) -> list[str]:
    """Every string in a figure's JSON."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in texts(v)]
    if isinstance(value, list | tuple):
        return [t for v in value for t in texts(v)]
    return []


def test_no_text_is_markup_or_template() -> None:
    delta = Delta("accuracy", 10, 0.9, 0.5, -0.6, -0.2, 0.01, EVIL)
    square = np.array([[0.1, 0.9], [0.5, 0.5]])
    figures = [
        answers.slices([delta], "accuracy"),
        answers.confusion(np.eye(2), np.ones((2, 2)), [EVIL, "b"]),
        answers.probabilities([(EVIL, [0.1, 0.9])], [EVIL, "b"]),
        charts_maps.matrix(square, [EVIL, "b"], [EVIL, "b"], "attention", signed=False),
        charts_maps.arcs([Arc(0, 1, 0.5)], [EVIL, "b"], [EVIL, "b"], signed=True),
        charts_maps.scatter([1.0], [2.0], [EVIL], EVIL, "y"),
        charts_maps.token_rows([(EVIL, EVIL, np.array([0.1, -0.2]))], [EVIL, "b"]),
    ]
    for fig in figures:
        for text in texts(fig.to_plotly_json()):
            assert "<a" not in text
            assert "%{y} & co" not in text


def test_slices_show_both_values_and_the_interval_of_the_change() -> None:
    worse = Delta("accuracy", 40, 0.9, 0.5, -0.6, -0.2, 0.001, "negation")
    same = Delta("accuracy", 40, 0.8, 0.8, -0.1, 0.1, 1.0, "number")
    fig = answers.slices([worse, same], "accuracy")
    full, masked = fig.data[-2:]
    assert list(fig.layout.yaxis.categoryarray) == ["number", "negation"]  # the largest loss on top
    way = fig.data[0]
    assert (list(way.x), list(way.y)) == ([0.9, 0.5, None], ["negation", "negation", None])
    at = list(masked.y).index("negation")
    assert (full.x[at], masked.x[at]) == (0.9, 0.5)
    assert np.isclose(masked.error_x.array[at], 0.2)
    assert np.isclose(masked.error_x.arrayminus[at], 0.2)
    assert masked.marker.color[at] == answers.WORSE
    assert masked.marker.color[1 - at] == answers.NEUTRAL


def test_whiskers_of_a_share_end_where_a_share_ends() -> None:
    top = Delta("accuracy", 40, 1.0, 0.98, -0.1, 0.06, 0.5, "negation")
    masked = answers.slices([top], "accuracy").data[-1]
    assert np.isclose(masked.error_x.array[0], 0.02)
    assert np.isclose(masked.error_x.arrayminus[0], 0.08)
    correlation = answers.slices([replace(top, metric="pearson")], "pearson").data[-1]
    assert np.isclose(correlation.error_x.array[0], 0.02)  # nor beyond a correlation of 1
    free = replace(top, full=3.0, masked=2.98)  # not a share
    assert np.isclose(answers.slices([free], "mse").data[-1].error_x.array[0], 0.08)


def test_confusion_counts_and_changes() -> None:
    full, masked = np.array([[8, 2], [1, 9]]), np.array([[5, 5], [1, 9]])
    fig = answers.confusion(full, masked, ["a", "b"])
    # blue is better: three right answers fewer, three wrong ones more, are both for the worse
    assert np.array(fig.data[0].z).tolist() == [[-3, -3], [0, 0]]
    assert fig.data[0].text[0][0] == "−3"
    at = list(zip(fig.data[1].y, fig.data[1].x, strict=True)).index(("a", "b"))
    assert fig.data[1].text[at].startswith("5<br>")
    assert "+3" in fig.data[1].text[at]
    assert (fig.data[0].zmin, fig.data[0].zmax) == (-3, 3)
    one_of_many = answers.confusion(np.array([[300, 0], [0, 200]]), np.array([[299, 1], [0, 200]]), ["a", "b"])
    assert one_of_many.data[0].zmax == 10  # one answer of 500 is pale


def test_the_graph_of_paths_draws_each_edge_with_its_sign_and_names_each_head_once():
    nan, up, low = float("nan"), HeadId(2, 1), HeadId(0, 3)
    edges = [Edge(up, None, "answer", 0.5, nan, nan), Edge(low, up, "keys", -0.25, -0.3, -0.2)]
    fig = maps.paths_figure(edges, 3, 4)
    lines = {t.hovertemplate: t.line for t in fig.data if t.mode == "lines" and t.hovertemplate}
    strong = lines["2.1 → answer: +0.500<extra></extra>"]
    weak = lines["0.3 → 2.1 keys: −0.250 [−0.300, −0.200]<extra></extra>"]
    assert strong.width > weak.width
    assert strong.color != weak.color
    assert list(fig.data[-1].text) == ["0.3", "2.1", "answer"]


def test_a_transfer_is_coloured_only_where_its_interval_decides() -> None:
    from headviz.extras.tickets.transfer_figure import Square, kept_map

    lost = Square(0.4, -0.3, -0.1, below="0.650", hover=f"{EVIL}\nkept 40 %", clear=True)
    open_, gained = Square(0.9, -0.1, 0.05, own=True), Square(1.2, 0.01, 0.2, ahead=True)
    blank = Square(None, hover="every prediction is the same")
    fig = kept_map([[lost, open_], [gained, blank]], [EVIL, "b"], ["x", "x"])  # two targets of one name stay two
    heat, text = fig.data
    assert np.isnan(heat.z[1][1])
    assert np.allclose(np.array(heat.z)[[0, 0, 1], [0, 1, 0]], [-60.0, 0.0, 20.0])
    assert np.allclose((heat.zmin, heat.zmax), (-60.0, 60.0))
    assert "214,110,30" in heat.colorscale[0][1]  # a loss is orange
    assert list(text.text) == ["<b>40 %</b><br><span style='font-size:11px'>0.650</span>", "90 %", "120 % ▲", "–"]
    (outline,) = fig.layout.shapes
    assert np.allclose((outline.x0, outline.y1), (0.53, 0.45))
    assert heat.customdata[1][1] == "every prediction is the same"
    for said in texts(fig.to_plotly_json()):
        assert "<a" not in said
        assert "%{y} & co" not in said


def test_the_axis_of_a_training_ends_where_its_metric_does() -> None:
    def ends(metric: str, value: float) -> tuple[float, float]:
        low, high = bars.learning_curve([{"step": 10, "metrics": {metric: value}}], metric).layout.yaxis2.range
        return low, high

    assert ends("accuracy", 0.995) == pytest.approx((0.975, 1))  # it went up to 1.222
    assert ends("accuracy", 0.01)[0] == 0
    assert ends("matthews", 0.01)[0] < 0
    assert ends("bleu", 3.0)[1] > 3


def test_two_distributions_are_counted_in_equal_bars() -> None:
    """Each had bars of its own width: dev looked five times as frequent as train."""
    train, dev = [20.0 + i % 50 for i in range(3000)], [30.0 + i % 40 for i in range(400)]
    drawn = bars.histogram([("train", train), ("dev", dev)], "tokens")
    one, other = (trace.xbins for trace in drawn.data)
    assert (one.start, one.size) == (other.start, other.size) == (19.5, 2)
    assert drawn.layout.yaxis.title.text == "% of examples per 2 tokens"
    assert bars.histogram([("dev", [3.0, 4.0])], "tokens").layout.yaxis.title.text == "% of examples"
    assert bars.histogram([("dev", [])], "tokens").data


# whoever sees a map alone reads beside it what its colours mean -------------------------------------


SQUARE, WORDS = np.array([[0.5, -0.1], [0.2, 0.0]]), ["a", "b"]


def _kept() -> Any:
    from headviz.extras.tickets.transfer_figure import Square, kept_map

    return kept_map([[Square(0.5)]], ["mask"], ["target"])


MADE: dict[str, Any] = {
    "match": lambda: maps.matrix(SQUARE, WORDS, WORDS, "match", True),
    "attention": lambda: maps.head_maps(np.abs(SQUARE)[None], ["L0·H0"], "attention", False, 0),
    "attribution": lambda: maps.titled_maps([("step 1", SQUARE)], WORDS, "attribution", True),
    "points above chance": lambda: heads.relation_map(SQUARE.reshape(1, 2, 2), WORDS),
    "cost, points": lambda: heads.marked_map(SQUARE, SQUARE - 1, SQUARE + 1, SQUARE > 1, WORDS, WORDS, "clear"),
    "taylor": lambda: heads.head_map(SQUARE, "taylor"),
    "interaction, loss": lambda: heads.pair_map(SQUARE, WORDS, "interaction, loss"),
    "lost or gained": _kept,
}


@pytest.mark.parametrize("title", MADE)
def test_a_map_has_a_titled_colour_bar(title: str) -> None:
    bar = MADE[title]().data[0].colorbar
    assert (bar.title.text, bar.title.side) == (title, "right")


# the colours of a layer's small maps: logarithmic, the same on both sides of zero -------------------


def test_the_scale_is_symmetric_monotone_and_ends_at_one() -> None:
    values = np.array([-1.0, -0.1, -0.001, 0.0, 0.001, 0.1, 1.0])
    scaled = symmetric_log(values, 1.0)
    assert np.all(np.diff(scaled) > 0)
    np.testing.assert_allclose(scaled, -scaled[::-1])
    assert scaled[-1] == 1.0
    assert scaled[5] > 0.5  # a tenth of the largest value is well seen


def test_a_layers_maps_keep_their_values_beside_the_colours() -> None:
    maps = np.stack([np.full((3, 3), 0.5), np.full((3, 3), -0.005)])
    fig = head_maps(maps, ["L0·H0", "<b>L0·H1"], "attribution", True, 0)
    assert [a.text for a in fig.layout.annotations] == ["<b>L0·H0 Σ 4.5</b>", "&lt;b&gt;L0·H1 Σ 0.045"]
    np.testing.assert_allclose(fig.data[1].customdata, maps[1], rtol=1e-6)
    assert fig.data[0].showscale
    assert fig.data[0].colorbar.ticktext[-1] == "0.5"


def test_the_interval_of_a_share_stays_within_it() -> None:
    """The whisker of a micro F1 ended at 1.002."""
    change = {"metric": "accuracy", "difference": 0.01, "low": -0.02, "high": 0.04}
    fast = {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}
    step = {"remove": "both", "metrics": {"accuracy": 0.98}, "change": change, **fast}
    area = kept_against_speed([step], "accuracy", 0.97).data[0]
    assert sorted(area.y) == pytest.approx([0.95, 1.0])

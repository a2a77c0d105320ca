"""Curves and boards of scores that tie: means over drawn orders, whose numbers of layers do not matter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headviz
from headviz import HeadMask
from headviz.analyses import grading
from headviz.analyses.grades import view
from headviz.analyses.grading import SHARES, Half, overlap, precision
from headviz.analyses.pruning_curve import ORACLE_NAME, parts, pruning_curves
from headviz.answers.one_class import ONE_CLASS
from headviz.heads import STREAM, HeadId
from support.analysed import learnt
from support.plain import evaluate

FEW = np.array([[0.0, 0.1, 0.0, 0.0], [0.0, 0.0, 0.0, 0.2], [0.0, 0.1, 0.0, 0.0]])  # as costs in accuracy are
GRID = HeadMask.full(3, 4)


def drawn_masks(values: np.ndarray, counts: list[int], seed: int, draw: int) -> list[HeadMask]:
    """The lowest heads off, those that tie in the order of random numbers."""
    keys = np.random.default_rng([seed, draw, STREAM]).random(values.size)
    order = sorted(range(values.size), key=lambda i: (values.flat[i], keys[i]))
    return [GRID.without([divmod(i, 4) for i in order[:count]]) for count in counts]


@pytest.mark.slow
def test_a_curve_is_the_mean_over_ten_drawn_orders() -> None:
    evaluator, seed = learnt(40), 5
    counts = [0, 3, 6, 9, 12]
    orders = [drawn_masks(FEW, counts, seed, draw) for draw in range(10)]
    result = pruning_curves(evaluator, {"mine": FEW, "other": np.arange(12.0).reshape(3, 4)}, step=0.25, seed=seed)
    mine, other = result.curves
    assert (mine.tied, mine.heads, other.tied) == (11, 12, 0)
    for at, point in enumerate(mine.points):
        worth = [evaluate(evaluator.clf, evaluator.data, order[at]).metrics["accuracy"] for order in orders]
        assert point.value == pytest.approx(np.mean(worth))
        assert point.delta == pytest.approx(np.mean(worth) - result.baseline)
        assert point.masks == len({order[at] for order in orders})
        if point.masks > 1:
            assert (point.ties_low, point.ties_high) == pytest.approx((min(worth), max(worth)))
        assert point.interval_low <= point.delta <= point.interval_high
        assert point.mask == orders[0][at]
    assert mine.points[1].masks > 3
    assert all(p.masks == 1 and p.ties_low != p.ties_low for p in other.points)


def test_each_different_mask_is_evaluated_once() -> None:
    evaluator = learnt(20)
    seen: list[tuple[int, int]] = []
    orders = {"mine": FEW, "twin": FEW, "plain": np.arange(12.0).reshape(3, 4)}
    pruning_curves(evaluator, orders, step=0.25, progress=lambda done, total: seen.append((done, total)))
    counts = [0, 3, 6, 9, 12]
    masks = {mask for draw in range(10) for mask in drawn_masks(FEW, counts, 0, draw)}
    masks |= {GRID.without([divmod(i, 4) for i in range(count)]) for count in counts}
    assert seen[-1] == (len(masks) + 1, len(masks) + 1)  # and the full model's own answers


def test_how_many_heads_tie_and_the_spread_stand_beside_the_curve() -> None:
    result = pruning_curves(learnt(60), {ORACLE_NAME: FEW, "plain": np.arange(12.0).reshape(3, 4)}, step=0.5)
    table = parts(result, "key", "")[1]
    told = [dict(zip(table.titles("page"), row, strict=True)) for row in table.rows]
    assert [row["heads tied"] for row in told] == [11] * 3 + [0] * 3
    assert told[1]["lowest order"] < told[1]["accuracy"] < told[1]["highest order"]
    assert f"11 of 12 heads tie by {ORACLE_NAME}" in table.caption
    written = result.to_dict()["curves"][0]
    assert written["tied"] == 11
    assert written["points"][1]["ties_low"] == told[1]["lowest order"]
    plain = parts(pruning_curves(learnt(20), {"plain": np.arange(12.0).reshape(3, 4)}), "key", "")[1]
    assert "heads tied" not in plain.titles("page")


def half_of(monkeypatch: pytest.MonkeyPatch, layers: list[int], seen: list[HeadMask]) -> Half:
    """A half whose model needs the heads of its first layers; ``layers`` gives them other numbers."""
    gold = np.arange(240) % 2
    first = {layers[0], layers[1]}

    def predictions(mask: HeadMask, keep: bool = True) -> np.ndarray:
        seen.append(mask)
        lost = sum(h.layer in first for h in mask.off) / (2 * mask.num_heads)
        return np.where(np.arange(240) < 240 * lost, 1 - gold, gold)

    evaluator = SimpleNamespace(data=SimpleNamespace(gold=gold, answer=ONE_CLASS), predictions=predictions)
    monkeypatch.setattr("headviz.analyses.grading.evaluator_of", lambda *args, **kwargs: evaluator)
    clf: Any = SimpleNamespace(full_mask=HeadMask.full(4, 9), name="it")
    return Half(clf, gold)


def test_an_area_does_not_depend_on_the_numbers_of_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """By place the first layers went first: −.3 with the needed heads there, .9 with them at the end."""
    full, values = HeadMask.full(4, 9), np.zeros((4, 9))
    values[0, 0] = values[3, 0] = 1.0
    areas = []
    for layers in ([0, 1, 2, 3], [3, 2, 1, 0]):
        seen: list[HeadMask] = []
        half = half_of(monkeypatch, layers, seen)
        seen.clear()
        table = values[layers]
        drawn = half.curves(full, table, None)
        assert len(drawn) == 10
        assert len(seen) == len(set(seen)) > len(SHARES)
        areas.append([half.left(curve)[:, 0].mean() for curve in drawn])
    error = np.sqrt(sum(np.var(a, ddof=1) / 10 for a in areas))
    assert abs(np.mean(areas[0]) - np.mean(areas[1])) < 4 * error < 0.3
    assert len(half.curves(full, np.arange(36.0).reshape(4, 9), None)) == 1


@pytest.mark.slow
def test_a_grade_has_its_ties_and_their_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "SEEDS", 1)
    one = learnt(60, wrong=0.05)
    result = headviz.grade(one.clf, one.data, ["ablation", "magnitude"], splits=1, cache=False)
    grades = {g.score: g for g in result}
    assert len(grades["ablation"].tied) == 2
    assert max(grades["ablation"].tied) > 1
    assert grades["ablation"].ties_low < grades["ablation"].area < grades["ablation"].ties_high
    assert grades["magnitude"].tied == (0, 0)
    assert grades["magnitude"].ties_low is None
    assert {"tied", "ties_low", "ties_high"} <= set(result.to_dict()["scores"][0])
    table = view(result).parts[-1]
    assert {"heads tied", "area over orders of ties"} <= set(table.titles("page"))


def test_stability_and_precision_of_heads_that_all_tie_are_those_of_chance() -> None:
    """By place two tables of ties named the same heads: a stability of 1, of nothing."""
    flat, full = np.zeros((4, 5)), HeadMask.full(4, 5)
    assert overlap(flat, flat, full) == pytest.approx(4 / 20)
    assert precision(flat, {HeadId(0, 0), HeadId(3, 4)}) == pytest.approx(2 / 20)
    scores = learnt(60)
    result = headviz.score_heads(scores.clf, scores.data, "ablation", cache=False)
    assert 0 <= result.stability < 1
    assert result.to_dict()["tied"] == result.tied > 0

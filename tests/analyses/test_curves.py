"""Pruning curves, speed, dynamics, correlation grids, scatter, published figures."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import headviz
from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.analyses.catalogue import ANALYSES
from headviz.analyses.common import Subject
from headviz.analyses.correlation import correlation_grids, in_band
from headviz.analyses.correlation import finding as correlation_finding
from headviz.analyses.pruning_curve import (
    ORACLE_NAME,
    Curve,
    CurvePoint,
    PruningCurves,
    curves_sentence,
    figure,
    finding,
    parts,
    pruning_curves,
    stepwise,
)
from headviz.analyses.speed import speed
from headviz.errors import MaskError, ModelError, OptionError
from headviz.pruning.plan import cumulative
from headviz.reference import nothing
from support.analysed import learnt
from support.plain import evaluate
from support.tiny import tiny_classifier, tiny_folder


def test_curve_points_are_plain_evaluations_in_score_order() -> None:
    evaluator = learnt()
    score = np.random.default_rng(0).random((3, 4))
    oracle = ablate(evaluator).values
    result = pruning_curves(evaluator, {"random": score, "oracle": oracle}, step=0.25)
    assert [c.name for c in result.curves] == ["random", "oracle"]
    curve = result.curves[0]
    assert [p.sparsity for p in curve.points] == [0, 0.25, 0.5, 0.75, 1.0]
    flat = score.ravel()
    for k, point in enumerate(curve.points):
        assert {h.layer * 4 + h.head for h in point.mask.off} == set(np.argsort(flat)[: 3 * k])
        plain = evaluate(evaluator.clf, evaluator.data, point.mask).metrics["accuracy"]
        assert point.value == pytest.approx(plain)
        assert point.delta == pytest.approx(plain - result.baseline)
        assert point.interval_low <= point.delta <= point.interval_high
    assert (curve.points[0].delta, curve.points[0].p_value) == (0.0, 1.0)
    assert curve.free in [p.sparsity for p in curve.points]
    assert json.loads(result.to_json())["curves"][0]["points"][1]["mask"] == curve.points[1].mask.hex


def test_free_ends_where_a_loss_beyond_the_margin_is_possible() -> None:
    """It ended at the first significant loss: with few examples, far too late."""
    evaluator = learnt(n=200, wrong=0.0)
    result = pruning_curves(evaluator, {"a": np.arange(12.0).reshape(3, 4)}, step=1 / 12, margin=5)
    curve = result.curves[0]
    possible = [p.sparsity for p in curve.points if -p.interval_low > 0.05]
    assert curve.free == max(p.sparsity for p in curve.points if p.sparsity < min(possible))
    assert curve.lost is not None
    assert curve.free < curve.lost.sparsity == min(p.sparsity for p in curve.points if p.interval_high < 0)


def made(points: list[tuple[float, ...]], n: int = 408, remark: str = "") -> PruningCurves:
    """A curve of MRPC's size: (share off, accuracy, low, high) of each step."""
    full = HeadMask.full(1, 10)
    steps = [CurvePoint(0.0, full, 0.834, 0.0, 0.0, 0.0, 1.0, 1.0)]
    for share, value, low, high in points:
        mask = full.without([(0, h) for h in range(round(10 * share))])
        share_left = (value - 0.684) / 0.15
        steps.append(
            CurvePoint(share, mask, value, value - 0.834, low, high, 0.5, share_left, remark if value == 0.684 else "")
        )
    about = Subject("m", "d", "mrpc", "dev", "x", n, "accuracy", "float32")
    return PruningCurves(about, 0.834, (Curve("taylor", tuple(steps), 0.02),), 0.684)


def test_the_sentence_is_of_the_order_that_leaves_the_smallest_loss_possible() -> None:
    """It took the first order on a tie, and said "at no step" where a later step did exclude the loss."""
    few = finding(made([(s / 10, 0.834, -0.43, 0.43) for s in range(1, 11)], n=7))
    assert few.startswith("At the first step, 10 %")  # not that all heads can go, where each interval spans zero
    steps = [(0.1, 0.832, -0.013, 0.009), (0.2, 0.8, -0.06, -0.01), (0.3, 0.83, -0.03, 0.02)]
    assert "first significant at 20 %" in finding(made(steps))
    assert finding(made([*steps, (0.4, 0.75, -0.1, -0.05)])).endswith("from 40 % on.")
    tight = made([(0.1, 0.832, -0.013, 0.009), (0.5, 0.83, -0.015, 0.01)]).curves[0]
    wide = replace(made([(0.1, 0.832, -0.013, 0.009), (0.5, 0.83, -0.019, -0.002)]).curves[0], name="gates")
    said = curves_sentence([wide, tight], 100, 2.0)
    assert said.startswith("50 % of the heads can go in the order of taylor for a loss of at most 1.5 points")
    seen = replace(tight, name=ORACLE_NAME)  # it has seen the answers
    assert curves_sentence([wide, seen], 100, 2.0).startswith("50 % of the heads can go in the order of gates for ")


def test_one_class_for_all_answers_is_said_first_and_its_level_is_drawn() -> None:
    result = made([(0.9, 0.684, -0.01, 0.01)], remark="All 408 answers are “equivalent”.")
    assert finding(result).startswith("With 90 % of the heads off by taylor, all 408 answers are “equivalent”.")
    assert 0.684 in [s.y0 for s in figure(result).layout.shapes]
    table = parts(result, "k", "")[1]
    assert [row[table.titles("page").index("corrected")] for row in table.rows] == [1.0, pytest.approx(0.0)]


def test_curves_stop_where_they_are_told() -> None:
    evaluator = learnt(n=20)
    table = np.arange(12.0).reshape(3, 4)
    assert len(pruning_curves(evaluator, {"a": table}, step=0.25, until=0.5).curves[0].points) == 3
    with pytest.raises(OptionError, match=r"at least 0\.001"):
        pruning_curves(evaluator, {"a": table}, step=1e-12)
    kept = pruning_curves(evaluator, {"a": table}, step=0.25, keep_per_layer=1).curves[0].points[-1].mask
    assert [len(kept.off_in(i)) for i in range(3)] == [3, 3, 3]
    small = headviz.prune(evaluator.clf, HeadMask.full(3, 4).without([(0, 0), (2, 3)]))
    points = pruning_curves(headviz.Evaluator(small, evaluator.data), {"a": table}, step=0.25).curves[0].points
    assert points[0].sparsity == pytest.approx(2 / 12)
    assert points[-1].sparsity == 1.0
    for wrong in ({}, {"a": np.zeros((2, 4))}):
        with pytest.raises(OptionError):
            pruning_curves(evaluator, wrong)
    with pytest.raises(OptionError, match="step"):
        pruning_curves(evaluator, {"a": table}, step=0)
    for keep in (-1, 4):
        with pytest.raises(OptionError, match="from 0 to 3 of them can be kept"):
            pruning_curves(evaluator, {"a": table}, keep_per_layer=keep)


def test_sizes_of_curves_are_those_of_the_algorithms() -> None:
    """Halves included: 3 · 0.1 of 35 heads is 10.5, which rounds to 10, though the floats make it a little more."""
    full = HeadMask.full(5, 7)
    masks = stepwise(full, np.arange(35.0).reshape(5, 7), 0.1, 1.0, 0, seed=0)
    assert [len(m.off) for m in masks[1:]] == cumulative(35, 0.1, 1.0)
    assert len(masks[3].off) == 10


def test_speed_is_measured_with_its_ceiling() -> None:
    clf = tiny_classifier()
    mask = HeadMask.full(3, 4).without_random(6, seed=1)
    seen: list[tuple[int, int]] = []
    result = speed(clf, mask, batches=(1, 4), length=16, repeats=3, progress=lambda d, t: seen.append((d, t)))
    assert [r.batch for r in result.rows] == [1, 4]
    assert all(r.full > 0 and r.pruned > 0 and r.full_sd >= 0 and r.ratio > 0 for r in result.rows)
    assert result.ceiling == clf.cost(length=16).flops / clf.cost(mask, length=16).flops
    assert result.parameters == (clf.cost().parameters, clf.cost(mask).parameters)
    assert seen[-1] == (8, 8)
    with pytest.raises(OptionError, match="length"):
        speed(clf, mask, length=1000)
    with pytest.raises(OptionError, match="repeats"):
        speed(clf, mask, length=16, repeats=1)


@pytest.mark.slow
def test_dynamics_follow_the_checkpoints(tmp_path: Path) -> None:
    from headviz.extras.analyses.dynamics import dynamics, find_checkpoints

    for number in (100, 20, 3):
        tiny_folder(tmp_path / f"checkpoint-{number}", seed=number)
    (tmp_path / "logs").mkdir()
    assert [p.name for p in find_checkpoints(tmp_path)] == ["checkpoint-3", "checkpoint-20", "checkpoint-100"]
    data = learnt(n=30).data
    result = dynamics(
        tmp_path, data, "ablation", lambda e: ablate(e).values, step=0.5, load=lambda p: headviz.load(p, device="cpu")
    )
    assert [c.name for c in result.checkpoints] == ["checkpoint-3", "checkpoint-20", "checkpoint-100"]
    for c in result.checkpoints:
        clf = headviz.load(tmp_path / c.name, device="cpu")
        points = c.curves.curves[0].points
        assert c.sparsities == (0.0, 0.5, 1.0)
        assert c.baseline == evaluate(clf, data).metrics["accuracy"]
        assert c.relative[0] == 1.0
        worth = evaluate(clf, data, points[1].mask).metrics["accuracy"]
        low, high = (points[1].ties_low, points[1].ties_high) if points[1].masks > 1 else (worth, worth)
        assert low <= points[1].value <= high
        assert low <= worth <= high  # one of the orders of heads that tie
        assert c.relative[1] == pytest.approx(points[1].value / c.baseline)
    with pytest.raises(ModelError, match="no checkpoint"):
        find_checkpoints(tmp_path / "logs")
    with pytest.raises(ModelError, match="no folder"):
        find_checkpoints(tmp_path / "nowhere")
    shutil.rmtree(tmp_path / "logs")


def test_dynamics_of_checkpoints_whose_classes_have_no_names(tmp_path: Path) -> None:
    from headviz.extras.analyses.dynamics import dynamics

    order, data = ("contradiction", "entailment", "neutral"), learnt(n=12).data
    tiny_folder(tmp_path / "checkpoint-1", labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    values = np.arange(12.0).reshape(3, 4)
    result = dynamics(tmp_path, data, "mine", lambda _: values, step=1.0, label_order=order)
    wanted = evaluate(tiny_classifier(labels=order), data).metrics["accuracy"]
    assert result.checkpoints[0].baseline == wanted


def test_correlation_grids_and_bands() -> None:
    tuned, fresh = tiny_classifier(), [tiny_classifier(seed=s) for s in (1, 2, 3)]
    tables = {id(m): np.random.default_rng(i).uniform(-1, 1, (3, 4)) for i, m in enumerate([tuned, *fresh])}
    tables[id(fresh[0])][0, 0] = np.nan  # undefined under one of the heads
    for m in (tuned, *fresh):
        tables[id(m)][2, 3] = np.nan
    result = correlation_grids(tuned, fresh, lambda m: tables[id(m)], score="s", data="d", n=5)
    stack = np.stack([tables[id(m)] for m in fresh])
    assert result.pretrained[1, 1] == pytest.approx(stack[:, 1, 1].mean())
    assert result.spread[1, 1] == pytest.approx(stack[:, 1, 1].std(ddof=1))
    assert result.pretrained[0, 0] == pytest.approx(stack[1:, 0, 0].mean())
    assert result.difference[1, 2] == pytest.approx(tables[id(tuned)][1, 2] - stack[:, 1, 2].mean())
    assert np.isnan([result.pretrained[2, 3], result.fine_tuned[2, 3]]).all()
    assert sum(b.fine_tuned for b in result.bands) == pytest.approx(1.0)
    assert sum(b.pretrained for b in result.bands) == pytest.approx(1.0)
    assert result.absolute[1, 1] == pytest.approx(np.abs(stack[:, 1, 1]).mean())
    assert [x.absolute for x in result.before] == pytest.approx([np.nanmean(np.abs(t)) for t in stack])
    assert result.change is None
    edges = np.array([[0.2, 0.4, 0.3999, 1.0, np.nan]])
    assert (in_band(edges, 0.2, 0.4), in_band(edges, 0.8, 1.0)) == (0.5, 0.25)
    assert json.loads(result.to_json())["pretrained"][2][3] is None
    with pytest.raises(OptionError, match="before and after"):
        correlation_grids(tuned, [tiny_classifier(layers=2)], lambda m: tables[id(m)], score="s", data="d", n=5)


def test_no_sentence_on_rising_without_several_seeds() -> None:
    """It said "Fine-tuning raises ρ in 40 of 72 heads": signed means over random heads are near zero anyway."""
    tuned, fresh = ([tiny_classifier(seed=s) for s in seeds] for seeds in (range(4), (5, 6)))
    signs = np.where(np.arange(12).reshape(3, 4) % 2, 1.0, -1.0)
    tables = {id(m): (0.03 + 0.002 * i) * signs for i, m in enumerate(tuned)}
    tables |= {id(m): 0.08 * s * signs for m, s in zip(fresh, (1, -1), strict=True)}

    def said(others: list[headviz.Classifier]) -> str:
        result = correlation_grids(tuned[0], fresh, lambda m: tables[id(m)], score="s", data="d", n=5, others=others)
        assert np.allclose(result.pretrained, 0)  # while under either head |ρ| is .08
        if others and result.change is not None and (tables[id(tuned[1])] < 0.1).all():
            assert result.change.low == pytest.approx(-0.047 - 3.182446 * 0.002 * np.sqrt(5 / 3) / 2, abs=1e-6)
        return correlation_finding(result)

    assert "takes several fine-tuning seeds" in said([])
    assert "Fine-tuning lowers it: −0.047" in said(tuned[1:])
    tables[id(tuned[1])] = 0.5 * signs
    assert "do not tell whether" in said(tuned[1:])


@pytest.mark.parametrize("name", ["spearman", "kendall"])
def test_scatter_of_one_head(name: str) -> None:
    from headviz.extras.analyses.scatter import scatter

    clf = tiny_classifier()
    maps = headviz.conductance(clf, "a dog sleeps .", "a cat runs", cache=False)
    result = scatter(maps, (1, 2), name)
    x, y = maps.attention[1, 2].ravel(), maps.attribution[1, 2].ravel()
    oracle = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}[name]
    assert result.value == pytest.approx(oracle(x, y).statistic, abs=1e-6)
    assert len(result.attention) == len(maps.tokens) ** 2
    assert result.attention[1] == pytest.approx(maps.attention[1, 2, 0, 1])
    with pytest.raises(MaskError, match="from zero"):
        scatter(maps, (3, 0))
    with pytest.raises(OptionError, match="kendall"):
        scatter(maps, (0, 0), "tau")


@pytest.mark.parametrize("name", [n for n, a in ANALYSES.items() if a.published is not nothing])
def test_published_tables_are_as_wide_as_their_headings(name: str) -> None:
    tables = ANALYSES[name].published("mnli")
    assert tables
    for table in tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.header)}, table.title


def test_what_a_pruned_model_lacks_is_not_said_to_go_without_loss() -> None:
    evaluator = learnt()
    small = headviz.prune(evaluator.clf, HeadMask.full(3, 4).without_random(6))
    again = headviz.Evaluator(small, evaluator.data)
    result = pruning_curves(again, {"magnitude": np.arange(12.0).reshape(3, 4)}, step=0.25)
    curve = result.curves[0]
    assert [p.sparsity for p in curve.points] == [0.5, 0.75, 1.0]
    assert (curve.points[0].interval_low, curve.free) == (0, 0)


def test_the_speed_of_a_pruned_model_counts_the_heads_that_went() -> None:
    clf = tiny_classifier()
    small = headviz.prune(clf, HeadMask.full(3, 4).without_random(6))
    result = speed(small, small.present.without_random(1, 5), batches=(1,), length=8, repeats=2)
    assert (result.gone, result.removed) == (6, 1)


@pytest.mark.parametrize("family", ["bart", "mobilebert"])
def test_a_text_that_is_timed_has_one_end(family: str) -> None:
    """transformers refuses BART's with several, or without any; MobileBERT knows of none."""
    clf = tiny_classifier(family)
    assert speed(clf, clf.full_mask.without([(0, 1)]), batches=(3,), length=24, repeats=2).rows[0].ratio > 0

"""Transfer of masks: cells against evaluations by hand, the matrix against plain arithmetic, what its sentences say."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import headviz
from headviz.errors import MaskError, ModelError, OptionError
from headviz.evaluation.plain import class_order
from headviz.extras.tickets.transfer import subject_of, transfer_cells
from headviz.extras.tickets.transfer_matrix import FULL, Cell, finding, matrix, planned_cells
from headviz.extras.tickets.transfer_spec import TransferSpec, cells_of, line_of
from headviz.extras.tickets.winning import wins
from headviz.heads import HeadMask
from headviz.pruning.finetuning import fine_tune
from headviz.pruning.judging import Classes
from support.plain import evaluate
from support.pruning_plans import QUICK, context, make_data
from support.tiny import tiny_classifier


@pytest.mark.slow
def test_transfer_without_retraining(tmp_path):
    a, b = context(tmp_path / "a"), context(tmp_path / "b", dev=make_data(40, "dev", seed=7))
    masks = {"A": HeadMask.full(3, 4).without([(0, 0), (1, 1)]), "B": HeadMask.full(3, 4).without([(2, 2)])}
    cells = list(transfer_cells(masks, {"A": a, "B": b}, random=2))
    assert len(cells) == 2 * (1 + 2 + 2 * 2)  # on each: every head on, both masks, two random ones of each size
    assert [c.key for c in cells] == [w.key for w in planned_cells(masks, ("A", "B"), HeadMask.full(3, 4), random=2)]
    m = matrix(cells)
    for i, source in enumerate(("A", "B")):
        for j, target in enumerate((a, b)):
            expected = evaluate(target.clf, target.dev, masks[source]).metrics["accuracy"]
            assert m.mean[i, j] == pytest.approx(expected)
    assert m.full == pytest.approx([evaluate(t.clf, t.dev).metrics["accuracy"] for t in (a, b)])
    assert np.isnan(m.sd).all()
    for cell in (c for c in cells if c.draw is not None):
        mask = HeadMask.from_hex(cell.mask, 3, 4)
        assert mask == HeadMask.full(3, 4).without_random(len(mask.off), cell.draw)
        target = {"A": a, "B": b}[cell.target]
        assert cell.metric == pytest.approx(evaluate(target.clf, target.dev, mask).metrics["accuracy"])
    half = cells[:3]
    rest = list(transfer_cells(masks, {"A": a, "B": b}, random=2, measured=half))
    assert [c.key for c in (*half, *rest)] == [c.key for c in cells]
    assert [c.metric for c in rest] == [c.metric for c in cells[3:]]


@pytest.mark.slow
def test_random_masks_on_a_pruned_target_take_as_many_heads_as_the_mask_does(tmp_path):
    whole = context(tmp_path)
    gone = [(0, 0), (1, 2), (2, 3)]
    target = dataclasses.replace(whole, clf=headviz.prune(whole.clf, HeadMask.full(3, 4).without(gone)))
    mask = HeadMask.full(3, 4).without([(0, 0), (0, 1), (1, 1), (2, 2)])  # the first is gone already
    cells = list(transfer_cells({"A": mask}, {"B": target}, random=4))
    found = [HeadMask.from_hex(c.mask, 3, 4) for c in cells]
    assert found[0] == target.clf.present
    assert found[1] == mask | target.clf.present
    assert {len(m.off) for m in found[1:]} == {6}
    assert all(set(map(tuple, gone)) <= set(map(tuple, m.off)) for m in found)
    assert [c.sparsity for c in cells] == [m.sparsity for m in found]
    for cell, m in zip(cells, found, strict=True):
        expected = evaluate(whole.clf, whole.dev, m).metrics["accuracy"]  # masked, where the other is cut
        assert cell.metric == pytest.approx(expected)
    entry = matrix(cells).entry("A", "B")
    assert entry is not None
    assert entry.random_count == 4


def test_a_cell_without_retraining_has_the_paired_change(tmp_path):
    a = context(tmp_path)
    mask = HeadMask.full(3, 4).without([(0, 0), (1, 1), (2, 0)])
    cell = next(c for c in transfer_cells({"A": mask}, {"A": a}, random=0) if c.source)
    full, now = (evaluate(a.clf, a.dev, m).predictions for m in (None, mask))
    change = headviz.paired(a.dev.gold, full, now)
    expected = (change.difference, change.low, change.high, change.p)
    assert (cell.delta, cell.low, cell.high, cell.p) == pytest.approx(expected)
    assert (cell.name, cell.constant) == ("accuracy", pytest.approx(np.bincount(a.dev.labels).max() / 40))


def test_transfer_reads_classes_in_the_order_given(tmp_path):
    """Outputs without names: the order given says which output is which class."""
    a = context(tmp_path)
    names = a.dev.label_names
    plain = list(transfer_cells({}, {"A": a}))
    turned = list(transfer_cells({}, {"A": a}, label_orders={"A": (*names[1:], names[0])}))
    order = class_order(a.clf, a.dev, (*names[1:], names[0]))
    right = order[a.dev.labels] == evaluate(a.clf, a.dev).logits.argmax(axis=1)
    assert turned[0].metric == pytest.approx(right.mean())
    assert turned[0].metric != plain[0].metric


@pytest.mark.slow
def test_transfer_with_retraining_gives_matching_and_universal(tmp_path):
    a = context(tmp_path / "a")
    mask = HeadMask.full(3, 4).without([(0, 0), (1, 1)])
    cells = list(transfer_cells({"A": mask}, {"A": a}, retrain=True, seeds=(0, 1), options=QUICK))
    drawn = next(c for c in cells if c.draw == 1)
    other = headviz.prune(a.base(1), HeadMask.full(3, 4).without_random(2, 1))
    expected = evaluate(fine_tune(other, a.train, QUICK, 1).classifier, a.dev).metrics["accuracy"]
    assert (drawn.seed, drawn.metric) == (1, expected)
    again = evaluate(fine_tune(headviz.prune(a.base(1), mask), a.train, QUICK, 1).classifier, a.dev)
    found = {c.key: c.metric for c in cells}
    assert found["A", "A", 1, None, 2 / 12] == again.metrics["accuracy"]
    m = matrix(cells)
    full, own = ([found[s, "A", seed, None, o] for seed in (0, 1)] for s, o in (("", 0.0), ("A", 2 / 12)))
    assert m.tickets["A"]["A"].winning == wins(np.mean(full), np.mean(own), np.std(own, ddof=1))
    assert m.universal() == {"A": ("A",) if m.tickets["A"]["A"].winning else ()}
    assert m.to_dict()["sources"] == ["A"]


@pytest.mark.slow
def test_an_undefined_metric_of_a_retrained_cell_is_missing(tmp_path, monkeypatch):
    """Not a number: a ticket made of it would be one that loses."""
    real, asked = Classes.measured, []

    def undefined(self: Any, answers: Any, reference: Any) -> Any:
        asked.append(1)
        found = real(self, answers, reference)
        gone = {"metrics": {"matthews": None}, "undefined": {"matthews": "every prediction is the same"}}
        return dataclasses.replace(found, **gone) if len(asked) == 2 else found

    monkeypatch.setattr(Classes, "measured", undefined)
    cells = list(transfer_cells({}, {"A": context(tmp_path)}, retrain=True, seeds=(0, 1), options=QUICK))
    assert cells[0].metric is not None
    assert (cells[1].metric, cells[1].undefined) == (None, "every prediction is the same")
    assert matrix(cells).full == pytest.approx([cells[0].metric])


def test_a_mask_that_cannot_be_cut_is_refused_before_the_first_training(tmp_path):
    """GPT-2 cannot lose all heads of a layer, and ALBERT none; both died at the first such cell, after others."""
    gpt = tiny_classifier("gpt2", layers=2, heads=4)
    a = context(tmp_path, layers=2, clf=gpt, load_base=lambda seed: gpt)
    full = HeadMask.full(2, 4)
    masks = {"small": full.without([(0, 1)]), "large": full.without([(1, h) for h in range(4)])}
    with pytest.raises(MaskError, match=r"The mask of 'large' leaves a layer of 'A'.*query, key and value"):
        next(transfer_cells(masks, {"A": a}, retrain=True, random=0))
    assert len(list(transfer_cells(masks, {"A": a}, random=0))) == 3  # under the mask it can be used
    most = {"most": full.without([(layer, h) for layer in range(2) for h in range(3)])}
    empty = [n for n in range(20) if not all(full.without_random(6, n).kept_in(row) for row in range(2))]
    with pytest.raises(MaskError, match=r"A mask of 6 random heads leaves a layer.*random=0"):
        next(transfer_cells(most, {"A": a}, retrain=True, random=min(empty) + 1))
    albert = context(tmp_path / "albert", clf=tiny_classifier("albert"))
    with pytest.raises(ModelError, match="not really removed"):
        next(transfer_cells({"x": HeadMask.full(3, 4).without([(0, 0)])}, {"A": albert}, retrain=True))


# the matrix -----------------------------------------------------------------------------------------


def cell(source: str, target: str, metric: float | None, seed: int | None = None, **more: Any) -> Cell:
    size = 0.5 if source or more.get("draw") is not None else 0.0
    return Cell(source, target, seed, metric, **{"sparsity": size, "name": "accuracy", "constant": 0.5, **more})


def change(value: float, half: float, p: float) -> dict[str, float]:
    return {"delta": value, "low": value - half, "high": value + half, "p": p}


def table(random: tuple[float, ...] = (0.60, 0.62, 0.64, 0.66, 0.68)) -> list[Cell]:
    """Two tasks: a's mask transfers to b, b's loses on a."""
    drawn = [cell(FULL, t, v, draw=i) for t in ("a", "b") for i, v in enumerate(random)]
    return [
        cell(FULL, "a", 0.9),
        cell(FULL, "b", 0.8),
        cell("a", "a", 0.89, **change(-0.01, 0.015, 0.2)),
        cell("a", "b", 0.79, **change(-0.01, 0.005, 0.01)),
        cell("b", "a", 0.65, **change(-0.25, 0.05, 1e-9)),
        cell("b", "b", 0.8, **change(0.0, 0.01, 1.0)),
        *drawn,
    ]


def test_the_kept_share_is_above_the_constant_answer_s():
    m = matrix(table())
    assert m.entry("a", "b").kept == pytest.approx(0.29 / 0.3)
    assert m.entry("b", "a").kept == pytest.approx(0.15 / 0.4)
    assert m.entry("b", "b").kept == pytest.approx(1.0)
    (first, second) = m.random
    assert (first.target, first.value, first.count) == ("a", pytest.approx(0.64), 5)
    assert second.kept == pytest.approx(0.14 / 0.3)
    assert [e.q for e in m.entries] == pytest.approx(list(stats.false_discovery_control([0.2, 0.01, 1e-9, 1.0])))


def test_a_random_mask_lies_where_plain_arithmetic_says():
    e = matrix(table()).entry("a", "b")
    values = np.array([0.60, 0.62, 0.64, 0.66, 0.68])
    error = values.std(ddof=1) * math.sqrt(1 + 1 / 5)
    half = stats.t.ppf(0.975, 4) * error
    assert (e.random_low, e.random_high) == pytest.approx((0.64 - half, 0.64 + half))
    assert e.random_p == pytest.approx(2 * stats.t.sf(0.15 / error, 4))
    assert e.ahead
    assert not matrix(table()).entry("b", "a").ahead
    few = matrix(table(random=(0.5, 0.9))).entry("a", "b")
    assert (few.random_low, few.random_high) == (0.0, 1.0)  # no accuracy lies outside


@pytest.mark.slow
def test_one_more_random_mask_lies_there_with_95_per_cent():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        *drawn, own = rng.normal(0.6, 0.05, 6)
        cells = [cell(FULL, "t", 0.9), cell("s", "t", own)] + [cell(FULL, "t", v, draw=i) for i, v in enumerate(drawn)]
        (e,) = matrix(cells).entries
        inside.append(e.random_low <= own <= e.random_high)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_with_retraining_changes_are_paired_over_the_seeds():
    full, own = (0.80, 0.90, 0.85), (0.79, 0.88, 0.85)
    cells = [cell(FULL, "t", v, seed) for seed, v in enumerate(full)]
    cells += [cell("s", "t", v, seed) for seed, v in enumerate(own)]
    (e,) = matrix(cells).entries
    test = stats.ttest_rel(own, full)
    ends = test.confidence_interval(0.95)
    assert (e.change, e.low, e.high, e.p) == pytest.approx((-0.01, ends.low, ends.high, test.pvalue))
    assert e.kept == pytest.approx((0.84 - 0.5) / (0.85 - 0.5))
    (alone,) = matrix([c for c in cells if c.seed == 0]).entries
    assert (alone.change, alone.low, alone.q) == (pytest.approx(-0.01), None, None)
    assert "one seed has no spread" in finding(matrix([c for c in cells if c.seed == 0]), {"s": "u"})
    alike = [cell(source, "t", value, seed) for seed in range(3) for source, value in ((FULL, 0.5), ("s", 0.25))]
    assert "the changes of all seeds are equal, so they have no spread" in finding(matrix(alike), {"s": "u"})


def test_what_is_undefined_says_why_and_correlations_are_shares_of_themselves():
    cells = [cell(FULL, "t", 0.5), cell("s", "t", 0.45)]
    assert matrix(cells).entries[0].kept is None
    assert "no better than one answer for all" in matrix(cells).entries[0].why
    gone = [cell(FULL, "t", 0.9), cell("s", "t", None, undefined="every prediction is the same")]
    assert matrix(gone).entries[0].why == "every prediction is the same"
    assert matrix([cell("s", "t", 0.9)]).entries[0].why == "the model with every head on is not measured"
    free = [cell(s, "t", v, name="pearson", constant=None) for s, v in ((FULL, 0.8), ("s", 0.6))]
    assert matrix(free).entries[0].kept == pytest.approx(0.75)


# the spec -------------------------------------------------------------------------------------------


def spec(**changes: Any) -> dict[str, Any]:
    return {"masks": {"a": "fff"}, "targets": {"t": {"model": "m", "task": "demo"}}, **changes}


def test_a_spec_and_its_cells_are_read_back(tmp_path):
    given = spec(seeds=[0, 1], retrain=True, random=2)
    assert TransferSpec.from_dict(given).to_dict() == given
    assert TransferSpec.from_dict(spec(seeds=[0])).to_dict() == spec(seeds=[0])
    cells = table()
    text = "\n".join(map(line_of, cells))
    assert cells_of(text + "\n" + line_of(cells[0])[:20], "x") == cells
    old = '{"source": "", "target": "t", "seed": null, "metric": 0.5}'  # of version 0.1
    assert cells_of(old, "x")[0].draw is None
    for wrong in ("my notes", "[1]", '{"mine": 1}', "[" * 100_000):
        with pytest.raises(OptionError, match="'x' was not written by headviz transfer"):
            cells_of(wrong, "x")


def test_a_retrained_cell_says_what_it_was_trained_from(tmp_path):
    c = context(tmp_path)
    here = subject_of(c, None, 0, QUICK)
    assert here == subject_of(c, None, 0, QUICK) != subject_of(c, None, None, QUICK)
    other = context(tmp_path, load_base=lambda seed: tiny_classifier(seed=9))
    assert subject_of(c, None, None, None) == subject_of(other, None, None, None)
    changed = [
        subject_of(other, None, 0, QUICK),
        subject_of(context(tmp_path, train=make_data(24)), None, 0, QUICK),
        subject_of(c, None, 0, dataclasses.replace(QUICK, epochs=2)),
    ]
    assert len({here, *changed}) == 4


def test_a_grid_of_as_many_heads_in_another_shape_is_refused(tmp_path):
    grids = {"a": (2, 4), "b": (4, 2)}
    contexts = {
        name: context(tmp_path / name, *grid, clf=tiny_classifier(layers=grid[0], heads=grid[1]))
        for name, grid in grids.items()
    }
    made = TransferSpec({"x": "7b"}, {name: {"model": "m", "task": "demo"} for name in contexts}, random=0)
    with pytest.raises(MaskError, match="2×4 heads, but the model of 'b' has 4×2"):
        list(made.cells(contexts.__getitem__))

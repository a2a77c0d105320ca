"""Interactions against their definition, computed pair by pair; copies stand in for each other."""

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.errors import Cancelled, OptionError, TaskError
from headviz.evaluation.donors import Donors, PlaceMeans
from headviz.evaluation.evaluator import Evaluator
from headviz.extras.analyses.interactions import Interactions, _estimated, finding, interactions
from headviz.models.classifier import Encoding
from headviz.models.stand_in import StandIn
from headviz.tasks import Dataset, get_task
from headviz.tasks.sampling import limited
from support.analysed import learnt, texts, twins
from support.gated import gated
from support.plain import evaluate
from support.tiny import tiny_classifier, tiny_model, tiny_tokenizer

FULL = HeadMask.full(3, 4)


@pytest.fixture(scope="module")
def found() -> tuple[Evaluator, Interactions]:
    both = twins()
    evaluator = Evaluator(both.clf, both.data.subset(range(48)))
    return evaluator, interactions(evaluator, samples=48, seconds=600)


def loss(evaluator: Evaluator, *off: tuple[int, int]) -> float:
    """The oracle: torch's own cross entropy of the plain model under a mask."""
    logits = evaluate(evaluator.clf, evaluator.data, FULL.without(off)).logits
    return float(torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(evaluator.gold)))


@pytest.mark.slow
def test_a_pair_is_the_second_difference_of_the_loss(found: tuple[Evaluator, Interactions]) -> None:
    evaluator, result = found
    assert len(result.pairs) == 12 * 11 // 2
    for pair in (result.pairs[0], result.pairs[5], result.pairs[-1]):
        a, b = tuple(pair.first), tuple(pair.second)
        expected = -(loss(evaluator) - loss(evaluator, a) - loss(evaluator, b) + loss(evaluator, a, b))
        assert pair.value == pytest.approx(expected, abs=2e-5)
        i, j = result.heads.index(pair.first), result.heads.index(pair.second)
        assert result.matrix[i, j] == result.matrix[j, i] == pytest.approx(pair.value, rel=1e-12)
    assert np.isnan(np.diag(result.matrix)).all()


@pytest.mark.slow
def test_copies_stand_in_for_each_other(found: tuple[Evaluator, Interactions]) -> None:
    _, result = found
    best = result.pairs[0]
    assert (tuple(best.first), tuple(best.second)) == ((1, 0), (1, 1))
    assert best.high < 0
    assert best.clear
    assert any({best.first, best.second} <= set(group) for group in result.groups)
    assert "backups" in finding(result)
    order = [result.heads[i] for i in result.order()]
    assert abs(order.index(best.first) - order.index(best.second)) == 1
    assert sorted(order) == sorted(result.heads)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "kind"), [("bert", "zero"), ("bert", "mean-by-place"), ("bert", "resample"), ("bart", "mean")]
)
def test_the_estimate_takes_the_logits_slope(family: str, kind: str) -> None:
    """Against differences of the logits with gates a little more and a little less open, one text at a time."""
    bare = learnt(n=8) if family == "bert" else Evaluator(tiny_classifier(family), learnt(n=8).data)
    reference = learnt(n=8, seed=1).data
    evaluator = headviz.evaluator_of(bare.clf, bare.data, ablation=kind, reference=reference)
    clf, heads, step = evaluator.clf, bare.clf.present.kept, 1e-2
    rows = {"mean-by-place": PlaceMeans, "resample": Donors}.get(kind)
    donors = None if rows is None else rows(clf, reference, StandIn(kind))
    matrix = _estimated(evaluator, evaluator.data, heads, None, None)
    assert np.allclose(matrix, matrix.T, equal_nan=True)

    def loss_of(logits: torch.Tensor) -> float:
        return float(clf.loss(logits, torch.tensor(evaluator.gold)))

    def moved(off: tuple[int, int] | None, other: tuple[int, int] | None, by: float = 0.0) -> torch.Tensor:
        gates = ({} if off is None else {off: 0.0}) | ({} if other is None else {other: 1.0 + by})
        found = []
        for text in clf.encode(evaluator.data.texts, evaluator.data.pairs):

            def stands(layer: int, head: int, text: Encoding = text) -> torch.Tensor:
                assert donors is not None
                return donors.rows[layer][donors.places(text, 0), 8 * head : 8 * (head + 1)]

            edit = gated(clf, gates, None if donors is None else stands)
            with torch.inference_mode():
                found.append(clf.forward(clf.collate([text]), clf.call(edit_outputs=edit)).double())
        return torch.cat(found)

    def both(off: tuple[int, int], other: tuple[int, int]) -> float:
        slope = (moved(off, other, step) - moved(off, other, -step)) / (2 * step)
        return loss_of(moved(off, None) - slope)

    for a, b in (((0, 1), (2, 3)), ((1, 0), (1, 2))):
        alone = loss_of(moved(a, None)) + loss_of(moved(b, None)) - loss_of(moved(None, None))
        expected = alone - (both(a, b) + both(b, a)) / 2
        assert matrix[heads.index(a), heads.index(b)] == pytest.approx(expected, abs=3e-4)


@pytest.mark.slow
def test_a_model_in_half_precision() -> None:
    evaluator = learnt(n=24)
    wanted = _estimated(evaluator, evaluator.data, tuple(FULL.heads()), None, None)
    half = Evaluator(headviz.wrap(tiny_model().bfloat16(), tiny_tokenizer()), evaluator.data)
    found = _estimated(half, half.data, tuple(FULL.heads()), None, None)
    assert np.nanmax(np.abs(found - wanted)) < 0.2 * np.nanmax(np.abs(wanted))


def test_it_keeps_to_its_time_and_can_be_stopped() -> None:
    evaluator = learnt(n=24)
    quick = interactions(evaluator, samples=8, seconds=1e-9)
    assert len(quick.pairs) == 1
    assert np.isfinite(quick.matrix).sum() == 12 * 11
    eight = evaluator.data.subset(limited(evaluator.data, 8, 0))
    strongest = np.unravel_index(np.nanargmax(np.abs(_estimated(evaluator, eight, quick.heads, None, None))), (12, 12))
    assert {quick.heads[i] for i in strongest} == {quick.pairs[0].first, quick.pairs[0].second}
    with pytest.raises(Cancelled):
        interactions(evaluator, samples=8, cancel=lambda: True)


@pytest.mark.slow
def test_the_examples_of_the_estimates_have_the_classes_of_all() -> None:
    """As many of each class would mix 38 examples of one share with exact pairs of another, and call them 64."""
    a, b = texts(106, 0)
    uneven = Dataset(get_task("mnli"), "dev", a, b, np.array([0] * 100 + [1] * 6))
    evaluator = Evaluator(learnt(n=4).clf, uneven)
    found = interactions(evaluator, samples=64, seconds=1e-9)
    drawn = uneven.subset(limited(uneven, 64, 0))
    assert (found.samples, np.bincount(drawn.labels).tolist()) == (64, [60, 4])
    wanted = _estimated(evaluator, drawn, found.heads, None, None)
    exact = (found.heads.index(found.pairs[0].first), found.heads.index(found.pairs[0].second))
    wanted[exact] = wanted[exact[::-1]] = found.matrix[exact]
    np.testing.assert_array_equal(found.matrix, wanted)


def test_what_cannot_be_asked() -> None:
    evaluator = learnt(n=24)
    with pytest.raises(OptionError, match="time budget"):
        interactions(evaluator, seconds=0)
    one = Evaluator(headviz.prune(evaluator.clf, HeadMask.only(3, 4, ["1.1"])), evaluator.data)
    with pytest.raises(OptionError, match="at least two heads"):
        interactions(one)
    unlabelled = headviz.Dataset(evaluator.data.task, "dev", evaluator.data.texts, evaluator.data.pairs, None)
    with pytest.raises(TaskError, match="no gold labels"):
        interactions(Evaluator(evaluator.clf, unlabelled))


def test_pairs_that_were_not_computed_count_as_tested() -> None:
    """The pairs are chosen by estimates on the same examples: of tables of nothing, 47 % had a clear pair."""
    from scipy import stats

    from headviz.extras.analyses.interactions import _rows

    heads = tuple(FULL.kept)[:4]
    each = np.random.default_rng(0).normal(0.8, 1.0, 12)
    (row,) = _rows(heads, np.zeros((4, 4)), {(0, 1): each}, np.arange(12))
    p = stats.ttest_1samp(each, 0.0)
    assert row.q == pytest.approx(min(1.0, 6 * p.pvalue))
    assert (row.low, row.high) == pytest.approx(tuple(p.confidence_interval()))


@pytest.mark.slow
def test_heads_that_do_nothing_do_not_interact_whatever_the_rounding() -> None:
    evaluator = learnt(n=40)
    clf = evaluator.clf
    with torch.no_grad():
        clf.projections(2)[3].weight[:, : 2 * clf.head_size] = 0  # of heads 2.0 and 2.1
    found = interactions(Evaluator(clf, evaluator.data), samples=20, seconds=600)
    idle = [p for p in found.pairs if {tuple(p.first), tuple(p.second)} & {(2, 0), (2, 1)}]
    assert len(idle) == 21
    assert {(p.value, p.low, p.high, p.clear) for p in idle} == {(0.0, 0.0, 0.0, False)}
    assert any(p.clear for p in found.pairs)

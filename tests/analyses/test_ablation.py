"""Ablation tables against plain evaluation, their statistics, their JSON, and what is read off them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import headviz
from headviz import HeadMask
from headviz.analyses.ablation import ablate, view
from headviz.analyses.all_but_one import all_but_one
from headviz.answers.comparison import Delta
from headviz.answers.one_class import ClassAnswers
from headviz.errors import Cancelled, OptionError
from headviz.evaluation.evaluator import Evaluator
from headviz.evaluation.paired import paired
from headviz.models.stand_in import StandIn
from headviz.statistics.significance import benjamini_hochberg, mcnemar
from support.analysed import learnt, twins, unlearnt
from support.plain import evaluate


@pytest.mark.slow
def test_every_cell_is_the_plain_difference() -> None:
    evaluator = learnt()
    table = ablate(evaluator)
    full = evaluate(evaluator.clf, evaluator.data)
    assert table.baseline == full.metrics["accuracy"]
    p = np.empty((3, 4))
    for h in HeadMask.full(3, 4).heads():
        off = evaluate(evaluator.clf, evaluator.data, HeadMask.full(3, 4).without([h]))
        assert table.values[h] == pytest.approx(full.metrics["accuracy"] - off.metrics["accuracy"])
        right, now = full.predictions == full.gold, off.predictions == full.gold
        worse, better = int((right & ~now).sum()), int((~right & now).sum())
        p[h] = mcnemar(worse, better)
        change = paired(full.gold, full.predictions, off.predictions)
        assert (table.interval_low[h], table.interval_high[h]) == (-change.high, -change.low)
    np.testing.assert_allclose(table.p_value, p)
    np.testing.assert_allclose(table.q_value, benjamini_hochberg(p))
    np.testing.assert_array_equal(table.delta, -table.values)


def test_over_draws_the_interval_and_the_test_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the median of p = .057, .013 and .057 is .11; the mean of the intervals' ends excluded zero."""
    evaluator = learnt(n=30)
    counts = iter([(11, 3), (12, 2), (11, 3)])
    gold = np.zeros(500, dtype=int)

    def swept(*_: object, **__: object) -> tuple[ClassAnswers, list[Delta]]:
        worse, better = next(counts)
        full, masked = gold.copy(), gold.copy()
        masked[:worse], full[worse : worse + better] = 1, 1
        answers = ClassAnswers(gold, full, 2)
        return answers, answers.deltas([masked], "accuracy")

    monkeypatch.setattr(evaluator, "each_draw", lambda: [evaluator] * 3)
    monkeypatch.setattr("headviz.analyses.ablation.sweep", swept)
    base = HeadMask.full(3, 4).without(h for h in HeadMask.full(3, 4).heads() if h != (1, 2))
    result = ablate(evaluator, base=base)
    assert result.p_value[1, 2] == pytest.approx(2 * 0.0574, abs=1e-3)
    assert result.interval_low[1, 2] <= 0 < result.values[1, 2] < result.interval_high[1, 2]


def test_on_top_of_a_mask_and_with_removed_heads() -> None:
    evaluator = learnt()
    small = headviz.prune(evaluator.clf, HeadMask.full(3, 4).without([(0, 2)]))
    base = HeadMask.full(3, 4).without([(1, 1)])
    table = ablate(Evaluator(small, evaluator.data), base=base)
    assert np.argwhere(np.isnan(table.values)).tolist() == [[0, 2], [1, 1]]
    both = base.without([(0, 2)])
    start = evaluate(evaluator.clf, evaluator.data, both).metrics["accuracy"]
    then = evaluate(evaluator.clf, evaluator.data, both.without([(2, 3)])).metrics["accuracy"]
    assert table.baseline == start
    assert table.values[2, 3] == pytest.approx(start - then)
    content = json.loads(table.to_json())
    assert content["values"][0][2] is None
    assert content["q_value"][1][1] is None
    assert content["tested"] == 10


@pytest.mark.slow
def test_heads_do_not_matter_for_labels_that_have_nothing_to_do_with_the_texts() -> None:
    called = sum(int(ablate(unlearnt(n=100, seed=s)).significant().sum()) for s in range(4))
    assert called <= 1  # of 48 heads


def test_progress_and_cancel() -> None:
    evaluator = learnt(n=20)
    seen: list[tuple[int, int]] = []
    ablate(evaluator, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 13) for i in range(14)]
    with pytest.raises(Cancelled):
        ablate(learnt(n=20), cancel=iter([False] * 5 + [True] * 50).__next__)


def test_harmful_heads_are_those_that_help_when_they_go() -> None:
    """Gold labels are what the model says *without* one head, so that this head does harm."""
    evaluator = learnt(n=200, wrong=0.0)
    bad = (1, 2)
    said = evaluate(evaluator.clf, evaluator.data, HeadMask.full(3, 4).without([bad])).predictions
    spoilt = headviz.Dataset(evaluator.data.task, "dev", evaluator.data.texts, evaluator.data.pairs, np.asarray(said))
    result = ablate(Evaluator(evaluator.clf, spoilt))
    assert result.harmful()[0] == bad
    (table,) = [part for part in view(result).parts if part.key == "harmful_table"]
    gains = [-100 * result.values[h] for h in result.harmful()]
    assert [row[:2] for row in table.rows] == [
        [h, pytest.approx(g)] for h, g in zip(result.harmful(), gains, strict=True)
    ]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == pytest.approx(100 * (1 - result.baseline))
    assert table.rows[0][2] > 0  # the lower end of its interval
    none = ablate(learnt(wrong=0.0))
    assert none.harmful() == []
    assert not [part for part in view(none).parts if part.key == "harmful_table"]


@pytest.mark.slow
def test_best_single_heads() -> None:
    evaluator = learnt()
    same = all_but_one(evaluator, "same")
    base = evaluate(evaluator.clf, evaluator.data).metrics["accuracy"]
    for row in same.rows:
        scores = []
        for kept in range(4):
            mask = HeadMask.full(3, 4).without((row.layer, h) for h in range(4) if h != kept)
            scores.append(evaluate(evaluator.clf, evaluator.data, mask).metrics["accuracy"] - base)
        np.testing.assert_allclose(same.deltas[row.layer], scores)
        assert scores[row.head] == max(scores)
        assert row.delta == pytest.approx(max(scores))
        assert row.interval_low <= row.delta <= row.interval_high


def test_heads_chosen_elsewhere_are_reported_here() -> None:
    evaluator = learnt()
    other = Evaluator(evaluator.clf, evaluator.data.subset(range(30)))
    result = all_but_one(evaluator, "other", other)
    assert result.chosen_on.n == 30
    assert result.subject.n == 120
    for row in result.rows:
        assert result.deltas[row.layer, row.head] == result.deltas[row.layer].max()
        mask = HeadMask.full(3, 4).without((row.layer, h) for h in range(4) if h != row.head)
        here = evaluate(evaluator.clf, evaluator.data, mask).metrics["accuracy"] - result.baseline
        assert row.delta == pytest.approx(here)
    with pytest.raises(OptionError, match="give an evaluator of them"):
        all_but_one(evaluator, "other")
    with pytest.raises(OptionError, match="same, other"):
        all_but_one(evaluator, "both")  # type: ignore[arg-type]


def test_layers_without_heads_have_no_best_head() -> None:
    evaluator = learnt(n=30)
    small = headviz.prune(evaluator.clf, HeadMask.full(3, 4).without((1, h) for h in range(4)))
    result = all_but_one(Evaluator(small, evaluator.data), "same")
    assert [r.layer for r in result.rows] == [0, 2]


def test_two_data_sets() -> None:
    from headviz.extras.analyses.cross_dataset import cross_dataset, relate

    first, second = learnt(seed=0), learnt(seed=1)
    second = Evaluator(first.clf, second.data)
    result = cross_dataset(first, second)
    x, y = (ablate(e).values.ravel() for e in (first, second))
    assert result.pearson == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert result.spearman == pytest.approx(spearmanr(x, y).statistic)
    assert result.interval_low < result.spearman < result.interval_high
    assert result.heads == 12
    assert relate(result.first, result.first).pearson == pytest.approx(1.0)
    flat = replace(result.first, values=np.zeros((3, 4)))
    assert np.isnan(relate(result.first, flat).pearson)
    with pytest.raises(OptionError, match="same"):
        cross_dataset(first, first)
    with pytest.raises(OptionError, match="one model"):
        cross_dataset(first, learnt(seed=3, spread=0.3))


@pytest.mark.slow
def test_interval_of_the_agreement_holds_where_a_few_heads_cost_most() -> None:
    """Fisher's interval of Pearson's r covers 40 % there."""
    from headviz.extras.analyses.cross_dataset import rank_interval

    draw = np.random.default_rng(0)

    def costs(n: int) -> list[np.ndarray]:
        common = draw.normal(size=n) * np.exp(1.2 * np.abs(draw.normal(size=n)))
        return [0.8 * common + 0.7 * draw.normal(size=n) for _ in range(2)]

    truth = spearmanr(*costs(50_000)).statistic
    ends = [rank_interval(*costs(72)) for _ in range(40)]
    assert sum(low <= truth <= high for low, high in ends) >= 36


@pytest.mark.slow
def test_pairs_that_stand_in_for_each_other() -> None:
    from headviz.extras.analyses.redundant import redundant

    evaluator = twins()
    result = redundant(evaluator, seconds=600)
    assert result.evaluated == result.candidates == result.harmless * (result.harmless - 1) // 2
    best = result.pairs[0]
    assert (best.first, best.second) == ((1, 0), (1, 1))
    now = evaluate(evaluator.clf, evaluator.data, HeadMask.full(3, 4).without([(1, 0), (1, 1)]))
    assert best.cost == pytest.approx(result.baseline - now.metrics["accuracy"])
    assert best.excess == pytest.approx(best.cost - best.cost_first - best.cost_second)
    assert best.excess > 0.1
    assert best.to_dict()["interaction"] == -best.excess  # one stands in for the other
    for pair in result.pairs:
        assert pair.q_value < 0.05
        assert pair.interval_low <= pair.cost <= pair.interval_high
        assert 0 < pair.excess_low <= pair.excess <= pair.excess_high
    assert [p.excess for p in result.pairs] == sorted((p.excess for p in result.pairs), reverse=True)


def test_the_search_keeps_to_its_time_and_tries_the_promising_pairs_first() -> None:
    from headviz.extras.analyses.redundant import _by_promise, _logits, redundant

    evaluator = twins()
    table = ablate(evaluator)
    quick = redundant(evaluator, ablation=table, seconds=1e-9)
    assert quick.evaluated == 1
    heads = sorted(set(HeadMask.full(3, 4).heads()) - set(map(tuple, np.argwhere(table.p_value < 0.05))))
    logits = {h: _logits(evaluator, table.base, h) for h in heads}
    tried = _by_promise(evaluator, table, logits, evaluator.answers())
    assert tried.index(((1, 0), (1, 1))) < 4
    assert len(tried) == len(set(tried)) == len(heads) * (len(heads) - 1) // 2
    with pytest.raises(OptionError, match="time budget"):
        redundant(evaluator, seconds=0)


def test_over_draws_the_baseline_is_that_of_all_draws() -> None:
    """Beside costs that are means over the draws, the last draw's baseline would be another model's."""
    evaluator = learnt(n=40)
    off = HeadMask.full(3, 4).without(["0.1", "2.3"])
    drawing = headviz.evaluator_of(evaluator.clf, evaluator.data, ablation="resample", reference=evaluator.data)
    each = [one.evaluate(off).metrics["accuracy"] for one in drawing.each_draw()]
    assert len(set(each)) > 1
    assert ablate(drawing, base=off).baseline == pytest.approx(np.mean(each))


def test_an_ablation_of_something_else_is_refused() -> None:
    from headviz.extras.analyses.redundant import redundant

    evaluator, other = learnt(n=30), learnt(n=40)
    with pytest.raises(OptionError, match="of another data than"):
        redundant(other, ablation=ablate(evaluator))
    with pytest.raises(OptionError, match="Unknown metric"):
        redundant(evaluator, ablation=ablate(evaluator), metric="nonsense")


def resampled(draws: int) -> Evaluator:
    evaluator = learnt(n=60)
    donors = StandIn("resample", examples=20, draws=draws)
    return headviz.evaluator_of(evaluator.clf, evaluator.data, ablation=donors, reference=evaluator.data)


@pytest.mark.slow
def test_backup_pairs_are_of_one_draw_throughout(monkeypatch: pytest.MonkeyPatch) -> None:
    from headviz.extras.analyses.redundant import redundant

    several = resampled(3)
    # every head may be in a pair, and every excess is told
    monkeypatch.setattr("headviz.extras.analyses.redundant.clear", lambda low, *_: np.ndim(low) == 0)
    result = redundant(several, seconds=60)
    assert result.subject.stand_in == "resample from 60 examples, draw 1 of 3"
    assert result.pairs
    for pair in result.pairs:
        assert pair.excess == pytest.approx(pair.cost - pair.cost_first - pair.cost_second)
    with pytest.raises(OptionError, match="of another stand-in for heads"):
        redundant(several, ablation=ablate(several), seconds=1)

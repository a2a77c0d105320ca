"""Grades of scores: areas by hand, chance for chance, the demo's known heads, what is refused."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import headviz
from headviz import HeadMask, UserError
from headviz.analyses import grades, grading
from headviz.analyses.grades import Grade, Grades, cost, curves, figure, finding, view
from headviz.analyses.grading import SHARES, Half, auroc, grade, halves_of, precision
from headviz.answers.number import NUMBER
from headviz.answers.one_class import ONE_CLASS
from headviz.answers.rank import RANK
from headviz.demo import planted_heads
from headviz.heads import HeadId, lowest
from headviz.storage.store import Store
from headviz.tasks import Dataset, load_task
from support.analysed import learnt
from support.graded import graded
from support.jobs import data_of, model_of
from support.plain import evaluate
from support.tiny_translation import tiny_translator
from tools.demo.grades import page


@pytest.fixture(autouse=True)
def few_random_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "SEEDS", 3)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return learnt(160, wrong=0.05).data


@pytest.fixture(scope="module")
def clf() -> headviz.Classifier:
    return learnt(160, wrong=0.05).clf


def balanced(answers: np.ndarray, gold: np.ndarray) -> float:
    """The mean over the classes of the share of right answers."""
    return float(np.mean([np.mean(answers[gold == label] == label) for label in set(gold)]))


def test_one_class_for_all_is_worth_the_same_whichever_it_is(clf: headviz.Classifier, data: Dataset) -> None:
    half = Half(clf, data.subset([i for i in range(160) if data.labels[i] != 2 or i % 3 == 0]))
    counts = np.bincount(half.gold)
    assert counts[0] > 2 * counts[2] > 4 * counts[1] > 0
    for label in (0, 2):  # which every draw has
        result = half.measure.of(np.full(len(half.gold), label))
        np.testing.assert_allclose(result, half.constant, atol=1e-12)
        np.testing.assert_allclose(half.left(result[None])[0], 0, atol=1e-12)
    np.testing.assert_allclose(half.left(half.full[None])[0], 1)


def test_a_class_that_a_draw_lacks_is_not_counted_in_it(clf: headviz.Classifier, data: Dataset) -> None:
    rare = [int(np.flatnonzero(np.asarray(data.labels) == 1)[0])]
    half = Half(clf, data.subset([*rare, *(i for i in range(60) if data.labels[i] != 1)]))
    lacking = half.weights[:, np.flatnonzero(half.gold == 1)[0]] == 0
    assert 0.2 < lacking[1:].mean() < 0.6
    assert set(half.constant[lacking]) == {0.5}
    np.testing.assert_allclose(half.constant[~lacking], 1 / 3)
    assert np.isfinite(half.full).all()


def bare(gold: np.ndarray, answers: np.ndarray, monkeypatch: pytest.MonkeyPatch, regression: bool = False) -> Half:
    """A half whose model gives these answers."""
    data = SimpleNamespace(gold=gold, answer=NUMBER if regression else ONE_CLASS)
    evaluator = SimpleNamespace(data=data, cut_off="", predictions=lambda mask, keep=True: answers)
    monkeypatch.setattr("headviz.analyses.grading.evaluator_of", lambda *args, **kwargs: evaluator)
    clf = SimpleNamespace(full_mask=None, name="it")
    return Half(clf, gold)  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [2, 77])
def test_balanced_accuracy_under_every_draw(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(classes)
    gold = np.sort(rng.integers(0, classes, 150))
    half = bare(gold, gold, monkeypatch)
    answers = np.where(rng.random(150) < 0.5, gold, rng.integers(-1, classes, 150))  # -1: none of the classes
    for at, value in enumerate(half.measure.of(answers)[:30]):
        drawn = np.repeat(np.arange(150), half.weights[at])
        assert value == pytest.approx(balanced(answers[drawn], gold[drawn]), abs=1e-12)


def test_draws_in_which_nothing_is_known_do_not_count_as_nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = np.array([0] * 60 + [1] * 2)
    half = bare(gold, gold, monkeypatch)
    lacking = (half.weights[:, 60:] == 0).all(axis=1)
    assert 0.05 < lacking.mean() < 0.3
    left = half.left(half.measure.of(np.where(np.arange(62) < 50, gold, 1))[None])[0]
    assert np.isnan(left[lacking]).all()
    assert np.nanpercentile(left, 2.5) > 0.5


@pytest.mark.parametrize("classes", [2, 20])
def test_what_is_exactly_one_class_for_all_is_refused_and_one_class_alone_too(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(classes)
    for _ in range(5):
        gold = np.repeat(np.arange(classes), rng.integers(3, 20, classes))
        with pytest.raises(UserError, match=f"balanced accuracy {1 / classes:.3f} against {1 / classes:.3f}"):
            bare(gold, np.full(len(gold), rng.integers(classes)), monkeypatch)
    with pytest.raises(UserError, match="has one class only"):
        bare(np.zeros(20, int), np.zeros(20, int), monkeypatch)
    with pytest.raises(UserError, match="does not follow the gold values"):
        bare(np.arange(20.0), np.ones(20), monkeypatch, regression=True)


@pytest.mark.slow
def test_areas_are_those_of_pruning_by_hand(clf: headviz.Classifier, data: Dataset) -> None:
    """Score on one half, remove on the other, plain evaluation, both ways."""
    name = "taylor"
    data = data.subset(range(100))
    result = grade(clf, data, [name], splits=1)
    halves = halves_of(data)
    assert sorted(t for half in halves for t in half.texts) == sorted(data.texts)
    areas, left, benchmark = [], [], []
    for scored, pruned in (halves, halves[::-1]):
        values = headviz.score_heads(clf, scored, name).values
        gold = np.asarray(pruned.gold)
        floor = 1 / len(set(gold))
        full = balanced(evaluate(clf, pruned).predictions, gold)
        counts = (0, *(round(share * 12) for share in SHARES), 12)
        masks = [clf.full_mask.without(lowest(values, count, clf.full_mask.kept, seed=0)) for count in counts]
        metrics = [balanced(evaluate(clf, pruned, mask).predictions, gold) for mask in masks]
        left.append([(m - floor) / (full - floor) for m in metrics[1:-1]])
        areas.append(np.mean(left[-1]))
        f = [(m - metrics[-1]) / (full - metrics[-1]) for m in metrics]
        steps = [(more - less) / 12 for less, more in pairwise(counts)]  # 1, 1, 2, … of 12 heads
        trapezoids = [
            [step * (a + b) / 2 for step, (a, b) in zip(steps, pairwise(x), strict=True)]
            for x in (f, [abs(1 - v) for v in f])
        ]
        benchmark.append([sum(t) for t in trapezoids])
    (one,) = [g for g in result if g.score == name]
    assert one.area == pytest.approx(np.mean(areas), abs=1e-9)
    assert one.area_low <= one.area <= one.area_high
    assert len(one.curve) == len(SHARES)
    assert np.mean(one.curve) == pytest.approx(one.area)
    np.testing.assert_allclose(one.curve, np.mean(left, axis=0), atol=1e-9)
    assert one.cpr == pytest.approx(np.mean([b[0] for b in benchmark]), abs=1e-9)
    assert one.cmd == pytest.approx(np.mean([b[1] for b in benchmark]), abs=1e-9)


@pytest.mark.slow
def test_the_exact_order_beats_its_reverse_and_random_is_its_own_baseline(
    clf: headviz.Classifier, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert grading.planted_in(clf) is None
    planted = frozenset({HeadId(0, 1), HeadId(2, 3)})
    monkeypatch.setattr(grading, "planted_in", lambda clf: planted)
    scores = grade(clf, data.subset(range(100)), ["ablation", "magnitude", "random"], splits=1).scores
    result = {g.score: g for g in scores}
    assert result["ablation"].area > result["ablation"].area_top
    assert result["random"].lead == 0
    assert result["random"].stability is None  # its two halves see no data, so they agree for nothing
    assert 0 <= result["ablation"].stability <= 1
    assert result["magnitude"].auroc == pytest.approx(
        auroc(headviz.score_heads(clf, data, "magnitude").values, planted)
    )


def test_splits_cut_the_data_into_other_halves_with_the_same_draws(clf: headviz.Classifier, data: Dataset) -> None:
    """An example is drawn as often in one split as in another, so splits do not make the examples seem more."""
    weights = grading.drawn_units(len(data))
    members = [grading.units_of(data, split) for split in range(3)]
    assert len({tuple(sorted(first)) for first, _ in members}) == 3
    for split, (first, second) in enumerate(members):
        assert sorted([*first, *second]) == list(range(len(data)))
        half = Half(clf, halves_of(data, split)[1], weights=weights[:, second])
        np.testing.assert_array_equal(half.weights[1:], weights[:, second])
        assert [half.data.texts[at] for at in (0, -1)] == [data.texts[second[at]] for at in (0, -1)]
        labels = [np.bincount(np.asarray(one.labels)) for one in halves_of(data, split)]
        assert np.abs(labels[0] - labels[1]).max() <= 2


def test_queries_without_a_relevant_passage_have_no_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = np.array([[1, 0], [0, 0], [0, 1], [0, 1], [0, 2], [1, 2]])  # relevance, query: the second has none
    scores = np.array([1.0, 0, 0, 0, 0, 1])
    data = SimpleNamespace(gold=gold, answer=RANK)
    evaluator = SimpleNamespace(data=data, cut_off="", predictions=lambda mask, keep=True: scores)
    monkeypatch.setattr("headviz.analyses.grading.evaluator_of", lambda *args, **kwargs: evaluator)
    clf = SimpleNamespace(full_mask=None, name="it")
    half = Half(clf, gold, weights=grading.drawn_units(3))  # type: ignore[arg-type]
    assert half.full[0] == 1


@pytest.mark.slow
def test_a_ranking_by_vectors_is_graded_as_a_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken for a number: the shapes did not fit."""
    monkeypatch.setattr(grading, "SEEDS", 1)
    clf, some = model_of("vector"), data_of("rank", 12)
    pairs = list(zip(some.texts, some.pairs, strict=True))

    def ranking(relevant: list[int]) -> Dataset:
        rows = [{"query": q, "passage": p, "relevance": r} for (q, p), r in zip(pairs, relevant, strict=True)]
        return load_task("custom", data=rows, job="rank")

    similar = headviz.evaluate(clf, ranking([int(i % 4 == 0) for i in range(len(pairs))])).predictions
    first = [int(i // 4 * 4 + np.argmax(similar[i // 4 * 4 :][:4]) == i) for i in range(len(pairs))]  # it is right
    grades = headviz.grade(clf, ranking(first), ["magnitude"], splits=1, cache=False)
    assert grades.metric == "ndcg@10"
    assert "magnitude" in {g.score for g in grades}


def measured(areas: np.ndarray, halves: np.ndarray) -> grading.Measured:
    return grading.Measured(areas, 0.0, 0.0, 0.0, None, None, 0.0, 0.0, 0.0, halves=tuple(map(tuple, halves.tolist())))


def test_of_scores_of_equal_worth_none_is_called_behind_the_best() -> None:
    """By intervals without correction, over examples alone, some score was behind on nine boards of ten."""
    rng, alarms, plain = np.random.default_rng(0), 0, 0
    for _ in range(40):
        own, of_half = rng.normal(0, 0.03, (14, 5, 2)), rng.normal(0, 0.02, (14, 1))
        own -= own.mean(axis=1, keepdims=True) * [1, 1]  # splits repeat the same halves' luck in part
        own += rng.normal(0, 0.03, (14, 1, 2))
        halves = 0.7 + of_half[..., None] + own
        value = halves.mean(axis=(1, 2))[:, None]
        areas = np.concatenate([value, value + rng.normal(0, 0.02, (14, 500))], axis=1)
        results = {f"score-{i}": measured(areas[i], halves[i]) for i in range(14)}
        results["random"] = measured(areas[0] - 0.4, halves[0] - 0.4)
        result = grading.graded(results, list(results), None, 200, "some data")
        alarms += any(g.behind_low is not None and g.behind_low > 0 for g in result if g.score != "random")
        best = int(value.argmax())
        plain += bool((np.percentile(areas[best, 1:] - areas[:, 1:], 2.5, axis=1) > 0).any())
        assert all(g.lead_low > 0 for g in result if g.score != "random")
        assert next(g for g in result if g.score == "random").behind_low > 0
    assert alarms <= 4 < 20 < plain


def test_auroc_and_precision_by_hand() -> None:
    values = np.array([[0.9, 0.1], [0.5, np.nan]])
    assert auroc(values, {HeadId(0, 0)}) == 1
    assert auroc(values, {HeadId(0, 1)}) == 0
    assert auroc(values, {HeadId(1, 0)}) == 0.5
    assert auroc(np.ones((2, 2)), {HeadId(0, 0)}) == 0.5
    assert np.isnan(auroc(values, {HeadId(1, 1)}))
    assert precision(values, {HeadId(0, 0), HeadId(0, 1)}) == 0.5
    assert precision(values, {HeadId(0, 1), HeadId(1, 1)}) == 0  # one of two is left to be found


@pytest.mark.slow
def test_the_labels_order_reaches_scores_and_pruning(clf: headviz.Classifier, data: Dataset) -> None:
    """A model whose classes have other names is graded as the same model under the task's own."""
    data = data.subset(range(100))
    own = grade(clf, data, ["taylor"], splits=1)
    turned = Dataset(
        replace(data.task, label_names=("c", "a", "b")),
        "dev",
        data.texts,
        data.pairs,
        (np.asarray(data.labels) + 1) % 3,
    )
    with pytest.raises(UserError):
        grade(clf, turned, ["taylor"])
    result = grade(
        clf, turned, ["taylor"], splits=1, label_order=["a", "b", "c"], cache=False
    )  # which has the logits above
    assert result.scores[0].agreement == pytest.approx(own.scores[0].agreement, abs=0.2)
    assert result.scores[0].area == pytest.approx(own.scores[0].area, abs=0.1)


def test_random_values_and_shuffled_heads_give_chance() -> None:
    rng = np.random.default_rng(0)
    everything = HeadMask.full(12, 12).kept
    planted = set(planted_heads())
    assert len(planted) == 39
    by_chance = [auroc(rng.random((12, 12)), planted) for _ in range(400)]
    assert np.mean(by_chance) == pytest.approx(0.5, abs=0.01)
    values = np.zeros((12, 12))
    for head in planted:
        values[head] = 1
    assert auroc(values, planted) == 1
    drawn = [{everything[i] for i in rng.choice(144, 39, replace=False)} for _ in range(400)]
    assert np.mean([auroc(values, heads) for heads in drawn]) == pytest.approx(0.5, abs=0.02)


def test_the_demos_known_heads_are_found() -> None:
    clf = headviz.load("demo", device="cpu")
    planted = grading.planted_in(clf)
    assert planted == frozenset(planted_heads())
    values = headviz.score_heads(clf, headviz.load_task("demo", limit=24), "taylor", cache=False).values
    assert auroc(values, planted) > 0.6


def test_what_cannot_be_graded(clf: headviz.Classifier, data: Dataset) -> None:
    with pytest.raises(UserError, match="at least 40"):
        grade(clf, data.subset(range(39)), ["taylor"])
    with pytest.raises(UserError, match="tailor"):
        grade(clf, data, ["tailor"])
    with pytest.raises(UserError, match="at least one score"):
        grade(clf, data, [])
    with pytest.raises(UserError, match="areas count right answers"):
        grade(tiny_translator(), headviz.load_task("demo-translation", limit=4))
    always = np.full(len(data), np.bincount(np.asarray(evaluate(clf, data).predictions)).argmin())
    with pytest.raises(UserError, match="has one class only"):
        grade(clf, Dataset(data.task, "dev", data.texts, data.pairs, always), ["taylor"])


def test_a_score_that_is_worse_than_random_is_not_passed_over() -> None:
    good, equal = graded("taylor", 0.8, (0.3, 0.2, 0.4), None), graded("fisher", 0.79, (0.29, 0.2, 0.4), 0.01)
    worse, unclear = graded("magnitude", 0.3, (-0.2, -0.3, -0.1), 0.5), graded("kurtosis", 0.5, (0.0, -0.1, 0.1), 0.3)
    single = Grades((good, equal, unclear, worse), "taylor", 0, 100, "some data")
    assert "not tested for all at once" in finding(single)  # its intervals are each by itself, and the best was picked
    assert "fisher" not in finding(single)
    result = replace(single, splits=5)
    assert result.not_better == ("kurtosis", "magnitude")
    said = finding(result)
    assert said.startswith("On this model use taylor")
    assert "not significantly better than fisher" in said
    assert said.endswith("Not shown to be better than random orders: kurtosis. Worse than random orders: magnitude.")
    (line,) = figure(result).layout.shapes
    assert line.x0 == pytest.approx(0.5)
    assert "not shown to be better" in finding(Grades((unclear, worse), "kurtosis", 0, 100, "some data"))


def test_curves_costs_and_distances_from_the_best_are_shown() -> None:
    rows = [graded(f"score-{i}", 0.9 - i / 20, (0.3, 0.2, 0.4), None if i == 0 else i / 20) for i in range(7)]
    rows += [graded("random", 0.5, (0.0, 0.0, 0.0), 0.4)]
    result = Grades(tuple(rows), "score-0", 0, 100, "some data")
    lines = {line.name: line for line in curves(result).data}
    assert lines["score-1"].y == (1.0, *rows[1].curve)
    cheap = replace(rows[1], seconds=0.01)
    (points,) = cost(replace(result, scores=(rows[0], cheap, *rows[2:]))).data
    assert points.text[:3] == ("score-1", "score-0", "")
    table = view(result).parts[-1]
    at = table.titles("page").index("behind the best [low, high]")
    assert [row[at] for row in table.rows[:2]] == [None, "0.050 [0.000, 0.100]"]
    kept = grades.Recorded(result, "2026-01-01", "0.2.0", "headviz grade")
    assert grades.read(json.loads(kept.to_json())) == kept
    assert "| 0.050 [0.000, 0.100] |" in "\n".join(page(kept))


def test_a_record_without_curves_is_shown_without_them() -> None:
    result = Grades((graded("taylor", 0.8, (0.3, 0.2, 0.4), None),), "taylor", 39, 100, "some data")
    old = json.loads(grades.Recorded(result, "2026-01-01", "0.2.0", "headviz grade").to_json())
    del old["grades"]["scores"][0]["curve"]
    opened = grades.read(old).grades
    assert opened[0] == replace(result[0], curve=())
    assert "grades_curves" not in [part.key for part in view(opened).parts]


@pytest.mark.slow
def test_an_interrupted_grading_goes_on_with_what_it_kept(
    clf: headviz.Classifier, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = data.subset(range(50))

    def graded_by(scores: list[str], some: Dataset, cache: Store | bool) -> Grades:
        return grade(clf, some, scores, splits=1, cache=cache)

    graded_by(["magnitude"], few, Store(tmp_path))
    asked: list[str] = []
    tables = grading._tables
    monkeypatch.setattr(
        grading, "_tables", lambda c, h, name, *more: (asked.append(name), tables(c, h, name, *more))[1]
    )
    again = graded_by(["magnitude", "fisher"], few, Store(tmp_path))
    assert asked == ["fisher"]
    graded_by(["magnitude"], few.subset(range(49)), Store(tmp_path))
    assert asked == ["fisher", "magnitude", "random"]  # other examples
    graded_by(["magnitude"], few, False)
    assert asked[3:] == ["magnitude", "random"]

    def without_time(found: Grades) -> list[Grade]:
        return [replace(g, seconds=0.0) for g in found.scores]

    assert without_time(again) == without_time(graded_by(["magnitude", "fisher"], few, False))


@pytest.mark.slow
def test_shapley_values_that_were_kept_are_compared_as_well(
    clf: headviz.Classifier, data: Dataset, tmp_path: Path
) -> None:
    """They were compared only with what was measured after them in the same call."""
    few = data.subset(range(40))
    whole = grade(clf, few, ["magnitude", "shapley"], splits=1, cache=Store(tmp_path))
    again = grade(clf, few, ["magnitude", "shapley", "random"], splits=1, cache=Store(tmp_path))
    before, after = ([g.shapley for g in one.scores if g.score == "magnitude"] for one in (whole, again))
    assert after == before
    assert all(g.shapley is not None for g in again)

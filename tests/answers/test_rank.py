"""A ranking: metrics with ties, queries that stay whole, its files, and what cannot be."""

from __future__ import annotations

import json
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import headviz
from headviz.analyses.grading import halves_of
from headviz.answers.rank import RANK
from headviz.errors import TaskError
from headviz.evaluation import mask_evaluator
from headviz.tasks import Dataset
from support.command import call
from support.tiny import WORDS, tiny_folder, tiny_model, tiny_tokenizer

QUERIES = [f"{a} {b}" for a in ("dog", "cat", "man") for b in ("sleeps", "runs", "eats in the house", "sees no bird")]


def folder(place: Path, passages: int = 5) -> Path:
    """Rows of a query, a passage and a relevance, every passage of a query apart from the others."""
    rng = np.random.default_rng(0)
    place.mkdir(parents=True)
    for split in ("train", "dev"):
        rows = [
            (query, " ".join(rng.choice(WORDS, 6)), str(int(k == i % passages)))
            for k in range(passages)
            for i, query in enumerate(QUERIES)
        ]
        (place / f"{split}.tsv").write_text("\n".join("\t".join(r) for r in [("query", "passage", "relevance"), *rows]))
    return place


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return headviz.load_task("custom", data=folder(tmp_path_factory.mktemp("rank") / "d"))


def over_orders(scores: np.ndarray, relevance: np.ndarray, of: Any) -> float:
    """The mean over all orders that the scores allow."""
    orders = (list(p) for p in permutations(range(len(scores))))
    return float(np.mean([of(relevance[p]) for p in orders if (np.diff(scores[p]) <= 0).all()]))


def reciprocal(relevance: np.ndarray) -> float:
    return 1 / (1 + int(np.argmax(relevance > 0)))


def precision(relevance: np.ndarray) -> float:
    hit = relevance > 0
    return float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].mean())


def test_metrics_are_means_over_the_orders_that_ties_allow() -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        n = int(rng.integers(2, 7))
        relevance, scores = rng.integers(0, 3, n).astype(float), rng.integers(0, 3, n).astype(float)
        relevance[0] = max(1, relevance[0])
        gold = np.stack([relevance, np.zeros(n)], axis=1)
        result = {name: metric.of(scores, gold) for name, metric in RANK.metrics.items()}
        assert result["ndcg@10"] == pytest.approx(ndcg_score([relevance], [scores], k=10))
        assert result["mrr@10"] == pytest.approx(over_orders(scores, relevance, reciprocal))
        assert result["map"] == pytest.approx(over_orders(scores, relevance, precision))


def test_only_ten_places_count_and_one_answer_for_all_is_a_random_order() -> None:
    relevance, scores = np.zeros(30), -np.arange(30.0)
    relevance[[12, 20]] = 1, 2
    gold = np.stack([relevance, np.zeros(30)], axis=1)
    assert RANK.metrics["mrr@10"].of(scores, gold) == 0
    assert RANK.metrics["ndcg@10"].of(scores, gold) == ndcg_score([relevance], [scores], k=10) == 0
    assert RANK.metrics["ndcg@10"].constant(gold) == pytest.approx(ndcg_score([relevance], [np.ones(30)], k=10))
    rng = np.random.default_rng(0)
    drawn = [RANK.metrics["mrr@10"].of(rng.random(30), gold) for _ in range(1000)]
    assert RANK.metrics["mrr@10"].constant(gold) == pytest.approx(np.mean(drawn), abs=0.03)


def test_a_query_without_a_relevant_passage_counts_nowhere(tmp_path: Path) -> None:
    gold = np.array([[1, 0], [0, 0], [0, 1], [0, 1]], dtype=float)
    known = RANK.answers(gold, np.array([2.0, 1, 2, 1]), ())
    assert (known.units, known.measure(known.full, "map")) == (1, 1)
    place = folder(tmp_path / "d")
    (place / "dev.tsv").write_text("query\tpassage\trelevance\na\tb\t1\na\tc\t0\nd\tb\t0\nd\tc\t0\ne\tb\t1\n")
    read = headviz.load_task("custom", data=place)
    assert any("1 of 3 queries have no relevant passage" in note for note in read.notes)
    assert any("1 of 3 queries have passages of one relevance" in note for note in read.notes)
    none = gold * [0, 1]
    assert RANK.metrics["map"].undefined(none[:, 0], none) == "no query has a relevant passage"
    assert RANK.metrics["map"].undefined(np.full(4, np.nan), gold) == "a score is not a finite number"


def test_a_negative_relevance_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("query\tpassage\trelevance\na\tb\t-1\n")
    with pytest.raises(TaskError, match="line 2: the relevance in column 'relevance' is negative"):
        headviz.load_task("custom", data=tmp_path)


def test_queries_stay_whole(data: Dataset) -> None:
    assert (data.job, data.task.metrics, len(data)) == ("rank", RANK.usual, 60)
    whole = dict.fromkeys(QUERIES, 5)
    parts = [*halves_of(data), headviz.sample(data, 20, length_filter="none")]
    for part in parts:
        assert {text: part.texts.count(text) for text in part.texts}.items() <= whole.items()
    assert [len(part.texts) for part in parts] == [30, 30, 20]
    turned = data.subset(range(len(data))[::-1])
    assert set(headviz.sample(turned, 20, length_filter="none").texts) == set(parts[2].texts)
    order = [data.texts[i] for i in mask_evaluator.stratified_order(data)]
    assert len([1 for a, b in pairwise(order) if a != b]) == len(QUERIES) - 1


@pytest.mark.slow
@pytest.mark.parametrize("score", ["conductance-spearman", "fisher", "ablation-loss"])
def test_the_unit_of_a_scores_standard_error_is_the_query(data: Dataset, score: str) -> None:
    """A query whose passages come three times over tells no more than one whose passages come once."""
    clf = headviz.wrap(tiny_model(labels=("value",)), tiny_tokenizer(), "tiny", job="rank")
    tripled = data.subset(np.tile(np.arange(len(data)), 3))
    one, three = (headviz.score_heads(clf, each, score, cache=False) for each in (data, tripled))
    times = 3 if score == "fisher" else 1  # a sum over the examples
    np.testing.assert_allclose(three.stderr, times * one.stderr, rtol=1e-3, atol=1e-7)


@pytest.mark.slow
def test_the_cost_of_a_head_in_the_metric_is_a_mean_over_queries(data: Dataset) -> None:
    clf = headviz.wrap(tiny_model(labels=("value",)), tiny_tokenizer(), "tiny", job="rank")
    costs = headviz.score_heads(clf, data, "ablation", cache=False)
    full, without = (headviz.evaluate(clf, data, m).predictions for m in (None, clf.full_mask.without([(1, 2)])))
    answers = RANK.answers(data.gold, full, ())
    lost = answers.each(full, "ndcg@10") - answers.each(without, "ndcg@10")
    assert costs.values[1, 2] == pytest.approx(lost.mean())
    assert costs.stderr[1, 2] == pytest.approx(lost.std(ddof=1) / np.sqrt(len(QUERIES)))


@pytest.mark.slow
def test_analyses_test_queries(data: Dataset) -> None:
    """As above: what two heads do together, what a head looks at, and what two heads cost beyond the sum."""
    from headviz.extras.analyses.redundant import excess

    clf = headviz.wrap(tiny_model(labels=("value",)), tiny_tokenizer(), "tiny", job="rank")
    tripled = data.subset(np.tile(np.arange(len(data)), 3))
    widths, q_values = [], []
    for each in (data, tripled):
        result = headviz.interactions(headviz.Evaluator(clf, each), samples=15, seconds=60)
        widths.append({(p.first, p.second): p.high - p.low for p in result.pairs})
        q_values.append(headviz.roles(clf, each, samples=1000).q)
    assert widths[1] == pytest.approx(widths[0], rel=1e-3, abs=1e-7)
    np.testing.assert_allclose(q_values[1], q_values[0], rtol=1e-3)
    same = np.stack([np.tile([1.0, 0, 0, 0], 9), np.repeat(np.arange(9), 4)], axis=1)
    right, wrong = np.tile([3.0, 1, 2, 0], 9), np.tile([0.0, 1, 2, 3], 9)
    result = excess(RANK.answers(same, right, ()), right, right, wrong, "ndcg@10")  # each query loses as much
    assert result.value > 0.5
    assert np.isnan(result.low)  # nothing differs between the queries


def test_a_limit_draws_queries(tmp_path: Path) -> None:
    result = headviz.load_task("custom", data=folder(tmp_path / "d"), limit=17)
    assert len(result) == 15
    assert len(set(result.texts)) == 3
    assert result.slice_name == "query length"


def test_the_files_of_a_retrieval_benchmark(tmp_path: Path) -> None:
    texts = [{"_id": f"p{i}", "title": "" if i else "birds", "text": f"passage {i}"} for i in range(40)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, texts)))
    queries = [{"_id": f"q{i}", "text": f"query {i}"} for i in range(3)]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tp0\t1\nq0\tp3\t2\nq2\tp5\t1\n")
    result = headviz.load_task("custom", data=tmp_path)
    assert (result.job, len(result), set(result.texts)) == ("rank", 40, {"query 0", "query 2"})
    assert result[0] == ("query 0", "birds passage 0", 1.0, None)
    assert result.digest == headviz.load_task("custom", data=tmp_path).digest
    assert any("37 passages that nobody judged" in note for note in result.notes)
    assert "1 of 3 queries have no passage in qrels.tsv and are left out" in result.notes
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq9\tp0\t1\n")
    with pytest.raises(headviz.UserError, match="line 2: 'q9' is no _id"):
        headviz.load_task("custom", data=tmp_path)


@pytest.mark.slow
def test_one_output_is_a_ranking_where_sentence_transformers_or_the_user_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: Dataset
) -> None:
    plain = tiny_folder(tmp_path / "a", labels=("value",))
    cross = tiny_folder(tmp_path / "b", labels=("value",), sentence_transformers={"version": "5.0.0"})
    assert [headviz.load(f).job for f in (plain, cross)] == ["number", "rank"]
    assert [headviz.load(f, job=j).job for f, j in ((plain, "rank"), (cross, "number"))] == ["rank", "number"]
    headviz.load(cross, job="number").save(tmp_path / "c")
    headviz.load(plain, job="rank").save(tmp_path / "d")
    assert [headviz.load(tmp_path / f).job for f in "cd"] == ["number", "rank"]
    result = call(capsys, "info", "--model", plain)
    assert (result["job"], "job='rank'" in result["choice"]) == ("number", True)
    assert call(capsys, "info", "--model", plain, "--job", "rank")["choice"] == ""
    with pytest.raises(headviz.UserError, match="job='rank'"):
        headviz.evaluate(headviz.load(plain), data)
    with pytest.raises(headviz.UserError, match="its job can be"):
        headviz.load(tiny_folder(tmp_path / "e"), job="rank")


def test_paired_takes_relevances_scores_and_the_query_of_each(data: Dataset) -> None:
    rng = np.random.default_rng(0)
    before, after = rng.random((2, len(data)))
    result = headviz.paired(data.labels, before, after, "ndcg@10", groups=data.texts)
    assert result.n == len(QUERIES)
    assert result.low <= result.difference <= result.high
    assert result.difference == pytest.approx(
        RANK.metrics["ndcg@10"].of(after, data.gold) - RANK.metrics["ndcg@10"].of(before, data.gold)
    )
    for wrong, why in (({}, "groups="), ({"groups": data.texts[:4]}, "groups=")):
        with pytest.raises(headviz.UserError, match=why):
            headviz.paired(data.labels, before, after, "ndcg@10", **wrong)
    with pytest.raises(headviz.UserError, match="No query has a relevant passage"):
        headviz.paired(np.zeros(60), before, after, "ndcg@10", groups=data.texts)


def test_without_heads_the_order_is_random(data: Dataset) -> None:
    clf = headviz.wrap(tiny_model(labels=("value",)), tiny_tokenizer(), "tiny", job="rank")
    result = headviz.evaluate(clf, data, clf.full_mask.without(clf.full_mask.kept))
    assert result.metrics == pytest.approx(result.constant)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "queries"), [(0.02, 200), (0.3, 30)])
def test_intervals_hold_the_difference(share: float, queries: int) -> None:
    """Of queries from a population with few and many changes, and of uneven sizes; the truth is that of 20,000."""
    rng = np.random.default_rng(1)

    def draw(n: int) -> list[np.ndarray]:
        sizes = rng.integers(2, 20, n)
        of = np.repeat(np.arange(n), sizes)
        relevance = np.zeros(len(of))
        relevance[np.r_[0, np.cumsum(sizes)[:-1]] + rng.integers(0, sizes)] = 1
        full = 2 * relevance + rng.normal(size=len(of))
        changed = (rng.random(n) < share)[of]
        return [np.stack([relevance, of], axis=1), full, np.where(changed, rng.normal(size=len(of)), full)]

    gold, full, masked = draw(20_000)
    known = RANK.answers(gold, full, ())
    truth = {name: known.measure(masked, name) - known.measure(full, name) for name in RANK.usual}
    held = dict.fromkeys(RANK.usual, 0)
    for _ in range(100):
        gold, full, masked = draw(queries)
        known = RANK.answers(gold, full, ())
        for name in RANK.usual:
            low, high, _ = known.uncertainty(masked, name, None, 0.95)
            held[name] += low <= truth[name] <= high
    assert min(held.values()) / 100 >= 0.92


def test_two_queries_have_no_interval() -> None:
    gold = np.array([[1, 0], [0, 0], [0, 1], [1, 1]], dtype=float)
    (delta,) = RANK.answers(gold, gold[:, 0], ()).deltas([-gold[:, 0]], "map")
    assert delta.n == 2
    assert np.isnan([delta.interval_low, delta.interval_high]).all()

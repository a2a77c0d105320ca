"""Several labels of a text: data, metrics, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

import headviz
from headviz.answers import ANSWERS
from headviz.answers.comparison import sums_interval
from headviz.answers.labels import LABELS
from headviz.display.sentences import change_of
from headviz.evaluation.verdict import TOO_FEW
from support.command import call
from support.tiny import tiny_classifier, tiny_folder

NAMES = ("red", "cold", "wet")
ROWS = [("a dog sleeps", "1", "0", "1"), ("the cat runs", "0", "0", "0"), ("no man eats", "1", "1", "0")] * 8


def folder(place: Path, one_column: bool = False) -> Path:
    place.mkdir()
    for split in ("train", "dev"):
        lines = ["text\tred\tcold\twet"] + ["\t".join(row) for row in ROWS]
        if one_column:
            named = ["|".join(n for n, yes in zip(NAMES, row[1:], strict=True) if yes == "1") for row in ROWS]
            lines = ["text\tlabel"] + [f"{row[0]}\t{cell}" for row, cell in zip(ROWS, named, strict=True)]
        (place / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return place


def test_columns_of_zero_and_one_or_one_column_of_names(tmp_path: Path) -> None:
    wide = headviz.load_task("custom", data=folder(tmp_path / "a"), text_columns="text", label_column=NAMES)
    assert (wide.job, wide.label_names, wide.task.metrics) == ("labels", NAMES, LABELS.usual)
    assert wide.labels is not None
    assert wide.labels[:3].tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert [e.label for e in wide][:3] == ["red, wet", "none of them", "red, cold"]
    place = folder(tmp_path / "b", one_column=True)
    narrow = headviz.load_task("custom", data=place, text_columns="text", label_column="label", job="labels")
    assert narrow.label_names == ("cold", "red", "wet")
    assert narrow.labels is not None
    np.testing.assert_array_equal(narrow.labels[:, [1, 0, 2]], wide.labels)
    assert wide.class_counts() == {"red": 16, "cold": 8, "wet": 8, "none of them": 8}


def test_mistakes_in_the_data_are_named(tmp_path: Path) -> None:
    place = folder(tmp_path / "a")
    (place / "dev.tsv").write_text("text\tred\tcold\na dog\t2\t1\n")
    with pytest.raises(headviz.UserError, match="'2'; a column for one of several labels holds 0 or 1"):
        headviz.load_task("custom", data=place, text_columns="text", label_column="red,cold")
    with pytest.raises(headviz.UserError, match="not 'class'"):
        headviz.load_task("custom", data=place, text_columns="text", label_column="red,cold", job="class")
    (place / "dev.tsv").write_text("text\tred\tcold\na dog\t0\t1\n")
    notes = headviz.load_task("custom", data=place, text_columns="text", label_column="red,cold").notes
    assert "no row of dev.tsv has the label red" in notes


def test_a_label_is_predicted_above_its_own_threshold(tmp_path: Path) -> None:
    """In the task's order, which is not the model's; by every way to evaluate, and in caches of their own."""
    place = folder(tmp_path / "a")
    model = tiny_folder(tmp_path / "m", labels=("wet", "red", "cold"))
    clf = headviz.load(model, device="cpu", job="labels")
    source = {"data": place, "text_columns": "text", "label_column": NAMES}
    usual, own = (headviz.load_task("custom", **source, **how) for how in ({}, {"thresholds": (0.3, 0.4, 0.45)}))
    result = headviz.evaluate(clf, own)
    shares = result.probabilities[:, [1, 2, 0]]  # red, cold, wet
    expected = (shares > [0.3, 0.4, 0.45]).astype(int)
    assert not np.array_equal(expected, shares > 0.5)
    np.testing.assert_array_equal(headviz.Evaluator(clf, own).predictions(), expected)
    np.testing.assert_array_equal(result.predictions[:, [1, 2, 0]], expected)
    assert result.metrics["micro_f1"] == pytest.approx(
        f1_score(own.gold, expected, average="micro", zero_division=np.nan), nan_ok=True
    )
    assert "predicted where the probability is above 0.3 (red), 0.4 (cold), 0.45 (wet)" in own.notes
    assert own != usual
    for wrong in ((0.4, 0.6), (0.4, 0.6, 1.0), 0, "much"):
        with pytest.raises(headviz.UserError, match="between 0 and 1"):
            headviz.load_task("custom", **source, thresholds=wrong)
    with pytest.raises(headviz.UserError, match="of several labels, not of the job 'class'"):
        headviz.load_task("demo", thresholds=0.3)


def test_metrics_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    gold, predicted = rng.integers(0, 2, (2, 50, 4))
    for name, average in (("micro_f1", "micro"), ("macro_f1", "macro")):
        assert LABELS.metrics[name].of(predicted, gold) == pytest.approx(f1_score(gold, predicted, average=average))
    assert LABELS.metrics["exact_match"].of(predicted, gold) == pytest.approx((gold == predicted).all(axis=1).mean())
    best = max(
        f1_score(gold, np.tile([(k >> j) & 1 for j in range(4)], (50, 1)), average="micro") for k in range(1, 16)
    )
    assert LABELS.metrics["micro_f1"].constant(gold) == pytest.approx(best)


def test_each_label_is_a_slice_of_data_without_slices() -> None:
    rng = np.random.default_rng(0)
    gold, full, masked = rng.integers(0, 2, (3, 60, 3))
    gold[:, 2] = 0  # no example has it
    answers = LABELS.answers(gold, full, NAMES)
    slices = answers.compare(masked, LABELS.usual).slices
    assert [part.name for part in slices] == ["red", "cold"]
    for j, part in enumerate(slices):
        assert (part.full, part.masked) == tuple(f1_score(gold[:, j], table[:, j]) for table in (full, masked))
    assert [d.name for d in answers.compare(masked, LABELS.usual, ["a", "b"] * 30).slices] == ["a", "b"]


def test_the_accuracy_of_each_label_is_exact_and_their_mean_is_a_metric() -> None:
    rng = np.random.default_rng(0)
    gold, full, masked = rng.integers(0, 2, (3, 60, 3))
    compared = LABELS.answers(gold, full, NAMES).compare(masked, ("label_accuracy",))
    shares = [(table == gold).mean() for table in (full, masked)]
    assert [compared.primary.full, compared.primary.masked] == pytest.approx(shares)
    for j, part in enumerate(compared.slices):
        expected = headviz.paired(gold[:, j], full[:, j], masked[:, j])
        assert (part.delta, part.interval_low, part.p_value) == (expected.difference, expected.low, expected.p)
    same = np.tile((gold.mean(axis=0) > 0.5).astype(int), (60, 1))
    assert compared.primary.constant == pytest.approx((same == gold).mean())


def test_a_label_that_only_another_split_has_does_not_stop_an_evaluation(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("text\tlabel\na dog\tred|cold\na cat\twet\na man runs\tcold\n")
    (tmp_path / "train.tsv").write_text("text\tlabel\na dog\tred|hot\na cat\twet\n")
    tiny_folder(tmp_path / "m", labels=NAMES, problem_type="multi_label_classification")
    clf, columns = headviz.load(tmp_path / "m"), {"text_columns": "text", "label_column": "label", "job": "labels"}
    data = headviz.load_task("custom", data=tmp_path, **columns)
    assert data.label_names == ("cold", "hot", "red", "wet")
    known = headviz.load_task("custom", data=tmp_path / "dev.tsv", **columns)
    both = [headviz.evaluate(clf, one) for one in (data, known)]
    for name in ("micro_f1", "macro_f1", "exact_match"):
        assert both[0].metrics[name] == both[1].metrics[name]
    np.testing.assert_array_equal(both[0].gold, both[1].gold)  # in the model's own terms
    with pytest.raises(headviz.UserError, match="hot"):
        headviz.evaluate(clf, headviz.load_task("custom", split="train", data=tmp_path, **columns))


def test_model_and_data_must_be_of_one_job(tmp_path: Path) -> None:
    data = headviz.load_task("custom", data=folder(tmp_path / "a"), text_columns="text", label_column=NAMES)
    with pytest.raises(headviz.UserError, match="job='labels'"):
        headviz.evaluate(tiny_classifier(labels=NAMES), data)
    clf = headviz.load(tiny_folder(tmp_path / "m", labels=NAMES), job="labels")
    assert headviz.evaluate(clf, data).n == 24
    assert headviz.conductance(clf, "a dog", target="gold", label="cold", cache=False).target_label == "cold"
    assert [LABELS.target(clf, "gold", row) for row in ([0, 1, 1], [0, 0, 0])] == [1, None]
    with pytest.raises(headviz.UserError, match="yes or no"):
        headviz.evaluate(clf, headviz.load_task("demo", limit=5))


@pytest.mark.parametrize(("metric", "share"), [("micro_f1", 0.02), ("macro_f1", 0.2)])
def test_intervals_hold_the_difference(metric: str, share: float) -> None:
    """Of 100 examples from a population with few and many changes; the truth is that of 20,000."""
    rng = np.random.default_rng(1)

    def draw(n: int) -> list[np.ndarray]:
        gold = (rng.random((n, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(int)
        full = np.where(rng.random((n, 4)) < 0.15, 1 - gold, gold)
        return [gold, full, np.where(rng.random((n, 1)) < share, 1 - full, full)]

    gold, full, masked = draw(20_000)
    of = LABELS.metrics[metric].of
    truth, held = of(masked, gold) - of(full, gold), 0
    for _ in range(200):
        gold, full, masked = draw(100)
        low, high, _ = LABELS.answers(gold, full, NAMES).uncertainty(masked, metric, None, 0.95)
        held += low <= truth <= high
    assert held / 200 >= 0.93


@pytest.mark.slow
def test_commands_and_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_folder(tmp_path / "m", labels=NAMES, problem_type="multi_label_classification")
    data = folder(tmp_path / "a")
    source = ["--model", model, "--task", "custom", "--data", data, "--text-columns", "text"]
    labels = [*source, "--label-column", "red,cold,wet"]
    result = call(capsys, "evaluate", *labels, "--off", "0.1")
    assert set(result["metrics"]) == set(LABELS.usual)
    run = call(capsys, "run", "start", *labels, "--algorithm", "one-importance", "--score", "taylor", "--step", "0.5",
               "--until", "0.5", "--thresholds", "0.3", "--wait")  # fmt: skip
    assert run["state"] == "done"
    assert run["spec"]["thresholds"] == [0.3]
    assert set(run["steps"][-1]["metrics"]) == set(LABELS.usual)


def test_the_loss_of_a_student_that_answers_as_its_teacher_has_no_slope() -> None:
    for answer in ANSWERS.values():
        if answer.explains:
            shape = {"number": (5, 1), "relevance": (5, 1), "tokens": (5, 4, 3), "span": (5, 7, 2)}
            theirs = torch.randn(shape.get(answer.columns, (5, 3)))
            ours = theirs.clone().requires_grad_(True)
            answer.imitated(ours, theirs, 2.0).backward()
            assert ours.grad is not None
            torch.testing.assert_close(ours.grad, torch.zeros_like(theirs), atol=1e-6, rtol=0)


def test_no_interval_is_given_where_nothing_shows_how_far_the_metric_may_move() -> None:
    def of(total: np.ndarray) -> np.ndarray:
        return 2 * total[..., 0] / (total[..., 1] + total[..., 2])

    alike = np.tile([1, 2, 1], (40, 1))  # each example would get the answer that it has
    for full, wrong in ((alike, alike), (alike[:2], alike[:2] * [0, 1, 1])):  # or there are two
        assert np.isnan(sums_interval(of, full, full, wrong, 0.95)).all()
    gold = np.array([[1, 0], [1, 0], [1, 0], [1, 1]])
    same = np.tile([1, 0], (4, 1))
    assert np.isnan(headviz.paired(gold, same, same, "micro_f1").low)
    assert TOO_FEW in change_of(LABELS.answers(gold, same, ("a", "b")).deltas([same], "micro_f1")[0])

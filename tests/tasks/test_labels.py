"""A model's classes are matched to a task's by name, or the user is asked. Nothing is guessed."""

import dataclasses
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import headviz
from headviz.answers.number import NUMBER
from headviz.answers.one_class import ONE_CLASS, OTHER
from headviz.errors import TaskError
from headviz.tasks import TASKS, Dataset, label_map
from support.tiny import tiny_model, tiny_tokenizer


def _data(name: str, label_names: tuple[str, ...] | None = None) -> Dataset:
    task = TASKS[name]
    if label_names is not None:
        task = dataclasses.replace(task, label_names=label_names)
    return Dataset(task, "dev", ("a", "b"), None, [0.5, 1.5] if task.job == "number" else [0, 1])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_every_order_of_names_is_found(order: tuple[int, ...]) -> None:
    data = _data("mnli")
    model = [data.label_names[i] for i in order]
    result = label_map(model, data)
    assert [model[i] for i in result] == list(data.label_names)
    assert result.dtype == np.int64


@pytest.mark.parametrize(
    ("task", "model", "found"),
    [
        ("mnli", ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [2, 1, 0]),
        ("mnli", ["contradictory", "neutral", "entails"], [2, 1, 0]),
        ("rte", ["Not-Entailment", "Entailment"], [1, 0]),
        ("qnli", ["not entailment", "entailment"], [1, 0]),
        ("qnli", ["entailment", "non_entailment"], [0, 1]),
        ("sst2", ["POS", "NEG"], [1, 0]),
        ("imdb", ["NEGATIVE", "POSITIVE"], [0, 1]),
        ("cola", ["acceptable", "unacceptable"], [1, 0]),
        ("qqp", ["duplicate", "not_duplicate"], [1, 0]),
        ("mrpc", ["paraphrase", "not_paraphrase"], [1, 0]),
        ("rte", ["entailment", "neutral", "not_entailment"], [0, 2]),  # a class more than the task has
    ],
)
def test_spellings(task: str, model: list[str], found: list[int]) -> None:
    assert label_map(model, _data(task)).tolist() == found


@pytest.mark.parametrize(("task", "pattern"), [("mnli", "LABEL_{}"), ("sst2", "{}"), ("demo", "label{}")])
def test_bare_numbers_are_not_taken_for_the_tasks_order(task: str, pattern: str) -> None:
    data = _data(task)
    model = [pattern.format(i) for i in range(len(data.label_names))]
    remedy = f"(--label-order, label_order=), for instance {','.join(data.label_names)}."
    with pytest.raises(TaskError, match="does not say which") as caught:
        label_map(model, data)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_users_order_settles_it() -> None:
    data = _data("mnli")
    generic = ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert label_map(generic, data, "contradiction,entailment,neutral").tolist() == [1, 2, 0]
    assert label_map(generic, data, ("neutral", "entailment", "contradiction")).tolist() == [1, 0, 2]
    assert label_map(generic, data, " Contradiction , ENTAILMENT , neutral ").tolist() == [1, 2, 0]
    # even against names that the config claims
    assert label_map(["neutral", "entailment", "contradiction"], data, ",".join(data.label_names)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "order", ["entailment,neutral", "entailment,neutral,neutral", "entailment,neutral,foo", "-,-,-", "", "a,b,c,d"]
)
def test_a_wrong_order_is_refused_with_the_classes(order: str) -> None:
    with pytest.raises(TaskError, match="label order"):
        label_map(["LABEL_0", "LABEL_1", "LABEL_2"], _data("mnli"), order)


def test_an_order_naming_a_strange_class_is_refused() -> None:
    with pytest.raises(TaskError, match="Its classes are: entailment, not_entailment"):
        label_map(["LABEL_0", "LABEL_1", "LABEL_2"], _data("rte"), "entailment,neutral,not_entailment")


def test_labels_the_model_does_not_know() -> None:
    with pytest.raises(
        TaskError, match=r"does not know the labels entailment, neutral, contradiction.*joy, fear, calm"
    ):
        label_map(["joy", "fear", "calm"], _data("mnli"))
    with pytest.raises(TaskError, match="does not know the label neutral of"):
        label_map(["entailment", "other", "contradiction"], _data("mnli"))
    with pytest.raises(TaskError, match=r"has 3 classes .* the model only has 2 \(negative, positive\)"):
        label_map(["negative", "positive"], _data("mnli"))


def test_ambiguous_names_are_refused() -> None:
    with pytest.raises(TaskError, match="does not know"):
        label_map(["POSITIVE", "Positive", "negative"], _data("sst2"))


def test_users_numbers_fit_numbered_models() -> None:
    data = _data("custom", ("0", "1", "2"))
    assert label_map(["LABEL_2", "LABEL_0", "LABEL_1"], data).tolist() == [1, 2, 0]
    assert label_map(["0", "1", "2"], data).tolist() == [0, 1, 2]
    with pytest.raises(TaskError, match=r"--label-order.* 0,1,2"):
        label_map(["low", "mid", "high"], data)
    assert label_map(["low", "mid", "high"], data, "2,1,0").tolist() == [2, 1, 0]


def test_regression_needs_one_output_and_classes_need_more() -> None:
    data = _data("stsb")
    assert data.answer.order(SimpleNamespace(labels=["LABEL_0"], answer=NUMBER), data, None).tolist() == [0]
    with pytest.raises(TaskError, match="needs a model with one output, and this one has 2"):
        data.answer.order(SimpleNamespace(labels=["a", "b"]), data, None)
    with pytest.raises(TaskError, match="single output"):
        label_map(["LABEL_0"], _data("sst2"))


def test_predicted_undoes_the_models_order() -> None:
    mapping = np.array([2, 0])  # task class 0 is output 2, class 1 is output 0; output 1 is none of them
    logits = np.array([[0, 0, 9], [9, 0, 0], [0, 9, 0], [np.nan, 0, 9]], dtype=np.float32)
    assert ONE_CLASS.predicted(logits, mapping).tolist() == [0, 1, OTHER, OTHER]
    assert ONE_CLASS.predicted(logits[:0], mapping).shape == (0,)
    assert NUMBER.predicted(np.array([[1.5], [2.5]], dtype=np.float32), np.array([0])).tolist() == [1.5, 2.5]


def test_numbers_that_differ_by_rounding_alone_are_one() -> None:
    def answers(*numbers: float) -> list[float]:
        return NUMBER.predicted(np.array(numbers, dtype=np.float32)[:, None], np.array([0])).tolist()

    noise = answers(0.46400001, 0.46400007, 0.46399995)
    assert noise == [noise[0]] * 3
    assert len(set(answers(0.464, 0.4641, 0.463))) == 3
    assert len(set(answers(1990, 1990.5))) == 2
    assert np.isnan(answers(1.0, float("nan"))).tolist() == [False, True]
    assert answers() == []


def test_a_class_that_only_another_split_has_is_noted_and_does_not_stop_an_evaluation(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("text\tlabel\na dog\tred\na cat\tcold\na dog runs\tred\n")
    (tmp_path / "train.tsv").write_text("text\tlabel\na dog\tred\na cat\tgreen\n")
    clf = headviz.wrap(tiny_model(labels=("red", "cold", "wet")), tiny_tokenizer(), "tiny")
    data = headviz.load_task("custom", data=tmp_path)
    assert data.label_names == ("cold", "green", "red")
    assert any("green" in note and "dev.tsv" in note for note in data.notes)
    result = headviz.evaluate(clf, data)
    known = headviz.Dataset.of(list(data.texts), labels=["red", "cold", "red"])
    assert result.metrics == headviz.evaluate(clf, known).metrics
    assert np.isfinite(headviz.ablate(clf, data).values).all()
    of_shares = headviz.load_task("custom", data=tmp_path, metrics="neg_log_loss")
    assert np.isfinite(headviz.evaluate(clf, of_shares).metrics["neg_log_loss"])
    with pytest.raises(TaskError, match="green"):  # which an example has
        headviz.evaluate(clf, headviz.load_task("custom", split="train", data=tmp_path))


def test_an_answer_of_none_of_the_classes_is_never_one_that_the_model_lacks() -> None:
    order = np.array([1, -1, 0])
    assert ONE_CLASS.predicted(np.eye(3)[[0, 1, 2]], order).tolist() == [2, 0, OTHER]

"""The task table: every entry is whole, and importing it loads nothing heavy."""

from dataclasses import replace

import pytest

from headviz.errors import TaskError
from headviz.tasks import METRICS, TASKS, get_task, load_task

CONTRACT = "demo mnli mnli-mm qqp qnli mrpc sst2 cola rte wnli stsb rotten-tomatoes imdb custom".split()


@pytest.mark.parametrize("name", CONTRACT)
def test_entry_is_whole(name: str) -> None:
    task = get_task(name)
    assert task.title
    assert set(task.metrics) <= set(METRICS)
    assert task.primary_metric == task.metrics[0]
    assert {"train", "dev"} <= set(task.splits)
    assert len(set(task.label_names)) == len(task.label_names)
    assert (task.job == "number") == (name == "stsb")
    if name not in ("stsb", "custom"):
        assert len(task.label_names) in (2, 3)
    if name not in ("custom",):
        assert task.num_texts in (1, 2)
    assert bool(task.source.repo) == (name not in ("demo", "custom"))


def test_label_order_is_the_published_one() -> None:
    # the order of the integers in the files on the hub
    assert TASKS["mnli"].label_names == TASKS["mnli-mm"].label_names == ("entailment", "neutral", "contradiction")
    assert TASKS["qnli"].label_names == TASKS["rte"].label_names == ("entailment", "not_entailment")
    assert TASKS["wnli"].label_names == ("not_entailment", "entailment")  # the other way round, as published
    assert TASKS["sst2"].label_names == TASKS["imdb"].label_names == ("negative", "positive")
    assert TASKS["qqp"].label_names == ("not_duplicate", "duplicate")
    assert TASKS["mrpc"].label_names == ("not_equivalent", "equivalent")
    assert TASKS["cola"].label_names == ("unacceptable", "acceptable")


def test_unknown_task_lists_the_valid_ones() -> None:
    with pytest.raises(TaskError, match=r"Unknown task 'mnIi'\. Did you mean 'mnli'\?") as caught:
        load_task("mnIi")
    assert all(name in str(caught.value) for name in CONTRACT)


def test_glue_has_no_labelled_test_split() -> None:
    with pytest.raises(TaskError, match="GLUE keeps the labels"):
        load_task("rte", split="test")


def test_whose_files_a_task_needs_is_said_by_its_source_not_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name for name, task in TASKS.items() if task.source.own} == {"custom", "custom-translation"}
    monkeypatch.setitem(TASKS, "customers", replace(TASKS["demo"], name="customers"))
    assert len(load_task("customers", limit=4)) == 4
    with pytest.raises(TaskError, match="Give the folder with the Demo files"):
        load_task("customers", data="/nowhere/at/all")

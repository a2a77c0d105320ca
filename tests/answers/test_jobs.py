"""Every job: what a model and a data set say that they answer, and what each answer must tell."""

from pathlib import Path

import numpy as np
import pytest
import torch

import headviz
from headviz import plugins
from headviz.answers import ANSWERS
from headviz.answers.answer import EACH
from headviz.answers.metrics import METRICS
from headviz.attention import transformers
from headviz.tasks import TASKS
from support.tiny import tiny_classifier, tiny_folder, tiny_model, tiny_tokenizer


@pytest.mark.parametrize(("labels", "job"), [(("no", "yes"), "class"), (("value",), "number")])
def test_a_model_says_its_job(labels: tuple[str, ...], job: str) -> None:
    clf = tiny_classifier(labels=labels)
    assert clf.job == job
    assert clf.answer is ANSWERS[job]
    assert clf.about_answers()["job"] == job
    assert clf.about_answers()["regression"] == (job == "number")


def test_a_job_can_be_named_where_the_configuration_tells_none(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m", labels=("value",))
    assert headviz.load(folder, job="number").config.problem_type == "regression"
    assert headviz.wrap(tiny_model(), tiny_tokenizer(), job="class").job == "class"
    for job, why in (
        ("class", "1 output: its job can be rank or number"),
        ("none", "Unknown job"),
        ("word", "masked-language head"),
    ):
        with pytest.raises(headviz.UserError, match=why):
            headviz.load(folder, job=job)


@pytest.mark.parametrize("job", [j for j, answer in ANSWERS.items() if answer.explains and j != "span"])
def test_what_is_explained_is_one_number_for_each_row(job: str) -> None:
    answer, words = ANSWERS[job], 2 if ANSWERS[job].read_at == EACH else 1
    rows = torch.randn(4, words, 1 if answer.columns == "number" else 3)
    logits = rows if words > 1 else rows[:, 0]
    result = answer.explained(logits, answer.chosen(logits, answer.target_table([None, 0, 0, None])))
    assert result.numel() == 4
    assert result[1].item() == pytest.approx(rows[1, :, 0].mean().item())
    assert result[0].item() == pytest.approx(rows[0].max(dim=-1).values.mean().item())


def test_every_job_is_whole() -> None:
    for job, answer in ANSWERS.items():
        assert answer.job == job
        assert hasattr(transformers, answer.auto_class)
        assert set(answer.usual) <= set(answer.metrics) <= set(METRICS)
        assert all(callable(plugins.function(place)) for place in answer.own.values())


def test_every_task_has_a_job_and_metrics_of_it() -> None:
    for task in TASKS.values():
        assert set(task.metrics) <= set(task.answer.metrics)


@pytest.mark.parametrize("job", ["class", "number"])
def test_the_loss_of_rows_is_that_of_training(job: str) -> None:
    rng, answer = np.random.default_rng(0), ANSWERS[job]
    logits = rng.normal(size=(8, 3 if job == "class" else 1))
    gold = rng.integers(0, 3, 8) if job == "class" else rng.normal(size=8)
    each = answer.loss(torch.tensor(logits), answer.tensor(gold), reduction="none")
    assert answer.losses(logits, gold) == pytest.approx(each.numpy(), abs=1e-5)

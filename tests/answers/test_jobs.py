"""Every job: what a model and a data set say that they answer, and what each answer must tell."""

import numpy as np
import pytest

from headviz.answers import ANSWERS
from headviz.answers.metrics import METRICS
from headviz.attention import transformers
from headviz.tasks import TASKS
from support.tiny import tiny_classifier


@pytest.mark.parametrize(("labels", "job"), [(("no", "yes"), "class"), (("value",), "number")])
def test_a_model_says_its_job(labels: tuple[str, ...], job: str) -> None:
    clf = tiny_classifier(labels=labels)
    assert clf.job == job
    assert clf.answer is ANSWERS[job]
    assert clf.about_answers()["job"] == job
    assert clf.about_answers()["regression"] == (job == "number")


def test_every_job_is_whole() -> None:
    for job, answer in ANSWERS.items():
        assert answer.job == job
        assert hasattr(transformers, answer.auto_class)
        assert set(answer.usual) <= set(answer.metrics) <= set(METRICS)


def test_every_task_has_a_job_and_metrics_of_it() -> None:
    for task in TASKS.values():
        assert set(task.metrics) <= set(task.answer.metrics)


@pytest.mark.parametrize("job", ["class", "number"])
def test_the_loss_of_rows_is_that_of_training(job: str) -> None:
    torch = pytest.importorskip("torch")
    rng, answer = np.random.default_rng(0), ANSWERS[job]
    logits = rng.normal(size=(8, 3 if job == "class" else 1))
    gold = rng.integers(0, 3, 8) if job == "class" else rng.normal(size=8)
    each = answer.loss(torch.tensor(logits), answer.tensor(gold), reduction="none")
    assert answer.losses(logits, gold) == pytest.approx(each.numpy(), abs=1e-5)

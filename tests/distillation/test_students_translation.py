"""Students of translators: trainings that are stopped go on and end alike, in every family."""

import pytest
import torch

from headviz.extras.distillation.layer_removal import remove
from headviz.extras.distillation.plan import METHODS, TrainingOptions
from headviz.extras.distillation.posterior import MemoryIterates, Posterior, Prior
from headviz.extras.distillation.problem import RnnTranslating, Translating, without_attention
from headviz.extras.distillation.removal import Removal
from headviz.extras.distillation.students import train
from headviz.extras.translation.recurrent import RnnTranslator
from headviz.tasks import Dataset, get_task
from support.marks import all_in_ci, some_in_ci
from support.tiny_translation import SOURCES, TARGETS, TRANSLATION_NAMES, tiny_translator

FAST = TrainingOptions(steps=4, batch=4, every=2, learning_rate=1e-3)


def prepared(family):
    data = Dataset(get_task("custom-translation"), "train", tuple(SOURCES * 2), tuple(TARGETS * 2))
    if family == "recurrent":
        teacher = RnnTranslator.new(data.texts, data.references, embedding=6, hidden=8, units=4)
        problem = RnnTranslating(teacher, data, data)
        student, partition = without_attention(teacher.model)
        subject = problem.with_model(teacher, student)
    else:
        teacher = tiny_translator(family)
        problem = Translating(teacher, data, data)
        removed = remove(teacher, Removal.parse("layers:decoder.1"))
        subject, partition = removed.student, removed.partition
    mean, draw = dict(teacher.model.named_parameters()), torch.Generator().manual_seed(0)
    iterates = [{n: p + 0.02 * torch.randn(p.shape, generator=draw) for n, p in mean.items()} for _ in range(4)]
    prior = Prior(Posterior(mean, MemoryIterates(iterates)), partition)
    return problem, subject, {"prior": prior, "teacher": teacher.model}


@pytest.mark.parametrize("family", some_in_ci([*TRANSLATION_NAMES, "recurrent"], ["marian", "recurrent"], ["t5"]))
@pytest.mark.parametrize("name", all_in_ci(["copy", "variational"], ["copy"]))
def test_a_stopped_training_ends_with_the_same_weights(family, name, tmp_path):
    problem, subject, given = prepared(family)
    whole = train(subject, problem, METHODS[name], FAST, 3, **given)

    class Killed(Exception):
        pass

    def killed(step, model):
        if step == 3:
            raise Killed

    with pytest.raises(Killed):
        train(subject, problem, METHODS[name], FAST, 3, folder=tmp_path / "t", at_step=killed, **given)
    again = train(subject, problem, METHODS[name], FAST, 3, folder=tmp_path / "t", **given)
    assert again.subject.digest == whole.subject.digest
    assert [p.metrics for p in again.curve] == [p.metrics for p in whole.curve]

"""Students of every job: they learn from gold answers, and from the teacher's."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from headviz.extras.distillation.layer_removal import remove
from headviz.extras.distillation.pieces import Context
from headviz.extras.distillation.plan import METHODS, DistillationPlan, TrainingOptions
from headviz.extras.distillation.problem import Classifying
from headviz.extras.distillation.removal import Removal
from headviz.extras.distillation.students import train
from support.jobs import data_of, model_of

FAST = TrainingOptions(steps=30, batch=8, every=30, learning_rate=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["rank", "tokens", "span", "vector"])
def test_a_student_imitates_its_teacher(job: str, tmp_path: Path) -> None:
    teacher, data = model_of(job), data_of("number" if job == "vector" else job, repeat=4)
    problem = Classifying(teacher, data, data)
    result = remove(teacher, Removal.parse("layers:1"))
    index = list(range(8))

    def apart(model: torch.nn.Module) -> float:
        with torch.no_grad():
            ours, theirs = (problem.outputs(one.eval(), index)[0] for one in (model, teacher.model))
            return float(problem.rows.imitated(ours, theirs, 1.0) - problem.rows.imitated(theirs, theirs, 1.0))

    only_the_teacher = TrainingOptions.from_dict({**FAST.to_dict(), "teacher_share": 1.0})
    student = train(result.student, problem, METHODS["kd"], only_the_teacher, teacher=teacher.model)
    assert 0 < apart(student.subject.model) < 0.5 * apart(result.student.model)
    plain = train(result.student, problem, METHODS["copy"], FAST)
    assert set(plain.metrics) == set(data.task.metrics)
    assert all(value is None or math.isfinite(value) for value in plain.metrics.values())
    plan = DistillationPlan("m", "custom", "layers:1")
    context = Context(plan, tmp_path, teacher, problem, result.student, result.partition)
    json.dumps({**context.difference(), **problem.constants}, allow_nan=False)

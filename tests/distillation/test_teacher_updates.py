"""As many updates for students as the teacher had: where that is read, and what a student with fewer is told."""

import argparse
import json
from pathlib import Path

import pytest

from headviz.errors import ModelError
from headviz.extras.distillation.job import add_arguments, read_plan
from headviz.extras.distillation.pieces import teacher_updates
from support.tiny import tiny_folder


@pytest.mark.parametrize(
    ("file", "field"),
    [("training-report.json", "updates"), ("trainer_state.json", "global_step"), ("recipe.json", "steps")],
)
def test_a_folder_tells_it(tmp_path: Path, file: str, field: str) -> None:
    folder = tiny_folder(tmp_path / "model")
    assert teacher_updates(folder) is None
    (folder / file).write_text(json.dumps({field: 71, "seed": 0}))
    assert teacher_updates(folder) == 71
    (folder / file).write_text("{")
    with pytest.raises(ModelError, match="is not JSON"):
        teacher_updates(folder)
    (folder / file).write_text(json.dumps({"finetune": {}}))  # a recipe for something else
    assert teacher_updates(folder) is None


def test_the_command_takes_it_unless_another_number_is_given(tmp_path: Path) -> None:
    def steps(model: str | Path, *more: str) -> tuple[int, int]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        words = ["--model", str(model), "--task", "demo", "--remove", "layers:3", "--out", str(tmp_path / "out")]
        training = read_plan(parser.parse_args([*words, *more])).training
        return training.steps, training.every

    assert steps("demo-translation") == (1000, 166)
    assert steps("demo-translation", "--steps", "40") == (40, 50)
    assert steps("demo-translation", "--every", "20") == (1000, 20)
    assert steps(tiny_folder(tmp_path / "model")) == (300, 50)

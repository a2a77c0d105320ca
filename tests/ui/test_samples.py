"""The dashboard scores heads on the examples that ``headviz score`` draws."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

import pytest

pytest.importorskip("streamlit")

from headviz.ui.parts import scoring
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View


@pytest.mark.slow
@pytest.mark.parametrize(("model", "task"), [("demo", "demo"), ("demo-translation", "demo-translation")])
def test_the_page_and_the_command_line_draw_the_same_examples(
    model: str, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences to translate were drawn by their words on the page, and by their tokens on the command line."""
    from headviz.scores import scoring as scores

    command = importlib.import_module("headviz.commands.score")
    seen: list[Any] = []

    def score_heads(clf: Any, data: Any, *args: Any, **options: Any) -> Any:
        seen.append(data)
        raise InterruptedError

    monkeypatch.setattr(scores, "score_heads", score_heads)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    given = f"--model {model} --task {task} --split train --samples 30 --seed 5 --score taylor"
    with pytest.raises(InterruptedError):
        command.run(parser.parse_args(given.split()))
    view = View(model=model, task=task, samples=30, seed=5)
    clf = loaders.model(view)
    drawn = scoring.sample(view, clf)
    assert drawn.digest == seen[0].digest
    assert len(drawn) == 30

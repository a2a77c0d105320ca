"""The example that prunes by hand does what the run of its name does, and its command works."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import headviz
from headviz.pruning.job import run_plan
from support.pruning_plans import context, plan

EXAMPLE = Path(__file__).parents[1] / "examples" / "prune_by_hand.py"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("prune_by_hand", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_by_hand_the_masks_are_those_of_the_run(tmp_path: Path) -> None:
    given = context(tmp_path, score=None)
    chosen = plan("iterative", score="taylor", step=0.25, until=0.75)
    *_, state = run_plan(chosen, given)
    sample = given.sample(chosen, 0, chosen.samples)
    by_hand = list(example().iterative_pruning(given.clf, sample, given.dev, step=0.25, until=0.75))
    run = [record for record in state.records if record.step]
    assert [mask.hex for mask, _ in by_hand] == [record.mask for record in run]
    assert [result.metrics for _, result in by_hand] == [pytest.approx(record.metrics) for record in run]
    assert len(by_hand) == 3


@pytest.mark.slow
def test_the_command_saves_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = headviz.load_task  # all of the demo takes a minute
    monkeypatch.setattr(headviz, "load_task", lambda *words, **more: load(*words, **more, limit=24))
    example().main("demo", "demo", tmp_path / "small")
    assert " 130 heads on" in capsys.readouterr().out
    assert sum(headviz.load(tmp_path / "small").heads_per_layer) == 60

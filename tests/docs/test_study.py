"""The study's page: made from its cells alone, and saying no more than they support."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCH))
    import findings_page

    yield findings_page
    for name in ("findings_page", "findings", "study_cells", "study_plans"):
        sys.modules.pop(name, None)


def trained(seed: int) -> dict[str, Any]:
    return {"cell": f"train-minilm-mrpc-{seed}", "experiment": "training", "metrics": {"accuracy": 0.8}}


def pruned(score: str, seed: int, lead: float, width: float, predicted: int = 60) -> dict[str, Any]:
    """A cell of two steps; every order of it loses the same."""
    ahead = [
        {"sparsity": share, "mean": lead, "low": lead - width, "high": lead + width} for share in (0.3, 0.5, 0.7, 0.9)
    ]
    step = {"metrics": {"accuracy": 0.7 + lead}, "predicted": {"yes": predicted, "no": 100 - predicted}}
    return {
        "cell": f"prune-minilm-mrpc-{seed}-one-importance-{score}",
        "experiment": "E2",
        "algorithm": "one-importance",
        "score": score,
        "n": 100,
        "metric": "accuracy",
        "steps": [{**step, "sparsity": a["sparsity"], "constant": {"accuracy": 0.68}} for a in ahead],
        "ahead": ahead,
    }


def text(study: ModuleType, *found: dict[str, Any]) -> str:
    return study.page({cell["cell"]: cell for cell in found}, study.cells())


def test_the_document_is_what_its_files_say(study: ModuleType) -> None:
    assert study.TARGET.read_text(encoding="utf-8") == study.page(study.read(), study.cells())


def test_a_lead_is_told_where_every_model_has_it(study: ModuleType) -> None:
    sure = [pruned("taylor", seed, 0.1, 0.05) for seed in (0, 1)]
    said = text(study, trained(0), trained(1), *sure)
    assert "`taylor`: ahead of random with 30% off, 50% off, 70% off, 90% off." in said
    assert "| 0.800 | 0.800 | 0.800 | 0.800 |" in said
    assert "one class for all answers: 0.680" in said
    unsure = text(study, trained(0), trained(1), sure[0], pruned("taylor", 1, 0.1, 0.2))
    assert "`taylor`: not told apart from random" in unsure


def test_answers_of_one_class_are_marked(study: ModuleType) -> None:
    assert "(1 of 1 one class)" in text(study, trained(0), pruned("taylor", 0, 0.0, 0.1, predicted=99))
    assert "one class)" not in text(study, trained(0), pruned("taylor", 0, 0.0, 0.1, predicted=60))


def agreement(seed: int, change: float) -> dict[str, Any]:
    before, after = {"signed": 0.0, "absolute": 0.1}, {"signed": change, "absolute": 0.1 + change}
    return {"cell": f"agree-minilm-mrpc-{seed}", "experiment": "E1", "before": before, "after": after}


def test_no_direction_from_one_seed_or_from_seeds_that_disagree(study: ModuleType) -> None:
    assert "which is no evidence of a direction" in text(study, agreement(0, 0.3))
    assert "no direction is told apart" in text(study, agreement(0, 0.3), agreement(1, -0.2), agreement(2, 0.1))
    assert "rises" in text(study, agreement(0, 0.30), agreement(1, 0.31), agreement(2, 0.29))
    assert "falls" in text(study, agreement(0, -0.30), agreement(1, -0.31), agreement(2, -0.29))


def test_what_is_missing_is_listed(study: ModuleType) -> None:
    said = text(study, trained(0))
    assert f"{len(study.cells()) - 1} cells" in said
    assert "- `train-minilm-mrpc-0`" not in said

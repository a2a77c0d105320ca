"""The study's page: orders of heads without retraining."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from headviz import HeadMask
from study.page_seeds import same_over_scores
from study.tests.made_cells import drawn, pruned, text, trained

ROOT = Path(__file__).resolve().parents[2]


def test_a_lead_is_told_where_models_orders_and_examples_allow_it(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]
    even = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    sure = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03) for seed in range(3)]
    said = text(study, *models, *even, *sure)
    assert "`taylor`: ahead of random with 30%, 50%, 70%, 90% off." in said
    assert "| One importance, `taylor` | 0 1 2 | 0.810 | 0.810 | 0.810 | 0.810 |" in said
    assert "one class for all answers: 0.680" in said
    apart = [pruned("taylor", 0, 0.1, 0.03), pruned("taylor", 1, 0.3, 0.03), pruned("taylor", 2, 0.02, 0.03)]
    orders = [drawn(seed, 0.5, 0.7, 0.9) for seed in range(3)]
    examples = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.12) for seed in range(3)]
    for unsure in ([*even, *apart], [*orders, *sure], [*even, *examples]):
        assert "`taylor`: not significantly different from random at any step." in text(study, *models, *unsure)
    assert "of random with" not in text(study, *models, *sure)  # the random orders are not there


def test_balanced_accuracy_follows_from_the_accuracy_and_the_counts(study: ModuleType) -> None:
    from study.leads import DEV, balanced

    gold = np.array([0] * DEV["mrpc"]["equivalent"] + [1] * DEV["mrpc"]["not_equivalent"])
    answers = np.random.default_rng(0).permutation(gold) | (np.arange(408) % 5 == 0)
    counts = dict(zip(DEV["mrpc"], np.bincount(answers).tolist(), strict=True))
    step = {"metrics": {"accuracy": float((answers == gold).mean())}, "predicted": counts}
    expected = np.mean([(answers[gold == c] == c).mean() for c in (0, 1)])
    assert balanced(step, "mrpc") == pytest.approx(expected)


def test_counts_of_the_dev_splits_are_those_of_the_files(study: ModuleType) -> None:
    import headviz
    from study.leads import DEV
    from study.models import FOLDERS

    files = ROOT.parent / "shared" / "data" / "glue"
    if not files.is_dir():
        pytest.skip("the task files are not here")
    for task, counts in DEV.items():
        data = headviz.load_task(task, split="dev", data=str(files / FOLDERS.get(task, task.upper())))
        assert dict(data.class_counts()) == counts


def test_intervals_over_few_orders_hold_where_resampling_does_not(study: ModuleType) -> None:
    """Orders that differ by ten points: nominal 95 %, of one model at one step, and of three over a range."""
    from study.leads import Simulated, simulate

    for kind in (Simulated(10.0, steps=1, of_models=1), Simulated(10.0, models=5.0)):
        resampled, here, at_once = simulate(kind, runs=120)
        assert resampled < 0.92 < here <= at_once


def test_simulated_cells_say_what_the_studys_cells_say(study: ModuleType) -> None:
    from study.leads import Simulated, resampled
    from study.orders import lead

    rng, kind = np.random.default_rng(0), Simulated(5.0, steps=1, of_models=1)
    leads, _ = kind.draw(rng)
    own, others = np.ones(kind.n), 1 - leads[0, 0]
    cell = lead(own, others, np.arange(kind.n) % 2, rng)
    ((made,),) = resampled(leads, rng, times=4000)
    width = cell["high"] - cell["low"]
    assert [made[k] for k in ("mean", "low", "high")] == pytest.approx(
        [cell[k] for k in ("mean", "low", "high")], abs=width / 15
    )


def test_one_class_for_all_is_not_ahead_of_a_model_that_tells_some_apart(study: ModuleType) -> None:
    from study.orders import lead

    gold = np.array([0] * 70 + [1] * 30)
    constant = gold == 0  # accuracy .70, and .50 in the mean of the classes
    knows = np.array([True] * 42 + [False] * 28 + [True] * 24 + [False] * 6)  # accuracy .66, classes .60 and .80
    assert constant.mean() > knows.mean()
    result = lead(knows, np.stack([constant] * 3), gold, np.random.default_rng(0))
    assert result["mean"] == pytest.approx(0.2)
    assert result["low"] > 0
    even = lead(knows, np.stack([knows, constant]), gold, np.random.default_rng(0))
    assert even["mean"] == pytest.approx(0.1)


def test_what_scores_and_tasks_remove_in_common_is_counted_on_the_same_model() -> None:
    def cell(task: str, score: str, off: range) -> dict[str, Any]:
        mask = HeadMask.full(6, 12).without(divmod(i, 12) for i in off)
        step = {"sparsity": len(off) / 72, "heads_off": len(off), "mask": mask.hex}
        name = f"prune-minilm-{task}-0-one-importance-{score}"
        return {"cell": name, "algorithm": "one-importance", "score": score, "steps": [step]}

    cells = [
        cell(task, score, range(start, start + 42))
        for task in ("mrpc", "sst2", "cola")
        for score, start in (("taylor", 0), ("gates", 21), ("ablation", 30))
    ]
    page = "\n".join(same_over_scores(cells))
    assert "| `ablation` | 29 % | – | 100 % |" in page
    assert "| `gates` | 50 % | 79 % | 100 % |" in page


def test_orders_whose_ties_went_by_layer_stand_apart(study: ModuleType) -> None:
    """A mean over both kinds would have the range of one alone, and be told as if ties were drawn in all."""
    ranges = {"over_ties": {"accuracy": {"orders": 10, "low": 0.78, "high": 0.84}}, "tied": 60}
    cells = [pruned("ablation", seed, 0.1 + 0.01 * seed, 0.03) for seed in range(3)]
    cells[0]["steps"] = [{**step, **ranges} for step in cells[0]["steps"]]
    rest = [*(trained(seed) for seed in range(3)), *(drawn(seed, 0.69, 0.70, 0.71) for seed in range(3))]
    said = text(study, *rest, *cells)
    assert "| One importance, `ablation` | 0 | 0.800 (0.780 to 0.840) |" in said
    assert "| One importance, `ablation`, ties by layer | 1 2 | 0.815 |" in said
    assert "- One importance, `ablation`: " in said
    assert "ties by layer: " not in said
    assert "over the whole range" not in said
    assert "do not hold: heads that cost the same" in said  # the masks that seeds share
    for cell in cells[1:]:
        cell["steps"] = [{**step, **ranges} for step in cell["steps"]]
    said = text(study, *rest, *cells)
    assert "| One importance, `ablation` | 0 1 2 | 0.810 (0.780 to 0.840) |" in said
    assert "over the whole range" in said
    assert "do not hold: heads that cost the same" not in said

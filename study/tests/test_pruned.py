"""The study's page: orders of heads without retraining."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from study.tests.made_cells import drawn, pruned, retrained, text, trained

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
        assert "`taylor`: not told apart from random at any step." in text(study, *models, *unsure)
    assert "of random with" not in text(study, *models, *sure)  # the random orders are not there


def test_scores_are_set_against_the_thesiss_on_the_same_models(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]

    def cells(score: str, *values: float) -> list[dict[str, Any]]:
        return [{**drawn(seed, value), "cell": f"prune-minilm-mrpc-{seed}-one-importance-{score}", "score": score}
                for seed, value in enumerate(values)]  # fmt: skip

    random = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    base = cells("thesis-2024", 0.70, 0.72, 0.69)
    said = text(study, *models, *random, *base, *cells("gates", 0.80, 0.81, 0.79))
    assert "- `gates`: ahead of it with 30%, 50%, 70%, 90% off." in said
    said = text(study, *models, *random, *base, *cells("gates", 0.80, 0.60, 0.79))
    assert "- `gates`: not told apart from it at any step." in said
    other = [{**cell, "digest": "b"} for cell in cells("gates", 0.80, 0.81, 0.79)]  # trained again
    assert "Ahead of the thesis's score:" not in text(study, *models, *random, *base, *other)


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
        data = headviz.load_task(task, split="dev", data=str(files / FOLDERS[task]))
        assert dict(data.class_counts()) == counts


def test_intervals_over_few_orders_hold_where_resampling_does_not(study: ModuleType) -> None:
    """Orders that differ by ten points: nominal 95 %."""
    from study.demo_pruning import cells
    from study.leads import simulate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "RESAMPLES", 200)
        resampled, here = simulate(10.0, draws=150)
    assert resampled < 0.92 < here


def test_answers_of_one_class_are_marked(study: ModuleType) -> None:
    assert "(1 of 1 one class)" in text(study, trained(0), pruned("taylor", 0, 0.0, 0.1, predicted=404))
    assert "one class)" not in text(study, trained(0), pruned("taylor", 0, 0.0, 0.1, predicted=200))


def test_a_cell_that_was_broken_off_has_what_it_has_and_is_missing_still(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]
    even = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    sure = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03) for seed in range(3)]
    sure[1] |= {"steps": sure[1]["steps"][:2], "ahead": sure[1]["ahead"][:2], "left": 2}
    said = text(study, *models, *even, *sure)
    assert "| One importance, `taylor`, stopped at 50% off | 0 1 2 | 0.810 | 0.810 | – | – |" in said
    assert "`taylor`, stopped at 50% off: ahead of random with 30%, 50% off." in said
    assert "over the whole range" not in said
    found = {cell["cell"]: cell for cell in (*models, *even, *sure)}
    planned = [cell for cell in study.cells() if cell.name in found]
    missing = study.page(found, planned).split("## Missing")[1]
    assert "Cells: 1, some" in missing
    assert "`prune-minilm-mrpc`" in missing
    name = "prune-minilm-mrpc-1-one-importance-taylor"
    assert f"with so many left: [{name}](results/{name}.json) (2)." in missing


def test_matthews_of_one_class_counts_as_that_class(study: ModuleType) -> None:
    """Undefined values were left out, so that a network that had collapsed in one seed gained by it."""
    step = {"metrics": {"matthews": 0.3}, "constant": {"matthews": 0.0}, "predicted": {"acceptable": 1043}}
    lost = {**step, "metrics": {"matthews": None}}
    cells = [
        {**pruned("taylor", seed, 0.0, 0.1), "cell": f"prune-minilm-cola-{seed}-one-importance-taylor"}
        | {"metric": "matthews", "full": {"matthews": 0.3}}
        | {"steps": [{**one, "sparsity": s} for s in (0.3, 0.5, 0.7, 0.9)]}
        for seed, one in enumerate((step, lost))
    ]
    models = [{**trained(s), "cell": f"train-minilm-cola-{s}", "metrics": {"matthews": 0.3}} for s in (0, 1)]
    assert "| 0.150 (2 of 2 one class) |" in text(study, *models, *cells)
    again = [
        {**retrained(seed, 0.3, 0.3), "cell": f"retrain-minilm-cola-{seed}-isp-taylor", "metric": "matthews"}
        | {"full": {"matthews": 0.3}, "steps": [{**one, "sparsity": 0.3}]}
        for seed, one in enumerate((step, lost, step))
    ]
    assert "| 0.200 ± 0.173 * (3 of 3 one class) |" in text(study, *again)


def test_orders_are_compared_with_random_ones_of_the_same_weights(study: ModuleType) -> None:
    models = [{**trained(seed), "digest": f"a{seed}"} for seed in range(3)]
    own = [{**pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03), "digest": f"b{seed}"} for seed in range(3)]
    random = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    here = [{**cell, "digest": f"a{seed}"} for seed, cell in enumerate(random)]
    there = [{**cell, "digest": f"b{seed}"} for seed, cell in enumerate(random)]
    found = {c["cell"]: c for c in (*models, *own, *here)}
    assert "Ahead of 3 random orders:" not in study.page(found, study.cells())
    for cell in here + there:
        cell["steps"] = [{**s, "mask": "f", "intervals": {"accuracy": [0.6, 0.8]}} for s in cell["steps"]]
    said = study.page(found, study.cells(), {f"{c['cell']}-twin": c for c in there})
    assert "| One importance, `taylor` | 0′ 1′ 2′ | +11.0" in said


def test_over_the_range_steps_are_averaged_before_models(study: ModuleType) -> None:
    models = [trained(seed) for seed in range(3)]
    random = [drawn(seed, 0.69, 0.70, 0.71) for seed in range(3)]
    own = [pruned("taylor", seed, 0.1 + 0.01 * seed, 0.03) for seed in range(3)]
    anew = [
        {**pruned("taylor", seed, 0.13 + 0.01 * seed, 0.03), "algorithm": "iterative"}
        | {"cell": f"prune-minilm-mrpc-{seed}-iterative-taylor"}
        for seed in range(3)
    ]
    also = [{**c, "algorithm": "iterative", "cell": c["cell"].replace("one-importance", "iterative")} for c in random]
    said = text(study, *models, *random, *own, *anew, *also)
    part = said.split("over the whole range:")[1].split("\n\n")[1]
    ((mean, low, high), (again, *_), (added, *_)) = (
        [float(v.replace("−", "-")) for v in re.findall(r"[+−][\d.]+", column)]
        for column in part.splitlines()[-1].split("|")[2:5]
    )
    assert (mean, again, added) == (11.0, 14.0, 3.0)
    assert low < 11 - 2.4 < 11 + 2.4 < high  # wider than over the models alone
    assert "over the whole range:" not in text(study, *models[:2], *random[:2], *own[:2])


def test_no_order_is_judged_on_a_model_that_knows_nothing(study: ModuleType) -> None:
    said = text(study, trained(0), {**pruned("taylor", 0, 0.1, 0.05), "full": {"accuracy": 0.68}})
    assert "No model is better than one class for all" in said
    assert "ahead of random" not in said


def test_one_class_for_all_is_not_ahead_of_a_model_that_tells_some_apart(study: ModuleType) -> None:
    from study.orders import lead

    gold = np.array([0] * 70 + [1] * 30)
    constant = gold == 0  # accuracy .70, and .50 in the mean of the classes
    knows = np.array([True] * 42 + [False] * 28 + [True] * 24 + [False] * 6)  # accuracy .66, classes .60 and .80
    assert constant.mean() > knows.mean()
    found = lead(knows, np.stack([constant] * 3), gold, np.random.default_rng(0))
    assert found["mean"] == pytest.approx(0.2)
    assert found["low"] > 0
    even = lead(knows, np.stack([knows, constant]), gold, np.random.default_rng(0))
    assert even["mean"] == pytest.approx(0.1)


def test_leads_of_another_measure_are_not_shown(study: ModuleType) -> None:
    old, random = pruned("taylor", 0, 0.05, 0.01), drawn(0, 0.69, 0.7, 0.71)
    del old["ahead_in"]
    assert "ahead of random" not in text(study, trained(0), random, old)


def test_leads_over_another_number_of_orders_are_not_shown(study: ModuleType) -> None:
    ten, many = {**pruned("taylor", 0, 0.1, 0.03), "orders": 10}, [0.69 + 0.002 * at for at in range(10)]
    random = {**drawn(0, *many), "orders": 10}
    assert "Ahead of 10 random orders:" in text(study, trained(0), random, ten)
    assert not re.search(r"Ahead of \d", text(study, trained(0), random, pruned("taylor", 0, 0.1, 0.03)))

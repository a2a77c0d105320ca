"""The study's page: made from its cells alone, and saying no more than they support."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from study.tests.made_cells import pruned, text, trained


def test_every_cell_is_a_link_away(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8")
    twins = [f"twins/{name}" for name, cell in study.read(study.TWINS).items() if "steps" in cell]
    assert sorted(set(re.findall(r"\(results/([^)]*)\.json\)", page))) == sorted([*study.read(), *twins])


def test_the_document_is_what_its_files_say(study: ModuleType) -> None:
    assert study.TARGET.read_text(encoding="utf-8") == study.page(study.read(), study.cells(), study.read(study.TWINS))


def test_a_model_that_was_trained_once_more_is_marked(study: ModuleType) -> None:
    cell = {**pruned("taylor", 0, 0.1, 0.03), "digest": "b", "full": {"accuracy": 0.79}}
    assert "All heads, by seed: 0.790 (0′);" in text(study, {**trained(0), "digest": "a"}, cell)
    assert "`taylor` | 0′ |" in text(study, {**trained(0), "digest": "a"}, cell)
    assert "`taylor` | 0 |" in text(study, {**trained(0), "digest": "b"}, cell)
    third = {**pruned("gates", 0, 0.1, 0.03), "digest": "c", "full": {"accuracy": 0.77}}
    assert "All heads, by seed: 0.770 (0′), 0.790 (0′′);" in text(study, {**trained(0), "digest": "a"}, cell, third)


def heads_one_by_one(low: float | None) -> dict[str, Any]:
    layer = {"layer": 0, "head": 1, "delta": 0.0, "low": low, "high": 0.01}
    return {
        "cell": "michel-minilm-mrpc-0",
        "experiment": "M",
        "heads": 72,
        "cost": [[0.1] + [0.02] * 5, [-0.05] * 2 + [0.001] * 3 + [None], *([0.0] * 6 for _ in range(10))],
        "p_value": [[1e-6] + [0.01] * 5, [1e-5] * 2 + [0.9] * 3 + [None], *([1.0] * 6 for _ in range(10))],
        "one head is left": [layer, {**layer, "layer": 1, "low": -0.5}],
        "spared": [{"updates": 69, "spared": None}, {"updates": None, "spared": 0.3}],
    }


def test_one_head_is_enough_only_where_a_loss_is_excluded(study: ModuleType) -> None:
    assert "| 72 | 6 | 1 | 2 | 1 of 2 |" in text(study, heads_one_by_one(-0.019))
    assert "| 72 | 6 | 1 | 2 | 0 of 2 |" in text(study, heads_one_by_one(-0.021))
    assert "| 72 | 6 | 1 | 2 | 0 of 2 |" in text(study, heads_one_by_one(None))  # a metric that is undefined
    assert "| 69: – | end: 30% |" in text(study, heads_one_by_one(-0.021))


def agreement(seed: int, change: float) -> dict[str, Any]:
    before, after = {"signed": 0.0, "absolute": 0.1}, {"signed": change, "absolute": 0.1 + change}
    return {"cell": f"agree-minilm-mrpc-{seed}", "experiment": "E1", "before": before, "after": after}


def test_no_direction_from_one_seed_or_from_seeds_that_disagree(study: ModuleType) -> None:
    assert "which is no evidence of a direction" in text(study, agreement(0, 0.3))
    assert "no direction is told apart" in text(study, agreement(0, 0.3), agreement(1, -0.2), agreement(2, 0.1))
    assert "rises" in text(study, agreement(0, 0.30), agreement(1, 0.31), agreement(2, 0.29))
    assert "falls" in text(study, agreement(0, -0.30), agreement(1, -0.31), agreement(2, -0.29))


def test_heads_in_the_thesiss_band_are_counted_before_and_after(study: ModuleType) -> None:
    grids = {"before": [[0.2, 0.39, 0.4, None], [-0.3, 0.0, 0.1, 0.0]], "after": [[0.0, 0.1, 0.3, None], [0.0] * 4]}
    said = text(study, {**agreement(0, 0.1), "grids": grids})
    assert "minilm on mrpc 28.6 %, then 14.3 %. Published for fine-tuned BERT-base" in said
    assert "SST-2 4.86 %" in said


def test_what_is_missing_is_listed(study: ModuleType) -> None:
    said = text(study, trained(0))
    assert f"Cells: {len(study.cells()) - 1}, some" in said
    plan = [c for c in study.cells() if c.name.startswith("train-minilm-mrpc") or "prune-mpnet-rte-0-iter" in c.name]
    found = trained(0)
    told = study.page({found["cell"]: found}, plan).split("## Missing")[1]
    assert "| The models | minilm on mrpc | 1 2 3 4 | 4 | 0 | `train-minilm-mrpc` |" in told
    (row,) = [line for line in told.splitlines() if "`prune-mpnet-rte`" in line]
    hours = sum(c.price for c in plan if c.name.startswith("prune")) / 3600
    assert row == f"| E2: heads removed without retraining | mpnet on rte | 0 | 7 | {hours:.0f} | `prune-mpnet-rte` |"
    assert "Stopped" not in told


def test_a_cell_done_again_is_set_beside_its_first_value(study: ModuleType) -> None:
    def once(value: float, mask: str, digest: str) -> dict[str, Any]:
        cell = pruned("taylor", 0, 0.1, 0.05)
        steps = [
            {**s, "mask": mask, "metrics": {"accuracy": value}, "intervals": {"accuracy": [0.7, 0.8]}}
            for s in cell["steps"]
        ]
        return {**cell, "steps": steps, "digest": digest}

    found = {c["cell"]: c for c in (trained(0), once(0.81, "f", "b"))}
    first = once(0.75, "f", "a")
    said = study.page(found, study.cells(), {first["cell"]: first})
    assert "| other | 0.00 | 4 of 4 | 6.00 | 0 of 4 |" in said
    assert "Of 1 second computations, 0 gave the same values (0). Of the 4 values of the rest, 0 lie inside." in said
    first = once(0.79, "e", "b")
    found[first["cell"]] = once(0.8, "f", "b")
    assert "| the same | 0.00 | 0 of 4 | 1.00 | 4 of 4 |" in study.page(found, study.cells(), {first["cell"]: first})
    assert "## Done again" not in study.page(found, study.cells(), {})
    own = once(0.8, "f", "b")
    found[first["cell"]] = {**own, "steps": own["steps"][:3], "ahead": own["ahead"][:3], "left": 1}
    assert "| the same | 0.00 | 0 of 3 | 1.00 | 3 of 3 |" in study.page(found, study.cells(), {first["cell"]: first})

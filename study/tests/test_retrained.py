"""The study's page: networks that were pruned and trained."""

from __future__ import annotations

from types import ModuleType


def test_isp_reaches_the_sizes_that_the_other_algorithms_are_given(study: ModuleType) -> None:
    from headviz.pruning import PruningPlan
    from headviz.pruning.plan import listed, remaining
    from study.papers import LAST, ROUND, shares

    assert remaining(72, ROUND, LAST, last="full") == listed(72, shares("minilm")) == [22, 37, 47, 55, 60, 64]
    plan = {"model": "m", "base": "b", "task": "mrpc", "retrain_full": False}
    PruningPlan(algorithm="isp", step=ROUND, until=LAST, last_step="full", **plan)
    PruningPlan(algorithm="igspf", sparsities=shares("minilm"), **plan)

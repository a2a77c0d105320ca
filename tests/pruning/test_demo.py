"""On the shipped model: a score that knows the loss beats chance where nothing is retrained."""

import numpy as np
import pytest

from headviz.demo import DATA
from headviz.pruning import PruningPlan
from headviz.pruning.context import open_context
from headviz.pruning.job import run_plan
from headviz.statistics.significance import wilson

pytestmark = pytest.mark.skipif(
    not (DATA / "finetuned" / "model.safetensors").exists(), reason="the demo model is not packed"
)

SPARSITIES = (0.3, 0.5, 0.7)


def states(folder, score, seeds):
    plan = PruningPlan(
        model="demo",
        task="demo",
        algorithm="one-importance",
        score=score,
        sparsities=SPARSITIES,
        seeds=seeds,
        samples=500,
        dev_limit=650,
        device="cpu",
    )
    context = open_context(plan, folder)
    *_, state = run_plan(plan, context)
    return state


@pytest.mark.slow
@pytest.mark.soak
def test_taylor_beats_random_without_retraining(tmp_path):
    """Intervals do not overlap: taylor's over examples, random's over examples and draws."""
    taylor, chance = states(tmp_path / "t", "taylor", (0,)), states(tmp_path / "r", "random", tuple(range(8)))
    draw = np.random.default_rng(0)
    for step in (1, 2, 3):
        record = taylor.record(0, step)
        n = len(taylor.logits[record.logits])
        low, _ = wilson(round(record.metrics["accuracy"] * n), n)
        values = np.array([chance.record(seed, step).metrics["accuracy"] for seed in range(8)])
        # a mean over draws of masks, each known to within its examples
        means = [draw.binomial(n, draw.choice(values, 8)).mean() / n for _ in range(4000)]
        assert low > np.quantile(means, 0.975), (record.sparsity, record.metrics, values)

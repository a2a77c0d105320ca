"""The table of masked fine-tuning is what its file says, and its interval covers."""

from __future__ import annotations

import numpy as np
import pytest

from study import masked_tuning


def test_the_table_is_what_the_file_says() -> None:
    result, page = masked_tuning.read(), masked_tuning.PAGE.read_text(encoding="utf-8")
    assert page.split(masked_tuning.BEGIN)[1].split(masked_tuning.END)[0].strip() == masked_tuning.table(result)
    assert {(c["way"], c["seed"]) for c in result["cells"]} == {
        (w, s) for w in masked_tuning.WAYS for s in masked_tuning.SEEDS
    }
    for cell in result["cells"]:
        right = masked_tuning._right(cell, result["n"])
        assert len(right) == result["n"]
        assert cell["accuracy"] == pytest.approx(right.mean())


def test_an_interval_over_seeds_and_examples_covers() -> None:
    """Both drawn from many: with three seeds, whether the seeds differ or not."""
    rng, inside = np.random.default_rng(0), []
    for spread in (0.0, 0.02):
        for _ in range(300):
            seeds, examples = rng.normal(0, spread, 3)[:, None], rng.normal(0, 0.2, 200)[None, :]
            _, low, high = masked_tuning.over_seeds_and_examples(seeds + examples + rng.normal(0, 0.3, (3, 200)))
            inside.append(low <= 0 <= high)
    assert 0.93 <= np.mean(inside) <= 0.995
    assert masked_tuning.over_seeds_and_examples(np.zeros((3, 100))) == (0.0, -0.03, 0.03)

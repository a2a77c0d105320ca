"""docs/findings.md is what the cells say, and its sentences follow from their figures."""

from __future__ import annotations

import itertools
import re
from types import ModuleType

import numpy as np
import pytest

from headviz import HeadMask
from study import findings
from study.leads import lead, lead_over_range
from study.page_seeds import masks_at, shared_heads


def test_the_page_is_made_from_the_cells_and_short(study: ModuleType) -> None:
    text = findings.TARGET.read_text(encoding="utf-8")
    assert text == findings.page(study.beside(study.read(), study.read(study.TWINS)))
    assert len(text.splitlines()) <= 120


def test_headings_follow_from_the_tables_below_them() -> None:
    parts = dict(re.findall(r"^## (\d)\. (.*?)(?=^## |\Z)", findings.TARGET.read_text(encoding="utf-8"), re.M | re.S))

    def rows(part: str) -> list[list[str]]:
        lines = [line for line in parts[part].splitlines() if line.startswith("|")][2:]
        return [[cell.strip().replace("−", "-") for cell in line.strip("|").split("|")] for line in lines]

    def above_zero(cell: str) -> bool:
        return float(re.search(r"\[(\S+),", cell)[1]) > 0

    gates, _, thesis = rows("1")
    assert [above_zero(cell) for cell in gates[1:]] == [True, False, True]  # CoLA, and SST-2 by itself
    assert not any(above_zero(cell) for cell in thesis[1:])
    assert all(float(cell.rstrip(" %")) > 58 for cell in rows("2")[0])
    assert float(re.search(r"are (\S+) to \S+\s+standard deviations", parts["2"])[1]) > 3
    for _, _, before, after, size_before, size_after in rows("3"):
        assert abs(float(before)) < 0.1 < 0.35 < float(after)
        assert float(size_after) <= float(size_before)
    taylor, thesis_retrained, gates_retrained = rows("4")[0]
    assert above_zero(taylor)
    assert above_zero(thesis_retrained)
    assert not above_zero(gates_retrained)
    for _, _, metric, _, heads, _, tied, missed in rows("6"):
        assert metric != "accuracy" or int(tied) > 0.9 * int(heads)
        assert all(int(count) < 0.05 * int(heads) for count in missed.split(", "))
    (passing,) = (row[2].split(" of ") for row in rows("5"))
    assert passing[0] == passing[1]
    (_, *first), (_, level, *_) = rows("7")
    assert len(set(first)) == 3
    assert int(level.split(" of ")[0]) > 0


def test_the_range_of_one_step_is_that_step_and_examples_widen_the_range() -> None:
    draw = np.random.default_rng(0)
    means, orders = draw.normal(0.05, 0.01, (3, 4)), draw.normal(0.7, 0.03, (3, 4, 5))

    def ahead(width: float) -> list[list[dict[str, float]]]:
        return [[{"mean": m, "low": m - width, "high": m + width} for m in model] for model in means]

    one = lead([steps[0] for steps in ahead(0.1)], orders[:, 0], 400)
    assert lead_over_range([steps[:1] for steps in ahead(0.1)], orders[:, :1], 400) == pytest.approx(one)
    sure, unsure = (lead_over_range(ahead(width), orders, 400) for width in (0.0, 0.1))
    assert sure[0] == unsure[0] == pytest.approx(means.mean())
    assert unsure[1] < sure[1] < sure[2] < unsure[2]


def test_shared_heads_are_counted_in_the_masks() -> None:
    one, other = HeadMask.full(6, 12).without([(0, 0), (1, 1)]), HeadMask.full(6, 12).without([(1, 1), (2, 2)])
    cells = [{"steps": [{"sparsity": 2 / 72, "heads_off": 2, "mask": mask.hex}]} for mask in (one, other)]
    assert masks_at(cells, 0.3) == [one, other]
    assert [shared_heads(a, b) for a, b in itertools.permutations([one, other])] == [0.5, 0.5]

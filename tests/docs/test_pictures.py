"""Drawings of the documents: they are what the records say, and a plot shows what it is given."""

from __future__ import annotations

import re
from itertools import pairwise
from types import ModuleType

import pytest

from support.study import drawn, pruned, retrained, trained


def lines(svg: str) -> list[list[tuple[float, float]]]:
    """The corners of every curve."""
    found = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in one.split())] for one in found]


def test_the_studys_pictures_are_what_its_files_say(study: ModuleType) -> None:
    text, made = study.document(study.read(), study.cells(), study.read(study.TWINS))
    there = {path.stem: path.read_text(encoding="utf-8") for path in study.PAGE.glob("*.svg")}
    assert there == made
    assert sorted(re.findall(r"!\[[^]]*\]\(study/([^)]*)\.svg\)", text)) == sorted(made)
    assert len(made) > 20


def test_a_plot_has_its_values_in_place(study: ModuleType) -> None:
    from pictures import HEIGHT, WIDTH, Curve, Panel, draw

    up = Curve("gates", [0, 0.5, 1], [0.0, 0.25, 1.0], [(0.0, 0.0), (0.2, 0.4), (0.9, 1.0)], sure=[True, False, True])
    svg = draw([Panel("a < b", [up], (0, 1), [(0.5, "half & half")])], "what it shows")
    assert lines(svg) == [[(0, HEIGHT), (WIDTH / 2, 0.75 * HEIGHT), (WIDTH, 0)]]
    assert re.findall(r'<circle cx="(.*?)"', svg) == ["0.0", f"{WIDTH:.1f}"]
    assert f'y1="{HEIGHT / 2:.1f}" y2="{HEIGHT / 2:.1f}" stroke="#888" stroke-dasharray' in svg
    assert "a &lt; b" in svg
    assert "half &amp; half" in svg
    assert "<title>what it shows</title>" in svg
    assert [float(y) for y in re.findall(r"<polygon points=\"[\d.]+,[\d.]+ [\d.]+,([\d.]+)", svg)] == [0.6 * HEIGHT]


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([0.0, 1.0], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([-3.1, 2.0], [-4, -2, 0, 2]),
        ([0.51, 0.877], [0.5, 0.6, 0.7, 0.8, 0.9]),
        ([0.0, 12_300.0], [0, 2500, 5000, 7500, 10_000, 12_500]),
    ],
)
def test_steps_are_round_and_hold_the_values(study: ModuleType, values: list[float], steps: list[float]) -> None:
    from pictures import _steps

    assert _steps(values) == steps


@pytest.mark.parametrize("values", [[0.684, 0.684], [5.0, 5.0001], [-1e-5, 0.0], [0.0]])
def test_steps_hold_values_that_hardly_differ(study: ModuleType, values: list[float]) -> None:
    from pictures import _steps

    found = _steps(values)
    assert found[0] <= min(values) <= max(values) <= found[-1]
    assert all(low < high for low, high in pairwise(found))


def test_dots_stand_where_a_lead_is_told_apart(study: ModuleType) -> None:
    orders = {f"prune-minilm-mrpc-{s}-one-importance-random": drawn(s, 0.69, 0.7, 0.71) for s in range(3)}
    for lead, dots in ((0.2, 4), (-0.2, 4), (0.0, 0)):
        own = {f"prune-minilm-mrpc-{s}-one-importance-gates": pruned("gates", s, lead, 0.01) for s in range(3)}
        found = {**{f"train-minilm-mrpc-{s}": trained(s) for s in range(3)}, **orders, **own}
        _, made = study.document(found, study.cells())
        assert sorted(made) == ["prune-minilm-mrpc", "prune-minilm-mrpc-lead"]
        assert made["prune-minilm-mrpc-lead"].count("<circle") == dots
        assert made["prune-minilm-mrpc"].count("<polygon") == 1  # the random orders'
        assert len(lines(made["prune-minilm-mrpc"])) == 2


def test_no_lead_is_drawn_where_the_task_is_not_known(study: ModuleType) -> None:
    cells = [drawn(0, 0.69, 0.7, 0.71), pruned("gates", 0, 0.2, 0.01)]
    for value, names in ((0.8, ["prune-minilm-mrpc", "prune-minilm-mrpc-lead"]), (0.5, ["prune-minilm-mrpc"])):
        _, made = study.document({c["cell"]: {**c, "full": {"accuracy": value}} for c in cells}, study.cells())
        assert sorted(made) == names


def test_one_network_trained_again_has_no_spread_to_draw(study: ModuleType) -> None:
    def of(seed: int, score: str) -> dict[str, object]:
        cell = retrained(seed, 0.8, 0.75 + 0.01 * seed)
        return {**cell, "algorithm": "one-shot-isp", "score": score, "cell": f"retrain-minilm-mrpc-{seed}-{score}"}

    one = of(0, "taylor")
    assert not study.document({str(one["cell"]): one}, study.cells())[1]
    more = [of(seed, score) for seed in range(3) for score in ("random", "taylor")]
    _, made = study.document({str(c["cell"]): c for c in more}, study.cells())
    assert sorted(made) == ["retrain-minilm-mrpc", "retrain-minilm-mrpc-lead"]
    assert made["retrain-minilm-mrpc"].count("<polygon") == 2

"""Drawings of the documents: they are what the records say, and a plot shows what it is given."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from study.tests.findings import DOCS
from study.tests.made_cells import drawn, pruned, retrained, trained


def lines(svg: str) -> list[list[tuple[float, float]]]:
    """The corners of every curve."""
    found = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in one.split())] for one in found]


def test_the_studys_pictures_are_what_its_files_say(study: ModuleType) -> None:
    text, made = study.document(study.read(), study.cells(), study.read(study.TWINS))
    there = {path.stem: path.read_text(encoding="utf-8") for path in study.RESULTS.glob("*.svg")}
    assert there == made
    assert len(made) > 20
    said = {name: [unescape(t) for t in re.findall(r"<title>(.*?)</title>", svg)] for name, svg in made.items()}
    for page in (text, (DOCS / "findings.md").read_text(encoding="utf-8")):
        shown = {name: [alt] for alt, name in re.findall(r"!\[([^]]*)\]\((?:\.\./study/)?results/([^)]*)\.svg\)", page)}
        assert shown == {name: said[name] for name in shown}
        assert page != text or sorted(shown) == sorted(made)


def test_a_plot_has_its_values_in_place(study: ModuleType) -> None:
    from study.plot import HEIGHT, WIDTH, Curve, Panel, draw

    up = Curve("gates", [0, 0.5, 1], [0.0, 0.25, 1.0], [(0.0, 0.0), (0.2, 0.4), (0.9, 1.0)], sure=[True, False, True])
    svg = draw([Panel("a < b", [up], (0, 1), "shares", [(0.5, "half & half")])], "what it shows")
    assert lines(svg) == [[(0, HEIGHT), (WIDTH / 2, 0.75 * HEIGHT), (WIDTH, 0)]]
    assert re.findall(r'<circle cx="(.*?)"', svg) == ["0.0", f"{WIDTH:.1f}"]
    assert f'y1="{HEIGHT / 2:.1f}" y2="{HEIGHT / 2:.1f}" stroke="var(--level)" stroke-dasharray' in svg
    assert "a &lt; b" in svg
    assert "half &amp; half" in svg
    assert "<title>what it shows</title>" in svg
    assert [float(y) for y in re.findall(r"<polygon points=\"[\d.]+,[\d.]+ [\d.]+,([\d.]+)", svg)] == [0.6 * HEIGHT]


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([0.0, 1.0], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([-0.005, 1.0], [0, 0.25, 0.5, 0.75, 1]),  # a hair does not cost a step
        ([-0.05, 1.0], [-0.25, 0, 0.25, 0.5, 0.75, 1]),
        ([0.3, 0.6], [0.3, 0.4, 0.5, 0.6]),
        ([0.7, 0.9], [0.7, 0.75, 0.8, 0.85, 0.9]),
        ([0.684, 0.684], [0.684, 0.686]),
        ([-3.1, 2.0], [-4, -2, 0, 2]),
        ([0.51, 0.877], [0.5, 0.6, 0.7, 0.8, 0.9]),
        ([0.0, 12_300.0], [0, 2500, 5000, 7500, 10_000, 12_500]),
    ],
)
def test_steps_are_round_and_hold_the_values(study: ModuleType, values: list[float], steps: list[float]) -> None:
    from study.plot import steps_of

    assert steps_of(values) == steps


def test_dots_stand_where_a_lead_is_told_apart(study: ModuleType) -> None:
    orders = {f"prune-minilm-mrpc-{s}-one-importance-random": drawn(s, 0.69, 0.7, 0.71) for s in range(3)}
    for lead, dots in ((0.2, 4), (-0.2, 4), (0.0, 0)):
        own = {f"prune-minilm-mrpc-{s}-one-importance-gates": pruned("gates", s, lead, 0.01) for s in range(3)}
        found = {**{f"train-minilm-mrpc-{s}": trained(s) for s in range(3)}, **orders, **own}
        _, made = study.document(found, study.cells())
        assert sorted(made) == ["prune-minilm-mrpc", "prune-minilm-mrpc-lead"]
        assert made["prune-minilm-mrpc-lead"].count("<circle") == dots
        assert '600">minilm on mrpc: points ahead of random</text>' in made["prune-minilm-mrpc-lead"]
        assert made["prune-minilm-mrpc"].count("<polygon") == 1  # the random orders'
        assert len(lines(made["prune-minilm-mrpc"])) == 2


def test_no_lead_is_drawn_where_the_task_is_not_known(study: ModuleType) -> None:
    cells = [drawn(0, 0.69, 0.7, 0.71), pruned("gates", 0, 0.2, 0.01)]
    for value, names in ((0.8, ["prune-minilm-mrpc", "prune-minilm-mrpc-lead"]), (0.5, ["prune-minilm-mrpc"])):
        _, made = study.document({c["cell"]: {**c, "full": {"accuracy": value}} for c in cells}, study.cells())
        assert sorted(made) == names


def test_one_network_trained_again_has_no_spread_to_draw(study: ModuleType) -> None:
    def of(seed: int, score: str, lead: float) -> dict[str, Any]:
        cell = retrained(seed, 0.8, 0.75 + 0.01 * seed, lead)
        return {**cell, "algorithm": "one-shot-isp", "score": score, "cell": f"retrain-minilm-mrpc-{seed}-{score}"}

    one = of(0, "taylor", 0.1)
    assert not study.document({one["cell"]: one}, study.cells())[1]
    alone = [of(seed, "random", 0.1) for seed in range(3)]
    assert not study.document({c["cell"]: c for c in alone}, study.cells())[1]
    for leads, dots in (((0.1, 0.11, 0.12), 1), ((-0.1, -0.11, -0.12), 1), ((0.1, -0.11, 0.12), 0), ((0.1,) * 3, 0)):
        more = [of(seed, score, lead) for seed, lead in enumerate(leads) for score in ("random", "taylor")]
        _, made = study.document({c["cell"]: c for c in more}, study.cells())
        assert sorted(made) == ["retrain-minilm-mrpc", "retrain-minilm-mrpc-lead"]
        assert made["retrain-minilm-mrpc"].count("<polygon") == 2
        assert made["retrain-minilm-mrpc-lead"].count("<circle") == dots


def test_dots_in_one_place_can_all_be_seen(study: ModuleType) -> None:
    from study.plot import Curve, Panel, draw

    curves = [Curve(name, [0, 1], [0.5, 0.6], sure=[True, False]) for name in ("gates", "taylor", "ablation")]
    svg = draw([Panel("", curves, (0, 1))], "")
    sizes = [float(r) for r in re.findall(r'<circle cx="0.0" .*? r="(.*?)"', svg)]
    assert sizes == sorted(sizes, reverse=True)
    assert all(more - less > 0.9 for more, less in pairwise(sizes))
    assert svg.rindex("<polyline") < svg.index("<circle")


def test_the_pruning_studys_curves_have_their_own_yardsticks(study: ModuleType) -> None:
    from study.demo_pruning.picture import draw_curves

    at = {"low": 0.4, "high": 0.6}
    cells = {("iterative", "taylor", 1): {**at, "sparsity": 0.5, "mean": 0.5}}
    cells |= {("iterative", "taylor", 0): {**at, "sparsity": 0.25, "mean": 0.6}}
    cells |= {("igspp", "random", 0): {**at, "sparsity": 0.5, "mean": 0.5}}
    svg = draw_curves(cells, 0.9, 0.7)
    assert [len(line) for line in lines(svg)] == [2, 1]
    (one, two), _ = lines(svg)
    assert one[0] < two[0]
    assert one[1] < two[1]  # the higher value stands higher
    assert "Iterative: accuracy" in svg
    assert "One importance" not in svg
    assert "all heads: 0.900" in svg
    assert "all heads, retrained alike: 0.700" in svg
    assert "retrained alike" not in draw_curves(cells, 0.9, None)

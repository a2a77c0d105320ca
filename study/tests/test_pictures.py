"""The page and its drawings: they are what the records say, and a plot shows what it is given."""

from __future__ import annotations

import re
from html import unescape
from types import ModuleType

import pytest

from study.findings import TARGET as FINDINGS


def lines(svg: str) -> list[list[tuple[float, float]]]:
    """The corners of every curve."""
    result = re.findall(r'<polyline points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in one.split())] for one in result]


@pytest.mark.slow
def test_the_studys_page_and_its_pictures_are_what_its_files_say(study: ModuleType) -> None:
    text, made = study.document(study.read(), study.cells(), study.read(study.TWINS))
    there = {path.stem: path.read_text(encoding="utf-8") for path in study.RESULTS.glob("*.svg")}
    assert study.TARGET.read_text(encoding="utf-8") == text
    assert there == made
    assert len(made) > 20
    said = {name: [unescape(t) for t in re.findall(r"<title>(.*?)</title>", svg)] for name, svg in made.items()}
    for page in (text, FINDINGS.read_text(encoding="utf-8")):
        shown = {name: [alt] for alt, name in re.findall(r"!\[([^]]*)\]\((?:\.\./study/)?results/([^)]*)\.svg\)", page)}
        assert shown == {name: said[name] for name in shown}
        assert page != text or sorted(shown) == sorted(made)


def test_every_cell_is_a_link_away(study: ModuleType) -> None:
    page = study.TARGET.read_text(encoding="utf-8")
    twins = [f"twins/{name}" for name, cell in study.read(study.TWINS).items() if "steps" in cell]
    assert sorted(set(re.findall(r"\(results/([^)]*)\.json\)", page))) == sorted([*study.read(), *twins])


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

"""Figures on paper as data; tests/browser/test_pictures.py looks at them drawn."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import headviz
from headviz.display.figures.style import CLASSES, COLUMNS, MARKS, MILLIMETRE, paper
from support import gallery
from support.gallery import CHARTS

# what protanopia and deuteranopia leave of linear colours (Machado, Oliveira and Fernandes 2009, severity 1)
SEEN = (
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
)
APART = 20.0  # CIE 1976 distance of two colours


def test_every_chart_of_the_package_is_in_the_gallery() -> None:
    """By names: a function that frames a figure is named by the gallery, or by a function that the gallery reaches."""
    texts = [file.read_text(encoding="utf-8") for file in Path(headviz.__file__).parent.rglob("*.py")]
    trees = [ast.parse(text) for text in texts if re.search(r"\bframe\(", text)]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    framing = {f.name for f in functions if any(map(_frames, ast.walk(f)))}
    reached, before = set(re.findall(r"\w+", Path(gallery.__file__).read_text(encoding="utf-8"))), -1
    while before < len(reached):
        before = len(reached)
        reached |= {word for f in functions if f.name in reached for word in re.findall(r"\w+", ast.unparse(f))}
    # a report draws scores of a run with the grid that the analyses have
    assert framing - reached <= {"_score"}


def _frames(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "frame"


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
def test_paper_is_white_and_has_a_column_s_width(name: str) -> None:
    for columns, width in COLUMNS.items():
        layout = paper(CHARTS[name](), columns).layout
        assert (layout.paper_bgcolor, layout.plot_bgcolor) == ("#ffffff", "#ffffff")
        assert layout.width >= width * MILLIMETRE
        assert layout.title.text is None  # the caption stands beside the file


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
def test_named_lines_differ_in_mark_or_stroke_or_for_every_eye(name: str) -> None:
    lines = [t for t in CHARTS[name]().data if t.type == "scatter" and "lines" in (t.mode or "") and t.name]
    lines = [t for t in lines if t.showlegend is not False and t.x is not None and len(t.x) > 1]
    for k, one in enumerate(lines):
        for other in lines[:k]:
            same = (one.marker.symbol, one.line.dash) == (other.marker.symbol, other.line.dash)
            assert not same or _apart(str(one.line.color), str(other.line.color)), f"{one.name} and {other.name}"


def test_more_lines_than_colours_have_marks_of_their_own() -> None:
    assert len(MARKS) > len(CLASSES)
    drawn = gallery.CHARTS["a sweep of fifteen"]()
    looks = {(t.marker.symbol, t.line.dash, t.line.color) for t in drawn.data if t.showlegend is not False}
    assert len(looks) == 15


def _apart(one: str, other: str) -> bool:
    """Whether two colours differ for each kind of eye."""
    linear = [_linear(c) for c in (one, other)]
    return all(np.linalg.norm(_lab(m @ linear[0]) - _lab(m @ linear[1])) >= APART for m in (np.eye(3), *SEEN))


def _linear(colour: str) -> np.ndarray:
    if not colour.startswith("#"):
        return np.zeros(3)
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ linear / [0.9505, 1.0, 1.089], 0, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])

"""The report of a page: a file that stands alone, with nothing in it that only the page can do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("streamlit")

from headviz.display.figures.style import scale_of_losses
from headviz.heads import HeadId, HeadMask
from headviz.reports.html_page import values_svg
from headviz.ui.shell import show
from headviz.ui.shell.view import View

LONG = "the dog that the cat saw sleeps in the garden"
PARTS: list[tuple[str, Any, str]] = [
    ("table", (["change", "text", "count", "p"], [["worse", LONG, 3, 8.882e-16], ["better", "b", 4, 0.04]]), "Two."),
    ("recipe", "import headviz", "headviz evaluate --off 3.5"),
]


def test_a_report_says_small_ps_as_people_do_and_how_to_see_it_again() -> None:
    page = show.report_html("Mask lab", "model demo", PARTS, "/masklab?mask=0f&head=3.5")
    assert f"{LONG}</td><td>3</td>" in page
    assert "<td>&lt; 0.001</td>" in page
    assert "<td>0.04</td>" in page
    assert "e-16" not in page
    after = page.split("How to see it again")[1]
    for wanted in ("/masklab?mask=0f&amp;head=3.5", "import headviz", "headviz evaluate --off 3.5"):
        assert f"<pre>{wanted}</pre>" in after


def test_a_recipe_alone_is_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(show.st, "download_button", lambda *a, **k: drawn.append(a))
    monkeypatch.setattr(show.state, "view", View)
    show.begin_report()
    show.report("recipe", "import headviz", "headviz models")
    show.report_button("heads", "Heads", "", None)
    assert not drawn
    show.report("finding", "All heads are on.")
    show.report_button("heads", "Heads", "", None)
    assert len(drawn) == 1


def test_a_grid_of_the_page_stands_below_its_sentence_with_its_values() -> None:
    values = np.array([[0.0, 7.1], [-0.2, np.nan]])
    grid = {"values": values, "mask": HeadMask.full(2, 2).without([HeadId(1, 1)]), "scale": None, "rows": None}
    made = show.report_html(
        "Heads", "", [("grid", grid | {"blank": True}, "cost, points"), ("finding", "One.", "")], "/"
    )
    assert made.index("One.") < made.index("cost, points") < made.index("<svg")
    assert "<title>L0·H1: 7.1</title>" in made
    assert "<title>L1·H1, switched off</title>" in made
    assert ">−.2</text>" in made
    faint = np.array([[0.004, 0.31], [0.2, -0.001]])  # written as .00, so they are blank where zeros are
    assert ">.00<" not in values_svg(faint, HeadMask.full(2, 2), blank=True)


def test_a_grid_of_the_report_has_its_scale_and_its_marks() -> None:
    values, mask = np.array([[0.0, 0.071], [-0.002, 0.03]]), HeadMask.full(2, 2).without([HeadId(1, 1)])
    scale = scale_of_losses(values.ravel().tolist())
    made = values_svg(values, mask, scale=scale, name="cost", marks=[HeadId(0, 1)], mark_name="significant")
    assert made.count("<circle") == 2
    first, last = (made.rindex(f'fill="{c}"') for c in (scale.light[-1], scale.light[0]))
    assert first < last  # a loss is orange, and stands to the left
    tall = float(re.search(r'viewBox="0 0 \d+ (\d+)"', made)[1])  # type: ignore[index]
    assert tall > max(float(y) for y in re.findall(r' y="([\d.]+)"', made))
    assert "<circle" not in values_svg(values, mask)

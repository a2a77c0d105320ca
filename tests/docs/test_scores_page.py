"""The page of scores: written from the recorded grades and the catalogue."""

from __future__ import annotations

import json

from headviz.analyses.grades import FILE, Recorded, read
from headviz.demo import DATA
from headviz.scores import SCORES
from tools.demo import grades


def recorded() -> Recorded:
    return read(json.loads((DATA / FILE).read_text(encoding="utf-8")))


def test_the_page_is_what_the_recorded_grades_and_the_catalogue_say() -> None:
    assert grades.PAGE.read_text(encoding="utf-8") == "\n".join(grades.page(recorded())) + "\n"


def test_every_score_is_graded() -> None:
    assert {g.score for g in recorded().grades} == set(SCORES)

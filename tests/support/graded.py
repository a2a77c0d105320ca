"""Grades made by hand."""

from __future__ import annotations

from headviz.analyses.grades import Grade, Grades
from headviz.analyses.grading import SHARES


def graded(name: str, area: float, lead: tuple[float, float, float], behind: float | None) -> Grade:
    ends = (None, None) if behind is None else (behind - 0.05, behind + 0.05)
    ends_of = (area - 0.1, area + 0.1, 0.2, 0.7, 0.3)
    return Grade(name, None, area, *ends_of, *lead, behind, *ends, 0.5, None, None, 0.5, 0.1, (area,) * len(SHARES))


def graded_as(**areas: float) -> Grades:
    """These areas, the largest first; those of random orders are .5, and a lead of .1 is clear."""
    best = max(areas, key=areas.__getitem__)
    rows = [
        graded(name, area, (area - 0.5, area - 0.6, area - 0.4), None if name == best else areas[best] - area)
        for name, area in sorted(areas.items(), key=lambda item: -item[1])
    ]
    return Grades(tuple(rows), best, 0, 100, "some data")

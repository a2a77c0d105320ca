"""The study's page: what goes over several models or halves, and the boards of scores."""

from __future__ import annotations

from types import ModuleType


def test_the_default_score_is_the_least_behind_where_it_is_furthest_behind_over_all_boards(study: ModuleType) -> None:
    from headviz.analyses.grades import recorded
    from headviz.scores.catalogue import DEFAULT, SCORES, TO_PRUNE_BY

    boards = [cell["grades"]["scores"] for cell in study.read().values() if cell["experiment"] == "B"]
    assert len(boards) >= 2
    boards.append(recorded().grades.to_dict()["scores"])
    names = [name for name in SCORES if all(name in {g["score"] for g in board} for board in boards)]
    most = {name: max(g["behind"] or 0 for board in boards for g in board if g["score"] == name) for name in names}
    assert len(most) > 10
    assert min(most, key=most.get) == TO_PRUNE_BY != DEFAULT

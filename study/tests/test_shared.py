"""The study's page: what goes over several models or halves, and the boards of scores."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from study.tests.made_cells import text, trained


def given(source: str, target: str, full: float, random_q: float | None, value: float = 0.7) -> dict[str, Any]:
    """A mask on the model of a task, as a transfer tells it."""
    from headviz.extras.tickets.transfer_matrix import Entry

    return Entry(
        source,
        target,
        sparsity=0.39,
        metric="accuracy",
        value=value,
        sd=None,
        count=1,
        full=full,
        constant=0.6,
        kept=0.5,
        change=full - 0.7,
        low=-0.05,
        high=0.01,
        random=0.66,
        random_low=0.63,
        random_high=0.69,
        random_q=random_q,
        random_count=20,
    ).to_dict()


def shared(*entries: dict[str, Any]) -> dict[str, Any]:
    shares = [{"off": 0.3, "entries": list(entries)}]
    return {"cell": "transfer-minilm-all-0", "experiment": "E5", "score": "taylor", "random": 20, "shares": shares}


def test_a_mask_has_transferred_where_random_ones_have_not(study: ModuleType) -> None:
    own, other = given("mrpc", "mrpc", 0.81, 0.01), given("mrpc", "rte", 0.72, 0.04)
    said = text(study, trained(0), shared(own, other))
    assert "### minilm, 39% of the heads off" in said
    assert "Of 1 masks given to another task, better than random masks: mrpc → rte." in said
    assert "| +11.0 [−5.0, +1.0] | 0.660 [0.630, 0.690] | 0.01 |" in said
    none = "Of 1 masks given to another task, none is told apart from random masks."
    assert none in text(study, trained(0), shared(own, given("mrpc", "rte", 0.72, 0.4)))
    worse = given("mrpc", "rte", 0.72, 0.01, value=0.5)  # told apart from random masks, because it is worse
    assert none in text(study, trained(0), shared(own, worse))


def test_no_transfer_is_told_where_even_all_heads_would_not_stand_out(study: ModuleType) -> None:
    said = text(study, trained(0), shared(given("mrpc", "rte", 0.68, 0.01), given("rte", "wnli", 0.6, 0.01)))
    assert "With all its heads, the model of rte would not be told apart from random masks, so no transfer" in said
    assert "the model of wnli is no better than one class" in said
    assert "masks given to another task" not in said


def test_costs_on_two_halves_stand_beside_the_published_correlation(study: ModuleType) -> None:
    one, other = (
        [[0.9, 0.01, 0.02, 0.03], [0.04, 0.05, 0.06, None]],
        [[0.8, 0.06, 0.05, 0.04], [0.03, 0.02, 0.01, 0.07]],
    )
    cell = {
        "cell": "cross-minilm-mnli-0", "experiment": "X", "n": 2000, "full": [0.7, 0.71], "heads": 72,
        "r": 0.4, "low": 0.19, "high": 0.58, "costs": [one, other],
    }  # fmt: skip
    said = text(study, cell)
    assert "| 1,000 each | 0.700 and 0.710 | 72 | +0.400 [+0.190, +0.580] | −0.25 | −1.00 | −1.00 |" in said
    assert "r = 0.68." in said
    assert "| 72 | – |" in text(study, {**cell, "r": None})


def test_the_board_names_the_best_and_what_is_no_better_than_chance(study: ModuleType) -> None:
    from headviz.analyses.grades import Grade, Grades

    def grade(score: str, area: float, lead: float, behind: float | None) -> Grade:
        numbers = dict.fromkeys(("area_top", "cpr", "cmd", "agreement", "stability", "seconds"), 0.5)
        ends = {"area_low": area - 0.01, "area_high": area + 0.01, "lead_low": lead - 0.02, "lead_high": lead + 0.02}
        back = {"behind": behind, "behind_low": behind and behind - 0.02, "behind_high": behind and behind + 0.02}
        return Grade(score, None, area, lead=lead, shapley=None, precision=None, **numbers, **ends, **back)

    rows = (
        grade("fisher", 0.9, 0.2, None),
        grade("taylor", 0.89, 0.19, 0.01),
        grade("magnitude", 0.7, 0.01, 0.2),
        grade("random", 0.69, 0.0, 0.2),
        grade("ablation", 0.6, -0.1, 0.3),
    )
    cell = {
        "cell": "board-minilm-mrpc-0",
        "experiment": "B",
        "n": 200,
        "grades": Grades(rows, "fisher", 0, 200, "mrpc").to_dict(),
    }
    said = text(study, trained(0), cell)
    assert "The largest area has `fisher`; not told apart from it: `taylor`." in said
    assert "Not told apart from random orders: `magnitude`. Worse than random orders: `ablation`." in said
    assert "| `random` | 0.690 [0.680, 0.700] | – |" in said


def test_gates_are_ahead_only_where_the_interval_excludes_zero(study: ModuleType) -> None:
    def lead(low: float, high: float) -> dict[str, Any]:
        ends = {"mean": (low + high) / 2, "low": low, "high": high}
        return {"sparsity": 0.5, **ends, "accuracy": ends}

    leads = [lead(0.01, 0.03), lead(-0.01, 0.03), lead(-0.03, -0.01)]
    steps = [{"metrics": {"accuracy": 0.7}}] * 3
    cell = {
        "cell": "gates-minilm-mrpc-0", "experiment": "G", "examples": 2000, "against": "iterative taylor", "n": 408,
        "metric": "accuracy", "ahead": {"gates": leads}, "orders": {"gates": steps}, "base": steps,
    }  # fmt: skip
    said = text(study, trained(0), cell)
    assert "`gates` is ahead of iterative taylor at 1 of 3 sparsities, behind at 1; at 1 they are" in said
    assert "| 50% | 0.700 | 0.700 | +2.0 [+1.0, +3.0] | +2.0 [+1.0, +3.0] |" in said


def test_the_default_score_is_the_least_behind_where_it_is_furthest_behind_over_all_boards(study: ModuleType) -> None:
    from headviz.analyses.board import recorded
    from headviz.scores.catalogue import DEFAULT, SCORES, TO_PRUNE_BY

    boards = [cell["grades"]["scores"] for cell in study.read().values() if cell["experiment"] == "B"]
    assert len(boards) >= 2
    boards.append(recorded().grades.to_dict()["scores"])
    names = [name for name in SCORES if all(name in {g["score"] for g in board} for board in boards)]
    most = {name: max(g["behind"] or 0 for board in boards for g in board if g["score"] == name) for name in names}
    assert len(most) > 10
    assert min(most, key=most.get) == TO_PRUNE_BY != DEFAULT

"""What masking and pruning cost, in words: the same for the terminal, pages, reports and notebooks."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from headviz.answers.comparison import Delta
from headviz.answers.one_class import ClassAnswers
from headviz.display.figures.speed import decision
from headviz.display.recipes import Code, call, command
from headviz.display.sentences import answer_change, change_of, doubt, heads_named, mask_cost, weak_model
from headviz.heads import HeadMask
from headviz.notebook.display import text

LABELS = ("yes", "maybe", "no")


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((0.34, 0.33, 0.33), "the model no longer knows: no 0.90 goes to yes 0.34, near chance (0.33 each)"),
        ((0.80, 0.10, 0.10), "the answer changes: no 0.90 becomes yes 0.80"),
        ((0.05, 0.054, 0.896), "the answer stays no (0.900 → 0.896)"),
        ((0.25, 0.25, 0.50), "no falls from 0.90 to 0.50, and stays the answer"),
    ],
)
def test_a_flip_is_told_from_an_answer_that_is_lost(after: tuple[float, ...], said: str) -> None:
    assert answer_change(LABELS, "Without L4·H10", (0.05, 0.05, 0.90), after) == f"Without L4·H10 {said}."


def test_an_answer_that_stays_near_chance_is_said_to_be_there() -> None:
    said = answer_change(LABELS, "Without L4·H10", (0.47, 0.33, 0.20), (0.34, 0.33, 0.33))
    assert "near chance (0.33 each)" in said
    said = answer_change(LABELS, "Without L4·H10", (0.36, 0.33, 0.31), (0.34, 0.35, 0.31))
    assert "does not know, as before: yes 0.36 → maybe 0.35" in said
    said = answer_change(LABELS, "With the full model", (0.36, 0.33, 0.31), (0.96, 0.02, 0.02))
    assert said == "With the full model yes rises from 0.36 to 0.96, and stays the answer."


def test_few_heads_are_named_and_many_counted() -> None:
    full = HeadMask.full(12, 12)
    assert heads_named(full.without([(4, 10), (0, 1)]).off) == "L0·H1 and L4·H10"
    assert heads_named(full.without_random(9).off) == "9 heads"


@pytest.mark.parametrize(
    ("values", "before", "said"),
    [
        ([0.9, 0.06, 0.04], None, ""),
        ([0.49, 0.41, 0.10], None, "uncertain: no class reaches one half"),
        ([0.40, 0.35, 0.25], None, "near chance (0.33 each): the model does not know"),
        ([0.40, 0.35, 0.25], [0.9, 0.06, 0.04], "near chance (0.33 each): the model no longer knows"),
        ([0.40, 0.35, 0.25], [0.45, 0.35, 0.2], "near chance (0.33 each): the model does not know"),
        ([0.55, 0.45], None, "near chance (0.50 each): the model does not know"),
        ([0.65, 0.35], None, ""),
    ],
)
def test_an_unsure_answer_is_called_unsure(values: list[float], before: list[float] | None, said: str) -> None:
    assert doubt(values, before=before) == said


def test_a_model_below_a_constant_answer_is_called_so_while_all_heads_are_on() -> None:
    def change(full: float) -> Delta:
        return Delta("accuracy", 400, full, full, 0.0, 0.0, 1.0, constant=0.685)

    assert weak_model(change(0.585)).startswith("The model is no better than one class for all: accuracy 0.585")
    assert not weak_model(change(0.7))


def test_the_terminal_and_a_notebook_say_what_the_page_says() -> None:
    gold = np.arange(400) % 2
    now = gold.copy()
    now[:40] = 1 - now[:40]
    kinds = ["late" if i >= 200 else "early" for i in range(400)]
    found = ClassAnswers(gold, gold, 2).compare(now, ["accuracy"], kinds)
    change = change_of(found.primary)
    assert change.startswith("−10.0 points [")
    assert change.endswith(": a clear loss")
    assert "within the margin" in change_of(found.primary, 20.0)  # a loss that the user allows
    assert "within the margin" not in change_of(found.primary, 10.0)  # the estimate lies within it, its interval not
    sentence = mask_cost(found.primary, found.slices, "L0·H1")
    assert sentence.startswith("Without L0·H1: early 1.000 → 0.800 (chance 0.50); no other slice changes")
    assert sentence.endswith(f": {change}.")
    assert f"accuracy changes by {change}." in text(found)


def faster_model(target, low, **more):
    change = None if low is None else {"difference": low + 0.01, "low": low, "high": low + 0.02}
    speed = {"speedup": target, "speedup_low": target - 0.1, "speedup_high": target + 0.1}
    return {"target": target, **speed, "change": change, "metrics": {"accuracy": 0.8}, **more}


def test_a_search_for_speed_ends_with_the_fastest_model_that_loses_no_more_than_a_point():
    models = [faster_model(1.5, -0.004), faster_model(2.0, -0.0099), faster_model(3.0, -0.03)]
    sentence = decision(models, "accuracy")
    assert "more than 1 point of accuracy is excluded: 2×" in sentence
    none = decision([faster_model(2.0, -0.04), faster_model(3.0, -0.02)], "accuracy")
    assert none.startswith("For no model is a loss")
    assert "3×" in none  # the nearest to it
    assert decision([faster_model(2.0, None)], "accuracy") == ""
    fallen = {
        "yes": {"difference": -0.05, "low": -0.08, "high": -0.02, "p": 0.001},
        "no": {"difference": -0.01, "low": -0.03, "high": 0.01, "p": 0.3},
        "by chance": {"difference": -0.04, "low": -0.07, "high": -0.001, "p": 0.04},  # of three classes
    }
    calibration = {"difference": -0.1, "low": -0.2, "high": -0.05}
    warned = faster_model(4.0, -0.3, one_class="All answers are 'yes'.", classes=fallen, calibration=calibration)
    said = decision([*models, warned], "accuracy")
    for warning in ("All answers are 'yes'.", "F1 falls of yes −5.0 points", "less well calibrated"):
        assert warning in said
    assert "no −1.0" not in said
    assert "by chance" not in said


# a recipe is written as Python and as a command; what a user wrote is quoted in both ----------------


NASTY = 'it\'s "quoted" $HOME `ls`; rm -rf\n)'


def test_values_are_quoted_and_code_stands_as_it_is() -> None:
    assert call("f", Code("clf"), "a'b", [Code("*names"), 1], mask=Code("mask"), n=None) == (
        'f(clf, "a\'b", [*names, 1], mask=mask, n=None)'
    )


@pytest.mark.parametrize("folded", [False, True])
def test_what_a_user_wrote_stays_one_value(folded: bool) -> None:
    options = (("text", NASTY), ("off", ["3.5", "7.0"]), ("data", ""), ("pair", None), ("steps", 0))
    line = command("conductance", options, folded)
    assert shlex.split(line.replace(" \\\n", " ")) == (
        ["headviz", "conductance", "--text", NASTY, "--off", "3.5,7.0", "--steps", "0"]
    )
    made: dict[str, str] = {}
    exec(f"text = {call('str', NASTY)}", made)
    assert made["text"] == NASTY

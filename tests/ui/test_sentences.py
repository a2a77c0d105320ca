"""The sentences under and over the pictures say what the numbers say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("streamlit")

from headviz.answers import ANSWERS
from headviz.attribution.text_under_mask import Moved
from headviz.heads import HeadId
from headviz.ui.pages import heads
from headviz.ui.pages.compare.heads import moved_sentence
from headviz.ui.parts import scoring
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View

LABELS = ("entailment", "neutral", "contradiction")


def test_no_head_moves_the_answer_unless_it_does_among_all() -> None:
    """It said "0 of 72 heads move the answer. L5·H9 moves it most"."""
    from headviz.attribution.patching import PatchingSet
    from headviz.ui.pages.compare.patching import pairs_sentence

    mean = np.array([[0.1, 0.4]])
    found = PatchingSet(mean, mean - 0.2, mean + 0.2, mean, np.array([[0.6, 0.08]]), 3, 0, 1, "all", np.empty((3, 0)))
    assert pairs_sentence(found) == (
        "No head is shown to move the answer with all 2 tested at once (q < .05). L0·H1 has the largest effect: +40 % "
        "of the way [+20 %, +60 %], over 3 pairs; 1 left out, whose answers hardly differ."
    )
    sure = replace(found, q_value=np.array([[0.6, 0.01]]), small=0)
    assert pairs_sentence(sure).startswith(
        "1 of 2 heads moves the answer (q < .05). L0·H1 has the largest effect: +40 %"
    )


def test_the_worst_layer_is_named_only_where_it_loses() -> None:
    """It said "Layer 0 loses most (0.0 points)", and "(+0.5 points)"."""
    from headviz.analyses.all_but_one import AllButOne, BestHead, finding
    from headviz.analyses.common import Subject

    about = Subject("m", "d", "mrpc", "dev", "x", 100, "accuracy", "float32")
    rows = tuple(BestHead(i, 0, d, d - 0.025, d + 0.025, 0.5, 0.5) for i, d in enumerate((0.0, 0.001)))
    found = AllButOne(about, "other", about, 0.8, np.zeros((2, 2)), rows)
    first = "One head is shown to be enough in none of 2 layers: a loss of more than 2 points is possible. "
    assert finding(found) == f"{first}No layer loses anything on these examples."
    lost = replace(found, rows=(replace(rows[0], delta=-0.1, interval_low=-0.1541, interval_high=-0.05), rows[1]))
    assert finding(lost) == f"{first}Layer 0 loses most: −10.0 points [−15.5, −5.0]."
    one = replace(lost, rows=(lost.rows[0], replace(rows[1], interval_low=-0.01)))
    assert finding(one).startswith(
        "In 1 of 2 layers one head is enough: a loss of more than 2 points is excluded. Layer 0"
    )


@pytest.mark.parametrize(
    ("metric", "task", "said"),
    [
        ("bleu", "mnli", "points of BLEU; here accuracy"),
        ("accuracy", "cola", "here matthews"),
        ("accuracy", "demo-translation", "here BLEU"),
        ("accuracy", "mnli", ""),
        ("bleu", "demo-translation", ""),
        ("", "mnli", ""),
        ("bleu", "no such task", ""),
    ],
)
def test_published_points_of_another_metric_are_not_taken_for_ours(metric: str, task: str, said: str) -> None:
    from headviz.ui.pages.analyses import other_points

    assert said in other_points(metric, task)
    assert bool(said) == bool(other_points(metric, task))


def test_as_many_curves_are_drawn_as_can_be_told_apart() -> None:
    from headviz.ui.pages.analyses import shown_lines

    names = ["gates", "conductance-kendall", "taylor", "fisher", "magnitude", "random", "oracle (ablation)"]
    usual = shown_lines(names, "fisher", "")
    assert usual == ["gates", "taylor", "fisher", "random", "oracle (ablation)"]
    assert shown_lines(names, "fisher", "random,taylor") == ["taylor", "random"]
    assert shown_lines(names, "fisher", "no such order") == names  # of a link made elsewhere
    assert shown_lines(["attattr-max"], "taylor", "") == ["attattr-max"]
    assert shown_lines(["attattr-max", "oracle"], "taylor", "") == ["attattr-max", "oracle"]
    assert shown_lines(["taylor", "oracle"], "fisher", "oracle") == ["oracle"]


def test_an_order_is_computed_where_none_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:

    from headviz.scores.catalogue import names_for
    from headviz.ui.pages import analyses
    from headviz.ui.shell.view import View

    for job in ("class", "sentence"):
        shape = SimpleNamespace(scores=names_for(ANSWERS[job]), answer=ANSWERS[job])
        monkeypatch.setattr(loaders, "shape", lambda _, shape=shape: shape)
        assert analyses.orders(View(model="another"), []) == ["gates"]
    assert analyses.orders(View(), ["fisher"]) == ["fisher"]
    assert analyses.orders(View(score="fisher"), []) == ["fisher"]


def test_the_difference_has_no_columns_for_intervals() -> None:
    from headviz.ui.pages.orders import difference

    before, after = (scoring.shipped(View(), "conductance-spearman", w) for w in ("pre-trained", "fine-tuned"))
    assert before is not None
    assert after is not None
    header, _ = scoring.ranking_table("key", after, "").for_files()
    assert header[3:] == [f"{after.score} low", f"{after.score} high"]
    header, rows = scoring.ranking_table("key", difference(before, after), "").for_files()
    assert header == ["rank", "head", "change of conductance-spearman"]
    assert {len(row) for row in rows} == {3}


def test_a_speed_above_arithmetic_is_refused() -> None:
    from headviz.analyses.speed import Speed, SpeedRow, finding
    from headviz.heads import HeadMask

    def told(*ratios: float) -> str:
        rows = tuple(SpeedRow(4**i, 10, 1, 10 * r, 1, r, r - 0.1, r + 0.1) for i, r in enumerate(ratios))
        mask = HeadMask.full(2, 2).without([(0, 0)])
        return finding(Speed("m", mask, 16, 3, 1, "cpu", 1.3, (2, 1), (13, 10), rows))

    assert told(1.2, 1.25).startswith("×1.25 [1.15, 1.35] at batch 4; arithmetic allows ×1.30")
    assert told(1.2, 1.5).startswith("×1.20 [1.10, 1.30] at batch 1")
    assert "Refused as noise, because above that: batch 4 (×1.50)." in told(1.2, 1.5)
    assert told(1.6, 1.5).startswith("No speed can be told")
    assert told(1.02).startswith("No change of speed is clear")


def test_distil_says_which_start_reaches_more() -> None:
    """It said "the intervals overlap" where random weights lay above, and "nothing learnt" of .60 beside .34."""
    from headviz.extras.distillation.pages.results import finding

    def student(init: str, at: float, low: float, high: float) -> dict[str, Any]:
        ends = {"interval_low": {"accuracy": low}, "interval_high": {"accuracy": high}}
        return {"init": init, "title": init, "metrics": {"accuracy": at}, **ends, "curve": [{"step": 100}]}

    teacher = {"constant": {"accuracy": 0.34}}
    found = {"teacher": teacher, "students": [student("random", 0.8, 0.78, 0.82), student("copy", 0.6, 0.58, 0.62)]}
    assert finding(found, "accuracy").startswith("After 100 training steps random weights reach more than a start from")
    wide = {"teacher": teacher, "students": [student("random", 0.6, 0.3, 0.9), student("copy", 0.7, 0.5, 0.9)]}
    assert "0.6 from random weights, not told apart from one class for all)" in finding(wide, "accuracy")
    low = {"teacher": teacher, "students": [student("random", 0.33, 0.3, 0.36), student("copy", 0.7, 0.5, 0.9)]}
    assert "no more than one class for all: nothing learnt in these steps" in finding(low, "accuracy")


def test_a_layer_without_a_value_hides_no_loss() -> None:
    from headviz.analyses.all_but_one import AllButOne, BestHead, finding
    from headviz.analyses.common import Subject

    about, nan = Subject("m", "d", "cola", "dev", "x", 100, "matthews", "float32"), float("nan")
    rows = (BestHead(0, 0, nan, nan, nan, nan, nan), BestHead(1, 0, -0.3, -0.35, -0.25, 0.0, 0.0))
    said = finding(AllButOne(about, "other", about, 0.5, np.zeros((2, 2)), rows))
    assert "Layer 1 loses most: −30.0 points [−35.0, −25.0]. In 1 more the metric has no value." in said
    assert finding(AllButOne(about, "other", about, 0.5, np.zeros((2, 2)), rows[:1])).endswith("one head in a layer.")
    same = finding(AllButOne(about, "same", about, 0.5, np.zeros((2, 2)), rows[1:]))
    assert same.startswith(
        "One head is shown to be enough in none of 1 layer: a loss of more than 2 points is possible."
    )
    assert same.endswith("The heads were chosen on these very examples, which flatters.")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, 0.1, 0.05, -0.1], "75 % of the heads lie between 0 and 0.2, none between 0.2 and 0.4"),
        ([0.3, 0.1, 0.05, 0.1], "75 % of the heads lie between 0 and 0.2, 25 % between 0.2 and 0.4"),
        ([0.3, 0.25, 0.35, 0.1], "75 % of the heads lie between 0.2 and 0.4, the band of the published"),
        ([-0.3, -0.25, -0.35, 0.1], "75 % of the heads lie between −0.4 and −0.2, none"),
        ([float("nan")], "No head has a value yet."),
    ],
)
def test_the_fullest_band_is_named(values: list[float], said: str) -> None:
    assert heads.bands_sentence(np.array([values])).startswith(said)


def test_the_head_that_moves_it_most_is_named_with_its_numbers() -> None:
    moved = Moved(HeadId(3, 5), 1, 0.96, 0.6, 0.9)
    said = moved_sentence(moved, LABELS)
    assert said.startswith("With L3·H5 on again, neutral 0.60 becomes 0.90 (full model 0.96)")
    assert moved_sentence(replace(moved, head=None, back=0.6), LABELS).startswith("No single head brings")

"""The sentences under and over the pictures say what the numbers say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("streamlit")

from headviz.answers import ANSWERS
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View


def test_no_head_moves_the_answer_unless_it_does_among_all() -> None:
    """It said "0 of 72 heads move the answer. L5·H9 moves it most"."""
    from headviz.attribution.patching import PatchingSet
    from headviz.ui.pages.compare.patching import pairs_sentence

    mean = np.array([[0.1, 0.4]])
    found = PatchingSet(mean, mean - 0.2, mean + 0.2, mean, np.array([[0.6, 0.08]]), 3, 0, 1, "all", np.empty((3, 0)))
    said = pairs_sentence(found)
    assert said.startswith("No head is shown to move the answer")
    assert "L0·H1 has the largest effect: +40 % of the way [+20 %, +60 %], over 3 pairs" in said
    sure = replace(found, q_value=np.array([[0.6, 0.01]]), small=0)
    assert pairs_sentence(sure).startswith("1 of 2 heads moves the answer")


def test_as_many_curves_are_drawn_as_can_be_told_apart() -> None:
    from headviz.ui.pages.analyses import shown_lines

    names = ["gates", "conductance-kendall", "taylor", "fisher", "magnitude", "random", "oracle (ablation)"]
    usual = shown_lines(names, "fisher", "")
    assert usual == ["gates", "taylor", "fisher", "random", "oracle (ablation)"]
    assert shown_lines(names, "fisher", "random,taylor") == ["taylor", "random"]
    assert shown_lines(names, "fisher", "no such order") == names  # of a link made elsewhere
    assert shown_lines(["attattr-max"], "taylor", "") == ["attattr-max"]


def test_an_order_is_computed_where_none_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:

    from headviz.scores.catalogue import names_for
    from headviz.ui.pages import analyses

    for job in ("class", "sentence"):
        shape = SimpleNamespace(scores=names_for(ANSWERS[job]), answer=ANSWERS[job])
        monkeypatch.setattr(loaders, "shape", lambda _, shape=shape: shape)
        assert analyses.orders(View(model="another"), []) == ["gates"]
    assert analyses.orders(View(), ["fisher"]) == ["fisher"]
    assert analyses.orders(View(score="fisher"), []) == ["fisher"]


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
    assert told(1.6, 1.5).startswith("No speed is known")
    assert told(1.02).startswith("No change of speed is clear")


def test_a_layer_without_a_value_hides_no_loss() -> None:
    from headviz.analyses.all_but_one import AllButOne, BestHead, finding
    from headviz.analyses.common import Subject

    about, nan = Subject("m", "d", "cola", "dev", "x", 100, "matthews", "float32"), float("nan")
    rows = (BestHead(0, 0, nan, nan, nan, nan, nan), BestHead(1, 0, -0.3, -0.35, -0.25, 0.0, 0.0))
    said = finding(AllButOne(about, "other", about, 0.5, np.zeros((2, 2)), rows))
    assert "Layer 1 loses most: −30.0 points [−35.0, −25.0]. In 1 more layer the metric has no value." in said
    same = finding(AllButOne(about, "same", about, 0.5, np.zeros((2, 2)), rows[1:]))
    assert "In no layer" in same
    assert "chosen on these same examples" in same
    even = (rows[1], replace(rows[1], layer=0))
    assert "Layer 1 and layer 0 each" in finding(AllButOne(about, "other", about, 0.5, np.zeros((2, 2)), even))


def test_of_two_masks_the_one_that_leaves_more_is_named() -> None:
    from headviz.answers.comparison import Delta
    from headviz.display.sentences import two_masks

    lost = Delta("accuracy", 100, 0.9, 0.8, -0.15, -0.05, 0.001, "all")
    assert two_masks(lost, "2 off", "9 off").startswith("A leaves more: accuracy 0.900 under A (2 off), 0.800 under B")
    gain = replace(lost, full=0.8, masked=0.9, interval_low=0.05, interval_high=0.15)
    assert two_masks(gain, "2 off", "9 off").startswith("B leaves more")
    assert two_masks(replace(lost, interval_high=0.01), "a", "b").startswith("The data cannot tell A from B")

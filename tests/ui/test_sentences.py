"""The sentences under and over the pictures say what the numbers say."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("streamlit")

from headviz.attribution.which_head import Moved, Restored
from headviz.heads import HeadId
from headviz.scores.fresh_heads import averaged
from headviz.ui.pages.compare import which_head as culprit
from headviz.ui.pages.heads import bands
from headviz.ui.pages.heads import grids as headgrid
from headviz.ui.parts import scoring
from headviz.ui.shell import loaders
from headviz.ui.shell.view import View


def test_words_that_stand_twice_are_told_apart_by_place() -> None:
    from headviz.attribution.token_explanations import TokenExplanations
    from headviz.ui.pages.compare.explanations import said

    blank = {f.name: None for f in fields(TokenExplanations)}
    values = np.array([[0, 2.0, 1, 0, 0], [0, 0, 1, 2.0, 0]])
    tokens, special = ("[CLS]", "dog", "sees", "dog", "[SEP]"), (True, False, False, False, True)
    known = {"methods": ("a", "b"), "tokens": tokens, "special": special, "rank_correlation": np.ones((2, 2))}
    found = TokenExplanations(**{**blank, **known, "values": values, "target_label": "neutral"})
    assert said(found).endswith("2 different words come first.")
    assert said(replace(found, values=values[[0, 0]])).endswith("all put the same word first.")


def test_an_explained_answer_near_chance_is_said_to_be_so() -> None:
    """The page explained "contradiction" at 0.34 without a word, on an axis that a change of .03 filled."""
    from headviz.display.figures.parts import token_curves
    from headviz.heads import HeadMask
    from headviz.ui.pages.compare.explanations import about

    mask = HeadMask.full(12, 12).without([(4, 10), (8, 6)])
    found: Any = SimpleNamespace(target=2, target_label="contradiction", mask=mask)
    assert about(found, [0.33, 0.33, 0.34]) == (
        "Explained: contradiction, probability 0.34, 2 heads off; near chance (0.33 each): the model does not know."
    )
    found.mask = HeadMask.full(12, 12)
    assert about(found, [0.05, 0.05, 0.9]) == "Explained: contradiction, probability 0.90."
    flat = np.full((2, 3), 0.34)
    curves = token_curves(["a", "b"], [0, 0.5, 1], [("gone", flat, flat)], "probability of contradiction")
    assert list(curves.layout.yaxis.autorangeoptions.include) == pytest.approx([0.24, 0.44])
    assert (
        token_curves(["a"], [0, 0.5, 1], [("gone", flat, flat)], "the number").layout.yaxis.autorangeoptions.include
        is None
    )


def test_no_head_moves_the_answer_unless_it_does_among_all() -> None:
    """It said "0 of 72 heads move the answer. L5·H9 moves it most"."""
    from headviz.attribution.patching_set import PatchingSet
    from headviz.ui.pages.compare.many_pairs import said

    mean = np.array([[0.1, 0.4]])
    found = PatchingSet(mean, mean - 0.2, mean + 0.2, mean, np.array([[0.6, 0.08]]), 3, 0, 1, "all", np.empty((3, 0)))
    assert said(found) == (
        "No head is shown to move the answer with all 2 tested at once (q < .05). L0·H1 has the largest effect: +40 % "
        "of the way [+20 %, +60 %], over 3 pairs; 1 left out, whose answers hardly differ."
    )
    sure = replace(found, q_value=np.array([[0.6, 0.01]]), small=0)
    assert said(sure).startswith("1 of 2 heads moves the answer (q < .05). L0·H1 has the largest effect: +40 %")


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


LABELS = ("entailment", "neutral", "contradiction")


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
    assert bands.sentence(np.array([values])).startswith(said)


def test_the_mean_over_fresh_heads_has_the_absolute_beside_the_signed() -> None:
    """Signed correlations under heads that answer at random cancel: the mean looked like no correlation at all."""
    found = scoring.shipped(View(), "conductance-spearman", "fine-tuned")
    assert found is not None
    up, down = (replace(found, values=np.full((2, 2), v)) for v in (0.3, -0.28))
    (note,) = averaged([up, down]).notes
    assert note.endswith("mean 0.010, near zero as they answer at random; mean |ρ| under each of them 0.290")
    (note,) = averaged([replace(t, score="taylor") for t in (up, down)]).notes
    assert note == "mean over 2 fresh classification heads on the pre-trained encoder"


def test_the_published_bands_are_said_to_be_of_short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(bands.show, "figure", lambda fig, key, caption, **_: said.append(caption))
    monkeypatch.setattr(bands.published, "section", lambda *_: None)
    bands.section({"fine-tuned": np.array([0.3, 0.1])})
    assert said[0].endswith("Published for texts of at most 200 tokens; longer ones are not cut here.")


def test_a_larger_negative_value_is_not_called_weaker() -> None:
    view = View()
    found = scoring.shipped(view, view.score, "fine-tuned")
    assert found is not None
    said = headgrid.finding(found, found.values, view, loaders.shape(view))
    assert f"Highest is {found.ranked()[0]}" in said
    assert "tells what it contributes (99 % of the heads between −0.2 and 0.2)" in said


def test_it_says_on_how_many_examples_a_table_was_measured() -> None:
    view = View()
    found: Any = scoring.shipped(view, view.score, "fine-tuned")
    n = found.samples
    assert headgrid.measured_on(found, view) == (
        f"measured on {n:,} training examples, a balanced sample of usual length; a table that comes "
        "with headviz, more precise than the 64 asked for"
    )
    drawn = f"measured on {n:,} training examples, a balanced sample of usual length"
    assert headgrid.measured_on(found, replace(view, samples=n)) == drawn
    own = replace(found, samples=128)
    assert headgrid.measured_on(own, view).startswith("measured on 128 training examples, a balanced sample")
    assert "; a table computed before, more precise" in headgrid.measured_on(own, view)
    assert headgrid.measured_on(replace(found, samples=0), view) == "no examples needed"


def test_one_head_does_it_alone() -> None:
    one = Restored((HeadId(3, 5),), True, 4, 1, 0)
    assert culprit.sentence(one, LABELS) == "With L3·H5 on again, the answer is neutral again; this one head is enough."
    two = replace(one, heads=(HeadId(3, 5), HeadId(4, 0)))
    assert culprit.sentence(two, LABELS).endswith("no smaller set of heads is enough.")


def test_the_head_that_moves_it_most_is_named_with_its_numbers() -> None:
    moved = Moved(HeadId(3, 5), 1, 0.96, 0.6, 0.9)
    said = culprit.moved_sentence(moved, LABELS)
    assert said.startswith("With L3·H5 on again, neutral 0.60 becomes 0.90 (full model 0.96)")
    assert culprit.moved_sentence(replace(moved, head=None, back=0.6), LABELS).startswith("No single head brings")


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
    from headviz.ui.parts.published import other_points

    assert said in other_points(metric, task)
    assert bool(said) == bool(other_points(metric, task))


def test_as_many_curves_are_drawn_as_can_be_told_apart() -> None:
    from headviz.ui.pages.analyses.drawing import shown_lines

    names = ["gates", "conductance-kendall", "taylor", "fisher", "magnitude", "random", "oracle (ablation)"]
    usual = shown_lines(names, "fisher", "")
    assert usual == ["gates", "taylor", "fisher", "random", "oracle (ablation)"]
    assert shown_lines(names, "fisher", "random,taylor") == ["taylor", "random"]
    assert shown_lines(names, "fisher", "no such order") == names  # of a link made elsewhere
    assert shown_lines(["attattr-max"], "taylor", "") == ["attattr-max"]
    assert shown_lines(["attattr-max", "oracle"], "taylor", "") == ["attattr-max", "oracle"]
    assert shown_lines(["taylor", "oracle"], "fisher", "oracle") == ["oracle"]


def test_an_order_is_computed_where_none_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from headviz.scores.catalogue import names_for
    from headviz.ui.pages.analyses import section as analyses
    from headviz.ui.shell import loaders
    from headviz.ui.shell.view import View

    for kind in ("classification", "translation"):
        shape = SimpleNamespace(scores=names_for(kind), kind=kind)
        monkeypatch.setattr(loaders, "shape", lambda _, shape=shape: shape)
        assert analyses.orders(View(model="another"), []) == ["gates"]
    assert analyses.orders(View(), ["fisher"]) == ["fisher"]
    assert analyses.orders(View(score="fisher"), []) == ["fisher"]


def test_a_distillation_of_one_seed_promises_no_intervals() -> None:
    from headviz.extras.distillation.pages.results import curves_caption

    point = {"step": 0, "metrics": {"accuracy": 0.5}, "interval_low": {"accuracy": None}, "interval_high": {}}
    said = curves_caption([{"curve": [point]}], "accuracy")
    assert "One seed, so there are no intervals" in said
    several = {**point, "interval_low": {"accuracy": 0.4}}
    assert "Bands are 95 % intervals over seeds" in curves_caption([{"curve": [several]}], "accuracy")


@pytest.mark.parametrize(
    ("remove", "said"),
    [
        ("layers:11", "layer 11"),
        ("layers:3,5+ffn:7", "layers 3, 5 and ffn 7"),
        ("heads:3.5", "head 3.5"),
        ("attention", "attention"),
    ],
)
def test_a_removal_in_words(remove: str, said: str) -> None:
    from headviz.extras.distillation.pages.form import removed_words

    assert removed_words(remove) == said


@pytest.mark.parametrize(
    ("limit", "size", "said"),
    [
        (500, None, "up to 500 dev examples"),
        (500, 500, "500 dev examples"),
        (500, 60, "all 60 dev examples"),
        (0, None, "all dev examples"),
        (0, 1200, "all 1,200 dev examples"),
    ],
)
def test_the_number_of_examples_is_the_number_there_is(limit: int, size: int | None, said: str) -> None:
    from headviz.ui.shell.frame import examples_said

    assert examples_said(limit, size) == said


def test_a_browser_tab_has_the_models_short_name() -> None:
    from headviz.ui.shell.frame import model_title

    assert model_title("demo") == "demo"
    assert model_title("textattack/bert-base-uncased-MNLI") == "bert-base-uncased-MNLI"
    assert model_title("/home/me/models/small/") == "small"


def test_the_difference_has_no_columns_for_intervals() -> None:
    from headviz.ui.pages.heads.difference import difference

    before, after = (scoring.shipped(View(), "conductance-spearman", w) for w in ("pre-trained", "fine-tuned"))
    assert before is not None
    assert after is not None
    assert scoring.ranking_table(after, None)[0][3:] == ["95 % low", "95 % high"]
    header, rows = scoring.ranking_table(difference(before, after), None)
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


def test_one_example_across_a_run_says_which_models_were_looked_at() -> None:
    """It said "removed at 90 %; the answer stays entailment" of ten models of which two were there."""
    from headviz.runs.step_maps import StepMap, StepMaps
    from headviz.ui.pages.runs.step_maps import story

    def at(step: int, state: str, *probabilities: float) -> StepMap:
        return StepMap(step, step / 10, state, probabilities=probabilities)

    head, labels = HeadId(3, 5), ("entailment", "neutral")
    whole = StepMaps(head, (), labels, "entailment", (at(0, "there", 0.9, 0.1), at(1, "removed", 0.8, 0.2)))
    assert story(whole) == "L3·H5 is removed at 10 %; the answer stays entailment."
    some = replace(whole, steps=(whole.steps[0], at(5, "not kept"), at(9, "removed", 0.9, 0.1)))
    assert story(some) == "L3·H5 is removed by 90 %; in the 2 models looked at the answer stays entailment."
    turns = [at(i, "there", *((0.9, 0.1) if i % 2 else (0.1, 0.9))) for i in range(7)]
    assert story(replace(whole, steps=tuple(turns))).endswith(
        "entailment from 30 %, neutral from 40 % and turns again later."
    )

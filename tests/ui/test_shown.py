"""How numbers, heads and changed words are written; the shape of a model read without loading it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headviz.display import numbers
from headviz.heads import head_name

pytest.importorskip("streamlit")

from headviz.answers.one_class import ONE_CLASS, ClassAnswers
from headviz.display.sentences import clear_slices
from headviz.display.table import Column, Table
from headviz.evaluation.mask_evaluator import Growing
from headviz.heads import HeadId, HeadMask
from headviz.ui.pages.masklab import cost
from headviz.ui.shell import loaders, show

DATA: Any = SimpleNamespace(answer=ONE_CLASS, label_names=("a", "b"))
YES_NO: Any = SimpleNamespace(label_names=("no", "yes"), slice_name=None)


def test_points_go_by_the_metric_s_unit() -> None:
    assert numbers.points(-0.02, 100) == "−2.0"
    assert numbers.points(-2.0, 1) == "−2.0"
    assert numbers.points(0.0, 100) == numbers.points(-0.0001, 100) == "0.0"
    assert numbers.points(0.1, 100) == "+10.0"
    assert numbers.points(float("nan"), 1) == "–"
    assert (numbers.metric(0.5, 100), numbers.metric(97.5, 1)) == ("0.500", "97.50")
    cost = Column("cost", "%+.1f")
    assert [cost.text(v) for v in (-2.0, 3.25, float("nan"))] == ["−2.0", "+3.2", "–"]


def test_an_interval_is_rounded_outward_wherever_it_is_written() -> None:
    """A sentence said [−10.3, −0.6], and the table below it −10.2 and −0.7."""
    assert numbers.interval(-0.1024, -0.0065, 100) == "[−10.3, −0.6]"
    assert (numbers.low_end(-10.24), numbers.high_end(-0.65)) == ("−10.3", "−0.6")
    assert (numbers.low_end(0.04), numbers.high_end(-0.04)) == ("0.0", "0.0")
    assert (numbers.low_end(None), numbers.high_end(float("nan"))) == ("–", "–")


def test_what_stands_in_a_heads_place_matters_only_where_two_are_told_apart() -> None:
    """It said "it matters which" of changes whose intervals overlap: paired, and of several, none differed clearly."""
    zero, mean, other = (np.arange(200) % 2 for _ in range(3))
    zero[:18] = 1 - zero[:18]
    mean[12:24] = 1 - mean[12:24]
    near = {"nothing": measured(zero.tolist(), 200), "mean": measured(mean.tolist(), 200)}
    said = cost.dependence(near, DATA)
    assert "no two of them differ significantly" in said
    other[:60] = 1 - other[:60]
    far = cost.dependence({**near, "another": measured(other.tolist(), 200)}, DATA)
    assert far.startswith("Between −30.0 and −6.0 points")
    assert "it matters which" in far
    same = cost.dependence({"nothing": near["nothing"], "mean": near["nothing"]}, DATA)
    assert "−9.0 points, whatever stands" in same


def test_the_best_of_many_heads_is_not_called_sure_by_its_own_interval() -> None:
    """It said "any loss is excluded" above "none is a clear gain"."""
    values = np.array([[-0.045, 0.01], [0.02, np.nan]])
    table: Any = SimpleNamespace(
        values=values,
        interval_high=values + 0.04,
        subject=SimpleNamespace(scale=100.0),
        significant=lambda: np.zeros((2, 2), dtype=bool),
    )

    def said() -> str:
        return cost.cheapest(table, HeadId(0, 0), "L0·H0", 2.0)

    assert "but not with all 3 tested at once" in said()
    table.interval_high = values + 0.06
    assert "+4.5 points; a loss of more than 1.5 points is excluded." in said()
    table.significant = lambda: np.isfinite(values)
    assert "+4.5 points. It is the best of 3" in said()


def test_columns_that_no_row_fills_are_left_out() -> None:
    """Texts without a pair have neither a pair nor a slice."""
    made = Table("key", ("text", "pair", "n"), [["a", None, 0], ["b", None, 1]]).filled()
    assert (list(made.columns), made.rows) == (["text", "n"], [["a", 0], ["b", 1]])


@pytest.mark.parametrize(
    ("low", "high", "colour"), [(-0.3, -0.1, "orange"), (0.1, 0.2, "blue"), (-0.1, 0.1, "gray"), (0.0, 0.0, "gray")]
)
def test_a_loss_never_looks_like_a_gain(low: float, high: float, colour: str) -> None:
    assert show.tone(low, high) == colour
    assert show.tone(None, None) == "gray"


def measured(masked: list[int], n: int = 7) -> Growing:
    gold = np.arange(n) % 2
    full, now = gold.copy(), np.array(masked)
    comparison = ClassAnswers(gold, full, 2).compare(now, ["accuracy"])
    return Growing(HeadMask.full(1, 2), comparison, np.arange(n), gold, full, now, n)


@pytest.mark.parametrize(("n", "interval"), [(8, False), (31, False), (64, True)])
def test_a_handful_of_examples_has_no_interval(n: int, interval: bool) -> None:
    """[−78.9, +78.9] stood beside "unchanged", and the whole lost 22 points."""
    now = (np.arange(n) % 2).tolist()
    part = replace(measured(now, n), of=408)
    said = cost.cost_sentence(part, "4 heads", 2.0, YES_NO)
    assert f"on {n} of 408 examples so far" in said
    assert ("[" in said) is interval
    assert ("too few to say" in said) is not interval


def test_slices_change_for_certain_only_after_correction_for_their_number() -> None:
    """Of 20 slices one changes at p < .05 by chance alone, and it was named as clear."""
    gold = np.zeros(20 * 40, dtype=int)
    slices = [f"kind {i // 40}" for i in range(800)]
    now = gold.copy()
    now[:7] = 1  # p = .016: clear of one slice, not of 20

    def said(now: np.ndarray) -> str:
        return clear_slices(ClassAnswers(gold, gold, 2).compare(now, ["accuracy"], slices).slices, "kind")

    assert said(now) == ""
    now[40:60] = 1
    assert said(now).startswith("kind 1 1.000 → 0.500")
    assert said(now).endswith("; no other kind changes significantly (Holm)")


def test_only_changed_words_are_marked() -> None:
    from headviz.extras.translation.pages.compare import marked, words

    assert words("a b c", "a x c d") == [("a", False), ("x", True), ("c", False), ("d", True)]
    assert words("a b", "a b") == [("a", False), ("b", False)]
    assert marked("a b", "a *b*") == r"a :orange[__\*b\*__]"


def test_stacks_are_read_from_the_configuration(tmp_path: Path) -> None:
    config = {"is_encoder_decoder": True, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(config | {"id2label": {"0": "LABEL_0"}}))
    shape = loaders._shape_of_folder(str(tmp_path))
    assert (shape.present.num_layers, shape.present.num_heads, shape.labels) == (4, 4, ())
    assert shape.rows == ("encoder 0", "encoder 1", "cross 0", "decoder 0")
    assert shape.job == "sentence"
    assert head_name(HeadId(2, 3), shape.rows) == "cross 0·H3"
    assert head_name(HeadId(2, 3)) == "L2·H3"

"""How numbers, heads and changed words are written; the shape of a model read without loading it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from headviz.evaluation.comparison import Delta
from headviz.heads import HeadId
from headviz.ui.pages.compare import translations as retranslate
from headviz.ui.pages.masklab import cost
from headviz.ui.shell import loaders, show


def test_points_go_by_the_metric_s_unit() -> None:
    assert show.points(-0.02, 100) == "−2.0"
    assert show.points(-2.0, 1) == "−2.0"
    assert show.points(0.0, 100) == show.points(-0.0001, 100) == "0.0"
    assert show.points(0.1, 100) == "+10.0"
    assert show.points(float("nan"), 1) == "–"
    assert (show.metric(0.5, 100), show.metric(97.5, 1)) == ("0.500", "97.50")


@pytest.mark.parametrize(
    ("low", "high", "colour"), [(-0.3, -0.1, "orange"), (0.1, 0.2, "blue"), (-0.1, 0.1, "gray"), (0.0, 0.0, "gray")]
)
def test_a_loss_never_looks_like_a_gain(low: float, high: float, colour: str) -> None:
    assert cost.colour_of(Delta("accuracy", 10, 0.9, 0.8, low, high, 0.1)) == colour


def test_only_changed_words_are_marked() -> None:
    assert retranslate.words("a b c", "a x c d") == [("a", False), ("x", True), ("c", False), ("d", True)]
    assert retranslate.words("a b", "a b") == [("a", False), ("b", False)]
    assert retranslate.marked("a b", "a *b*") == r"a :orange[__\*b\*__]"


def test_stacks_are_read_from_the_configuration(tmp_path: Path) -> None:
    config = {"is_encoder_decoder": True, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(config | {"id2label": {"0": "LABEL_0"}}))
    shape = loaders._shape_of_folder(str(tmp_path))
    assert (shape.present.num_layers, shape.present.num_heads, shape.labels) == (4, 4, ())
    assert shape.rows == ("encoder 0", "encoder 1", "cross 0", "decoder 0")
    assert shape.translates
    assert show.head_name(HeadId(2, 3), shape.rows) == "cross 0·H3"
    assert show.head_name(HeadId(2, 3)) == "L2·H3"


def test_a_classifier_has_layers_only(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 3, "num_attention_heads": 2}))
    shape = loaders._shape_of_folder(str(tmp_path))
    assert (shape.rows, shape.translates) == (None, False)


def test_every_kind_of_run_has_a_title() -> None:
    from headviz.runs import kinds
    from headviz.ui.pages.runs import detail as rundetail

    assert set(kinds.KINDS) <= set(rundetail.KINDS)

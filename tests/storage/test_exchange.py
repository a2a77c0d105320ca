"""Masks and scores of other tools."""

from __future__ import annotations

import ast
import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headviz
from headviz import HeadMask, UserError
from headviz.display.table import Column, Table
from headviz.storage.tables import csv_cell, to_csv, to_latex

MASK = HeadMask.full(3, 4).without(["0.1", "2.3"])
TABLE = MASK.array()


@pytest.mark.parametrize(
    "given",
    [
        MASK,
        MASK.hex,
        {0: [1], 2: [3]},
        {"0": [1], "2": (3,)},
        {"pruned_heads": {"0": [1], "2": [3]}, "hidden_size": 8},
        TABLE,
        TABLE.astype(np.float32),
        TABLE.astype(int).tolist(),
        [(0, 1), "2.3"],
    ],
)
def test_every_form_of_a_mask_is_read(given: Any) -> None:
    assert headviz.read_mask(given, 3, 4) == MASK


@pytest.mark.parametrize("ending", [".json", ".txt"])
def test_a_byte_order_mark_is_no_part_of_a_mask(tmp_path, ending):
    path = headviz.write_mask(MASK, tmp_path / f"mask{ending}")
    path.write_text("\ufeff" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert headviz.read_mask(path, 3, 4) == MASK


@pytest.mark.parametrize("ending", [".json", ".npy", ".txt"])
def test_what_is_written_is_read(ending: str, tmp_path: Path) -> None:
    path = headviz.write_mask(MASK, tmp_path / f"mask{ending}")
    assert headviz.read_mask(path, 3, 4) == MASK
    assert headviz.read_mask(str(path), 3, 4) == MASK
    with pytest.raises(UserError):
        headviz.read_mask(path, 4, 4)


def test_other_tools_read_what_is_written(tmp_path: Path) -> None:
    headviz.write_mask(MASK, tmp_path / "mask.npy")
    assert np.array_equal(np.load(tmp_path / "mask.npy"), TABLE)
    read = json.loads(headviz.write_mask(MASK, tmp_path / "mask.json").read_text())
    assert read["pruned_heads"] == {"0": [1], "2": [3]}
    assert headviz.pruned_heads(MASK) == {0: [1], 2: [3]}


@pytest.mark.parametrize(
    "given",
    [
        None,
        3,
        {"0": 1},
        {"0": ["1"]},
        {"0": [9]},
        {"-1": [0]},
        [[0, 0, 0, 2]] * 3,
        [[1] * 5] * 3,
        np.ones(4),
        HeadMask.full(4, 3),
        "none.json",
    ],
)
def test_what_is_no_mask_is_one_clear_line(given: Any) -> None:
    with pytest.raises(UserError) as said:
        headviz.read_mask(given, 3, 4)
    assert "\n" not in str(said.value)


def test_no_pickle_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(UserError, match="cannot be read"):
        headviz.read_mask(tmp_path / "mask.npy", 3, 4)


@pytest.mark.parametrize("head", ["PK\3\4", "(0, 4)", f"({10**30}, 4)", "(1000000000, 1000)"])
def test_an_odd_table_is_no_mask(head: str, tmp_path: Path) -> None:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {head}, }}".encode().ljust(117) + b"\n"
    raw = b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text
    (tmp_path / "mask.npy").write_bytes(head.encode() * 40 if head.startswith("PK") else raw)
    with pytest.raises(UserError):
        headviz.read_mask(tmp_path / "mask.npy", 3, 4)


def test_scores_come_and_go(tmp_path: Path) -> None:
    table = [[0.5, None], [0.1, 0.9]]
    (tmp_path / "mine.json").write_text(json.dumps(table))
    for given in (table, np.array(table, dtype=float), tmp_path / "mine.json"):
        scores = headviz.read_scores(given, name="mine")
        assert scores.score == "mine"
        assert np.array_equal(scores.values, np.array(table, dtype=float), equal_nan=True)
        assert [h.dotted for h in scores.ranked()] == ["1.1", "0.0", "1.0"]
    for ending in (".json", ".npy"):
        again = headviz.read_scores(headviz.write_scores(scores, tmp_path / f"scores{ending}"))
        assert np.array_equal(again.values, scores.values, equal_nan=True)


def test_headvizs_own_scores_keep_their_intervals(tmp_path: Path) -> None:
    from support.tiny import tiny_classifier

    clf, data = tiny_classifier(), headviz.load_task("demo", limit=12)
    scores = headviz.score_heads(clf, data, score="taylor")
    again = headviz.read_scores(headviz.write_scores(scores, tmp_path / "s.json"))
    assert np.allclose(again.interval_low, scores.interval_low, equal_nan=True)
    assert (again.score, again.samples, again.mask) == (scores.score, scores.samples, scores.mask)


@pytest.mark.parametrize("given", [[1, 2], [[1], [2, 3]], [["a"]], {"values": [[1]], "stderr": [[1, 2]]}, {}, "no.npy"])
def test_what_are_no_scores_is_one_clear_line(given: Any) -> None:
    with pytest.raises(UserError):
        headviz.read_scores(given)


def test_json_keeps_what_stands_in_the_place_of_heads(tmp_path: Path) -> None:
    path = headviz.write_mask(MASK, tmp_path / "mask.json", ablation="mean:64")
    assert headviz.read_ablation(path) == "mean:64"
    assert headviz.read_mask(path, MASK.num_layers, MASK.num_heads) == MASK
    plain = headviz.write_mask(MASK, tmp_path / "plain.json")
    assert headviz.read_ablation(plain) == "zero"
    assert "ablation" not in json.loads(plain.read_text())
    assert headviz.read_ablation(MASK.hex) == "zero"
    with pytest.raises(UserError, match=r"Only a \.json file"):
        headviz.write_mask(MASK, tmp_path / "mask.txt", ablation="mean")


# cSV and LaTeX that are safe to open ----------------------------------------------------------------


SRC = Path(__file__).resolve().parents[2] / "src" / "headviz"
FORMULAS = [
    "=1+1",
    "+cmd",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =HYPERLINK(1)",
    "＝1",
    "\ufeff=1",
    "\u200b \0@x",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_texts_that_begin_like_a_formula_are_defused(text: str) -> None:
    assert csv_cell(text) == "'" + text


def test_every_table_is_written_here() -> None:
    """No other module writes CSV, so that no table has a cell that nobody looked at."""
    writers = {"writer", "DictWriter", "to_csv", "savetxt", "write_csv", "to_excel"}
    result = set()
    for path in SRC.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(f".{name}(" in text for name in writers):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in writers:
                result.add(path.relative_to(SRC).as_posix())
    assert result == {"storage/tables.py"}


def test_numbers_stay_numbers() -> None:
    assert csv_cell(-1.5) == "-1.5"
    assert csv_cell(float("nan")) == ""
    assert csv_cell(None) == ""


def test_csv_survives_quotes_commas_and_lines() -> None:
    rows = [['a "quoted", text', 1.0], ["two\nlines", -2.0], ["=x", None]]
    read = list(csv.reader(io.StringIO(to_csv(["text", "value"], rows), newline="")))
    assert read == [["text", "value"], ['a "quoted", text', "1.0"], ["two\nlines", "-2.0"], ["'=x", ""]]


def test_latex_escapes_and_rounds() -> None:
    text = to_latex(["head", "50 %"], [["L3·H5 & \\input{x}_", -0.12345], ["#", float("nan")]], caption="$100")
    assert r"L3$\cdot$H5 \& \textbackslash{}input\{x\}\_ & $-0.123$ \\" in text
    assert r"\# & -- \\" in text
    assert r"50 \%" in text
    assert r"\caption{\$100}" in text


def test_a_long_latex_table_keeps_its_top_rows_with_fixed_decimals() -> None:
    rows = [[f"L0·H{i}", 0.5 - 0.01 * i, 3] for i in range(60)]
    text = to_latex(["head", "value", "n"], rows, "Heads.", top=5)
    assert text.count("H0") + text.count("H4") == 2
    assert "H5" not in text
    assert "0.500" in text
    assert "0.460" in text
    assert r"\caption{Heads. The first 5 of 60 rows.}" in text
    small = to_latex(["p"], [[0.00001], [0.5]])
    assert r"$1\cdot10^{-5}$ \\" in small


def test_a_table_for_paper_is_written_as_in_a_report() -> None:
    columns = [Column("model"), Column("value", "%.3f"), Column("score"), Column("mask", places=("files",))]
    ends = [[None, (0.4, 0.6), None, None], [None] * 4]
    made = Table("t", columns, [["a", 0.5, 0.123456, "0f"], ["b", None, 0.2, "0e"]], ends=ends)
    titles, rows = made.for_paper()
    assert titles == ["model", "value [95 %]", "score"]
    assert rows == [["a", "0.500 [0.400, 0.600]", 0.123456], ["b", None, 0.2]]


def test_texts_stand_to_the_left_and_a_table_of_long_texts_fits_a_page() -> None:
    long = "It is true that the gardener did not sail, " * 2
    rows = [[long, "neutral", f"0.9{i % 10} [0.8, 1.0]", "−2.1", None] for i in range(40)]
    text = to_latex(["text", "gold", "value", "change", "p"], rows, "Changed.", top=40, label="flips")
    assert r"\begin{tabular}{p{0.60\textwidth}lrrr}" in text
    assert r"\caption{Changed. The first 20 of 40 rows.}" in text  # each takes two lines
    assert text.count("gardener") == 2 * 20
    assert r"\label{tab:flips}" in text
    assert text.startswith("% \\usepackage{booktabs, graphicx}\n")


def test_a_bracket_at_the_start_of_a_row_is_text_and_not_an_argument() -> None:
    """``\\midrule`` and ``\\\\`` take an argument in brackets: a table of tokens did not compile."""
    text = to_latex(["token", "p"], [["[CLS]", 0.5], ["[SEP]", 0.5]])
    assert "\n{[}CLS{]} & 0.500" in text
    assert "\n[" not in text

"""CSV and LaTeX that are safe to open."""

import ast
import csv
import io
from pathlib import Path

import pytest

from headviz.storage.tables import csv_cell, to_csv, to_latex

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


@pytest.mark.slow
def test_every_table_is_written_here() -> None:
    """No other module writes CSV, so that no table has a cell that nobody looked at."""
    writers = {"writer", "DictWriter", "to_csv", "savetxt", "write_csv", "to_excel"}
    result = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_a_bracket_at_the_start_of_a_row_is_text_and_not_an_argument() -> None:
    """``\\midrule`` and ``\\\\`` take an argument in brackets: a table of tokens did not compile."""
    text = to_latex(["token", "p"], [["[CLS]", 0.5], ["[SEP]", 0.5]])
    assert "\n{[}CLS{]} & 0.500" in text
    assert "\n[" not in text

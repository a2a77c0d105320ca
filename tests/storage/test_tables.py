"""CSV and LaTeX that are safe to open."""

import csv
import io

import pytest

from headviz.storage.tables import csv_cell, to_csv, to_latex


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =HYPERLINK(1)", "＝1"])
def test_texts_that_begin_like_a_formula_are_defused(text: str) -> None:
    assert csv_cell(text) == "'" + text


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

"""Tables as CSV and LaTeX. Texts from data never become a formula or a command."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, log10
from typing import Any

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # the wide ones count in East Asian spreadsheets
_BLANKS = ("\t", "\r", "\n")
_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after a row's end it would be an argument
    "]": "{]}",
    "·": r"$\cdot$",
    "−": "$-$",
    "×": r"$\times$",
    "θ": r"$\theta$",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "∂": r"$\partial$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
}


def csv_cell(value: Any) -> str:
    """The text of a cell. Texts that begin like a formula get an apostrophe, so that no spreadsheet runs them."""
    if value is None or value != value:
        return ""
    text = str(value)
    # a spreadsheet drops invisible characters, such as a byte order mark
    first_visible = next((c for c in text if c.isprintable() and not c.isspace()), "")
    if isinstance(value, str) and (text.startswith(_BLANKS) or first_visible in _FORMULA):
        return "'" + text
    return text


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """RFC 4180 text; a missing value is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([csv_cell(h) for h in header])
    writer.writerows([csv_cell(v) for v in row] for row in rows)
    return out.getvalue()


def tex(text: str) -> str:
    """A text with LaTeX's own characters escaped."""
    return "".join(_TEX.get(c, c) for c in text)


def tex_cell(value: Any, decimals: int | None = None) -> str:
    """Numbers with this many decimals, or with three significant digits; a dash where nothing was measured."""
    if value is None or value != value:
        return "--"
    if not isinstance(value, float):
        return tex(str(value))
    number, _, power = (f"{value:.3g}" if decimals is None else f"{value:.{decimals}f}").partition("e")
    if power:
        return rf"${number}\cdot10^{{{int(power)}}}$"
    return f"${number}$" if number.startswith("-") else number


def _aligned(column: Sequence[Any]) -> list[str]:
    """The cells of a column; its numbers have as many decimals as give the largest three significant digits.

    Where that would hide small numbers (p values, say), each keeps its own three digits.
    """
    sizes = [abs(v) for v in column if isinstance(v, float) and v == v and v not in (0, float("inf"), float("-inf"))]
    if not sizes or max(sizes) / min(sizes) >= 1000:
        return [tex_cell(v) for v in column]
    decimals = max(0, 2 - floor(log10(max(sizes))))
    return [tex_cell(v, decimals) for v in column]


def figure_tex(file: str, caption: str) -> str:
    """A ``figure`` that includes a saved picture (``graphicx``)."""
    return "\n".join(
        [
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width=\columnwidth]{{{file}}}",
            rf"\caption{{{tex(caption)}}}",
            rf"\label{{fig:{file}}}",
            r"\end{figure}",
            "",
        ]
    )


_INVISIBLE = re.compile(r"\\cdot|[$^{}]")  # LaTeX that takes no room on the page
_NUMBER = re.compile(r"[<≈]?\s*[+−-]?\.?\d|[–-]*$")  # the beginning of a text that is flush right
LINE, TEXT = 86, 30  # characters of a line of a page, and from which a column's texts are broken
PACKAGES = r"% \usepackage{booktabs, graphicx}"


@dataclass(frozen=True)
class _Layout:
    """The columns' letters, and which of them are broken into lines, after how many characters."""

    letters: str
    fits: bool  # the width of a page
    broken: tuple[bool, ...]
    line_length: float

    def lines(self, row: Sequence[str]) -> int:
        """How many lines this row takes."""
        return max(ceil(len(cell) / self.line_length) if b else 1 for cell, b in zip(row, self.broken, strict=True))


def _layout(columns: Sequence[Sequence[str]], numeric: Sequence[bool]) -> _Layout:
    """``columns`` as LaTeX, each with its title; the ``numeric`` ones are flush right."""
    sizes = [max(len(_INVISIBLE.sub("", cell)) for cell in column) for column in columns]
    broken = tuple(
        size > TEXT and not number and any(" " in cell for cell in column[1:])
        for size, column, number in zip(sizes, columns, numeric, strict=True)
    )
    share = 0.6 / max(1, sum(broken))
    letters = [rf"p{{{share:.2f}\textwidth}}" if b else "r" if n else "l" for b, n in zip(broken, numeric, strict=True)]
    wide = sum(size + 2 for size, b in zip(sizes, broken, strict=True) if not b)
    return _Layout("".join(letters), wide <= LINE * (0.3 if any(broken) else 1), broken, share * LINE)


def is_number(value: Any) -> bool:
    """Whether a cell is flush right: a number, or a text that begins with one."""
    return not isinstance(value, str) or _NUMBER.match(value.strip()) is not None


def to_latex(
    header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", top: int | None = None, label: str = ""
) -> str:
    """A ``tabular`` for booktabs; texts to the left, numbers to the right.

    Numbers of a column have the same decimals. ``top`` keeps as many rows as fit that many lines, and the caption says
    so. Long texts are broken into lines, and a table that would still be wider than the page is shrunk to it
    (``graphicx``).
    """
    rows = list(rows)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    written = list(zip(*map(_aligned, columns), strict=True)) if rows else []
    layout = _layout(list(zip(header, *written, strict=True)), [all(map(is_number, column)) for column in columns])
    if top is not None:
        count = sum(total <= top for total in accumulate(map(layout.lines, written)))
        if count < len(rows):
            caption = f"{caption} The first {count} of {len(rows)} rows.".strip()
            written = list(zip(*map(_aligned, zip(*rows[:count], strict=True)), strict=True))
    lines = [PACKAGES, r"\begin{table}", r"\centering", *([] if layout.fits else [r"\resizebox{\textwidth}{!}{%"])]
    lines += [rf"\begin{{tabular}}{{{layout.letters}}}", r"\toprule"]
    lines += [" & ".join(tex(h) for h in header) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in written]
    lines += [r"\bottomrule", r"\end{tabular}" + ("" if layout.fits else "}")]
    lines += [rf"\caption{{{tex(caption)}}}"] if caption else []
    lines += [rf"\label{{tab:{label}}}"] if caption and label else []
    return "\n".join([*lines, r"\end{table}", ""])

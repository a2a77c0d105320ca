"""Tables as CSV and LaTeX. Texts from data never become a formula or a command."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
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
    "·": r"$\cdot$",
    "−": "$-$",
    "×": r"$\times$",
    "θ": r"$\theta$",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "→": r"$\to$",
}


def csv_cell(value: Any) -> str:
    """The text of a cell. Texts that begin like a formula get an apostrophe, so that no spreadsheet runs them."""
    if value is None or value != value:
        return ""
    text = str(value)
    # a spreadsheet drops what cannot be seen, such as a byte order mark
    seen = next((c for c in text if c.isprintable() and not c.isspace()), "")
    if isinstance(value, str) and (text.startswith(_BLANKS) or seen in _FORMULA):
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


def tex_cell(value: Any) -> str:
    """Numbers with three significant digits, a dash where nothing was measured."""
    if value is None or value != value:
        return "--"
    if isinstance(value, float):
        shown = f"{value:.3g}"
        return f"${shown}$" if shown.startswith("-") else shown
    return tex(str(value))


def to_latex(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A ``tabular`` for booktabs; the first column to the left, all others to the right."""
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule"]
    lines += [" & ".join(tex(h) for h in header) + r" \\", r"\midrule"]
    lines += [" & ".join(tex_cell(v) for v in row) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\caption{{{tex(caption)}}}"] if caption else []
    return "\n".join([*lines, r"\end{table}", ""])

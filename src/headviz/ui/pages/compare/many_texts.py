"""On Compare: many pasted or uploaded texts, answered by every column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....answers.one_class import ONE_CLASS
from ....errors import UserError
from ....progress import stop_if
from ...parts import remarks
from ...shell import jobs, memo, show
from ...shell.refusals import on_page
from .answering import Column, answer

if TYPE_CHECKING:
    from ....models.classifier import Classifier
    from ....tasks import Dataset

MOST_LINES = 200  # texts or pairs
LINE_END = re.compile(r"\r\n|\r|\n")  # as editors count lines; not form feeds and the like

Told = Callable[[np.ndarray, Sequence[str]], list[tuple[str, float]]]  # as ``Answer.told``
Lines = Mapping[int, tuple[str, str]]  # texts or pairs by the number of their line, as the user counts it


@dataclass(frozen=True, eq=False)
class Answers:
    """Every column's answers to all lines; a line that cannot be answered has NaN and a message."""

    values: list[np.ndarray]  # per column [n, C]
    wrong: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def section(clf: Classifier, data: Dataset, given: Sequence[Column]) -> None:
    """Fields for many texts, and the table of all columns' answers."""
    with st.expander("Several texts at once"):
        paired = data.pairs is not None
        hint = "one pair per line, a tab or | between the two texts" if paired else "one text per line"
        pasted = st.text_area(f"Paste texts: {hint}", key="many", height=120, max_chars=100_000)
        upload = st.file_uploader("or upload a plain text file of such lines", type=["txt", "tsv"], key="many_file")
        raw = pasted
        if upload is not None:
            read = read_text(upload.getvalue())
            if read is None:
                st.error("This file is not plain text. Save it as text (UTF-8), one line per text.")
                return
            raw = read
            if pasted.strip():
                st.caption("The file's lines are used, not the pasted ones.")
        lines, wrong = read_lines(raw, paired)
        if not lines:
            _complain(wrong)
            return
        key = ("many", tuple(lines.items()), paired, *((*memo.identity(c.clf), c.mask.hex) for c in given))
        found = jobs.need(key, "Answering", partial(_answers, lines, paired, given))
        if found is None:
            return
        _complain([*wrong, *found.wrong])
        for remark in found.remarks:
            st.info(show.plain(remark))
        header, rows, changed = many_rows(lines, paired, given, found.values, clf.labels, clf.answer.told)
        answered = sum(not any(np.isnan(p[i]).any() for p in found.values) for i in range(len(lines)))
        said = (
            f"{changed} of {answered} answers change{'s' if changed == 1 else ''}."
            if len(given) > 1 and len(clf.labels) > 1
            else ""
        )
        show.table(header, rows, "compare_many", caption=said)


def _complain(wrong: Sequence[str]) -> None:
    for text in wrong[:3]:
        st.warning(show.plain(text))
    if len(wrong) > 3:
        st.caption("1 more line cannot be used." if len(wrong) == 4 else f"{len(wrong) - 3} more lines cannot be used.")


def _answers(
    lines: Lines, paired: bool, given: Sequence[Column], progress: jobs.Progress, cancel: jobs.Cancel
) -> Answers:
    """Every column's answers, a few lines at a time so that *Stop* works."""
    out: list[np.ndarray] = []
    wrong: dict[int, str] = {}
    texts, numbers = list(lines.values()), list(lines)
    for at, column in enumerate(given):
        values = np.full((len(lines), max(1, len(column.clf.labels))), np.nan)
        for i in range(0, len(lines), 32):
            stop_if(cancel)
            part = range(i, min(i + 32, len(lines)))
            try:
                values[part] = _answer(column, [texts[k] for k in part], paired)
            except UserError:  # one of the lines is wrong: ask one by one
                for k in part:
                    try:
                        values[k] = _answer(column, [texts[k]], paired)[0]
                    except UserError as reason:
                        wrong.setdefault(k, f"Line {numbers[k]}: {on_page(reason)}")
            progress(at * len(lines) + part[-1] + 1, len(given) * len(lines))
        out.append(values)
    said = remarks.about_many(given[0].clf, lines, paired)
    return Answers(out, tuple(wrong[k] for k in sorted(wrong)), tuple(said))


def _answer(column: Column, lines: Sequence[tuple[str, str]], paired: bool) -> np.ndarray:
    pairs = [b for _, b in lines] if paired else None
    return answer(column.clf, [a for a, _ in lines], pairs, column.mask)


def read_text(content: bytes) -> str | None:
    """The text of a file, or None if it is not text."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):  # as spreadsheets write "Unicode text"
        return content.decode("utf-16", "replace")
    return None if b"\0" in content else content.decode("utf-8-sig", "replace")


def read_lines(raw: str, paired: bool) -> tuple[dict[int, tuple[str, str]], list[str]]:
    """Texts, or pairs split at a tab or a bar, and one complaint per line that cannot be read."""
    out: dict[int, tuple[str, str]] = {}
    wrong: list[str] = []
    for i, line in enumerate(LINE_END.split(raw), 1):
        if not line.strip():
            continue
        if len(out) == MOST_LINES:
            wrong.append(f"Only the first {MOST_LINES} texts are used.")
            break
        parts = [p.strip() for p in line.replace("\t", "|").split("|")]
        if not paired and "\t" in line.strip():
            wrong.append(f"Line {i} has a tab, as between two texts; this task takes one text per line.")
        elif not paired:
            out[i] = (line.strip(), "")
        elif len(parts) == 2 and all(parts):
            out[i] = (parts[0], parts[1])
        else:
            wrong.append(f"Line {i} is not a pair: write the two texts with a tab or | between them.")
    return out, wrong


def many_rows(
    lines: Lines,
    paired: bool,
    given: Sequence[Column],
    found: Sequence[np.ndarray],
    labels: Sequence[str],
    told: Told = ONE_CLASS.told,
) -> tuple[list[str], list[list[object]], int]:
    """The header, one row per text, and how many answers change.

    A row has every column's answer and, beside others, what changed against the first column.
    """
    header = ["line", "text", *(["pair"] if paired else []), *(c.name for c in given), "change"]
    rows: list[list[object]] = []
    changed = 0
    for i, (number, (a, b)) in enumerate(lines.items()):
        texts = [number, a, *([b] if paired else [])]
        if found[0].shape[1] == 1:
            numbers = [float(f[i, 0]) for f in found]
            rows.append([*texts, *numbers, numbers[-1] - numbers[0]])
            continue
        said = [f[i] for f in found]
        if any(np.isnan(p).any() for p in said):
            rows.append([*texts, *("–" for _ in said), "not answered"])
            continue
        named = [told(p, labels) for p in said]
        best = [", ".join(name for name, _ in one) for one in named]
        cells = [", ".join(f"{name} {share:.2f}" for name, share in one) for one in named]
        other = [x for x in best[1:] if x != best[0]]
        changed += bool(other)
        rows.append([*texts, *cells, f"{best[0]} → {other[0]}" if other else "same"])
    if len(given) == 1:  # nothing to compare with
        return header[:-1], [row[:-1] for row in rows], 0
    return header, rows, changed

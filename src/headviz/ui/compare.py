"""The Compare page's parts: one text through several masks, and which heads make the difference."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from .. import charts
from ..errors import Cancelled, UserError
from ..heads import HeadId, HeadMask
from . import culprit, jobs, show, state, texts
from .grid import Look, head_grid
from .recipes import load_call, load_options, mask_call, off_option
from .texts import Text
from .view import View

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from ..tokens import TokenAttributions

MOST_LINES = 200


@dataclass(frozen=True)
class Column:
    """One model that answers: a name, the weights and the mask."""

    name: str
    clf: Classifier
    mask: HeadMask


def section(clf: Classifier, data: Dataset, shown: Text, given: Sequence[Column]) -> None:
    """Everything about one text, then several texts at once."""
    controls = not state.view().present
    if shown.empty:
        st.info(texts.EMPTY, icon=":material/edit:")
        if controls:
            several(clf, data, given)
        return
    try:
        found = answers(shown, given)
    except UserError as wrong:
        st.warning(show.plain(str(wrong)), icon=":material/edit:")
    else:
        for remark in texts.remarks(clf, shown):
            st.info(show.plain(remark))
        verdicts(clf, given, found)
        if state.mask(clf.present).off:
            culprit.section(clf, shown, found)
        elif len(given) == 1:
            st.info(
                "All heads are on. Switch some off in the Mask lab, and their effect on this text stands here beside."
            )
            st.page_link("pages/masklab.py", label="Open the Mask lab", icon=":material/grid_on:")
        tokens(clf, shown, given)
        shift(clf, shown)
    if controls:
        several(clf, data, given)


def columns(clf: Classifier, other: Classifier | None = None) -> list[Column]:
    """The full model, the current mask, the saved ones, and a second model as it stands."""
    mask = state.mask(clf.present)
    out = [Column("full model", clf, HeadMask.full(clf.num_layers, clf.num_heads))]
    if mask.off:
        out.append(Column(f"current mask ({len(mask.off)} off)", clf, mask))
    for name, text in state.session().saved:
        saved = HeadMask.from_hex(text, clf.num_layers, clf.num_heads)
        if saved != mask:
            out.append(Column(name, clf, saved))
    if other is not None:
        kept = len(other.present.kept)
        out.append(
            Column(
                f"{other.name[-40:]} ({kept} heads)", other, HeadMask.full(other.num_layers, other.num_heads)
            )
        )
    return out


def answer(clf: Classifier, texts: Sequence[str], pairs: Sequence[str] | None, mask: HeadMask) -> np.ndarray:
    """Class probabilities [n, C], or the numbers of a regression [n, 1]."""
    from ..inputs import encode

    found = encode(clf, list(texts), None if pairs is None else list(pairs))
    logits = np.concatenate(
        [clf.logits(clf.collate(found[i : i + 32]), mask).cpu().numpy() for i in range(0, len(found), 32)]
    )
    if clf.is_regression:
        return logits
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def answers(shown: Text, given: Sequence[Column]) -> list[np.ndarray]:
    pairs = None if shown.pair is None else [shown.pair]
    return [answer(c.clf, [shown.text], pairs, c.mask)[0] for c in given]


def verdicts(clf: Classifier, given: Sequence[Column], found: Sequence[np.ndarray]) -> None:
    """The decision of each column, the change marked, and the probabilities as bars."""
    first = found[0]
    for box, column, values in zip(st.columns(len(given)), given, found, strict=True):
        with box, st.container(border=True):
            st.caption(show.plain(column.name))
            if clf.is_regression:
                st.markdown(f"### {show.number(float(values[0]))}")
                st.caption(f"{show.signed(float(values[0] - first[0]))} against the full model")
                continue
            best, was = int(values.argmax()), int(first.argmax())
            st.markdown(f"### {show.plain(clf.labels[best])} {values[best]:.2f}")
            if column is given[0]:
                st.caption("as trained")
            elif best != was:
                st.markdown(f":orange[**← changed** from {show.plain(clf.labels[was])}]")
            else:
                st.caption(f"same answer, {show.points(float(values[best] - first[best]), 100)} points")
    if not clf.is_regression:
        show.figure(
            charts.probabilities(
                [(c.name, [float(v) for v in values]) for c, values in zip(given, found, strict=True)],
                clf.labels,
            ),
            "compare_bars",
            "The probability of each class by each model, for this text.",
            formula=r"p_c = e^{z_c} / \sum_k e^{z_k}",
        )


def tokens(clf: Classifier, shown: Text, given: Sequence[Column]) -> None:
    """How much each token spoke for the full model's answer, in every column, on one scale."""
    if clf.is_regression or not _wanted("tokens", "Token attributions", "Integrated gradients, by Captum"):
        return
    texts = (shown.text, shown.pair)
    found = []
    for column in given:
        key = (column.clf.digest, str(clf.dtype), "tokens", *texts, column.mask.hex)
        one = jobs.need(key, f"Attributing tokens: {column.name}", partial(_tokens, column, shown))
        if one is None:
            return
        found.append(one)
    rows = [(c.name, one.target_label, one.values) for c, one in zip(given, found, strict=True)]
    show.figure(
        charts.token_rows(rows, found[0].tokens),
        "compare_tokens",
        "What each token spoke for (blue) or against (orange) each model's own answer, on one scale.",
        formula=r"(x - x') \cdot \int_0^1 \nabla F(x' + a(x - x'))\,da",
        source="Integrated gradients on the word embeddings, from padding to the input (Captum).",
        wide="40" if len(found[0].tokens) <= 24 else "64",
    )


def _wanted(name: str, label: str, help: str) -> bool:
    """A part that the reader asks for; a presentation shows it without the switch."""
    view = state.view()
    return bool(getattr(view, name)) if view.present else state.tick(name, label, help=help)


def _tokens(column: Column, shown: Text, progress: jobs.Progress, cancel: jobs.Cancel) -> TokenAttributions:
    from ..tokens import token_attributions

    mask = column.mask if column.mask.off else None
    return token_attributions(column.clf, shown.text, shown.pair, mask=mask)


def shift(clf: Classifier, shown: Text) -> None:
    """Where the heads that are left look elsewhere under the current mask."""
    mask = state.mask(clf.present)
    if not mask.off or not _wanted("shift", "What attention changed", "Where heads look under the mask"):
        return
    from ..attentionshift import attention_shift

    values = attention_shift(clf, shown.text, shown.pair, mask)
    known = values[np.isfinite(values)]
    if known.size:
        top = HeadId(*(int(i) for i in np.unravel_index(np.nanargmax(values), values.shape)))
        st.markdown(
            f"**{top} changes where it looks most: {100 * values[top]:.0f} % of its attention has moved.**"
        )
    head_grid(
        "shift", clf.present, values, mask=mask, selected=state.head(clf.present),
        tips={"attention moved": [["–" if v != v else f"{100 * v:.1f} %" for v in row] for row in values]},
        look=Look(name="share of attention that moved", width=30, numbers=state.view().numbers, file="headviz-shift"),
        on_select=lambda h: state.update(head=h.dotted),
    )  # fmt: skip
    show.note(
        "How much of each head's attention to this text lies elsewhere under the mask: 0 = the same, 1 = all of it.",
        formula=r"\tfrac1T \sum_i \tfrac12 \sum_j |A'_{ij} - A_{ij}|",
        source="Total variation distance, mean over queries. Layers before the first change cannot move.",
        key="shift_note",
        saves=False,
    )


def several(clf: Classifier, data: Dataset, given: Sequence[Column]) -> None:
    """Many pasted or uploaded lines through all columns."""
    with st.expander("Several texts at once"):
        paired = data.pairs is not None
        hint = "one pair per line, a tab or | between the two texts" if paired else "one text per line"
        pasted = st.text_area(f"Paste texts: {hint}", key="many", height=120, max_chars=100_000)
        upload = st.file_uploader(
            "or upload a plain text file of such lines", type=["txt", "tsv"], key="many_file"
        )
        raw = upload.getvalue().decode("utf-8", "replace") if upload is not None else pasted
        lines, wrong = read_lines(raw, paired)
        for text in wrong[:3]:
            st.warning(show.plain(text))
        if not lines:
            return
        key = ("many", tuple(lines), paired, *((c.clf.digest, str(c.clf.dtype), c.mask.hex) for c in given))
        found = jobs.need(key, "Answering", partial(_answers_of_many, lines, paired, given))
        if found is None:
            return
        header, rows = many_rows(lines, paired, given, found, clf.labels)
        changed = sum("→" in str(row[-1]) for row in rows)
        show.table(header, rows, "compare_many", caption=f"{changed} of {len(rows)} answers change.")


def _answers_of_many(
    lines: Sequence[tuple[str, str]],
    paired: bool,
    given: Sequence[Column],
    progress: jobs.Progress,
    cancel: jobs.Cancel,
) -> list[np.ndarray]:
    """Every column's answers, a few lines at a time so that *stop* is heard."""
    out: list[np.ndarray] = []
    for at, column in enumerate(given):
        parts = []
        for i in range(0, len(lines), 32):
            if cancel():
                raise Cancelled
            part = lines[i : i + 32]
            pairs = [b for _, b in part] if paired else None
            parts.append(answer(column.clf, [a for a, _ in part], pairs, column.mask))
            progress(at * len(lines) + i + len(part), len(given) * len(lines))
        out.append(np.concatenate(parts))
    return out


def read_lines(raw: str, paired: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Texts, or pairs split at a tab or a bar, and one complaint per line that cannot be read."""
    out: list[tuple[str, str]] = []
    wrong: list[str] = []
    for i, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        if len(out) == MOST_LINES:
            wrong.append(f"Only the first {MOST_LINES} lines are used.")
            break
        parts = [p.strip() for p in line.replace("\t", "|").split("|")]
        if not paired:
            out.append((line.strip(), ""))
        elif len(parts) == 2 and all(parts):
            out.append((parts[0], parts[1]))
        else:
            wrong.append(f"Line {i} is not a pair: write the two texts with a tab or | between them.")
    return out, wrong


def many_rows(
    lines: Sequence[tuple[str, str]],
    paired: bool,
    given: Sequence[Column],
    found: Sequence[np.ndarray],
    labels: Sequence[str],
) -> tuple[list[str], list[list[object]]]:
    """One row per text: every column's answer, and what changed against the first."""
    header = ["text", *(["pair"] if paired else []), *(c.name for c in given), "change"]
    rows: list[list[object]] = []
    for i, (a, b) in enumerate(lines):
        if found[0].shape[1] == 1:
            numbers = [float(f[i, 0]) for f in found]
            rows.append([a, *([b] if paired else []), *numbers, numbers[-1] - numbers[0]])
            continue
        best = [labels[int(f[i].argmax())] for f in found]
        other = [x for x in best[1:] if x != best[0]]
        rows.append([a, *([b] if paired else []), *best, f"{best[0]} → {other[0]}" if other else "same"])
    return header, rows


def recipe(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    """The same answer from the library; the command explains the same text."""
    mask = state.mask(clf.present)
    texts = f"[{shown.text!r}]" + (f", [{shown.pair!r}]" if shown.pair is not None else "")
    python = "\n".join(
        [
            "import headviz",
            load_call(view),
            mask_call(mask),
            f"batch = clf.collate(clf.encode({texts}))",
            "print(clf.labels, clf.logits(batch, mask).softmax(-1))",
        ]
    )
    pair = f" --text-pair {shlex.quote(shown.pair)}" if shown.pair is not None else ""
    options = f"{load_options(view)} --text {shlex.quote(shown.text)}{pair}{off_option(mask)}"
    return python, f"headviz conductance {options} --out maps.npz"

"""Compare: one text, or many, answered by the full model, under masks and by a second model."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

import numpy as np
import streamlit as st

import headviz

from ....answers.rank import places
from ....answers.span import ANSWER
from ....display import numbers
from ....display.figures import maps
from ....display.figures.answers import probabilities
from ....display.recipes import Code, Options, call, command
from ....display.sentences import MUCH, answer_change, doubt, heads_named, no_longer_knows, whole
from ....display.table import Table
from ....errors import UserError
from ....heads import HeadMask
from ....progress import stop_if
from ....tasks.columns import LABEL_COLUMNS, PAIRED_COLUMNS, TEXT_COLUMNS, guess_texts
from ...parts import abilities, measure, scoring, texts
from ...parts.texts import Text
from ...shell import jobs, loaders, mask_edit, recipes, show, state
from ...shell.messages import on_page, plain, refused
from ...shell.view import View
from .heads import shift, which_head

if TYPE_CHECKING:
    from ....answers.answer import Answer
    from ....attribution.token_explanations import TokenAttributions
    from ....models.base import TransformerModel
    from ....models.classifier import Classifier
    from ....tasks import Dataset

# ---- who answers


@dataclass(frozen=True)
class Column:
    """One model that answers: a name, the weights and the mask."""

    name: str
    clf: Classifier
    mask: HeadMask


TAKEN = ("text", "pair", "change")  # other columns of the table of many texts


def columns(clf: Classifier) -> list[Column]:
    """The full model, the current mask and the saved masks. No two have the same name."""
    return distinct(Column(name, clf, mask) for name, mask in masks(clf))


def masks(clf: TransformerModel) -> list[tuple[str, HeadMask]]:
    """The full model, the current mask and the saved masks, each with its name."""
    mask = state.mask(clf.present)
    current = [(state.title_of_current(mask), mask)] if mask.off else []
    saved = [(name, other) for name, (other, _) in state.saved_masks(clf.present).items() if other != mask]
    return [(whole(clf.present), HeadMask.full(clf.num_layers, clf.num_heads)), *current, *saved]


def distinct(columns: Iterable[Column]) -> list[Column]:
    """The columns; one whose name occurs again, or is taken, gets a number."""
    by_name: dict[str, Column] = {}
    for column in columns:
        number, name = 1, column.name
        while name in by_name or name in TAKEN:
            number += 1
            name = f"{column.name} ({number})"
        by_name[name] = replace(column, name=name)
    return list(by_name.values())


def answer(clf: Classifier, texts: Sequence[str], pairs: Sequence[str] | None, mask: HeadMask) -> np.ndarray:
    """Class probabilities [n, C], or the numbers of a regression [n, 1]."""
    from ....attribution.conductance import encode

    encodings = encode(clf, list(texts), None if pairs is None else list(pairs))
    batches = (clf.logits(clf.collate(encodings[i : i + 32]), mask).cpu().numpy() for i in range(0, len(encodings), 32))
    return clf.answer.values(stacked(list(chain.from_iterable(batches)), len(clf.labels)))


def stacked(rows: Sequence[np.ndarray | None], outputs: int) -> np.ndarray:
    """One table of the answers to several texts. NaN where one is missing, and after the end of a shorter text."""
    shapes = [row.shape for row in rows if row is not None]
    table = np.full((len(rows), *(np.max(shapes, axis=0) if shapes else (max(1, outputs),))), np.nan, np.float32)
    for i, row in enumerate(rows):
        if row is not None:
            place: Any = (i, *map(slice, row.shape))
            table[place] = row
    return table


def answers(shown: Text, columns: Sequence[Column]) -> list[np.ndarray]:
    pairs = None if shown.pair is None else [shown.pair]
    return [answer(c.clf, [shown.text], pairs, c.mask)[0] for c in columns]


# ---- a first mask to try

SHARE = 0.2  # of the heads, where nothing better is known


def offer_mask(present: HeadMask, kind: str | None = None) -> None:
    """Say that all heads are on, and offer a mask: the heads that this kind of example needs, or the lowest."""
    st.info("All heads are on. Switch some off to see what that changes for this text.")
    label, mask = suggested_mask(present, kind)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            plain(label), key="first_mask", icon=":material/power_settings_new:", on_click=state.set_mask, args=(mask,)
        )
        st.page_link("pages/masklab.py", label="Choose heads in the Mask lab", icon=":material/grid_on:")


def suggested_mask(present: HeadMask, kind: str | None) -> tuple[str, HeadMask]:
    """A mask worth trying, and its button's label."""
    view = state.view()
    if (ability := abilities.listed(view).get(kind or "")) is not None:
        heads = " and ".join(map(str, ability.heads))
        pronoun = "it" if len(ability.heads) == 1 else "them"
        return f"Switch off {heads}: {kind} needs {pronoun}", present.without(ability.heads)
    count = max(1, round(SHARE * len(present.kept)))
    scores = scoring.ordering(view)
    if scores is not None and scores.values.shape == (present.num_layers, present.num_heads):
        label = f"Switch off the {count} lowest by {scores.score}"
        if tie := mask_edit.tie_at(scores.values, count, present):
            label += f" ({tie.rstrip('.')})"
        return label, mask_edit.off_to_count(scores.values, count, present)
    return f"Switch off {count} heads at random", mask_edit.off_at_random(count, present, seed=0)


# ---- many texts

MOST_LINES = 200  # texts or pairs
LARGEST_SHEET = 50_000_000  # bytes of an unpacked part of a spreadsheet
LINE_END = re.compile(r"\r\n|\r|\n")  # as editors count lines; not form feeds and the like

Shares = Callable[[np.ndarray, Sequence[str]], list[tuple[str, float]]]  # as ``Answer.shares``
Lines = Mapping[int, tuple[str, str]]  # texts or pairs by the number of their line, as the user counts it


@dataclass(frozen=True, eq=False)
class Answers:
    """Every column's answers to all lines; a line that cannot be answered has NaN and a message."""

    values: list[np.ndarray]  # per column [n, C], or [n, W, C] of answers word by word
    complaints: tuple[str, ...]
    remarks: tuple[str, ...]


def many_texts(clf: Classifier, data: Dataset, columns: Sequence[Column]) -> None:
    """Fields for many texts, and the table of all columns' answers."""
    with st.expander("Several texts at once"):
        paired = data.pairs is not None
        hint = "one pair per line, a tab or | between the two texts" if paired else "one text per line"
        pasted = st.text_area(f"Paste texts: {hint}", key="many", height=120, max_chars=100_000)
        upload = st.file_uploader(
            "or upload a file of them: text, a table, or a spreadsheet",
            type=["txt", "tsv", "csv", "xlsx"],
            key="many_file",
            help="Of a table the columns are taken that are called as the fields, else the first with texts",
        )
        raw = pasted
        if upload is not None:
            try:
                raw = read_file(upload.getvalue(), upload.name, data.answer.text_names)
            except UserError as error:
                refused(error)
                return
            if pasted.strip():
                st.caption("The file's lines are used, not the pasted ones.")
        lines, complaints = read_lines(raw, paired)
        if not lines:
            _complain(complaints)
            return
        key = ("many", tuple(lines.items()), paired, *((*loaders.identity(c.clf), c.mask.hex) for c in columns))
        result = jobs.need(key, "Answering", partial(_many_answers, lines, paired, columns))
        if result is None:
            return
        _complain([*complaints, *result.complaints])
        for remark in result.remarks:
            st.info(plain(remark))
        header, rows, sizes = many_rows(
            lines,
            paired,
            columns,
            result.values,
            clf.labels,
            loaders.deciding(clf, data).shares,
            decides=clf.answer.decides,
        )
        sentence = ""
        if len(columns) > 1:
            order = np.argsort(-np.array(sizes), kind="stable")
            only = f"Another answer, or one whose probability moved by {MUCH:g} or more"
            least = MUCH if st.toggle("Only changed", key="many_changed", help=only) else 0.0
            rows = [rows[i] for i in order if sizes[i] >= least]
            if len(clf.labels) > 1:
                changed = sum(size >= ANOTHER for size in sizes)
                answered = sum(not any(np.isnan(p[i]).all() for p in result.values) for i in range(len(lines)))
                sentence = f"{changed} of {answered} answers change{'s' if changed == 1 else ''}."
        show.table(Table("compare_many", header, rows, sentence))


ANOTHER = 2.0  # the size of a change to another answer; a change of the probability alone is 1 at most
ROUNDED = 0.005  # a smaller change of a probability is not seen in two decimals


def change_of_text(by_column: Sequence[list[tuple[str, float]]]) -> tuple[str, float]:
    """What becomes of the first answer in the other columns, in words, and how large that is."""
    first, *others = by_column
    names = [name for name, _ in first]
    for other in others:
        other_names = [name for name, _ in other]
        if other_names != names:
            return f"{', '.join(names)} → {', '.join(other_names)}", ANOTHER
    changes = [(name, a, b) for other in others for (name, a), (_, b) in zip(first, other, strict=True)]
    name, a, b = max(changes, key=lambda change: abs(change[1] - change[2]), default=("", 0.0, 0.0))
    size = abs(a - b)
    return ("same" if size < ROUNDED else f"{name} {a:.2f} → {b:.2f}"), size


def _complain(complaints: Sequence[str]) -> None:
    for text in complaints[:3]:
        st.warning(plain(text))
    if more := len(complaints[3:]):
        st.caption("1 more line cannot be used." if more == 1 else f"{more} more lines cannot be used.")


def _many_answers(
    lines: Lines, paired: bool, columns: Sequence[Column], progress: jobs.Progress, cancel: jobs.Cancel
) -> Answers:
    """Every column's answers, a few lines at a time so that *Stop* works."""
    tables: list[np.ndarray] = []
    complaints: dict[int, str] = {}
    pairs, numbers = list(lines.values()), list(lines)
    for done, column in enumerate(columns):
        values: list[np.ndarray | None] = [None] * len(lines)
        for i in range(0, len(lines), 32):
            stop_if(cancel)
            part = range(i, min(i + 32, len(lines)))
            try:
                values[part.start : part.stop] = _many_answer(column, [pairs[k] for k in part], paired)
            except UserError:  # one of the lines is wrong: ask one by one
                for k in part:
                    try:
                        values[k] = _many_answer(column, [pairs[k]], paired)[0]
                    except UserError as error:
                        complaints.setdefault(k, f"Line {numbers[k]}: {on_page(error)}")
            progress(done * len(lines) + part.stop, len(columns) * len(lines))
        tables.append(stacked(values, len(column.clf.labels)))
    remarks = texts.remarks_on_many(columns[0].clf, lines, paired)
    return Answers(tables, tuple(complaints[k] for k in sorted(complaints)), tuple(remarks))


def _many_answer(column: Column, lines: Sequence[tuple[str, str]], paired: bool) -> np.ndarray:
    pairs = [b for _, b in lines] if paired else None
    return answer(column.clf, [a for a, _ in lines], pairs, column.mask)


def read_file(content: bytes, name: str, columns: Sequence[str]) -> str:
    """The lines of a text file, or the texts of a table's rows with a bar between the two of a pair."""
    ending = name.rpartition(".")[2].lower()
    if ending == "xlsx":
        rows = read_sheet(content)
    else:
        text = read_text(content)
        if text is None:
            raise UserError("This file is not text in UTF-8. Save it as text (UTF-8), one line per text.")
        if ending not in ("csv", "tsv"):
            return text
        first = text.partition("\n")[0]
        sign = max(",;\t", key=first.count) if ending == "csv" else "\t"
        # in a tsv quotation marks are ordinary signs
        quoting: Literal[0, 3] = csv.QUOTE_NONE if ending == "tsv" else csv.QUOTE_MINIMAL
        try:
            rows = [*csv.reader(text.splitlines(), delimiter=sign, quoting=quoting)]
        except csv.Error as error:
            raise UserError(f"This table cannot be read: {error}.") from error
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    filled = [row for row in rows if any(row)]
    if not filled:
        raise UserError("This table has no rows. Write a text, or the two of a pair, in each row.")
    places: Sequence[int] = range(len(columns))
    if _has_header(filled, columns):
        titles = filled[0]
        lower = [title.lower() for title in titles]
        names: Sequence[str] = columns
        if not all(column.lower() in lower for column in columns):
            cells = {title: [row[i] for row in filled[1:] if i < len(row)] for i, title in enumerate(titles) if title}
            names = guess_texts(cells, "", len(columns))
        places = [lower.index(name.lower()) for name in names] or places
        rows[rows.index(titles)] = []  # its line stays, so that messages count as the file does
    return "\n".join("|".join(row[i] for i in places if i < len(row)) for row in rows)


def _has_header(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> bool:
    """Whether the first row is a header: it has a usual name, or further columns whose titles do not occur below."""
    usual = (*columns, *LABEL_COLUMNS, *TEXT_COLUMNS, *chain(*PAIRED_COLUMNS), "pair")
    titles = rows[0]
    if {name.lower() for name in usual} & {title.lower() for title in titles}:
        return True
    below = [{row[i] for row in rows[1:] if i < len(row)} for i in range(len(titles))]
    return len(titles) > len(columns) and not any(t in cells for t, cells in zip(titles, below, strict=True) if t)


def read_sheet(content: bytes) -> list[list[str]]:
    """The cells of the first sheet of a spreadsheet (Office Open XML), as text."""
    name = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            sheet = min(n for n in parts.namelist() if n.startswith("xl/worksheets/sheet"))
            if max(parts.getinfo(n).file_size for n in parts.namelist() if n.startswith("xl/")) > LARGEST_SHEET:
                raise UserError("This spreadsheet is too large. Save the sheet as csv.")
            shared: list[str] = []
            if "xl/sharedStrings.xml" in parts.namelist():
                strings = ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))
                shared = ["".join(t.text or "" for t in string.iter(f"{name}t")) for string in strings]
            rows = []
            for row in ElementTree.fromstring(parts.read(sheet)).iter(f"{name}row"):
                cells: dict[int, str] = {}
                for cell in row.iter(f"{name}c"):
                    letters = "".join(c for c in cell.get("r", "") if c.isalpha())
                    column = sum((ord(c) - 64) * 26**i for i, c in enumerate(reversed(letters))) - 1
                    text = "".join(t.text or "" for t in (*cell.iter(f"{name}v"), *cell.iter(f"{name}t")))
                    cells[column if letters else len(cells)] = shared[int(text)] if cell.get("t") == "s" else text
                rows.append([cells.get(i, "") for i in range(min(max(cells, default=-1) + 1, 64))])
            return rows
    except (zipfile.BadZipFile, ElementTree.ParseError, ValueError, IndexError, KeyError) as error:
        raise UserError("This spreadsheet cannot be read. Save the sheet as csv.") from error


def read_text(content: bytes) -> str | None:
    """The text of a file, or None if it is not text."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):  # as spreadsheets write "Unicode text"
        return content.decode("utf-16", "replace")
    try:
        return None if b"\0" in content else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def read_lines(raw: str, paired: bool) -> tuple[dict[int, tuple[str, str]], list[str]]:
    """Texts, or pairs split at a tab or a bar, and one complaint per line that cannot be read."""
    lines: dict[int, tuple[str, str]] = {}
    complaints: list[str] = []
    for i, line in enumerate(LINE_END.split(raw), 1):
        if not line.strip():
            continue
        if len(lines) == MOST_LINES:
            complaints.append(f"Only the first {MOST_LINES} texts are used.")
            break
        parts = [p.strip() for p in line.replace("\t", "|").split("|")]
        if not paired and "\t" in line.strip():
            complaints.append(f"Line {i} has a tab, as between two texts; this task takes one text per line.")
        elif not paired:
            lines[i] = (line.strip(), "")
        elif len(parts) == 2 and all(parts):
            lines[i] = (parts[0], parts[1])
        elif len(parts) == 2:
            complaints.append(f"Line {i} is not a pair: one of its two texts is empty.")
        else:
            complaints.append(f"Line {i} is not a pair: write the two texts with a tab or | between them.")
    return lines, complaints


def many_rows(
    lines: Lines,
    paired: bool,
    columns: Sequence[Column],
    logits: Sequence[np.ndarray],
    labels: Sequence[str],
    shares: Shares,
    *,
    decides: bool = True,
) -> tuple[list[str], list[list[object]], list[float]]:
    """The header, one row per text, and how large the change of each is.

    A row has every column's answer and, with several, what changed against the first column. Where the answer
    ``decides`` for one class, a sure answer that has come near chance is *not sure*.
    """
    header = ["line", "text", *(["pair"] if paired else []), *(c.name for c in columns), "change"]
    rows: list[list[object]] = []
    sizes: list[float] = []
    for i, (number, (a, b)) in enumerate(lines.items()):
        texts = [number, a, *([b] if paired else [])]
        values = [table[i] for table in logits]
        cells: list[Any]
        change: Any
        if values[0].shape[-1] == 1:
            cells = [float(value[0]) for value in values]
            change = cells[-1] - cells[0]
            size = abs(change)
        elif any(np.isnan(p).all() for p in values):
            cells, change, size = ["–"] * len(values), "not answered", 0.0
        else:
            by_column = [shares(p, labels) for p in values]
            cells = [", ".join(f"{name} {share:.2f}" for name, share in named) for named in by_column]
            if decides:
                by_column = [
                    [("not sure", 0.0)] if no_longer_knows(values[0].tolist(), p.tolist()) else named
                    for p, named in zip(values, by_column, strict=True)
                ]
            change, size = change_of_text(by_column)
        rows.append([*texts, *cells, change])
        sizes.append(size)
    if len(columns) == 1:  # nothing to compare with
        return header[:-1], [row[:-1] for row in rows], sizes
    return header, rows, sizes


# ---- one text

ACROSS = 4  # answers in one row


def section(clf: Classifier, data: Dataset, shown: Text, columns: Sequence[Column]) -> None:
    """Everything about one text, then several texts at once."""
    if shown.empty:
        st.info(texts.EMPTY, icon=":material/edit:")
    else:
        one_text(clf, data, shown, columns)
    if not state.view().present:
        many_texts(clf, data, columns)


def one_text(clf: Classifier, data: Dataset, shown: Text, columns: Sequence[Column]) -> None:
    """What each column answers to the text, what has changed, and which words and heads did it."""
    try:
        values = answers(shown, columns)
    except UserError as error:
        refused(error, "warning")
        return
    for remark in texts.remarks(clf, shown):
        st.info(plain(remark))
    if not shown.own and (mismatch := loaders.mismatch(clf, data)):
        st.info(plain(f"The example's label does not apply to this model. {mismatch}"))
    view, off = state.view(), state.mask(clf.present).off
    sides_chosen = bool(view.first or view.other)
    if sides_chosen and len(columns) > 1 and clf.answer.decides:  # one column is left where a side was refused
        where = f"With “{columns[1].name}” in place of “{columns[0].name}”,"
        show.finding(answer_change(clf.labels, where, values[0].tolist(), values[1].tolist()))
    elif off and clf.answer.decides:
        names = heads_named([h for h in off if h not in clf.present.off], loaders.rows_of(clf))
        show.finding(answer_change(clf.labels, f"Without {names}", values[0].tolist(), values[1].tolist()))
    show_answers(clf, data, shown, columns, values)
    reordered(data, shown, columns)
    if off and not sides_chosen:
        which_head(clf, loaders.deciding(clf, data), shown, values)
    elif len(columns) == 1:
        offer_mask(clf.present, shown.slice)
    tokens(clf, shown, columns)
    if off and _is_on("shift", "Where attention moved", "Shows where each head looks elsewhere under the mask"):
        shift(clf, shown)


def show_answers(
    clf: Classifier, data: Dataset, shown: Text, columns: Sequence[Column], values: Sequence[np.ndarray]
) -> None:
    """The answer of each column in a box: the text with its parts marked, or else what it says as a whole."""
    if clf.answer.marked(shown.text, shown.pair, values[0], clf.labels) is None:
        verdicts(clf, loaders.deciding(clf, data), columns, values)
    else:
        marked(clf, shown, columns, values)


def verdicts(clf: Classifier, answer: Answer, columns: Sequence[Column], logits: Sequence[np.ndarray]) -> None:
    """The answer of each column with its change marked, and the probabilities as bars."""
    first, first_shares = logits[0], answer.shares(logits[0], clf.labels)
    has_names = first_shares[0][0] != ""
    for i, (column, values) in enumerate(zip(columns, logits, strict=True)):
        if i % ACROSS == 0:
            boxes = st.columns(min(ACROSS, len(columns)))
        with boxes[i % ACROSS], st.container(border=True, gap="xsmall", height="stretch"):
            st.caption(plain(column.name))
            if not has_names:
                st.markdown(f"### {numbers.number(float(values[0]))}")
                if i:
                    st.caption(plain(f"{numbers.signed(float(values[0] - first[0]))} against {columns[0].name}"))
                continue
            shares = answer.shares(values, clf.labels)
            st.markdown(f"### {plain(', '.join(f'{name} {share:.3f}' for name, share in shares))}")
            if dict(shares).keys() != dict(first_shares).keys():
                st.markdown(f":orange[**← changed** from {plain(', '.join(name for name, _ in first_shares))}]")
            elif i:
                change = max((a - b for (_, a), (_, b) in zip(shares, first_shares, strict=True)), key=abs)
                lost = answer.decides and no_longer_knows(list(first), list(values))
                st.caption(f"probability {numbers.points(change, 100)} points" if lost else same_answer(change))
            if answer.decides and (unsure := doubt(list(values), before=list(first) if i else None)):
                st.caption(plain(unsure))
    if has_names:
        show.figure(
            probabilities(
                [(c.name, [float(v) for v in values]) for c, values in zip(columns, logits, strict=True)], clf.labels
            ),
            "compare_bars",
            f"The probability that each model gives to each {answer.named[0]} for this text.",
            formula=answer.formula,
        )


COLOURS = ("blue", "green", "violet", "red", "yellow", "gray")


def marked(clf: Classifier, shown: Text, columns: Sequence[Column], logits: Sequence[np.ndarray]) -> None:
    """The text as each column answers it, with colours behind what it names, and an arrow before what changed."""
    by_column = [clf.answer.marked(shown.text, shown.pair, values, clf.labels) or [] for values in logits]
    kinds = list(dict.fromkeys(kind(name) for pieces in by_column for _, name in pieces if name))
    for i, (column, pieces) in enumerate(zip(columns, by_column, strict=True)):
        if i % 2 == 0:
            boxes = st.columns(min(2, len(columns)))
        with boxes[i % 2], st.container(border=True, gap="xsmall", height="stretch"):
            st.caption(plain(column.name))
            pairs = list(zip(pieces, by_column[0], strict=True))
            st.markdown(" ".join(escaped(piece, piece != first, kinds) for piece, first in pairs))
            changes = [f"{text}: {old or '–'} → {new or '–'}" for (text, new), (_, old) in pairs if new != old]
            if changes:
                st.markdown(f":orange[**← changed:**] {plain('; '.join(changes[:12]))}")
            elif i:
                st.caption("the same answer")


def kind(name: str) -> str:
    """What shares a colour: B and I of a span have one type."""
    return name[2:] if name[:2] in ("B-", "I-") else name


def escaped(piece: tuple[str, str], differs: bool, kinds: Sequence[str]) -> str:
    text, name = plain(piece[0]), piece[1]
    if name:  # a span needs no name at each of its words
        shown = f"**{text}**" if name == ANSWER else f"{text} **{plain(name)}**"
        text = f":{COLOURS[kinds.index(kind(name)) % len(COLOURS)]}-background[{shown}]"
    return f"**→** {text}" if differs else text


MOST_PASSAGES = 100  # of one query, in the table


def reordered(data: Dataset, shown: Text, columns: Sequence[Column]) -> None:
    """The passages of the query in the order of the full model, with their place in every column."""
    example = min(state.view().example, len(data) - 1)
    members = np.flatnonzero(data.units == data.units[example])
    if len(members) < 2 or data.pairs is None:
        return
    passages = {data.pairs[i]: data[int(i)].label for i in members[:MOST_PASSAGES]}
    if shown.own:  # the relevances are those of another query
        passages = dict.fromkeys([*([shown.pair] if shown.pair else []), *passages])
    scores = [answer(c.clf, [shown.text] * len(passages), [*passages], c.mask)[:, 0] for c in columns]
    show.table(reordering([*passages.items()], scores, [c.name for c in columns], data.answer.text_names))


def reordering(
    passages: Sequence[tuple[str, Any]], scores: Sequence[np.ndarray], columns: Sequence[str], names: Sequence[str]
) -> Table:
    """A row for each passage, first the one that the first column puts first; arrows say where it went."""
    first, *others = [places(of_column) for of_column in scores]
    moved = sum(any(other[i] != first[i] for other in others) for i in range(len(passages)))
    rows = []
    for i in np.argsort(first, kind="stable"):
        text, relevance = passages[i]
        cells = [f"{first[i]:g}"]
        for other in others:
            down = float(other[i] - first[i])
            arrow = f" {'↓' if down > 0 else '↑'} {abs(down):g}" if down else ""
            cells.append(f"{other[i]:g}{arrow}")
        rows.append([*cells, "–" if relevance is None else f"{relevance:g}", text])
    sentence = f" {moved} of {len(passages)} change their place." if len(scores) > 1 else ""
    caption = f"The place of each {names[1].lower()} of this {names[0].lower()}, 1 = first.{sentence}"
    return Table("compare_order", (*columns, "relevance", names[1].lower()), rows, caption)


def same_answer(change: float) -> str:
    """How far the probability of an unchanged answer moved."""
    if not change:
        return "same answer, same probability"
    if abs(change) < 0.0005:
        return f"same answer, less than 0.1 points {'more' if change > 0 else 'less'} likely"
    return f"same answer, probability {numbers.points(change, 100)} points"


def tokens(clf: Classifier, shown: Text, columns: Sequence[Column]) -> None:
    """How much each token speaks for the answer, in every column, on one colour scale."""
    if not clf.answer.explains or not _is_on("tokens", "Token attributions", "Which words speak for the answer"):
        return
    results = []
    for column in columns:
        key = (*loaders.identity(column.clf), "tokens", shown.text, shown.pair, column.mask.hex)
        result = jobs.need(key, f"Attributing tokens: {column.name}", partial(_tokens, column, shown))
        if result is None:
            return
        results.append(result)
    rows = [(column.name, result.target_label, result.values) for column, result in zip(columns, results, strict=True)]
    show.figure(
        maps.token_rows(rows, results[0].tokens),
        "compare_tokens",
        "How much each token speaks for (blue) or against (orange) each model's own answer, on one colour scale.",
        formula=r"(x - x') \cdot \int_0^1 \nabla F(x' + a(x - x'))\,da",
        source="Integrated gradients on the word embeddings, from padding to the input (Captum).",
    )


def _is_on(name: str, label: str, help: str) -> bool:
    """Whether the reader wants this part; a presentation hides the switch."""
    view = state.view()
    return bool(getattr(view, name)) if view.present else state.tick(name, label, help=help)


def _tokens(column: Column, shown: Text, progress: jobs.Progress, cancel: jobs.Cancel) -> TokenAttributions:
    mask = column.mask if column.mask.off else None
    return headviz.token_attributions(column.clf, shown.text, shown.pair, mask=mask)


# ---- the same as a call and as a command

CLF, MASK = Code("clf"), Code("mask")
PRINTED = "print(result.to_json())"


def recipe(view: View, clf: Classifier, shown: Text) -> tuple[str, str]:
    """The answer from the library; the command explains the same text."""
    texts = ([shown.text],) if shown.pair is None else ([shown.text], [shown.pair])
    logits = "clf.logits(batch, mask)"
    lines = (
        f"batch = clf.collate({call('clf.encode', *texts)})",
        f"print(clf.labels, {logits}.softmax(-1))" if clf.answer.decides else f"print({logits})",
    )
    options = (("text", shown.text), ("text-pair", shown.pair), ("out", "maps.npz"))
    return recipe_of(view, clf, lines, "conductance", options)


def recipe_of(view: View, clf: Classifier, lines: Sequence[str], words: str, options: Options) -> tuple[str, str]:
    """Lines after the model and its mask, and the command's own words and options."""
    mask = state.mask(clf.present)
    filled, stand_in = recipes.model_filled(view, measure.stand_in_of_model(mask))
    code = (recipes.HEADVIZ, recipes.load(view), *filled, recipes.mask_of(mask), *lines)
    all_options = (*recipes.model_options(view), *options, *recipes.mask_options(mask), *stand_in)
    return "\n".join(code), command(words, all_options)

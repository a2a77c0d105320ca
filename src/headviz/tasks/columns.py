"""From a table's columns to texts, labels and slices. Every cell is checked; columns that are guessed are named."""

from __future__ import annotations

import collections.abc
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answers import ANSWERS
from ..answers.answer import IGNORED
from ..answers.catalogue import usual_job
from ..answers.class_names import match_names
from ..answers.span import touched_units
from ..answers.tokens import INSIDE, spans, tag_names, types_in
from ..errors import TaskError, is_one_of, shown, unknown_choice
from .catalogue import Task
from .readers import Table, stoppable

NO_SLICE = "(none)"
UNLABELLED = "-"  # marks examples of the NLI corpora on which the annotators did not agree
MAX_CLASSES = 200
SEVERAL = "|"  # between the labels of one cell
MAX_BROKEN_SHARE = 0.01


Read = tuple[np.ndarray, list[str]]  # labels, with notes for the user
TableLike = collections.abc.Mapping[str, Sequence[Any]]  # cells by column


@dataclass(frozen=True)
class Mapping:
    """Which columns hold the texts, the label and the slices."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]  # one, or a column of 0 and 1 for each of several labels
    slice: str | None = None


@dataclass(frozen=True)
class Columns:
    texts: tuple[str, ...]
    pairs: tuple[str, ...] | None
    labels: np.ndarray
    slices: tuple[str, ...] | None
    notes: tuple[str, ...]


def require(table: Table, columns: Sequence[str], advice: str, options: Sequence[str] = ()) -> None:
    """A ``TaskError`` if the table lacks one of these columns.

    ``advice`` says what the user can do; ``options`` are the options that name the columns.
    """
    missing = [c for c in columns if c not in table.columns]
    if missing:
        raise TaskError(
            f"{table.name} has no column {' and no column '.join(repr(c) for c in missing)}. "
            f"Its columns are: {', '.join(table.columns)}. {advice}{header_doubt(table)}",
            options=tuple(options),
        )


def take(table: Table, mapping: Mapping, task: Task, lenient: bool = False, skip_bad: bool = False) -> Columns:
    """Texts, labels and slices of a table.

    ``lenient`` is for published files: their few rows with an empty cell are left out, and an empty text is a text
    there. In other files a row without text or label is an error, or left out and counted with ``skip_bad``.
    """
    empty = _is_missing if lenient else _is_blank
    missing = {i: c for c in mapping.texts for i, cell in enumerate(stoppable(table.columns[c])) if empty(cell)}
    for column in mapping.labels if task.answer.label_needed else ():
        missing |= {i: column for i, cell in enumerate(stoppable(table.columns[column])) if _is_blank(cell)}
    if missing and not lenient and not skip_bad:
        first = min(missing)
        more = f" ({len(missing):,} such rows in all)" if len(missing) > 1 else ""
        raise TaskError(
            f"{table.at(first)}: nothing in column '{missing[first]}'{more}. Fill it in or remove the row, or have "
            "such rows left out and counted (--skip-bad, skip_bad=True).",
            options=("skip_bad",),
        )
    unlabelled = 0
    keep: list[int] = []
    for i in stoppable(range(len(table))):
        if i in missing:
            continue
        if UNLABELLED not in task.label_names and table.columns[mapping.labels[0]][i] == UNLABELLED:
            unlabelled += 1
        else:
            keep.append(i)
    broken = [*table.broken, *((table.lines[i], f"nothing in column '{c}'") for i, c in sorted(missing.items()))]
    notes = [*table.notes, *_broken_notes(table, broken, skip_bad)]
    if unlabelled:
        notes.append(f"{unlabelled:,} rows of {table.name} left out: no gold label ('{UNLABELLED}')")
    if not keep:
        raise TaskError(f"{table.name} has no row with both a text and a label. Check which columns hold them.")

    read_texts = TEXTS.get(task.answer.columns, _texts)
    texts = [tuple(read_texts(table, c, keep)) for c in mapping.texts]
    notes += text_doubts(table, mapping.texts, texts, keep, published=lenient)
    labels, label_notes = READ_LABELS[task.answer.columns](table, mapping, keep, task)
    notes += [] if lenient else label_notes
    slices = None
    if mapping.slice is not None:
        cells = [table.columns[mapping.slice][i] for i in keep]
        slices = tuple(NO_SLICE if _is_missing(c) else _text_of(c) or NO_SLICE for c in cells)
    return Columns(texts[0], texts[1] if len(texts) > 1 else None, labels, slices, tuple(notes))


def check_job(job: str | None) -> None:
    """Refuse a job that the user's own data cannot have; None leaves it to the cells."""
    jobs = [name for name, answer in ANSWERS.items() if answer.columns]
    if job is not None and not is_one_of(job, jobs):
        raise TaskError(unknown_choice("job of your own data", job, jobs))


def custom_task(task: Task, cells: Sequence[Any], file: str, mapping: Mapping, job: str | None) -> Task:
    """The user's own task, with the classes and the metrics that follow from the cells of its label column."""
    if len(mapping.labels) > 1:
        answer = next(answer for answer in ANSWERS.values() if answer.several_columns)
        if job not in (None, answer.job):
            raise TaskError(f"Several label columns are the job '{answer.job}', not '{job}'. Name one column.")
        return replace(task, job=answer.job, metrics=answer.usual, label_names=mapping.labels)
    job = job or usual_job(looks_like_regression(cells))
    task = replace(task, job=job, metrics=ANSWERS[job].usual)
    names = NAMES.get(task.answer.columns)
    if names is None:
        return task
    task = replace(task, label_names=names(cells, file, mapping.labels[0]))
    counts = Counter(label_text(cell) for cell in stoppable(cells) if not _is_blank(cell))
    return replace(task, metrics=task.answer.usual_for({name: counts[name] for name in task.label_names}))


# Which columns hold what, by their names and then by their cells ------------------------------------------------------

LABEL_COLUMNS = tuple("label gold_label labels class target gold relevance category sentiment score stars".split())
PAIRED_COLUMNS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text", "text_pair"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("query", "passage"),
)
TEXT_COLUMNS = ("text", "sentence", "content", "review", "comment", "tweet", "body", "document")


def guess_label(table: TableLike, classes: Sequence[str] = (), sure: bool = False) -> str:
    """The column with a usual name for labels, else the one with most of the model's classes, else the last one.

    With ``sure``, not the last one but the only one with few values, and an empty text if none or several have few.
    """
    names = {name.casefold().strip(): name for name in reversed(list(table))}
    usual = next((names[n] for n in LABEL_COLUMNS if n in names), None)
    if usual is not None:
        return usual
    lower_classes = {str(c).casefold() for c in classes}
    counts = {n: sum(str(c).casefold().strip() in lower_classes for c in cells) for n, cells in table.items()}
    column = max(counts, key=counts.__getitem__, default="")
    # an empty cell or a misspelt class in some rows does not hide the column
    if column and 2 * counts[column] > len(table[column]):
        return column
    if not sure:
        return list(table)[-1]
    candidates = [name for name, cells in table.items() if _has_classes(cells)]
    return candidates[0] if len(candidates) == 1 else ""


def _has_classes(cells: Sequence[Any]) -> bool:
    """Whether there are two values or more, each in three rows on average."""
    if any(isinstance(cell, list | dict) for cell in cells):
        return False
    values = {label_text(cell) for cell in stoppable(cells) if not _is_blank(cell)}
    return 2 <= len(values) <= min(MAX_CLASSES, len(cells) // 3)


def guess_texts(table: TableLike, label: str, num_texts: int | None = None, sure: bool = False) -> list[str]:
    """Columns with usual names for texts, else the first ones in which most cells have several words.

    ``num_texts`` is how many the model takes; None = one or two. With ``sure``, an empty list where several columns
    have cells of several words.
    """
    others = [n for n in table if n != label]
    names = {name.casefold().strip(): name for name in reversed(others)}
    pair = next(([names[n] for n in pair] for pair in PAIRED_COLUMNS if set(pair) <= set(names)), None)
    if pair is not None and num_texts != 1:
        return pair
    usual = next((names[n] for n in TEXT_COLUMNS if n in names), None)
    if usual is not None and num_texts != 2:
        return [usual]
    texts = [n for n in others if _wordy(table[n][:200])]
    if sure:
        return texts if len(texts) == 1 else []
    return (texts or others)[: 2 if len(texts) > 1 and num_texts != 1 else 1]


def _wordy(cells: Sequence[Any]) -> bool:
    """Whether most cells are texts of several words."""
    return 2 * sum(isinstance(c, str) and len(c.split()) > 1 for c in cells) > len(cells)


def class_names(cells: Sequence[Any], file: str, column: str) -> tuple[str, ...]:
    """The classes of a user's label column, in the order of numbers or of the alphabet."""
    classes = {label_text(c) for c in stoppable(cells) if not _is_blank(c)}
    if len(classes) > MAX_CLASSES:
        raise TaskError(
            f"Column '{column}' of {file} has {len(classes):,} different values, too many for classes "
            f"(at most {MAX_CLASSES}). Choose the label column (--label-column, label_column=), or say that the labels "
            "are numbers to be predicted (--regression, regression=True).",
            options=("label_column",),
        )
    if len(classes) < 2:
        raise TaskError(
            f"Column '{column}' of {file} has only one value ({', '.join(classes)}); a task needs two classes or more. "
            "Choose another label column (--label-column, label_column=).",
            options=("label_column",),
        )
    if all(_as_number(name) is not None for name in classes):
        return tuple(sorted(classes, key=lambda name: (_as_number(name) or 0.0, name)))
    return tuple(sorted(classes))


def looks_like_regression(cells: Sequence[Any]) -> bool:
    """Whether a label column holds numbers that are not all whole: scores, not classes. One that is not finite is
    refused where the numbers are read."""
    values = [_as_number(c) for c in stoppable(cells) if not _is_blank(c) and not _is_endless(c)]
    return bool(values) and all(v is not None for v in values) and any(v != round(v) for v in values if v is not None)


def label_text(cell: Any) -> str:
    """A class label as text: 1, 1.0, '1' and '1.0' are the same class."""
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", _text_of(cell))


def _text_of(cell: Any) -> str:
    try:
        text = str(cell).strip()
    except ValueError:  # a whole number of thousands of digits
        raise TaskError("A label or slice is a number of thousands of digits. Choose another column.") from None
    if not _is_unicode(text):
        raise TaskError(f"The label {text[:40]!a} holds half a character. Mend the row.")
    return text


def _is_missing(cell: Any) -> bool:
    # An empty text is a text: QQP has some.
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _is_blank(cell: Any) -> bool:
    return _is_missing(cell) or (isinstance(cell, str) and not cell.strip())


def _broken_notes(table: Table, broken: list[tuple[int, str]], skip_bad: bool) -> list[str]:
    if not broken:
        return []
    line, why = min(broken)
    total = len(table) + len(table.broken)
    if not skip_bad and len(broken) > max(5, MAX_BROKEN_SHARE * total):
        raise TaskError(
            f"{table.name}: {len(broken):,} of {total:,} rows are broken, the first on line {line} ({why}). "
            "Get the file again; its fields must be separated by tabs and not quoted."
        )
    if len(broken) == 1:
        return [f"1 broken row of {table.name} left out, on line {line} ({why})"]
    return [f"{len(broken):,} broken rows of {table.name} left out, the first on line {line} ({why})"]


def _texts(table: Table, column: str, keep: Sequence[int]) -> list[str]:
    cells = table.columns[column]
    for i in stoppable(keep):
        if not isinstance(cells[i], str):
            raise TaskError(
                f"{table.at(i)}: column '{column}' holds {type(cells[i]).__name__} {shown(cells[i])}, not text. "
                "Choose the text columns (--text-columns, text_columns=).",
                options=("text_columns",),
            )
        if not _is_unicode(cells[i]):
            raise TaskError(
                f"{table.at(i)}: column '{column}' holds half a character (a lone surrogate). Mend the row."
            )
    return [cells[i] for i in keep]


def _is_unicode(text: str) -> bool:
    """Whether a text can be written down; JSON may name halves of characters, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _numbers(table: Table, mapping: Mapping, keep: Sequence[int], task: Task) -> Read:
    (column,) = mapping.labels
    out = np.empty(len(keep), dtype=np.float64)
    for k, i in enumerate(keep):
        value = _as_number(table.columns[column][i])
        if value is None:
            raise TaskError(
                f"{table.at(i)}: '{table.columns[column][i]}' in column '{column}' is not a finite number, which "
                "this task needs. Choose the label column (--label-column, label_column=).",
                options=("label_column",),
            )
        out[k] = value
    return out, []


def _as_number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):  # a whole number that no float can hold
        return None
    return value if math.isfinite(value) else None


def _is_endless(cell: Any) -> bool:
    """Whether a cell says nan or inf."""
    return isinstance(cell, str) and cell.strip().lstrip("+-").lower() in ("nan", "inf", "infinity")


def _class_indices(table: Table, mapping: Mapping, keep: Sequence[int], task: Task) -> Read:
    (column,) = mapping.labels
    cells = table.columns[column]
    for i in keep:
        if isinstance(cells[i], list | dict):
            raise TaskError(f"{table.at(i)}: column '{column}' holds a {type(cells[i]).__name__}, not a label.")
    texts = [label_text(cells[i]) for i in stoppable(keep)]
    index = _label_lookup(sorted(set(texts)), task.label_names)
    unknown = list(dict.fromkeys(t for t in texts if t not in index))
    if unknown:
        first = keep[texts.index(unknown[0])]
        quoted = ", ".join(repr(t[:40]) for t in unknown[:5]) + (" …" if len(unknown) > 5 else "")
        raise TaskError(
            f"{table.at(first)}: column '{column}' has labels that task '{task.name}' does not know: {quoted}. "
            f"Its labels are {', '.join(task.label_names)}, or their numbers from 0. "
            "Choose the label column (--label-column, label_column=), or use task 'custom'.",
            options=("label_column",),
        )
    labels = np.array([index[t] for t in texts], dtype=np.int64)
    if task.name == "custom":  # its classes are those of the files
        lacking = _lacking(table, task.label_names, np.bincount(labels, minlength=len(task.label_names)))
        return labels, lacking + label_doubts(table, task.label_names, labels, keep)
    if any(t not in task.label_names and t.isdecimal() for t in index):
        return labels, ["numeric labels read as " + ", ".join(f"{i} = {n}" for i, n in enumerate(task.label_names))]
    return labels, []


def _several(table: Table, mapping: Mapping, keep: Sequence[int], task: Task) -> Read:
    """A table of 0 and 1: from a column for each label, or from one whose cells hold names with ``|`` between them."""
    names, columns = task.label_names, mapping.labels
    if len(columns) == 1:
        cells = [split_labels(table.columns[columns[0]][i]) for i in keep]
        out = np.array([[name in labels for name in names] for labels in cells], dtype=np.int64)
        return out, _lacking(table, names, out.sum(axis=0))
    out = np.empty((len(keep), len(columns)), dtype=np.int64)
    for j, column in enumerate(columns):
        for k, i in enumerate(keep):
            cell = table.columns[column][i]
            value = _as_number(int(cell) if isinstance(cell, bool) else cell)
            if value not in (0, 1):
                raise TaskError(
                    f"{table.at(i)}: column '{column}' holds {shown(cell)}; a column for one of several labels holds "
                    "0 or 1. Choose the label columns (--label-column a,b,c, label_column=).",
                    options=("label_column",),
                )
            out[k, j] = value
    return out, _lacking(table, names, out.sum(axis=0))


def _lacking(table: Table, names: Sequence[str], counts: np.ndarray) -> list[str]:
    """The note on labels that other files of the data have."""
    missing = [name[:40] for name, count in zip(names, counts.tolist(), strict=True) if not count]
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    named = f"{'s' * (len(missing) > 1)} {', '.join(missing[:MOST_NAMED])}{more}"
    return [f"no row of {table.name} has the label{named}"] if missing else []


def split_labels(cell: Any) -> tuple[str, ...]:
    """The labels in one cell, ``a|b``; none in an empty one."""
    if _is_blank(cell):
        return ()
    return tuple(dict.fromkeys(name.strip() for name in label_text(cell).split(SEVERAL) if name.strip()))


def _names_of_several(cells: Sequence[Any], file: str, column: str) -> tuple[str, ...]:
    return class_names([name for cell in cells for name in split_labels(cell)], file, column)


def _relevances(table: Table, mapping: Mapping, keep: Sequence[int], task: Task) -> Read:
    grades, notes = _numbers(table, mapping, keep, task)
    if (grades < 0).any():
        first = keep[int(np.argmax(grades < 0))]
        raise TaskError(
            f"{table.at(first)}: the relevance in column '{mapping.labels[0]}' is negative. Give 0 for a passage that "
            "is not relevant, and more for the others."
        )
    return grades, notes


def _words(table: Table, column: str, keep: Sequence[int]) -> list[str]:
    """Texts from lists of words: the words with a space between them."""
    for i in keep:
        words = table.columns[column][i]
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise TaskError(
                f"{table.at(i)}: column '{column}' holds {shown(words)}, not a list of words. Choose the text column "
                "(--text-columns, text_columns=).",
                options=("text_columns",),
            )
        if split := [word for word in words if word.split() != [word] or not _is_unicode(word)]:
            raise TaskError(f"{table.at(i)}: {shown(split[0])} is no word: it holds a space or half a character.")
    return [" ".join(table.columns[column][i]) for i in keep]


def _tags(table: Table, mapping: Mapping, keep: Sequence[int], task: Task) -> Read:
    """A row of class numbers for each text, one for each of its words."""
    (words,), (column,), names = mapping.texts, mapping.labels, task.label_names
    rows = [_listed(table, column, i) for i in keep]
    for i, tags in zip(keep, rows, strict=True):
        if len(tags) != (count := len(table.columns[words][i])):
            raise TaskError(f"{table.at(i)}: {count} words, but {len(tags)} tags. Give one for each word.")
    ids = np.full((len(keep), max(map(len, rows))), IGNORED, dtype=np.int64)
    lookup = _label_lookup(sorted({tag for tags in rows for tag in tags}), names)
    for k, (i, tags) in enumerate(zip(keep, rows, strict=True)):
        if unknown := [tag for tag in tags if tag not in lookup]:
            raise TaskError(
                f"{table.at(i)}: task '{task.name}' does not know the tag '{unknown[0][:40]}'. Its tags are "
                f"{', '.join(names)}."
            )
        ids[k, : len(tags)] = [lookup[tag] for tag in tags]
    counts = np.bincount(ids[ids >= 0], minlength=len(names))
    missing = [name for name, count in zip(names, counts, strict=True) if not count and name[:2] != INSIDE]
    notes = [f"no word of {table.name} has the tag {name}" for name in missing]
    if types_in(names) and (stray := int(((ids > 0) & (ids % 2 == 0) & ~spans(ids)[1]).sum())):
        notes.append(
            f"{stray:,} words have a tag I-… without a span before them, and are in none: in IOB2 a span begins with B-"
        )
    return ids, notes


def _spans(table: Table, mapping: Mapping, keep: Sequence[int], task: Task) -> Read:
    """The first and last unit of each answer to a question, -1 where it has none."""
    (column,), passages, rows = mapping.labels, table.columns[mapping.texts[1]], []
    for i in keep:
        cell = table.columns[column][i] or []
        if isinstance(cell, dict):  # as ``datasets`` has it
            texts, starts = (cell.get(name) or [] for name in ("text", "answer_start"))
            if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
                raise TaskError(
                    f"{table.at(i)}: in column '{column}' text and answer_start are not lists of one length: "
                    f"{shown(cell)}."
                )
            cell = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
        spans = []
        for answer in cell if isinstance(cell, list) else (None,):
            text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
            if not isinstance(text, str) or isinstance(start, bool) or not isinstance(start, int):
                raise TaskError(
                    f"{table.at(i)}: an answer in column '{column}' is no text with its answer_start: {shown(answer)}."
                )
            at = touched_units(passages[i], start, start + len(text))
            if start < 0 or passages[i][start : start + len(text)] != text or at[0] < 0:
                raise TaskError(
                    f"{table.at(i)}: the answer '{text[:40]}' does not stand at character {start} of its passage."
                )
            spans.append(at)
        rows.append(spans or [(-1, -1)])
    labels = np.full((len(rows), max(map(len, rows)), 2), IGNORED, dtype=np.int64)
    for row, spans in zip(labels, rows, strict=True):
        row[: len(spans)] = spans
    none = sum(spans[0][0] < 0 for spans in rows)
    return labels, [f"{none:,} of {len(rows):,} questions have no answer in their passage"] if none else []


def _listed(table: Table, column: str, row: int) -> list[str]:
    cell = table.columns[column][row]
    if not isinstance(cell, list):
        raise TaskError(
            f"{table.at(row)}: column '{column}' holds {shown(cell)}, not a list of tags. Choose the label column "
            "(--label-column, label_column=).",
            options=("label_column",),
        )
    return [label_text(tag) for tag in cell]


def _names_of_tags(cells: Sequence[Any], file: str, column: str) -> tuple[str, ...]:
    return tag_names(class_names([tag for cell in cells if isinstance(cell, list) for tag in cell], file, column))


# by ``Answer.columns``: how cells become texts and labels, with notes for the user, and which names the labels have
TEXTS = {"tokens": _words}
READ_LABELS = {
    "class": _class_indices,
    "number": _numbers,
    "labels": _several,
    "relevance": _relevances,
    "tokens": _tags,
    "span": _spans,
}
NAMES = {"class": class_names, "labels": _names_of_several, "tokens": _names_of_tags}


def _label_lookup(classes: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """The class number of each label in the file, which is a class's name, or its number in the task's order."""
    lookup: dict[str, int] = {}
    for text in classes:
        matches = match_names([text], names)
        if matches is not None:
            lookup[text] = matches[0]
        elif text.isdecimal() and len(text) <= 9 and int(text) < len(names):
            lookup[text] = int(text)
    return lookup


# Notes about what looks wrong in a file that can be read. Nothing is changed: an empty text is a text (published data
# have some), and a rare label may be intended. ---------------------------------------------------------------------


RARE, FEW = 0.1, 3  # a label of at most 3 rows, and of at most a tenth of the mean number for a label, may be a mistake
MOST_NAMED = 3


def header_doubt(table: Table) -> str:
    """Why the expected columns are missing, if the header shows it."""
    if table.name.lower().endswith(".tsv") and any(_wrapped(n) for n in table.columns):
        return " The header is quoted, and in a .tsv quotation marks are ordinary characters; save it as .csv."
    return ""


def text_doubts(
    table: Table, columns: Sequence[str], texts: Sequence[Sequence[str]], keep: Sequence[int], published: bool
) -> list[str]:
    """Notes about empty texts, and about fields of a tsv file that another program seems to have quoted."""
    notes = []
    empty = sorted(
        (i, c)
        for c, column_texts in zip(columns, texts, strict=True)
        for i, t in zip(stoppable(keep), column_texts, strict=True)
        if not t.strip()
    )
    if empty:
        what = "1 text is empty" if len(empty) == 1 else f"{len(empty):,} texts are empty"
        notes.append(f"{what} ({_first(table, empty)}) and measured so; fill in or remove what is not meant")
    if not published and table.name.lower().endswith(".tsv"):
        quoted = [(i, c) for i in keep for c in columns if _quoted(table.columns[c][i])]
        if quoted:
            what = "1 text looks" if len(quoted) == 1 else f"{len(quoted):,} texts look"
            notes.append(
                f"{what} quoted by another program ({_first(table, quoted)}): in a .tsv quotation marks are read as "
                "text; save the file as .csv to have them taken off"
            )
    return notes


def label_doubts(table: Table, names: Sequence[str], labels: np.ndarray, keep: Sequence[int]) -> list[str]:
    """Notes about labels so rare that they may be mistakes, with the first row of each."""
    counts = np.bincount(labels, minlength=len(names))
    rare = [k for k, n in enumerate(counts.tolist()) if 0 < n <= min(FEW, RARE * len(keep) / len(names))]
    if not rare:
        return []
    doubts = [
        f"'{names[k][:40]}' is the label of {counts[k]:,} of {len(keep):,} rows only "
        f"({table.at(keep[int(np.argmax(labels == k))])})"
        for k in rare[:MOST_NAMED]
    ]
    more = f"; {len(rare) - MOST_NAMED} more labels are as rare" if len(rare) > MOST_NAMED else ""
    return [f"{', '.join(doubts)}{more}: a mistake? Every label counts as a class"]


def _first(table: Table, cells: Sequence[tuple[int, str]]) -> str:
    row, column = cells[0]
    return f"{'the first: ' if len(cells) > 1 else ''}{table.at(row)}, column '{column}'"


def _wrapped(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _quoted(text: str) -> bool:
    """Whether a field is quoted as in csv: in quotation marks, and those inside doubled."""
    inside = text[1:-1]
    return _wrapped(text) and '""' in inside and '"' not in inside.replace('""', "")

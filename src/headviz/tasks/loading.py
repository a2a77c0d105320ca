"""``load_task``: find a split in the shipped data, in local files or on the hub, and read it."""

from __future__ import annotations

import collections.abc
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import huggingface_hub
import numpy as np

from .. import plugins
from ..answers import ANSWERS
from ..answers.catalogue import usual_job
from ..errors import TaskError, is_one_of, shown
from ..storage.paths import broken_off, obtain, outside_path
from . import columns
from .catalogue import Task, check_split, get_task, judged_by
from .columns import Mapping
from .dataset import Dataset
from .readers import (
    FORMATS,
    IN_COLUMNS,
    SEPARATORS,
    TEXT_FORMATS,
    ZIPPED,
    Table,
    format_of,
    in_memory,
    read_parquet,
    read_ranking,
    read_tables,
    table_of,
)
from .sampling import limited, require_size

if TYPE_CHECKING:  # huggingface_hub loads it with its functions, and an HTTP client with it
    import huggingface_hub.errors

_OTHER_STEMS = {"dev": ("validation", "valid", "val")}
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})")  # a part of a split, as the hub and ``save_to_disk`` name them
_ENDINGS = (*FORMATS, *(ending + ZIPPED for ending in TEXT_FORMATS))
_SAVED = "state.json"  # next to the arrow files of ``save_to_disk``
_SHOWN = 8  # names of what a folder holds
_MAPPING = ("text_columns", "label_column")
SIGNS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
_MAP_LOCAL = "Name the right ones (--text-columns, --label-column; text_columns=, label_column=)."


def load_task(
    name: str,
    split: str = "dev",
    data: str | os.PathLike[str] | Any = None,
    limit: int | None = None,
    text_columns: str | Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    seed: int = 0,
    slice_column: str | None = None,
    regression: bool | None = None,
    job: str | None = None,
    separator: str | None = None,
    skip_bad: bool = False,
    metrics: str | Sequence[str | Callable[..., float]] | Callable[..., float] | None = None,
    thresholds: str | float | Sequence[float] | None = None,
) -> Dataset:
    """One split of a task, in file order.

    ``data``: a folder with GLUE's own files, with train and dev files as tsv, csv, jsonl, json or parquet (whole or in
    the hub's parts, also in ``data/``, text files also as .gz), for tags as CoNLL columns, or of ``save_to_disk``; or
    one such file. In memory: a ``Dataset`` or ``DatasetDict`` of ``datasets``, a DataFrame, a list of dicts, a dict of
    lists. None = the demo's own data, or the hub. ``limit``: that many examples, drawn with ``seed``, stratified by
    label and slice. ``text_columns``: one or two, as a sequence or ``"a,b"``. ``slice_column``: groups to report
    separately. ``regression``: for ``custom``, whether labels are numbers to be predicted; None = yes if a label is
    a number with decimals. ``job``: what ``custom`` asks a model for, where file and columns do not say: "labels"
    for a column that holds several, ``a|b``. Several label columns, as a sequence or ``"a,b"``, hold 0 and 1.
    ``separator``: the sign between columns, where neither the ending nor the header shows it. ``skip_bad`` leaves
    out rows without text or label and counts them in the notes; without it they are an error. ``metrics`` take the
    place of the task's own: names, "f1_3" for F1 of class 3, and functions of gold and predicted classes.
    ``thresholds``: of several labels, the probability above which each is predicted, in the order of
    ``data.label_names``, or one number for all; .5 without it.

    >>> import headviz
    >>> data = headviz.load_task("demo", limit=30)
    >>> len(data), data.label_names
    (30, ('entailment', 'neutral', 'contradiction'))
    """
    task = check_request(name, split)
    mapped = text_columns is not None or label_column is not None or slice_column is not None
    texts = None if text_columns is None else _column_names("text", text_columns)
    if label_column is not None and not isinstance(label_column, str):  # a comma may be part of a single name
        label_column = _column_names("label", label_column)
    for what, column in (("label", label_column), ("slice", slice_column)):
        if not isinstance(column, str | tuple | None) or (isinstance(column, str) and not column.strip()):
            raise TaskError(f"The {what} column is given by its name, not as {shown(column)}.")
    if regression is not None and name != "custom":
        raise TaskError(
            f"Task '{name}' defines its own labels. Leave that option to 'custom' (--regression, regression=)."
        )
    if regression is not None and job is None:
        job = usual_job(regression)
    if name == "custom":
        columns.check_job(job)
    if separator is not None:
        if not is_one_of(separator, (*SIGNS, *SEPARATORS)):
            raise TaskError(f"A separator is one of {', '.join(SIGNS)}, or the sign itself, not {shown(separator)}.")
        separator = SIGNS.get(separator, separator)
    if data is not None:
        files = _files_of(task, data, separator, skip_bad)
        data_read = _load_local(task, split, files, texts, label_column, slice_column, job)
    elif task.source.own:
        raise TaskError(
            f"Task '{task.name}' needs your files: give a folder with train and dev files (--data FOLDER, data=).",
            options=("data",),
        )
    elif mapped:
        raise TaskError(
            f"Columns can be chosen for local files only; give them (--data FOLDER, data=) for '{name}'.",
            options=("data",),
        )
    elif task.source.module is not None:
        data_read = _load_shipped(task, split, limit)
    else:
        data_read = _load_hub(task, split)
    if metrics is not None:
        data_read = replace(data_read, task=judged_by(data_read.task, metrics))
    if thresholds is not None:
        data_read = _decided_at(data_read, thresholds)
    if limit is None:
        return data_read
    chosen = data_read.subset(limited(data_read, limit, seed))
    if len(chosen) == len(data_read):  # nothing was left out
        return data_read
    return replace(
        chosen, notes=(*data_read.notes, f"limited to {len(chosen):,} of {len(data_read):,} examples (seed {seed})")
    )


def _decided_at(data: Dataset, thresholds: str | float | Sequence[float]) -> Dataset:
    """The data with these thresholds, one number for all labels or one for each."""
    parts = thresholds.split(",") if isinstance(thresholds, str) else thresholds
    try:
        values = tuple(map(float, parts if isinstance(parts, Iterable) else [parts]))
    except (TypeError, ValueError):
        raise TaskError(f"Thresholds are numbers between 0 and 1, not {shown(thresholds)}.") from None
    names = data.label_names
    values *= len(names) if len(values) == 1 else 1
    data.answer.at(values, names)  # refuses values that are not allowed, and another number of them
    by_name = ", ".join(f"{value:g} ({name})" for name, value in zip(names, values, strict=True))
    note = f"predicted where the probability is above {by_name}"
    return replace(data, task=replace(data.task, thresholds=values), notes=(*data.notes, note))


def check_request(name: str, split: str = "dev") -> Task:
    """The task, if it and the split exist; reads nothing."""
    task = get_task(name)
    check_split(task, split)
    return task


def grammar_of(task: Task) -> tuple[dict[str, str], Callable[[str], list[tuple[str, int, int]]]] | None:
    """Relations of grammar by name, and what finds them in a text: (relation, begin of one word, of the other).

    Only the demo has one, whose sentences are made of known words.
    """
    module = None if task.source.module is None else import_module(task.source.module)
    make = getattr(module, "related_words", None)
    return None if make is None else make()


def _column_names(what: str, columns: str | Sequence[str]) -> tuple[str, ...]:
    """One or two different names for texts, one or more for labels."""
    parts = columns.split(",") if isinstance(columns, str) else columns
    if not isinstance(parts, list | tuple) or not all(isinstance(name, str) for name in parts):
        raise TaskError(f"The {what} columns are given by name, such as 'a,b', not as {shown(columns)}.")
    names = tuple(name.strip() for name in parts)
    most = 2 if what == "text" else len(names)
    if not 1 <= len(names) <= most or not all(names) or len(set(names)) != len(names):
        count, option = ("one or two", "text_columns") if what == "text" else ("one or more", "label_column")
        raise TaskError(
            f"Give {count} different {what} columns, such as a,b, not {shown(columns)} "
            f"(--{option.replace('_', '-')}, {option}=)."
        )
    return names


def _load_shipped(task: Task, split: str, limit: int | None) -> Dataset:
    """The shipped rows: text, pair, label (if there are classes), slice. A larger limit asks for more of them."""
    module = import_module(str(task.source.module))
    rows = module.read_split(split)
    if limit is not None:
        require_size(limit, "limit")
        if limit > len(rows) and hasattr(module, "read_more"):
            rows = module.read_more(split, limit)
    index = {label: i for i, label in enumerate(task.label_names)}
    return Dataset(
        task,
        split,
        texts=tuple(row[0] for row in rows),
        pairs=tuple(row[1] for row in rows),
        labels=np.array([index[row.label] for row in rows]) if index else None,
        slices=tuple(row[-1] for row in rows),
        slice_name=task.slice_name,
        origin="shipped with headviz",
    )


def _load_hub(task: Task, split: str) -> Dataset:
    source = task.source
    filename = source.hub_file(split)
    mapping = Mapping(source.hub_columns, ("label",))
    names = (*mapping.texts, *mapping.labels)
    path = fetch(task, filename)
    try:
        table = read_parquet(path, names)
    except TaskError as error:
        raise TaskError(
            f"The downloaded copy of {source.repo}/{filename} is damaged or incomplete. Delete {path} and try again."
        ) from error
    columns.require(table, names, "The files on the hub have changed; update headviz.")
    return _dataset(task, split, table, mapping, f"hub: {source.repo}/{filename}", published=True)


@dataclass(frozen=True)
class _Files:
    """The user's own data: a folder, a file, or an object in memory, by split or for any."""

    path: Path | None
    data: Any  # in memory
    separator: str | None
    skip_bad: bool

    def paths(self, task: Task, split: str) -> list[Path]:
        return [] if self.path is None else find_files(task, split, self.path)

    def table(self, task: Task, split: str, published: bool = False) -> Table:
        if self.path is not None:
            headerless = task.source.headerless if published else None
            return read_tables(self.paths(task, split), headerless, published or self.skip_bad, self.separator)
        name = f"the {type(self.data).__name__}"
        if not self.by_split:
            return table_of(self.data, name)
        stems = [stem for stem in _stems(task, split) if stem in self.data]
        if not stems:
            raise TaskError(
                f"{name} has no split '{split}'. It has: {', '.join(map(str, self.data))}.",
                code="no-split",
                split=split,
                place=None,
            )
        return table_of(self.data[stems[0]], f"{name}, {stems[0]}")

    @property
    def by_split(self) -> bool:
        """Whether other splits of the same data are there."""
        if self.path is not None:
            return self.path.is_dir()
        return (
            isinstance(self.data, collections.abc.Mapping)
            and bool(self.data)
            and all(map(_is_split, self.data.values()))
        )


def _is_split(value: Any) -> bool:
    """Whether a value of a dict is a split, not a column."""
    return in_memory(value) and not (isinstance(value, list | tuple) and not isinstance(next(iter(value), None), dict))


def _files_of(task: Task, data: Any, separator: str | None, skip_bad: bool) -> _Files:
    if not in_memory(data):
        return _Files(outside_path(data, "the data"), None, separator, skip_bad)
    if task.answer.own.get("reader") is not None:
        raise TaskError(f"Task '{task.name}' reads files: give a folder or a file.")
    return _Files(None, data, separator, skip_bad)


def _load_local(
    task: Task,
    split: str,
    files: _Files,
    texts: tuple[str, ...] | None,
    label: str | Sequence[str] | None,
    slice_column: str | None,
    job: str | None,
) -> Dataset:
    ranking = None
    if task.name == "custom" and files.path is not None:
        ranking = read_ranking(files.path, split)
    if ranking is not None:
        texts = label = None  # its columns have names of their own
    paths = [] if ranking is not None else files.paths(task, split)
    if (reader := task.answer.own.get("reader")) is not None:
        dataset: Dataset = plugins.function(reader)(task, split, paths[0], texts, label, slice_column)
        return dataset
    # GLUE's own files hold a few broken rows, which are always left out
    glue = texts is None and label is None and bool(task.source.local_folder)
    published = glue and bool(paths) and paths[0].suffix.lower() == ".tsv"
    table = ranking or files.table(task, split, published)
    jobs = [answer for answer in ANSWERS.values() if answer.text_columns] if task.name == "custom" else []
    for answer in jobs:
        if texts is None and {*answer.text_columns, answer.label_column} <= set(table.columns):
            texts, label = answer.text_columns, label or answer.label_column
    mapping, guessed = _map_local(task, table, texts, label, slice_column)
    for answer in jobs:
        if (*mapping.texts, *mapping.labels) == (*answer.text_columns, answer.label_column):
            # a ranking stays one where the job is that of a model which orders passages among others
            job = answer.job if job is None or answer.job in ANSWERS[job].others else job
    if task.name == "custom":
        # classes are taken from all splits, so that train and dev use the same numbers
        cells = list(table.columns[mapping.labels[0]])
        for other in task.splits if files.by_split and len(mapping.labels) == 1 else ():
            cells += [] if other == split else _other_labels(task, other, files, paths, mapping.labels[0])
        task = columns.custom_task(task, cells, table.name, mapping, job)
    origin = f"file: {table.name}" if files.path is not None else f"in memory: {table.name}"
    data = _dataset(task, split, table, mapping, origin, published, files.skip_bad)
    other_name = _other_name(task, split, paths[0]) if paths == [files.path] else []
    return replace(data, notes=(*guessed, *data.notes, *other_name))


def _other_name(task: Task, split: str, path: Path) -> list[str]:
    """The message on a file whose name is that of another split."""
    splits = [name for name in task.splits if path.name.partition(".")[0] in _stems(task, name)]
    return [] if not splits or split in splits else [f"{path.name} is read as {split}; its name says {splits[0]}"]


def _dataset(
    task: Task, split: str, table: Table, mapping: Mapping, origin: str, published: bool, skip_bad: bool = False
) -> Dataset:
    cells = columns.take(table, mapping, task, lenient=published, skip_bad=skip_bad)
    data = Dataset(
        task,
        split,
        texts=cells.texts,
        pairs=cells.pairs,
        labels=cells.labels,
        slices=cells.slices,
        slice_name=mapping.slice,
        origin=origin,
        notes=cells.notes,
    )
    name, slices = (None if data.slices else task.answer.slices(data)) or (data.slice_name, data.slices)
    slices = None if slices is None else tuple(slices)
    return replace(data, slice_name=name, slices=slices, notes=(*data.notes, *task.answer.doubts(data)))


def _stems(task: Task, split: str) -> list[str]:
    """What a split's file may be called, without its ending."""
    return list(dict.fromkeys((task.source.splits[split][1], split, *_OTHER_STEMS.get(split, ()))))


def require_files(task: Task, path: Path) -> None:
    """Refuse a path where there is neither a folder nor a file."""
    if not path.is_file() and not path.is_dir():
        files = "your own files" if task.source.own else f"the {task.title} files"
        raise TaskError(f"There is no folder or file {path}. Give the folder with {files} (--data).")


def find_files(task: Task, split: str, folder: Path) -> list[Path]:
    """The split's file, or its parts in their order: by the task's published name first, then by the split's name."""
    require_files(task, folder)
    if folder.is_file():
        return [folder]
    if (folder / _SAVED).is_file():
        return _parts(folder, None)
    stems = _stems(task, split)
    inside = task.source.local_folder
    for directory in [folder, *([folder / inside] if inside else []), folder / "data"]:
        for stem in stems:
            files = [p for p in (directory / f"{stem}.{ending}" for ending in _ENDINGS) if p.is_file()]
            if len(files) > 1:  # a .txt next to a table may be anything
                files = [p for p in files if format_of(p) not in IN_COLUMNS] or files
            if len(files) > 1:
                raise TaskError(
                    f"{directory} has both {files[0].name} and {files[1].name}. "
                    "Keep one of them, or give the file itself (--data)."
                )
            if files:
                return files
            saved = directory / stem
            if parts := _parts(saved, None) if (saved / _SAVED).is_file() else _parts(directory, stem):
                return parts
    raise TaskError(
        f"{folder} has no {split} file for task '{task.name}'. Looked for {', '.join(stems)} "
        f"as {', '.join('.' + f for f in FORMATS)}{f', also in {inside}/' if inside else ''}. {_holds(folder)}",
        code="no-split",
        split=split,
        place=folder,
    )


def _parts(folder: Path, stem: str | None) -> list[Path]:
    """The parts of a split, ``train-00000-of-00002.parquet``; of any name where ``stem`` is None."""
    parts: dict[int, Path] = {}
    total = 0
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _SHARD.fullmatch(path.name.partition(".")[0])
        if match is None or not format_of(path) or stem not in (None, match[1]):
            continue
        parts[int(match[2])], total = path, max(total, int(match[3]))
    if missing := [number for number in range(total) if number not in parts]:
        raise TaskError(
            f"{folder} has {len(parts)} of {total} parts of {stem or 'the data'}; number {missing[0]} is missing."
        )
    return [parts[number] for number in range(total)]


def _holds(folder: Path) -> str:
    """What is in a folder, for the message that refuses it."""
    names = sorted(path.name + ("/" if path.is_dir() else "") for path in folder.iterdir())
    if not names:
        return "It is empty."
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"It holds {', '.join(names[:_SHOWN])}{more}. Rename the file of this split, to dev.csv say, or give the file "
        "itself (--data FILE, data=)."
    )


def _map_local(
    task: Task, table: Table, texts: tuple[str, ...] | None, label: str | Sequence[str] | None, slice_column: str | None
) -> tuple[Mapping, list[str]]:
    """Which columns hold what, and a note that names those that were guessed."""
    source, guessed = task.source, []
    if task.name == "custom" and label is None and "label" not in table.columns:
        others = {name: cells for name, cells in table.columns.items() if name not in (texts or ())}
        if label := columns.guess_label(others, sure=True):
            guessed.append(f"the label is column '{label}'")
        else:
            label = None
    if texts is None and task.name == "custom":
        known_label = label if isinstance(label, str) else "label"
        texts = tuple(columns.guess_texts(table.columns, known_label, sure=True)) or None
        if texts is not None:
            guessed.append(f"the text is column {' and '.join(map(repr, texts))}")
    if texts is None:
        expected = [c for c in (source.local_columns, source.hub_columns) if c]
        if not expected:
            raise TaskError(
                f"Which columns of {table.name} hold the texts? Name one or two of: {', '.join(table.columns)} "
                "(--text-columns, text_columns=).",
                options=("text_columns",),
            )
        texts = next((c for c in expected if all(name in table.columns for name in c)), expected[0])
    elif task.num_texts not in (None, len(texts)):
        kind = "pairs of texts: name two columns" if task.num_texts == 2 else "single texts: name one column"
        raise TaskError(f"Task '{task.name}' has {kind}, not {', '.join(texts)}.")
    if label is None:
        label = next((c for c in (source.local_label, "label") if c in table.columns), source.local_label)
    if isinstance(label, str):  # a comma may be part of a name
        label = [label] if label in table.columns else [name.strip() for name in label.split(",")]
    labels = tuple(label)
    if slice_column is None and task.slice_name in table.columns:
        slice_column = task.slice_name
    columns.require(table, (*texts, *labels, *([] if slice_column is None else [slice_column])), _MAP_LOCAL, _MAPPING)
    if shared := [name for name in labels if name in texts]:
        raise TaskError(f"Column '{shared[0]}' cannot hold both a text and the label. {_MAP_LOCAL}", options=_MAPPING)
    if len(set(labels)) < len(labels):
        raise TaskError(f"The label columns {', '.join(labels)} are not all different. {_MAP_LOCAL}", options=_MAPPING)
    notes = ["; ".join(guessed) + " (--text-columns and --label-column name others)"] if guessed else []
    return Mapping(texts, labels, slice_column), notes


def _other_labels(task: Task, split: str, files: _Files, paths: Sequence[Path], label: str) -> list[object]:
    try:
        other_paths = files.paths(task, split)
    except TaskError:
        return []  # a task may have fewer files; loading that split says so
    if files.path is None and not any(stem in files.data for stem in _stems(task, split)):
        return []
    if files.path is not None and other_paths == list(paths):
        return []
    return files.table(task, split).columns.get(label, [])


# parquet files of the Hugging Face hub, read through its own client and cache -----------------------------------------


def fetch(task: Task, filename: str) -> Path:
    """Path of the file in the hub's cache; in a dashboard, of one that is there or that a user asked for."""
    repo = str(task.source.repo)
    filenames = [task.source.hub_file(split) for split in ("train", "dev")]  # what the dashboard reads
    return obtain(
        f"task {task.name}",
        partial(_cached, repo, filename),
        partial(_fetched, repo, filename, task.name),
        partial(_fetch_all, repo, filenames, task.name),
        f"{task.title} ({repo})",
        f": {' and '.join(filenames)}",
    )


def _fetch_all(repo: str, filenames: Sequence[str], task: str) -> None:
    for filename in filenames:
        _fetched(repo, filename, task)


def _cached(repo: str, filename: str) -> Path | None:
    # hf_hub_download sends a request, also with local_files_only: its client asks the hub for a list of programs
    file = huggingface_hub.try_to_load_from_cache(repo, filename, repo_type="dataset")
    return Path(file) if isinstance(file, str) else None


def _fetched(repo: str, filename: str, task: str) -> Path:
    """The file after a download. If a token is needed it is taken from the environment."""
    what = f"{repo}/{filename}"
    local = f"or give local files (--data FOLDER, data=), with train and dev files of task '{task}'"
    try:
        return Path(huggingface_hub.hf_hub_download(repo, filename, repo_type="dataset"))
    except (huggingface_hub.errors.LocalEntryNotFoundError, huggingface_hub.errors.OfflineModeIsEnabled) as error:
        raise TaskError(
            f"{what} is not in the cache and the hub cannot be reached. Go online (and unset HF_HUB_OFFLINE), {local}."
        ) from error
    except huggingface_hub.errors.GatedRepoError as error:
        raise TaskError(
            f"{repo} asks for its terms to be accepted: do so on its page and set HF_TOKEN, {local}."
        ) from error
    except (huggingface_hub.errors.RepositoryNotFoundError, huggingface_hub.errors.EntryNotFoundError) as error:
        raise TaskError(f"The hub has no file {what}; it may have moved. Update headviz, {local}.") from error
    except PermissionError as error:
        raise TaskError(
            f"The hub's cache folder cannot be written ({error.filename or error}). "
            f"Set HF_HOME to a folder that can, {local}."
        ) from error
    except broken_off() as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise TaskError(
            f"The download of {what} broke off ({reason}). Nothing half-read is used; try again to continue it, "
            f"{local}."
        ) from error

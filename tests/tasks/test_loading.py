"""``load_task`` on local files: GLUE's own names and columns, users' files in every format, and bad input."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headviz.demo import read_split
from headviz.errors import OptionError, TaskError
from headviz.tasks import TASKS, load_task

# GLUE's own headers and invented rows: file, header, rows, (texts, pairs, labels)
OWN = {
    "cola": ("CoLA/dev.tsv", None, [["aa1", "1", "", "It rains."], ["aa1", "0", "*", "Rain it."]], [1, 0]),
    "sst2": ("SST-2/dev.tsv", ["sentence", "label"], [["fine film", "1"], ["poor film", "0"]], [1, 0]),
    "mrpc": (
        "MRPC/dev.tsv",
        ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
        [["1", "10", "11", 'The "cat" sat.', "A cat sat."], ["0", "12", "13", "Rain.", '"Snow.']],
        [1, 0],
    ),
    "qqp": (
        "QQP/dev.tsv",
        ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
        [["0", "1", "2", "Why?", "How so?", "0"], ["1", "3", "4", "Who?", "Who is it?", "1"]],
        [0, 1],
    ),
    "stsb": (
        "STS-B/dev.tsv",
        ["index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2", "score"],
        [
            ["0", "g", "f", "2012", "1", "s", "s", "A dog runs.", "A dog is running.", "4.750"],
            ["1", "g", "f", "2012", "2", "s", "s", "A dog runs.", "It rains.", "0.000"],
        ],
        [4.75, 0.0],
    ),
    "qnli": (
        "QNLI/dev.tsv",
        ["index", "question", "sentence", "label"],
        [["0", "Who?", "Ann did.", "entailment"], ["1", "Why?", "Rain.", "not_entailment"]],
        [0, 1],
    ),
    "rte": (
        "RTE/dev.tsv",
        ["index", "sentence1", "sentence2", "label"],
        [["0", "A", "B", "not_entailment"], ["1", "C", "D", "entailment"]],
        [1, 0],
    ),
    "wnli": (
        "WNLI/dev.tsv",
        ["index", "sentence1", "sentence2", "label"],
        [["0", "A", "B", "1"], ["1", "C", "D", "0"]],
        [1, 0],
    ),
}
_MNLI_HEADER = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse "
    "sentence1 sentence2 label1 label2 label3 label4 label5 gold_label"
).split()
_MNLI_ROWS = [
    [str(i), "p", "q", genre, "( x )", "( y )", "(R x)", "(R y)", f"premise {i}", f"claim {i}", *[gold] * 5, gold]
    for i, (genre, gold) in enumerate([("slate", "neutral"), ("fiction", "entailment"), ("slate", "contradiction")])
]
OWN["mnli"] = ("MNLI/dev_matched.tsv", _MNLI_HEADER, _MNLI_ROWS, [1, 0, 2])
OWN["mnli-mm"] = ("MNLI/dev_mismatched.tsv", _MNLI_HEADER, _MNLI_ROWS, [1, 0, 2])


def _tsv(path: Path, header: list[str] | None, rows: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(row) for row in ([header] if header else []) + rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", OWN)
def test_glues_own_files(name: str, tmp_path: Path) -> None:
    file, header, rows, labels = OWN[name]
    path = _tsv(tmp_path / file, header, rows)
    data = load_task(name, data=tmp_path)
    assert data == load_task(name, data=path.parent)
    assert data.gold.tolist() == labels
    columns = header or ["source", "label", "annotation", "sentence"]
    wanted = TASKS[name].source.local_columns
    assert data.texts == tuple(row[columns.index(wanted[0])] for row in rows)
    if len(wanted) == 2:
        assert data.pairs == tuple(row[columns.index(wanted[1])] for row in rows)
    else:
        assert data.pairs is None
    assert data.notes == ()
    assert data.origin == f"file: {path.name}"
    if name.startswith("mnli"):
        assert data.slice_name == "genre"
        assert data.slices == ("slate", "fiction", "slate")
    else:
        assert data.slices is None


def test_cola_with_and_without_header_is_the_same(tmp_path: Path) -> None:
    _, _, rows, _ = OWN["cola"]
    bare = load_task("cola", data=_tsv(tmp_path / "a" / "dev.tsv", None, rows).parent)
    headed = load_task(
        "cola", data=_tsv(tmp_path / "b" / "dev.tsv", ["source", "label", "annotation", "sentence"], rows).parent
    )
    assert bare == headed
    assert len(bare) == 2


def test_examples_without_a_gold_label_are_left_out_and_told(tmp_path: Path) -> None:
    rows = [*_MNLI_ROWS, [*_MNLI_ROWS[0][:-1], "-"]]
    data = load_task("mnli", data=_tsv(tmp_path / "dev_matched.tsv", _MNLI_HEADER, rows).parent)
    assert len(data) == 3
    assert data.notes == ("1 rows of dev_matched.tsv left out: no gold label ('-')",)


def _csv(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _tsv_dicts(path: Path, rows: list[dict]) -> None:
    _tsv(path, list(rows[0]), [[str(v) for v in row.values()] for row in rows])


def _jsonl(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _parquet(path: Path, rows: list[dict]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


WRITERS: dict[str, Callable[[Path, list[dict]], None]] = {
    "csv": _csv,
    "tsv": _tsv_dicts,
    "jsonl": _jsonl,
    "parquet": _parquet,
}


@pytest.mark.parametrize(
    ("ending", "stem"), [("csv", "dev"), ("tsv", "validation"), ("jsonl", "dev"), ("parquet", "validation")]
)
def test_custom_pairs_in_every_format(ending: str, stem: str, tmp_path: Path) -> None:
    rows = [
        {"id": i, "q": f"question {i}", "a": f"answer, {i}", "y": "no yes".split()[i % 2], "k": "xy"[i % 2]}
        for i in range(6)
    ]
    WRITERS[ending](tmp_path / f"{stem}.{ending}", rows)
    data = load_task("custom", data=tmp_path, text_columns="q,a", label_column="y", slice_column="k")
    assert data.label_names == ("no", "yes")
    assert data.gold.tolist() == [0, 1] * 3
    assert data.texts[3] == "question 3"
    assert data.pairs is not None
    assert data.pairs[3] == "answer, 3"
    assert data.slices == ("x", "y") * 3
    assert data.slice_name == "k"
    assert data.task.metrics == ("accuracy", "matthews")
    assert load_task("custom", data=tmp_path, text_columns=("q",), label_column="y").pairs is None
    assert load_task("custom", data=tmp_path / f"{stem}.{ending}", text_columns=["q", "a"], label_column="y") == (
        load_task("custom", data=tmp_path, text_columns="q, a", label_column="y")
    )


@pytest.mark.parametrize("ending", WRITERS)
def test_custom_numbers_are_read_alike_in_every_format(ending: str, tmp_path: Path) -> None:
    WRITERS[ending](tmp_path / f"dev.{ending}", [{"text": f"t{i}", "label": (10, 9, 0)[i % 3]} for i in range(6)])
    data = load_task("custom", data=tmp_path, text_columns="text")
    assert data.label_names == ("0", "9", "10")  # by size, not by alphabet
    assert data.gold.tolist() == [2, 1, 0] * 2
    reference = tmp_path / "reference"
    reference.mkdir()
    _csv(reference / "dev.csv", [{"text": f"t{i}", "label": (10, 9, 0)[i % 3]} for i in range(6)])
    assert data.digest == load_task("custom", data=reference, text_columns="text").digest


def test_custom_train_and_dev_number_their_classes_alike(tmp_path: Path) -> None:
    _csv(tmp_path / "train.csv", [{"t": "a", "label": name} for name in ("low", "mid", "high", "low")])
    _jsonl(tmp_path / "dev.jsonl", [{"t": "b", "label": "mid"}, {"t": "c", "label": "low"}])
    train = load_task("custom", "train", data=tmp_path, text_columns="t")
    dev = load_task("custom", "dev", data=tmp_path, text_columns="t")
    assert train.label_names == dev.label_names == ("high", "low", "mid")
    assert dev.gold.tolist() == [2, 1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_custom_regression_by_its_labels_or_by_request(ending: str, tmp_path: Path) -> None:
    WRITERS[ending](tmp_path / f"dev.{ending}", [{"t": "a", "y": 1.0}, {"t": "b", "y": 2.5}, {"t": "c", "y": 4.0}])
    data = load_task("custom", data=tmp_path, text_columns="t", label_column="y")
    assert data.job == "number"
    assert data.gold.tolist() == [1, 2.5, 4]
    assert data.task.metrics == ("pearson", "spearman")
    WRITERS[ending](tmp_path / f"dev.{ending}", [{"t": "a", "y": 1}, {"t": "b", "y": 2}, {"t": "c", "y": 4}])
    assert load_task("custom", data=tmp_path, text_columns="t", label_column="y").job == "class"
    asked = load_task("custom", data=tmp_path, text_columns="t", label_column="y", regression=True)
    assert asked.gold.tolist() == [1.0, 2.0, 4.0]


def test_one_split_of_whole_numbers_does_not_change_the_kind_of_task(tmp_path: Path) -> None:
    _csv(tmp_path / "train.csv", [{"t": "a", "label": 1.5}, {"t": "b", "label": 3}])
    _csv(tmp_path / "dev.csv", [{"t": "a", "label": 1}, {"t": "b", "label": 3}])
    assert load_task("custom", "dev", data=tmp_path, text_columns="t").job == "number"


def test_a_known_task_from_users_files(tmp_path: Path) -> None:
    rows = [{"a": "p", "b": "h", "y": name} for name in ("Neutral", "ENTAILMENT", "contradictory")]
    _csv(tmp_path / "dev.csv", rows)
    data = load_task("mnli", data=tmp_path, text_columns="a,b", label_column="y")
    assert data.gold.tolist() == [1, 0, 2]


def test_numeric_labels_of_a_known_task_are_read_in_its_order_and_told(tmp_path: Path) -> None:
    _csv(tmp_path / "dev.csv", [{"premise": "p", "hypothesis": "h", "label": i} for i in (2, 0, 1)])
    data = load_task("mnli", data=tmp_path)
    assert data.gold.tolist() == [2, 0, 1]
    assert data.notes == ("numeric labels read as 0 = entailment, 1 = neutral, 2 = contradiction",)
    # GLUE's own binary files are numbered by definition: nothing to tell
    file, header, rows, _ = OWN["sst2"]
    assert load_task("sst2", data=_tsv(tmp_path / file, header, rows)).notes == ()


def test_limit_keeps_file_order_and_shares(tmp_path: Path) -> None:
    _csv(tmp_path / "dev.csv", [{"t": f"text {i}", "label": "ab"[i % 4 == 0], "k": "uv"[i % 2]} for i in range(400)])
    whole = load_task("custom", data=tmp_path, text_columns="t", slice_column="k")
    data = load_task("custom", data=tmp_path, text_columns="t", slice_column="k", limit=100)
    assert len(data) == 100
    assert data.class_counts() == {"a": 75, "b": 25}
    assert data.slice_counts() == {"u": 50, "v": 50}
    where = [whole.texts.index(t) for t in data.texts]
    assert where == sorted(where)
    assert data == load_task("custom", data=tmp_path, text_columns="t", slice_column="k", limit=100)
    other = load_task("custom", data=tmp_path, text_columns="t", slice_column="k", limit=100, seed=1)
    assert other != data
    assert data.notes == ("limited to 100 of 400 examples (seed 0)",)
    assert load_task("custom", data=tmp_path, text_columns="t", slice_column="k", limit=9999) == whole
    for all_of_it in (400, 9999):
        assert load_task("custom", data=tmp_path, text_columns="t", slice_column="k", limit=all_of_it).notes == ()
    for bad in (0, -1, 2.5, True):
        with pytest.raises(OptionError, match="from 1 up"):
            load_task("custom", data=tmp_path, text_columns="t", limit=bad)  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="from 1 up"):
            load_task("demo", limit=bad)  # type: ignore[arg-type]


GOOD = "sentence,label\nfine,1\npoor,0\n"


@pytest.mark.parametrize(
    ("task", "content", "options", "says"),
    [
        ("sst2", "", {}, r"dev\.csv is empty"),
        ("sst2", "phrase,label\na,1\n", {}, r"no column 'sentence'\. Its columns are: phrase, label.*--text-columns"),
        ("sst2", "sentence,gold\na,1\n", {}, "no column 'label'.*--label-column"),
        ("sst2", GOOD, {"text_columns": "sentense"}, "no column 'sentense'"),
        ("sst2", GOOD, {"label_column": "sentence"}, "cannot hold both a text and the label"),
        ("sst2", GOOD, {"text_columns": "sentence,label"}, "has single texts: name one column"),
        ("rte", GOOD, {"text_columns": "sentence"}, "has pairs of texts: name two columns"),
        ("sst2", GOOD, {"text_columns": "a,b,c"}, "one or two different text columns"),
        ("sst2", GOOD, {"text_columns": "sentence,sentence"}, "one or two different text columns"),
        ("sst2", GOOD, {"text_columns": ""}, "one or two different text columns"),
        *[("sst2", GOOD, {"label_column": c}, "label column") for c in ([], (), ["a", "a"], ["a", " "], 3, {}, b"y")],
        ("sst2", GOOD, {"slice_column": "genre"}, "no column 'genre'"),
        ("sst2", GOOD, {"regression": True}, "Task 'sst2' defines its own labels"),
        ("sst2", "sentence,label\na,great\nb,1\n", {}, r"line 2: .*does not know: 'great'.*negative, positive"),
        ("sst2", "sentence,label\na,2\n", {}, "does not know: '2'"),
        ("sst2", "sentence,label\na,-1\n", {}, "does not know: '-1'"),
        ("sst2", "sentence,label\na,\nb,1\n", {}, r"line 2: nothing in column 'label'"),
        ("sst2", "sentence,label\na,-\n", {}, "no row with both a text and a label"),
        (
            "stsb",
            "sentence1,sentence2,score\na,b,high\n",
            {},
            "line 2: 'high' in column 'score' is not a finite number",
        ),
        ("stsb", "sentence1,sentence2,score\na,b,inf\n", {}, "not a finite number"),
        (
            "custom",
            "a,label\nx,1\ny,0\n",
            {},
            r"Which columns of dev\.csv hold the texts\? Name one or two of: a, label",
        ),
        ("custom", "t,y\na,1\n", {"text_columns": "t"}, "no column 'label'.*t, y"),
        ("custom", "t,label\na,1\nb,1\n", {"text_columns": "t"}, r"only one value \(1\)"),
        ("custom", "t,label\na,0.5\nb,nan\n", {"text_columns": "t"}, r"dev\.csv, line 3: 'nan'"),
        (
            "custom",
            "t,label\n" + "".join(f"a,name {i}\n" for i in range(201)),
            {"text_columns": "t"},
            "201 different values, too many for classes",
        ),
    ],
)
def test_bad_content_in_one_line(task: str, content: str, options: dict, says: str, tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text(content, encoding="utf-8")
    with pytest.raises(TaskError, match=says) as caught:
        load_task(task, data=tmp_path, **options)
    assert "\n" not in str(caught.value)


def test_a_text_column_that_holds_no_texts(tmp_path: Path) -> None:
    _jsonl(tmp_path / "dev.jsonl", [{"id": 7, "label": 0}, {"id": 8, "label": 1}])
    with pytest.raises(TaskError, match="line 1: column 'id' holds int 7, not text"):
        load_task("custom", data=tmp_path, text_columns="id")
    _jsonl(tmp_path / "dev.jsonl", [{"t": "a", "label": 0}, {"label": 1}])
    with pytest.raises(TaskError, match="line 2: nothing in column 't'"):
        load_task("custom", data=tmp_path, text_columns="t")
    _jsonl(tmp_path / "dev.jsonl", [{"t": "a", "label": [0]}, {"t": "b", "label": 1}])
    with pytest.raises(TaskError, match="line 1: column 'label' holds a list, not a label"):
        load_task("custom", data=tmp_path, text_columns="t")


def test_missing_files_say_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="There is no folder or file"):
        load_task("rte", data=tmp_path / "nowhere")
    with pytest.raises(
        TaskError,
        match=r"no dev file for task 'mnli'\. Looked for dev_matched, dev, validation, valid, val as "
        r"\.tsv, .*\.parquet, .*, also in MNLI/",
    ):
        load_task("mnli", data=tmp_path)
    (tmp_path / "dev.csv").write_text(GOOD)
    (tmp_path / "dev.tsv").write_text(GOOD)
    with pytest.raises(TaskError, match=r"has both dev\.tsv and dev\.csv"):
        load_task("sst2", data=tmp_path)


@pytest.mark.parametrize("split", ["train", "dev", "unseen"])
def test_splits_of_the_demo(split: str) -> None:
    data = load_task("demo", split)
    rows = list(read_split(split))
    assert len(data) == len(rows) > 0
    assert data.label_names == ("entailment", "neutral", "contradiction")
    assert min(data.class_counts().values()) > 0
    assert data.slice_name == "ability"
    assert len(data.slice_counts()) >= 10
    first = data[0]
    assert first == (rows[0].premise, rows[0].hypothesis, rows[0].label, rows[0].phenomenon)

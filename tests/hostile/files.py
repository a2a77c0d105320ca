"""Hostile files: models with one thing wrong, tables of odd cells, uploads."""

from __future__ import annotations

import copy
import gzip
import json
import random
import shutil
from typing import Any

from .case import Case
from .place import Place
from .values import DEEP, JSONS, LONG_DIGITS, WORDS

MODEL_FILES = ["config.json", "tokenizer_config.json", "tokenizer.json", "headviz.json", "model.safetensors.index.json"]


def changed(found: Any, draw: random.Random) -> Any:
    """A JSON value with one place in it replaced, taken out, or added."""
    out = copy.deepcopy(found)
    at = out
    while isinstance(at, dict) and at:
        key = draw.choice(sorted(at))
        if isinstance(at[key], dict) and draw.random() < 0.6:
            at = at[key]
            continue
        if draw.random() < 0.15:
            del at[key]
        else:
            at[key] = draw.choice(JSONS)
        break
    if isinstance(at, dict) and draw.random() < 0.1:
        at[draw.choice(["quantization_config", "auto_map", "pruned_heads", "num_labels", "dtype"])] = draw.choice(JSONS)
    return out


def damaged(raw: bytes, draw: random.Random) -> bytes:
    """Bytes with a part cut off, doubled, zeroed or changed."""
    if not raw:
        return draw.randbytes(40)
    cut = draw.randrange(len(raw))
    return draw.choice(
        [
            lambda: raw[:cut],
            lambda: raw[cut:],
            lambda: raw + raw,
            lambda: b"\0" * len(raw),
            lambda: raw[:cut] + draw.randbytes(8) + raw[cut + 8 :],
            lambda: b"\xef\xbb\xbf" + raw,
            lambda: draw.randbytes(200),
            lambda: b"",
        ]
    )()


def model_case(draw: random.Random, place: Place, load: bool) -> Case:
    seed, file = draw.randrange(10**9), draw.choice([*MODEL_FILES, "model.safetensors"])

    def run() -> None:
        own = random.Random(seed)
        folder = place.out / f"model-{seed}"
        shutil.copytree(place.model, folder)
        try:
            path = folder / file
            if file == "headviz.json":
                base = {"format": 1, "kind": "classification", "num_layers": 2, "num_heads": 2, "present": "f"}
                path.write_text(json.dumps(base))
            elif file.endswith("index.json"):
                path.write_text(json.dumps({"metadata": {}, "weight_map": {"bert.x": "model.safetensors"}}))
            if file.endswith(".json") and own.random() < 0.75:
                path.write_text(json.dumps(changed(json.loads(path.read_text()), own)))
            else:
                path.write_bytes(damaged(path.read_bytes(), own))
            if load:
                import headviz

                headviz.load(folder)
            else:
                from headviz.models.folder_check import check_folder

                check_folder(folder, folder.name)
        finally:
            shutil.rmtree(folder)

    return Case("loaded" if load else "folder", f"{file}, seed {seed}, {'loaded' if load else 'checked'}", run)


# files of data, uploads -------------------------------------------------------------------------

CELLS: list[Any] = [*JSONS[:15], 10**400, "a dog", "yes", "no", "\ud83d", "=cmd()", "a\tb", 'a"b', "a\nb", "\0", "-"]
TEXTS = [
    "a dog",
    "",
    '"',
    '"a',
    "a,b",
    "yes",
    "no",
    "1",
    LONG_DIGITS,
    "1e400",
    "nan",
    "=x",
    "\0",
    "\x85",
    "x" * 200_000,
]


def table(kind: str, draw: random.Random) -> bytes:
    """A file of odd cells."""
    if kind.endswith(".gz"):
        return gzip.compress(table(kind.removesuffix(".gz"), draw))
    if kind == "json":
        rows = [json.dumps({n: draw.choice(CELLS) for n in ("text", "label")}) for _ in range(draw.randrange(4))]
        return (
            draw.choice(["[{}]", '{{"data": [{}]}}', "{}", "[[{}]]", DEEP])
            .format(",".join(rows))
            .encode("utf-8", "surrogatepass")
        )
    names = draw.choice(
        [["text", "label"], ["text", "text"], ["text"], ["", "label"], ["text", "label", "![x](http://h)"]]
    )
    rows = draw.randrange(1, 6)
    if kind == "parquet":
        return _parquet(names, rows, draw)
    if kind == "jsonl":
        lines = [json.dumps({n: draw.choice(CELLS) for n in names}) for _ in range(rows)]
        lines += draw.sample(
            [DEEP, '{"text": ' + LONG_DIGITS + "}", "[]", "{", '{"text": "\\ud800", "label": 1}', "3"], 1
        )
        draw.shuffle(lines)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    sign = "\t" if kind == "tsv" else ","
    body = "\n".join(sign.join(draw.choice(TEXTS) for _ in names) for _ in range(rows))
    return (sign.join(names) + "\n" + body).encode("utf-8", "surrogatepass")


TABLES = ["csv", "tsv", "jsonl", "parquet", "json", "csv.gz", "jsonl.gz"]


def _parquet(names: list[str], rows: int, draw: random.Random) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [
        draw.choice(
            [
                pa.array(["a dog"] * rows),
                pa.array([1] * rows),
                pa.array([None] * rows, pa.string()),
                pa.array([2**62] * rows, pa.timestamp("ns")),
                pa.array([2**62] * rows, pa.timestamp("us")),
                pa.array([b"\xff\xfe"] * rows, pa.binary()),
                pa.array([[1, [2]][:1]] * rows),
                pa.array([{"a": 1}] * rows),
                pa.array([1.5, *[None] * (rows - 1)]),
                pa.Array.from_buffers(
                    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
                ).take(pa.array([0] * rows)),
            ]
        )
        for _ in names
    ]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=names), out)
    return out.getvalue()


def data_case(draw: random.Random, place: Place) -> Case:
    seed, kind = draw.randrange(10**9), draw.choice(TABLES)

    def run() -> None:
        import headviz

        own = random.Random(seed)
        path = place.out / f"data-{seed}.{kind}"
        body = table(kind, own)
        path.write_bytes(damaged(body, own) if own.random() < 0.3 else body)
        try:
            regression = own.choice([None, None, True])
            result = headviz.load_task(
                "custom", data=path, text_columns="text", label_column="label", regression=regression
            )
            assert len(result.texts) == len(result)
            assert result.digest
        finally:
            path.unlink()

    return Case("data", f"{kind}, seed {seed}", run)


def upload_case(draw: random.Random, place: Place) -> Case:
    seed, kind = draw.randrange(10**9), draw.choice([*TABLES, "exe", "../csv", ""])
    called = draw.choice([*WORDS, "../../x.csv", "a\\b.csv", "\0.csv"])

    def run() -> None:
        from headviz.ui.pages import data
        from headviz.ui.shell import uploads

        own = random.Random(seed)
        body = table(kind, own) if kind in TABLES else own.randbytes(100)
        kept = uploads.keep_upload(damaged(body, own) if own.random() < 0.5 else body, kind, called)
        assert uploads.uploads()[kept].parent == uploads.uploads_folder()
        with uploads.naming():
            columns = data.peek(kept, kind)
        data.guess_label(columns)

    return Case("upload", f"{kind!r} called {called[:80]!r}, seed {seed}", run)

"""Hostile cases, drawn with a seed: command lines, Python calls, files of models and data, links and uploads.

A case is a name, which says how to do it again, and a call. The call may give anything, or raise a ``UserError`` of one
line; a command may exit with 0 or 2. Everything else is a finding.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .place import Place

LONG_DIGITS = "9" * 5000
DEEP = "[" * 50_000 + "]" * 50_000
WORDS: list[str] = [
    "",
    " ",
    "-1",
    "0",
    "1",
    "2",
    "1.5",
    "1e300",
    "1e-12",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "0b1",
    "1_000",
    "٣",
    "²",
    "½",
    LONG_DIGITS,
    "0." + LONG_DIGITS,
    "-" + LONG_DIGITS,
    "1e" + LONG_DIGITS,
    "100000000",
    "18446744073709551616",
    ",",
    ",,,",
    "0.0,",
    "0.0,0.0",
    "99.99",
    "-1.-1",
    "L0·H0",
    "0.0.0",
    "cross.0.0",
    "encoder.9.9",
    "heads:",
    "layers:0",
    "heads:0.0+layers:0",
    "layers:0+ffn:0",
    "attention+heads:0.0",
    "nonsense:3",
    "ffffffff",
    "0xf",
    "f",
    "zz",
    "~no-such-user/x",
    "~",
    "/",
    ".",
    "..",
    "../../..",
    "x" * 300,
    "/".join("x" * 3000),
    "a/b/c",
    "a//b",
    "con",
    "a:b",
    "\udcff",
    "a\nb",
    "\x1b[31mred\x1b[0m",
    "\u202etxt.exe",
    "é" * 200,
    "🙂" * 200,
    "\u200b",
    "\x7f",
    "![x](http://host.example/x.png)",
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "%s%s%n",
    "$(id)",
    "`id`",
    "'; --",
    "{}",
    "[]",
    "null",
    "true",
    "None",
    '{"a": 1}',
    '{"model": {}}',
    '{"seeds": "x"}',
    "[" * 2000,
    '{"a":' * 2000,
    "meta",
    "cuda:99",
    "cpu:x",
    "float99",
    "int8",
    "auto",
    "none",
    "all",
    "predicted",
    "gold",
    "accuracy",
    "taylor",
    "demo",
    "mnli",
    "custom",
    "train",
    "dev",
    "test",
    "http://host.example/model",
    "host.example/../../x",
    "a=b",
    "=",
    "steps=",
    "=3",
    "steps=many",
    "rows=\udcff",
    "seed=" + LONG_DIGITS,
]
JSONS: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    1.5,
    10**6,
    10**18,
    1e300,
    "",
    "x",
    "2",
    [],
    [1],
    [[[]]],
    {},
    {"a": {}},
    "\ud800",
    "x" * 10_000,
    "![x](http://host.example/x.png)",
    ["a", None],
    {"0": None},
    {"x": 1},
    "../../x",
    "/etc/hostname",
    float("nan"),
]


@dataclass(frozen=True)
class Case:
    kind: str
    name: str
    run: Callable[[], Any]
    command: bool = False


# command lines ----------------------------------------------------------------------------------

COMMANDS = (
    "info conductance score evaluate ablate analyse stacks finetune prune distill run cache tickets transfer".split()
)
LOADS = {"info", "conductance", "prune", "evaluate"}  # with the tiny model they are quick


def options_of(command: str) -> list[tuple[tuple[str, ...], argparse.Action]]:
    """Every option of a command and of its actions: the words that lead to it, and argparse's description."""
    from headviz.cli import _Parser

    parser = _Parser(prog=command, allow_abbrev=False)
    import_module(f"headviz.commands.{command}").add_arguments(parser)
    found: list[tuple[tuple[str, ...], argparse.Action]] = []

    def walk(one: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    walk(inner, (*words, name))
            elif action.dest != "help":
                found.append((words, action))

    walk(parser, (command,))
    return found


def usual(action: argparse.Action, place: Place, real: bool, draw: random.Random) -> list[str]:
    """A sound value of an option that is needed."""
    name = action.option_strings[0] if action.option_strings else ""
    value = {
        "--model": str(place.model) if real else str(place.folder / "missing"),
        "--task": "custom",
        "--data": str(place.data),
        "--out": str(place.out / f"o{draw.randrange(10**9)}"),
        "--text": "a dog sleeps",
        "--remove": "heads:0.0",
        "--algorithm": "one-importance",
        "--score": "random",
        "--text-columns": "text",
        "--label-column": "label",
    }.get(name)
    if value is None:
        value = next(iter(action.choices)) if action.choices else "x"
    if name == "--out" and draw.random() < 0.3:
        value += ".npz"
    return [name, str(value)] if name else [str(value)]


def command_case(draw: random.Random, place: Place, options: dict[str, list[Any]]) -> Case:
    """A command with what it needs, one to three values of which are hostile."""
    command = draw.choice(COMMANDS)
    given = options[command]
    leads = sorted({words for words, _ in given})
    words = draw.choice(leads)
    own = [a for w, a in given if w == words]
    real = command in LOADS and draw.random() < 0.15
    named = {a.option_strings[0] if a.option_strings else a.dest: a for a in own}
    wanted = [n for n, a in named.items() if a.required]
    if "--task" in named:
        wanted += [n for n in ("--data", "--text-columns", "--label-column") if n in named]
    if command == "run" and words[-1] in ("start", "sweep"):
        wanted += ["--model", "--task", "--algorithm", "--score"]
    hostile = draw.sample(sorted(named), min(len(named), draw.choice((1, 1, 2, 3))))
    line = list(words)
    for name in dict.fromkeys([*wanted, *hostile]):
        action = named[name]
        if name in hostile:
            value = draw.choice(place.special) if draw.random() < 0.2 else draw.choice(WORDS)
            if name == "--data" and real:
                value = draw.choice(place.special)
            if action.nargs == 0:
                line.append(name)
            else:
                line += [f"{name}={value}"] if action.option_strings else [value]
        else:
            line += usual(action, place, real, draw)
    if command == "run" and words[-1] in ("start", "sweep"):
        line.append("--plan")  # a run that is started would go on after the test
    if draw.random() < 0.05:
        line.append(draw.choice(WORDS))
    if draw.random() < 0.03:
        line[0] = draw.choice(WORDS)
    if command == "cache" and "clear" in line:
        line = ["cache", "show"]
    from headviz import cli

    return Case("command", " ".join(map(repr, line))[:1500], lambda: cli.main(line), command=True)


# files of models --------------------------------------------------------------------------------

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

    return Case("model file", f"{file}, seed {seed}, {'loaded' if load else 'checked'}", run)


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
    seed, kind = draw.randrange(10**9), draw.choice(["csv", "tsv", "jsonl", "parquet"])

    def run() -> None:
        import headviz

        own = random.Random(seed)
        path = place.out / f"data-{seed}.{kind}"
        body = table(kind, own)
        path.write_bytes(damaged(body, own) if own.random() < 0.3 else body)
        try:
            regression = own.choice([None, None, True])
            found = headviz.load_task(
                "custom", data=path, text_columns="text", label_column="label", regression=regression
            )
            assert len(found.texts) == len(found)
            assert found.digest
        finally:
            path.unlink()

    return Case("data", f"{kind}, seed {seed}", run)


def upload_case(draw: random.Random, place: Place) -> Case:
    seed, kind = draw.randrange(10**9), draw.choice(["csv", "tsv", "jsonl", "parquet", "exe", "../csv", ""])
    called = draw.choice([*WORDS, "../../x.csv", "a\\b.csv", "\0.csv"])

    def run() -> None:
        from headviz.ui.pages.data import source
        from headviz.ui.shell import uploads

        own = random.Random(seed)
        body = table(kind, own) if kind in ("csv", "tsv", "jsonl", "parquet") else own.randbytes(100)
        kept = uploads.keep_upload(damaged(body, own) if own.random() < 0.5 else body, kind, called)
        assert uploads.uploads()[kept].parent == uploads.uploads_folder()
        with uploads.naming(kept):
            columns = source.peek(kept, kind)
        source.guess_label(columns)

    return Case("upload", f"{kind!r} called {called[:80]!r}, seed {seed}", run)


# links and Python calls -------------------------------------------------------------------------


def link_case(draw: random.Random, place: Place) -> Case:
    from headviz.ui.shell.view import FIELDS

    names = draw.sample([*sorted(FIELDS), "long", "nonsense"], draw.randrange(1, 6))
    address = {n: draw.choice([*WORDS, *place.special]) for n in names}

    def run() -> None:
        from headviz.ui.shell import loaders
        from headviz.ui.shell.view import from_address, to_address

        view, complaints = from_address(address)
        assert all("\n" not in line for line in complaints)
        assert from_address(to_address(view))[0] == view or any(len(t) > 1500 for t in (view.a, view.b))
        if "model" in names:
            loaders.model_name(view.model)
            if loaders.is_path(view.model):
                loaders.shape(view)
        if "data" in names and view.data:
            loaders.confined(view.data)

    return Case("link", repr(address)[:1500], run)


THINGS: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    10**30,
    float("nan"),
    "",
    "x",
    LONG_DIGITS,
    "0.0",
    b"x",
    [],
    {},
    (),
    object(),
    [[]],
    {"a": 1},
    [(0, 0)],
    [(True, False)],
    [None],
    range(3),
    Path("."),
    10**5000,
    "![x](http://host.example)",
    "\udcff",
    lambda: 1,
]


def call_case(draw: random.Random, place: Place, clf: Any, data: Any) -> Case:
    import headviz
    from headviz.heads import HeadMask

    def some() -> Any:
        return draw.choice(THINGS)

    calls: dict[str, tuple[Callable[..., Any], list[Any], dict[str, list[Any]]]] = {
        "HeadMask.full": (HeadMask.full, [2, 2], {}),
        "without": (HeadMask.full(2, 2).without, [[(0, 0)]], {}),
        "with_": (HeadMask.full(2, 2).with_, [[(0, 0)]], {}),
        "toggled": (HeadMask.full(2, 2).toggled, [[(0, 0)]], {}),
        "from_hex": (HeadMask.from_hex, ["f", 2, 2], {}),
        "from_array": (HeadMask.from_array, [[[1, 0], [0, 1]]], {}),
        "without_random": (HeadMask.full(2, 2).without_random, [1], {}),
        "load": (headviz.load, [place.model], {"device": ["cpu"], "dtype": ["float32"], "revision": [None]}),
        "load_task": (
            headviz.load_task,
            ["custom"],
            {
                "split": ["dev"],
                "data": [place.data],
                "limit": [4],
                "text_columns": ["text"],
                "label_column": ["label"],
                "slice_column": [None],
            },
        ),
        "sample": (headviz.sample, [data, 4], {"length_filter": ["none"]}),
        "evaluate": (headviz.evaluate, [clf, data], {"mask": [None], "label_order": [None], "beams": [1]}),
        "conductance": (
            headviz.conductance,
            [clf, "a dog"],
            {"steps": [2], "rule": ["trapezoid"], "target": ["predicted"], "mask": [None], "tolerance": [None]},
        ),
        "score_heads": (headviz.score_heads, [clf, data], {"score": ["random"], "mask": [None]}),
        "prune": (headviz.prune, [clf, HeadMask.full(2, 2)], {}),
        "paired": (headviz.paired, [[0, 1], [0, 1], [1, 1]], {"metric": ["accuracy"], "level": [0.95]}),
        "wrap": (headviz.wrap, [None, None], {}),
    }
    name = draw.choice(sorted(calls))
    function, positional, keywords = calls[name]
    args = list(positional)
    kwargs = {k: v[0] for k, v in keywords.items() if k in ("data", "text_columns", "label_column")}
    wrong = draw.sample([*range(len(args)), *keywords], 1)
    for place_of in wrong:
        if isinstance(place_of, int):
            args[place_of] = some()
        else:
            kwargs[place_of] = some()
    shown = ", ".join([*map(_short, args), *(f"{k}={_short(v)}" for k, v in kwargs.items())])
    return Case("call", f"{name}({shown})", lambda: function(*args, **kwargs))


def _short(value: Any) -> str:
    try:
        return repr(value)[:60]
    except ValueError:
        return "10**5000"


# all --------------------------------------------------------------------------------------------

# how many of a hundred cases are of a kind
SHARES = {"command": 40, "link": 14, "call": 14, "data": 12, "upload": 8, "model": 10, "load": 2}


def cases(count: int, seed: int, place: Place, clf: Any, data: Any) -> Iterator[Case]:
    """``count`` cases, the same for the same seed."""
    draw = random.Random(seed)
    options = {c: options_of(c) for c in COMMANDS}
    for kind in draw.choices(list(SHARES), list(SHARES.values()), k=count):
        if kind == "command":
            yield command_case(draw, place, options)
        elif kind == "link":
            yield link_case(draw, place)
        elif kind == "call":
            yield call_case(draw, place, clf, data)
        elif kind == "data":
            yield data_case(draw, place)
        elif kind == "upload":
            yield upload_case(draw, place)
        else:
            yield model_case(draw, place, load=kind == "load")

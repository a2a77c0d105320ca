"""Hostile homes: registries of runs, caches, and what the environment says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .case import Case
from .files import damaged
from .place import Place
from .values import DEEP, LONG_DIGITS, WORDS


@contextlib.contextmanager
def environment(**names: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(names)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def own_home(place: Place, seed: int) -> Iterator[Path]:
    """A home of its own, which goes away."""
    home = place.folder.parent / f"home-{seed}"
    home.mkdir()
    try:
        with environment(HEADVIZ_HOME=str(home)):
            yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def holes(path: Path, size: int = 3 * 2**30) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def replaced(path: Path, draw: random.Random) -> None:
    """Something else in the place of a file."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = draw.choice(["pipe", "holes", "deep", "bytes", "folder", "loop", "empty"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "holes":
        holes(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.write_bytes({"deep": DEEP.encode(), "bytes": draw.randbytes(300), "empty": b""}[kind])


CELLS: list[Any] = [
    None,
    "",
    "x",
    "two",
    -1,
    0,
    10**18,
    1e300,
    b"\0\xff",
    b"\x80\x04.",
    "{",
    "[]",
    '{"seeds": 3}',
    '{"metrics": 3}',
    '{"metrics": {"accuracy": "x"}, "step": {}}',
    DEEP,
    LONG_DIGITS,
    "../../x",
    "\x1b[31m",
    "a\nb",
    "=cmd()",
    "cancelled",
    "broken",
    "x" * 10**6,
]
FILES = ["log.txt", "outcome.json", "progress.json", "cancel", "reserve", "checkpoint-00000001.json"]
SOUND, BAD = "0" * 7 + "1", "0" * 7 + "2"


def registry_case(draw: random.Random, place: Place) -> Case:
    """Two runs, one of them with a damaged row, step or file: the other is shown, and every command ends in a line."""
    seed = draw.randrange(10**9)

    def run() -> int:
        from headviz import cli
        from headviz.runs.record import COLUMNS, RunRecord
        from headviz.runs.registry import Registry

        own = random.Random(seed)
        with own_home(place, seed):
            registry = Registry()
            for name in (SOUND, BAD):
                registry.add([RunRecord(name, "prune", {"seeds": [0]}, created=1.0, state="failed", owner="me")])
            with contextlib.closing(sqlite3.connect(registry.path)) as db, db:
                step = json.dumps({"step": 0, "sparsity": 0.0, "seed": 0, "metrics": {"accuracy": 0.5}})
                db.execute("INSERT INTO steps VALUES (?, 1, ?)", (BAD, step))
                for _ in range(own.choice((1, 1, 3))):
                    column, value = own.choice([c for c in COLUMNS if c != "id"]), own.choice(CELLS)
                    with contextlib.suppress(sqlite3.IntegrityError, OverflowError):
                        if own.random() < 0.3:
                            db.execute("UPDATE steps SET body = ? WHERE run = ?", (own.choice([*CELLS, step]), BAD))
                        else:
                            db.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (value, BAD))
            if own.random() < 0.4:
                replaced(registry.folder / BAD / own.choice(FILES), own)
            # a sound registry is not hidden, whatever one row holds
            with contextlib.redirect_stdout(io.StringIO()) as out:
                assert cli.main(["run", "list", "--json"]) == 0
            assert SOUND in {r["id"] for r in json.loads(out.getvalue())["runs"]}
            action = own.choice([["list"], ["show", BAD], ["show", BAD, "--json"], ["delete", BAD], ["archive", BAD]])
            return cli.main(["run", *action])

    return Case("registry", f"seed {seed}", run, command=True)


def cache_case(draw: random.Random, place: Place) -> Case:
    """A damaged cache: no wrong value, no error, and a cleared one works."""
    seed = draw.randrange(10**9)

    def run() -> int:
        import numpy as np

        from headviz import cli
        from headviz.storage.store import Store

        own = random.Random(seed)
        values = {f"maps:{i}": np.arange(n, dtype=np.float32) for i, n in enumerate((3, 300, 60_000))}
        with own_home(place, seed) as home:
            store = Store(home / "store")
            for key, value in values.items():
                assert store.put(key, {"a": value})
            store.close()
            files = sorted(p for p in (home / "store").rglob("*") if p.is_file())
            path = own.choice([home / "store" / "cache.db", *files])
            if path.is_file() and own.random() < 0.7:
                raw = bytearray(damaged(path.read_bytes(), own))
                for _ in range(own.choice((0, 1, 20))):
                    at = own.randrange(max(1, len(raw)))
                    raw[at : at + 1] = own.randbytes(1)
                path.write_bytes(raw)
            else:
                replaced(path, own)
            again = Store(home / "store")
            for key, value in values.items():
                entry = again.get(key)
                assert entry is None or np.array_equal(entry.arrays["a"], value), "a wrong value"
            again.put("maps:new", {"a": np.ones(3)})
            again.close()
            for words in (["cache", "show"], ["cache", "clear"]):
                if status := cli.main(words):
                    return status
            last = Store(home / "store")
            if path.is_file() or not path.exists():  # nobody clears a pipe or a folder away
                assert last.put("maps:new", {"a": np.ones(3)}), "a cleared cache does not work"
                assert last.get("maps:new") is not None
            last.close()
        return 0

    return Case("cache", f"seed {seed}", run, command=True)


NAMES = (
    "HEADVIZ_HOME HEADVIZ_CACHE_LIMIT HEADVIZ_ROOTS HEADVIZ_PLUGINS HEADVIZ_NICENESS HEADVIZ_MEMORY HEADVIZ_DASK "
    "HEADVIZ_RUNS_AT_ONCE HEADVIZ_START HEADVIZ_WARM HEADVIZ_NOTEBOOK HF_HOME TMPDIR COLUMNS LANG LC_ALL NO_COLOR "
    "XDG_CACHE_HOME HOME"
).split()


def environment_case(draw: random.Random, place: Place) -> Case:
    names = draw.sample(NAMES, draw.choice((1, 1, 2)))
    values = [w for w in WORDS if w.isascii() and "\0" not in w and len(w) < 10_000]
    given = {n: draw.choice([*values, *place.special, str(place.model), "1MB", "5 TB", "9" * 40]) for n in names}
    words = draw.choice(
        [
            ["cache", "show"],
            ["cache", "clear"],
            ["run", "list"],
            ["info", "--model", str(place.model)],
            ["conductance", "--model", str(place.model), "--text", "a dog", "--steps", "1"],
            ["info", "--help-not-there"],
        ]
    )
    seed = draw.randrange(10**9)

    def run() -> int:
        from headviz import cli
        from headviz.ui.shell import loaders

        with own_home(place, seed), environment(**given):
            if "HEADVIZ_HOME" in given and not os.path.isabs(given["HEADVIZ_HOME"]):
                os.environ["HEADVIZ_HOME"] = str(place.folder.parent / f"home-{seed}" / (given["HEADVIZ_HOME"] or "x"))
            loaders.memory_limit()
            return cli.main(words)

    return Case("environment", f"{given} {' '.join(words)}"[:1500], run, command=True)

"""What a part of the recording keeps: its items as JSON, and the texts that differ from one recording to the next."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import re
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any


class Record:
    def __init__(self, work: Path) -> None:
        self.work = work
        self.items: dict[str, Any] = {}
        self.replaced = {str(work): "<work>", str(Path.cwd()): "<root>"}

    def add(self, name: str, make: Callable[[], Any], timed: bool = False) -> Any:
        """Keep what ``make`` gives, or how it fails; of what is ``timed``, numbers are not kept."""
        began = time.monotonic()
        try:
            value = make()
        except Exception as error:
            value = {"raises": f"{type(error).__name__}: {error}"}
        kept = plain(value)
        self.items[name] = without_numbers(kept, str(self.work)) if timed else kept
        print(f"  {name} ({time.monotonic() - began:.1f} s)", file=sys.stderr, flush=True)
        return value

    def run(self, name: str, words: str) -> str:
        """Record a command that starts a run; the run's identifier, which is replaced by its number."""
        out = self.add(name, lambda: command(words))["out"]
        made = str(out["id"]) if isinstance(out, dict) and "id" in out else ""
        if made:
            self.replaced[made] = f"<run {sum(v.startswith('<run') for v in self.replaced.values()) + 1}>"
        return made

    def write(self, file: Path) -> None:
        text = json.dumps(self.items, indent=1, ensure_ascii=False)
        for old, new in sorted(self.replaced.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(old, new)
        file.write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Any result as JSON holds it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "columns"):
        value = value[[column for column in value.columns if "seconds" not in str(column)]]
        return {"columns": list(map(str, value.columns)), "rows": plain(value.astype(object).values.tolist())}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    return str(value)


def without_numbers(value: Any, work: str) -> Any:
    """The form of a result: keys, first entries of lists, texts with one digit for every number."""
    if isinstance(value, dict):
        return {k: without_numbers(v, work) for k, v in value.items()}
    if isinstance(value, list):
        return [without_numbers(v, work) for v in value[:1]]
    return re.sub(r"\d[\d.,]*", "0", value.replace(work, "<work>")) if isinstance(value, str) else "a number"


def command(words: str) -> dict[str, Any]:
    """What a command prints with ``--json``, its exit status, and its messages."""
    from headviz.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status: Any = main([*shlex.split(words), *([] if "--help" in words else ["--json"])])
        except SystemExit as end:
            status = end.code or 0
    text: Any = out.getvalue()
    with contextlib.suppress(ValueError):
        text = json.loads(text)
    return {"status": status, "out": text, "err": re.findall(r"headviz: .*", err.getvalue())}


def report(file: Path) -> Any:
    """What a report says: JSON and the rows of CSV as they are; else lines without scripts, pictures and tags."""
    if file.suffix == ".json":
        return json.loads(file.read_text(encoding="utf-8"))
    if file.suffix == ".csv":
        return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    text = re.sub(r"<(script|style|svg)\b.*?</\1>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line.strip() for line in re.sub(r"<[^>]*>", "\n", text).splitlines() if line.strip()]


def folder(place: Path) -> dict[str, Any]:
    """What a saved folder holds: files, the content of JSON, names, shapes and digests of tensors."""
    from safetensors.numpy import load_file

    kept: dict[str, Any] = {}
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        name = str(file.relative_to(place))
        kept[name] = "a file"
        if file.suffix == ".json":
            kept[name] = json.loads(file.read_text(encoding="utf-8"))
        elif file.suffix == ".safetensors":
            tensors = load_file(file).items()
            kept[name] = {k: [list(v.shape), hashlib.sha256(v.tobytes()).hexdigest()] for k, v in tensors}
    return kept

"""Two recordings side by side: one line for everything that differs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

# what changes from one recording to the next: fields, and words within a text
NOT_COMPARED = {"pid", "created", "started", "ended", "elapsed", "began", "host", "id", "phases", "freed"}
AMOUNT = r"\d[\d.,]*[ \u00a0\u202f]?(?:ms|s|seconds?|min|minutes?|h|hours?|[kKMG]i?B|bytes)\b"
CHANGING = re.compile(rf"\d{{4}}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?|\b\d\d:\d\d(?::\d\d)?\b|{AMOUNT}|freeze-\w+")
NEAR_ZERO = 1e-9


def normal(text: str) -> str:
    return CHANGING.sub("<changing>", text.replace("\\", ""))


def differences(a: Any, b: Any, tolerance: float, where: str = "") -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            if key in NOT_COMPARED or key.endswith("seconds"):
                continue
            if key in a and key in b:
                yield from differences(a[key], b[key], tolerance, f"{where}.{key}")
            else:
                yield f"{where}.{key}: only {'before' if key in a else 'after'}: {brief((a | b)[key])}"
    elif isinstance(a, list) and isinstance(b, list):
        yield from of_lists(a, b, tolerance, where)
    elif not alike(a, b, tolerance):
        yield f"{where}: {brief(a)} -> {brief(b)}"


def alike(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return normal(a) == normal(b)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b)):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=NEAR_ZERO)
    return type(a) is type(b) and a == b


def of_lists(a: list[Any], b: list[Any], tolerance: float, where: str) -> Iterator[str]:
    """Entry by entry; where their number differs, what came and what went."""
    if len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences(x, y, tolerance, f"{where}[{i}]")
        return
    texts = [[normal(json.dumps(v, ensure_ascii=False)) for v in side] for side in (a, b)]
    for what, i, j, k, m in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if j - i == m - k and what != "equal":
            for x, y in zip(a[i:j], b[k:m], strict=True):
                yield from differences(x, y, tolerance, f"{where}[{i}]")
        elif what != "equal":
            yield from (f"{where}[{i}] went: {brief(v)}" for v in a[i:j])
            yield from (f"{where}[{k}] came: {brief(v)}" for v in b[k:m])


def brief(value: Any, width: int = 160) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= width else f"{text[:width]}… ({len(text)} characters)"


def compare(before: Path, after: Path, only: list[str], tolerance: float, ignore: str, most: int) -> int:
    """Print the differences; 1 if there are any, 0 if there are none."""
    total = 0
    for part in only:
        sides = [file for side in (before, after) if (file := side / f"{part}.json").exists()]
        a, b = ({}, {}) if len(sides) < 2 else (json.loads(file.read_text(encoding="utf-8")) for file in sides)
        lines = {name: list(of_item(a, b, name, tolerance)) for name in [*a, *(n for n in b if n not in a)]}
        if len(sides) == 1:
            lines = {"*": [f": only in {sides[0].parent}"]}
        for name, result in lines.items():
            kept = [line for line in result if not (ignore and re.search(ignore, f"{part}/{name}{line}"))]
            total += len(kept)
            for line in kept[:most]:
                print(f"{part}/{name}{line}")
            if len(kept) > most:
                print(f"{part}/{name}: {len(kept) - most} more")
    print(f"{total} differences" if total else "equal")
    return 1 if total else 0


def of_item(a: dict[str, Any], b: dict[str, Any], name: str, tolerance: float) -> Iterator[str]:
    if name in a and name in b:
        yield from differences(a[name], b[name], tolerance)
    else:
        yield f": only {'before' if name in a else 'after'}"

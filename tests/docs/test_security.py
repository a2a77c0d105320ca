"""Every promise of SECURITY.md names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(?:tests/)?((?:\w+/)*test_\w+\.py)?(?:::(\w+))?`")


def test_every_named_test_is_there() -> None:
    file, count = "", 0
    for line in TEXT.splitlines():
        for path, name in NAMED.findall(line):
            if not (path or name):
                continue
            file = path or file
            assert (ROOT / "tests" / file).is_file(), file
            source = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert not name or f"def {name}(" in source, f"{file}::{name}"
            count += 1
    assert count > 50


def test_every_promise_names_one() -> None:
    protects = TEXT.partition("## What headviz protects")[2].partition("## What it does not promise")[0]
    rows = [line for line in protects.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 25
    assert not [row for row in rows if not re.search(r"test_\w+\.py", row)]

"""Commands run in this process: their result, or the one line of a mistake."""

import json
from typing import Any

import pytest

from headviz.cli import main


def call(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """The result of a command that ends well."""
    status = main([*map(str, words), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    return json.loads(out)


def mistake(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What is said of a user's mistake: one line, and nothing on standard output."""
    status = main([*map(str, words)])
    out, err = capsys.readouterr()
    assert (status, out) == (2, ""), (out, err)
    (line,) = err.strip().splitlines()
    assert line.startswith("headviz: ")
    return line

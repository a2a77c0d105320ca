"""``python -m support.without_room COPY ASKED BROUGHT TEST…``: what a copy of the package still does without a room.

Imports every module of the copy, checks that the public names ``BROUGHT`` (JSON) are gone, prints how each line of
Python in ``ASKED`` (JSON) is refused, collects all quick tests, and runs those of these files. It is forked from a
process that has imported what headviz needs (``NEEDED``), and never headviz.
"""

from __future__ import annotations

import contextlib
import io
import json
import pkgutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

NEEDED = (
    *("pandas", "plotly.graph_objects", "scipy.stats", "sklearn.metrics", "streamlit", "torch", "distributed"),
    *("transformers.models.bert.modeling_bert", "transformers.trainer", "accelerate"),
)


def main_refused(words: list[str]) -> None:
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        status = import_module("headviz.cli").main(words)
    assert status == 2, (status, err.getvalue())
    raise ValueError(err.getvalue())


def check(copy: str, asked: list[str], brought: list[str]) -> None:
    headviz: Any = import_module("headviz")
    assert Path(headviz.__file__).is_relative_to(copy)
    assert not set(brought) & set(headviz.__all__)
    for module in pkgutil.walk_packages(headviz.__path__, "headviz."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    rnn = Path(tempfile.mkdtemp())
    (rnn / "rnn.json").write_text("{}")
    for line in asked:
        try:
            exec(line, {"headviz": headviz, "main_refused": main_refused, "rnn": rnn})
        except (Exception, SystemExit) as error:
            print("refused:", " ".join(str(error).split()))
        else:
            print("not refused:", line)


class Some:
    """Runs the tests of some files only, once all have been collected."""

    def __init__(self, files: list[str]) -> None:
        self.files = {Path(file).resolve() for file in files}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        others = [item for item in items if item.path not in self.files]
        items[:] = [item for item in items if item.path in self.files]
        config.hook.pytest_deselected(items=others)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    check(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))
    words = ["-q", "--assert=plain", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"]
    sys.exit(pytest.main(words, plugins=[Some(sys.argv[4:])]))

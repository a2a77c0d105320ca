"""The code under each page: the Python compiles, the command is one that headviz takes; both come from the view."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from headviz.analyses.catalogue import ANALYSES
from headviz.cli import COMMANDS, main
from headviz.demo import DATA

OFF = "fff" * 3 + "f0f" + "fff" * 8  # four heads of layer 3 off
VIEWS = [
    ("heads", {}),
    ("heads", {"weights": "difference", "base": "some-base", "score": "taylor"}),
    ("head", {"head": "3.5", "target": "neutral", "steps": "8"}),
    ("masklab", {}),
    ("compare", {"a": 'it\'s "quoted" $HOME `ls`', "b": "a cat; rm -rf"}),
    ("distil", {}),
    ("data", {}),
    *(("analyses", {"analysis": a.name}) for a in ANALYSES.values() if "classification" in a.kinds and not a.page),
]


def parsed(command: str) -> argparse.Namespace:
    """The arguments as headviz reads them; fails where it would."""
    program, name, *words = shlex.split(command)
    assert program == "headviz"
    module = import_module(COMMANDS[name].module)
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    module.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(("page", "more"), VIEWS, ids=lambda v: v if isinstance(v, str) else "-".join(v.values()))
def test_code_and_command_can_be_used(
    open_page: Callable[..., Any], address: dict[str, str], page: str, more: dict[str, str]
) -> None:
    app = open_page(page, mask=OFF, **more)
    assert not app.exception
    python, command = [c.value for c in app.code][-2:]
    compile(python, page, "exec")
    found = parsed(command)
    if "model" in vars(found):
        assert found.model == address["model"]
    assert address["data"] in python or page in ("head", "compare") or more.get("analysis") == "speed"
    if page == "compare":
        assert (found.text, found.text_pair) == (more["a"], more["b"])
        assert repr(more["a"]) in python


def test_a_distillation_is_what_the_form_says(open_page: Callable[..., Any], tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    app = open_page("distil", mask=OFF)
    next(m for m in app.button_group if m.key == "w_layers").set_value(["3", "5"]).run()
    next(m for m in app.button_group if m.key == "w_ffn").set_value(["5", "7"]).run()
    python, command = [c.value for c in app.code][-2:]
    found = parsed(command)
    assert found.remove == ["layers:3,5+ffn:7"]  # layer 3's heads and layer 5's feed-forward block go with them
    assert (found.init, found.seeds) == ("random,copy", "0,1,2")
    made: dict[str, Any] = {}
    exec(python.rsplit("\n", 1)[0], made)
    assert made["plan"].remove == "layers:3,5+ffn:7"
    assert made["plan"].training.steps == 300


@pytest.mark.slow
def test_what_heads_prints_gives_the_numbers_on_the_page(
    open_page: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo's shipped table, from the printed Python and from the printed command."""
    demo = {"model": "demo", "task": "demo", "data": "", "columns": "", "label": "", "groups": "", "score": "taylor"}
    app = open_page("heads", **demo)
    assert not app.exception
    python, command = [c.value for c in app.code][-2:]
    (shown,) = [t for t in shipped_tables() if (t["score"], t["weights"]) == ("taylor", "fine-tuned")]
    names: dict[str, Any] = {}
    exec(python, names)
    np.testing.assert_allclose(names["scores"].values, np.array(shown["values"]), rtol=1e-4, atol=1e-6)
    assert names["scores"].samples == shown["samples"]
    capsys.readouterr()
    assert main([*shlex.split(command)[1:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(np.array(found["values"]), np.array(shown["values"]), rtol=1e-4, atol=1e-6)


def shipped_tables() -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = json.loads((DATA / "scores.json").read_text())["scores"]
    return tables

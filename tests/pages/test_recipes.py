"""The code under each page: the Python compiles, the command is one that headviz takes; both come from the view."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from importlib import import_module
from typing import Any

from headviz.cli import COMMANDS

OFF = "fff" * 3 + "f0f" + "fff" * 8  # four heads of layer 3 off


def parsed(command: str) -> argparse.Namespace:
    """The arguments as headviz reads them; fails where it would."""
    program, name, *words = shlex.split(command)
    assert program == "headviz"
    module = import_module(COMMANDS[name].module)
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    module.add_arguments(parser)
    return parser.parse_args(words)


def test_a_distillation_is_what_the_form_says(open_page: Callable[..., Any], tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    app = open_page("distil", mask=OFF)
    next(m for m in app.button_group if m.key == "w_layers").set_value(["3", "5"]).run()
    next(m for m in app.button_group if m.key == "w_ffn").set_value(["5", "7"]).run()
    python, command = [c.value for c in app.code][-2:]
    found = parsed(command)
    assert found.remove == ["layers:3,5+ffn:7"]  # layer 3's heads and layer 5's feed-forward block go with them
    assert (found.init, found.seeds) == (("random", "copy"), (0, 1, 2))
    made: dict[str, Any] = {}
    exec(python.rsplit("\n", 1)[0], made)
    assert made["plan"].remove == "layers:3,5+ffn:7"
    assert made["plan"].training.steps == 300

"""What a command's help says an option is by default is what the option's class has."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from typing import Any

import pytest

from headviz.commands import finetune
from headviz.extras.distillation import command as distill
from headviz.extras.distillation.options import IterateOptions, PosteriorOptions, TrainingOptions
from headviz.pruning.options import FinetuneOptions

TOLD = (r"\((-?[\d.e-]+)\)$", r"^thesis: (\S+)$", r"(\S+) \(default\)", r"(\S+) \(default:", r"^(0)$")
OTHER_NAMES = {"iterates": "count", "iterate_rate": "learning_rate"}  # of the iterates' options


def told(text: str) -> str | None:
    """The default that a help names; None where it is told in words, or there is none."""
    found = [match[1] for pattern in TOLD if (match := re.search(pattern, text))]
    assert len(found) < 2, text
    return found[0] if found else None


def helps(command: Any) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return {a.dest: a.help for a in parser._actions if a.help and a.default is None}


def defaults(*classes: type) -> dict[str, Any]:
    return {f.name: f.default for cls in classes for f in fields(cls)}


@pytest.mark.parametrize(
    ("command", "known", "least"),
    [
        (finetune, defaults(FinetuneOptions), 8),
        (distill, defaults(PosteriorOptions, TrainingOptions), 12),
        (distill, {old: defaults(IterateOptions)[new] for old, new in {**OTHER_NAMES, "gap": "gap"}.items()}, 3),
    ],
    ids=["finetune", "distill", "iterates"],
)
def test_defaults_in_helps_are_those_of_the_options(command: Any, known: dict[str, Any], least: int) -> None:
    said = {name: told(text) for name, text in helps(command).items() if name in known}
    compared = {name: (text, known[name]) for name, text in said.items() if text is not None}
    assert len(compared) >= least, sorted(said.items())
    wrong = {
        name: pair
        for name, pair in compared.items()
        if (pair[0] != pair[1] if isinstance(pair[1], str) else float(pair[0]) != pair[1])
    }
    assert wrong == {}

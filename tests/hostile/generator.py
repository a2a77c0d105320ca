"""Hostile cases, drawn with a seed: command lines, Python calls, files of models and data, links and uploads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from .calls import call_case, link_case
from .case import Case
from .command_lines import COMMANDS, command_case, options_of
from .files import data_case, model_case, upload_case
from .place import Place

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

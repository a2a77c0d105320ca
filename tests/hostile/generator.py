"""Hostile cases, drawn with a seed: command lines, links, calls, files, folders, settings, homes, environments."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from .calls import call_case, link_case
from .case import Case
from .command_lines import COMMANDS, command_case, options_of
from .files import data_case, model_case, upload_case
from .folders import holes_case, setting_case, tokenizer_case
from .homes import cache_case, environment_case, registry_case
from .place import Place

# how many of two thousand cases are of a kind
SHARES = {
    "command": 390,
    "link": 250,
    "call": 200,
    "data": 140,
    "upload": 100,
    "folder": 120,
    "loaded": 110,
    "setting": 150,
    "holes": 110,
    "tokenizer": 110,
    "registry": 110,
    "cache": 110,
    "environment": 100,
}


def cases(count: int, seed: int, place: Place, clf: Any, data: Any) -> Iterator[Case]:
    """``count`` cases of all kinds in their shares, the same for the same seed."""
    draw = random.Random(seed)
    options = {c: options_of(c) for c in COMMANDS}
    make: dict[str, Callable[[], Case]] = {
        "command": lambda: command_case(draw, place, options),
        "link": lambda: link_case(draw, place),
        "call": lambda: call_case(draw, place, clf, data),
        "data": lambda: data_case(draw, place),
        "upload": lambda: upload_case(draw, place),
        "folder": lambda: model_case(draw, place, load=False),
        "loaded": lambda: model_case(draw, place, load=True),
        "setting": lambda: setting_case(draw, place),
        "holes": lambda: holes_case(draw, place),
        "tokenizer": lambda: tokenizer_case(draw, place),
        "registry": lambda: registry_case(draw, place),
        "cache": lambda: cache_case(draw, place),
        "environment": lambda: environment_case(draw, place),
    }
    whole, total = [kind for kind, share in SHARES.items() for _ in range(share)], sum(SHARES.values())
    kinds = [whole[i * total // count % total] for i in range(count)]
    draw.shuffle(kinds)
    for kind in kinds:
        yield make[kind]()

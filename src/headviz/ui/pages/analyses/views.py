"""How each analysis is shown: a figure, a table, and one sentence that says what it shows.

An analysis without a line in ``VIEWS`` is shown by its figure and the table of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from ....charts import analyses as charts_analyses
from ...shell import show
from . import curves, heads
from .shared import Place


def show_result(name: str, found: Any, place: Place) -> None:
    VIEWS.get(name, _plain)(found, place)


def _plain(found: Any, place: Place) -> None:
    """Any other result: its figure, and the first table of rows that it has."""
    name = type(found).__name__
    show.figure(charts_analyses.figure(found), f"{name}_figure".lower(), name)
    rows = next(
        (
            v
            for f in fields(found)
            if isinstance(v := getattr(found, f.name), tuple) and v and is_dataclass(v[0])
        ),
        (),
    )
    if rows:
        header = [f.name for f in fields(rows[0])]
        show.table(
            header, [[getattr(r, h) for h in header] for r in rows], f"{name}_table".lower(), caption=name
        )


VIEWS: dict[str, Callable[[Any, Place], None]] = {
    "ablation": heads.ablation,
    "by-slice": heads.by_slice,
    "all-but-one": heads.all_but_one,
    "cross-dataset": heads.cross_dataset,
    "pruning-curves": curves.curves,
    "stacks": curves.stacks,
    "speed": curves.speed,
    "harmful": heads.harmful,
    "redundant": heads.redundant,
    "dynamics": curves.dynamics,
}

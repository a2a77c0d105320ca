"""A result for its readers, as data: one sentence, then figures, grids and tables in their order.

The terminal, pages, reports and notebooks draw it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..heads import HeadId, HeadMask
from .table import Table

if TYPE_CHECKING:
    import numpy as np
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Picture:
    """One figure with its caption; the formula and its source are one click away on the page."""

    key: str
    draw: Callable[[], Figure]
    caption: str
    formula: str = ""
    source: str = ""
    wide: str = ""  # width in rem below which the figure scrolls


@dataclass(frozen=True)
class Grid:
    """A value for every head. The page draws it to be clicked, the terminal prints it with its marks."""

    key: str
    base: HeadMask
    values: np.ndarray
    name: str
    caption: str
    marks: tuple[HeadId, ...] = ()
    mark_name: str = ""
    grey: np.ndarray | None = None  # heads whose value is not told apart from 0
    tips: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    formula: str = ""
    source: str = ""
    form: str = "%+.2f"  # printf format of a value, as text
    losses: bool = False  # what is lost without a head: more is worse, and 0 is nothing


@dataclass(frozen=True)
class View:
    """A result for its readers: one sentence, then pictures and tables in their order."""

    finding: str
    parts: tuple[Picture | Table, ...] = ()
    grid: Grid | None = None  # stands beside the parts
    about: tuple[tuple[str, str], ...] = ()  # what was measured, for readers who do not see the page's head
    rows: tuple[str, ...] = ()  # names of the grid's rows where they are not simply layers
    warning: str = ""
    note: str = ""  # small print, such as why there is nothing to draw

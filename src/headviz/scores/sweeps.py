"""What is measured on each example, one sweep for every score that can be read from it.

A sweep turns a few examples into small tables [L, H] (removed heads NaN), which are kept per example: a score
asked for later, or a larger sample, then only reads them. Maps themselves are far too big to keep.

The table loads no torch; plugins add their sweeps (``docs/plugins.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import plugins

if TYPE_CHECKING:
    from .chunk import Chunk, Tables

# gives for each example the rest of the work, for another thread
Run = Callable[["Chunk"], Sequence[Callable[[], "Tables"]]]


@dataclass(frozen=True)
class Sweep:
    """One measurement. Functions, or their "module:function"."""

    name: str
    version: int  # raise it when the same example would give other tables
    run: Run | str
    split: Callable[[Chunk], Iterator[slice]] | str  # examples that share their passes
    settings: tuple[str, ...] = ()  # the options that change the tables
    uses_target: bool = False
    uses_gold: bool = False  # whether the gold answers change the tables
    reads_labels: bool = False  # whether its scores need the gold answers
    window: int = 64  # examples among which those of similar length are put together
    by_gates: bool = False  # whether the tables hold derivatives by the heads' gates
    reads_references: bool = False  # whether sentences are compared with their references as text, not as tokens
    spare_core: bool = False  # whether its statistics take long enough to be worth a core
    after: str = ""  # the sweep that it stands after; empty = it stands last


_PATH = ("steps", "rule", "precision")
_ENTRIES = (
    Sweep(
        "conductance",
        1,
        "headviz.scores.map_values:conductance",
        "headviz.scores.map_values:by_nodes",
        _PATH,
        uses_target=True,
        spare_core=True,
    ),
    Sweep(
        "attattr",
        1,
        "headviz.scores.map_values:attattr_values",
        "headviz.scores.map_values:by_nodes",
        _PATH,
        uses_target=True,
    ),
    Sweep(
        "gates",
        1,
        "headviz.scores.gradients:gates",
        "headviz.scores.gradients:by_tokens",
        uses_gold=True,
        reads_labels=True,
        by_gates=True,
    ),
    Sweep(
        "ablation",
        1,
        "headviz.scores.task_loss:ablation",
        "headviz.scores.task_loss:all_at_once",
        reads_labels=True,
        window=256,
        reads_references=True,
    ),
)
SWEEPS: Mapping[str, Sweep] = plugins.Entries("sweeps", _ENTRIES)

"""One line of the catalogue of scores: what a score is called, what it means, what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..options import declared, read_options
from .options import NoOptions

if TYPE_CHECKING:
    from ..answers.answer import Answer
    from .chunk import Chunk, Tables


# What is measured on each example, one sweep for every score that can be read from it ----------
#
# A sweep turns a few examples into small tables [L, H] (removed heads NaN), which are kept per example: a score asked
# for later, or a larger sample, then only reads them. Maps themselves are far too big to keep.
#
# The table loads no torch; plugins add their sweeps (``docs/plugins.md``).


# returns for each example a function that finishes its tables; another thread may call it
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


# -----------------------------------------------------------------------------------------------


SAMPLE = "sample"  # all examples together; the others are measured one by one, by the sweeps of ``sweeps``


@dataclass(frozen=True)
class Score:
    """One head score.

    ``measure`` is a function ``(inputs: Inputs, options) -> Summary``, or its "module:function". It may also return an
    array: [n, L, H] is averaged over the examples, [L, H] is taken as exact.
    """

    name: str
    title: str
    meaning: str  # one sentence in plain words
    formula: str
    source: str
    measure: str | Callable[[Any, Any], Any]
    needs: str | None = None  # a sweep of ``SWEEPS``, or SAMPLE; None = no example is needed
    options: type = NoOptions
    caution: str = ""  # when not to use it
    tex: str = ""  # the formula as TeX; empty = shown as text
    correlation: str = ""  # "spearman", …: a correlation between −1 and 1, with bands of its own
    row: str = ""  # the only one of its sweep's tables that it reads, where it reads one: a GPU then computes no other
    slow: bool = False  # minutes: left out where scores are computed that nobody has named
    pretrained: bool = False  # also measured on pre-trained weights at their own task, filling in masked words
    explained_only: str = ""  # why only models whose answer can be explained have it; empty = all have it
    after: str = ""  # the score that it stands after in lists; empty = it stands last

    @property
    def without_examples(self) -> bool:
        return self.needs is None

    @property
    def sweep(self) -> Sweep | None:
        """What measures the examples one by one; None where there are none, or all are read together."""
        return None if self.needs is None else SWEEPS.get(self.needs)

    @property
    def needs_labels(self) -> bool:
        """Whether the gold answers are read, whatever the options say."""
        return self.needs_sample or (self.sweep is not None and self.sweep.reads_labels)

    @property
    def needs_sample(self) -> bool:
        """Whether it reads all examples together, so that there is no value per example."""
        return self.needs == SAMPLE

    @property
    def of_masked_words(self) -> bool:
        """Whether it is ``pretrained`` and can be measured there: a correlation at a masked place, a function of the
        derivatives by the gates, or one that needs no example."""
        at_a_place = self.needs == "conductance" and bool(self.correlation)
        return self.pretrained and (at_a_place or self.needs in (None, "gates"))

    def fits(self, answer: Answer) -> bool:
        """Whether models with this answer have it."""
        return answer.explains or not self.restriction

    @property
    def restriction(self) -> str:
        """Why only models whose answer can be explained have it, as in "reads the class"; empty = all have it."""
        reads_maps = self.needs in ("conductance", "attattr")
        return "explains the class that a model predicts" if reads_maps else self.explained_only

    @property
    def seeded(self) -> bool:
        """Whether it draws by a seed of its own."""
        return "seed" in declared(self.options)

    def options_from(self, values: Mapping[str, Any]) -> Any:
        """Its options from keywords; a misspelt one is answered with the valid ones."""
        return read_options(self.options, values, f"option of '{self.name}'")

    @property
    def function(self) -> Callable[[Any, Any], Any]:
        """The measuring function itself; importing it may import torch."""
        return plugins.function(self.measure)

"""What an analysis is: what it asks, how it runs, how its result is shown, and the code that gives it again.

Each is described by one ``Analysis`` in the catalogue. The command line, the Analyses page and the reports draw from
that description; a plugin describes its own in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from .. import reference
from ..display.numbers import fixed
from ..display.table import Column, Ends, View
from ..errors import LARGEST_SEED
from ..evaluation.request import Request
from ..evaluation.verdict import outward
from ..heads import LEAST_STEP
from ..options import Option
from ..reference import PublishedTable
from ..tasks import DEFAULT_SAMPLES

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..answers.answer import Answer

Need = Literal["model", "data", "evaluator", "mask", "slices"]

CLARK = "Clark, Khandelwal, Levy, Manning 2019, “What Does BERT Look At?” (arXiv 1906.04341)"
MICHEL = "Michel, Levy, Neubig 2019, “Are Sixteen Heads Really Better than One?” (arXiv 1905.10650)"


# what it asks ---------------------------------------------------------------------------------


METRIC = Option("metric", None, "a metric of the task", usual="its first", metavar="NAME")
SELECT = Option("select", "other", "data that the heads are chosen on", choices=("other", "same"), metavar="HOW")
SAMPLES = Option("samples", DEFAULT_SAMPLES, "train examples for scoring, or to choose heads on", least=1, metavar="N")
SEED = Option("seed", 0, "of the sample", most=LARGEST_SEED, metavar="S")
REPEATS = 12  # of a timing
SPLITS = 5  # of data into halves, to grade scores
STEP = Option("step", 0.1, "share per step", least=LEAST_STEP, most=1, metavar="K")
LOOKED_AT = Option("samples", 300, "at most so many examples", least=1, metavar="N")
IMPORTANCE = Option("importance", "taylor", "a score by which heads with a role are compared, or none", metavar="NAME")
ORDER = Option("score", "taylor", "order of pruning", metavar="NAME")


# how it is shown ------------------------------------------------------------------------------

PAIRED = "q: Benjamini-Hochberg over all heads; intervals: paired on the same examples, 95 %."
COST = r"c_h = m(\text{full}) - m(\text{full without } h)"


def in_points(title: str, value: Callable[[Any], Any], ends: Callable[[Any], Ends] | None = None) -> Column:
    """A column of points, with the interval if there is one, rounded outward as in sentences."""

    def covering(low: float, high: float) -> str:
        return f"[{', '.join(fixed(end + 0.0, 1) for end in outward(low, high, 1))}]"

    return Column(title, "%.1f", value, ends=ends, ends_format=covering)


@dataclass(frozen=True)
class Lines:
    """For a figure with many lines: the names of the lines, and the result with only some of them."""

    names: Callable[[Any], list[str]]
    only: Callable[[Any, Sequence[str]], Any]


# the code of one ------------------------------------------------------------------------------


def later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported when the function is called."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    call.__module__, call.__name__ = module, name
    return call


def code(module: str, *more: str) -> dict[str, Any]:
    """What runs an analysis, its figure and its view, and ``more`` of its module."""
    return {name: later(module, name) for name in ("run", "figure", "view", *more)}


# the groups that a page lists analyses in
EACH, TOGETHER, MANY, WHERE = "What each head costs", "Heads together", "Removing many", "Where heads look"
GROUPS = (EACH, TOGETHER, MANY, WHERE)


# the whole ------------------------------------------------------------------------------------

MASKABLE: tuple[Need, ...] = ("model", "data", "mask")


def evaluated(answer: Answer) -> bool:
    """Models that are evaluated on a task."""
    return bool(answer.metrics)


def explained(answer: Answer) -> bool:
    """Models whose answer to a text can be explained."""
    return answer.explains


def exported(answer: Answer) -> bool:
    """Models that are evaluated on a task and written as ONNX."""
    return evaluated(answer) and bool(answer.graph)


@dataclass(frozen=True)
class Analysis:
    """One entry of the catalogue."""

    name: str
    title: str
    question: str  # what it answers, for the page
    help: str  # what it does, for the command line
    source: str
    run: Callable[[Request], Any]
    figure: Callable[[Any], Figure]  # of the result, for a page of its own
    view: Callable[[Any], View]
    # From the options' values, Python that ends with ``result = …``. It may use clf, data and mask, if it needs them,
    # and what ``recipe_names`` gives.
    recipe: Callable[[Mapping[str, Any]], str] | None = None
    needs: tuple[Need, ...] = ("model", "data")
    options: tuple[Option, ...] = ()
    published: Callable[[str], list[PublishedTable]] = reference.nothing  # of a task
    fits: Callable[[Answer], bool] = evaluated  # the answers of the models that it is made for
    page: str = ""  # the dashboard's page that shows it, where that is not Analyses
    group: str = MANY  # of GROUPS, under which Analyses lists it
    after: str = ""  # the analysis that it stands after in lists; empty = it stands last
    command: str = ""  # of its own, where it is not ``analyse NAME``
    lines: Lines | None = None
    over_draws: bool = False  # takes the mean over several draws of what stands in a head's place; the others take one
    tells: Literal["", "abilities", "looks", "scores"] = ""  # what other pages show of its newest result

    @property
    def takes_mask_away(self) -> bool:
        """Whether it is about the user's mask itself, rather than about heads on top of it."""
        return "mask" in self.needs and not self.evaluates

    @property
    def evaluates(self) -> bool:
        """Whether it switches heads off and evaluates, so that something stands in their place."""
        return self.asks("metric") or "evaluator" in self.needs

    @property
    def line(self) -> str:
        return f"headviz {self.command or f'analyse {self.name}'}"

    def asks(self, option: str) -> bool:
        return any(o.name == option for o in self.options)

    def recipe_names(self, options: Mapping[str, Any]) -> set[str]:
        """What its recipe may use, by these values of its options: ``evaluator``, ``some`` (a training sample),
        ``other`` (a second data set) and ``checkpoints`` (a folder)."""
        scores = self.asks("score") or self.asks("scores")
        uses = {
            "evaluator": "model" in self.needs and (self.evaluates or SELECT in self.options),
            "some": SAMPLES in self.options and (scores or options.get("select") == "other"),
            "other": self.asks("other-task"),
            "checkpoints": self.asks("checkpoints"),
        }
        return {name for name, used in uses.items() if used}


def arguments(request: Request, *options: str) -> dict[str, Any]:
    """These options of a request under their names, with how it reports progress and is stopped."""
    values = {name: request.option(name) for name in options}
    return {**values, "progress": request.progress, "cancel": request.cancel}

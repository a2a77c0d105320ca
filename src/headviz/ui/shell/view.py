"""The view: what the dashboard shows, as one value, its form in the address bar, and the grades that order its scores.

No streamlit here: reading and writing an address depend on nothing but what the server was started with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ... import plugins
from ...analyses.grades import Grades, recorded
from ...errors import OptionError, one_line
from ...evaluation.verdict import MARGIN
from ...models.source import Source
from ...options import declared, option
from ...plugins import Page, Tab
from ...scores.catalogue import DEFAULT
from ...storage.paths import START

# Tables of the dashboard that plugins add to. Read without streamlit ---------------------------


FIRST = "workbench"  # the page at /

# in the order of the story; the first is the start page. These are files in pages/.
_PAGES = (
    Page(FIRST, "Workbench"),
    Page("masklab", "Mask lab"),
    Page("scores", "Scores"),
    Page("head", "One head"),
    Page("compare", "Compare"),
    Page("analyses", "Analyses"),
    Page("runs", "Runs", without_data=True),
    Page("data", "Data & model", without_data=True),
)
PAGES: Mapping[str, Page] = plugins.Entries("pages", _PAGES)
# pages of older links, with a parameter where only that page with it has moved -> page and parameter that took over
MOVED = {
    ("heads", ""): ("scores", ""),
    ("distil", ""): ("runs", "new=distill"),
    ("analyses", "analysis=grade"): ("scores", "side=board"),
    ("analyses", "analysis=speed"): ("runs", "new=speed"),
    ("analyses", "analysis=runtimes"): ("runs", "new=runtimes"),
}
OF_SCORES = ("side", "weights")  # fields by which an older link to / means Scores; the first page's has none of them
TABS: Mapping[str, Tab] = plugins.Entries("tabs", ())


# ---- grades of scores: what the user has measured, else those recorded on the demo

GradeSource = tuple[object, ...]  # a view's
MOST_GRADES = 256  # models and data whose grades are kept
_grades: dict[tuple[str, GradeSource], Grades] = {}
_whose: list[Callable[[], str]] = [str]  # tells whose they are, where a server has several users


def grades_of(user: Callable[[], str]) -> None:
    """Keep grades by the user that this function names."""
    _whose[0] = user


def remember_grades(source: GradeSource, grades: Grades, owner: str | None = None) -> None:
    """``owner``: where no page is drawn, whose they are."""
    if len(_grades) >= MOST_GRADES:
        _grades.clear()
    _grades[_whose[0]() if owner is None else owner, source] = grades


def own_grades(source: GradeSource) -> Grades | None:
    return _grades.get((_whose[0](), source))


def best_score(source: GradeSource, on_demo: bool) -> str | None:
    """The score to prune by here; None where nothing is graded, or nothing is shown to be better than chance."""
    grades = own_grades(source)
    if grades is None and on_demo and (shipped := recorded()) is not None:
        grades = shipped.grades
    return None if grades is None or grades.best in grades.not_better else grades.best


def by_grade(source: GradeSource, names: Sequence[str]) -> list[str]:
    """The names in the order of the user's own grades; what these do not have comes last. Unchanged without any."""
    grades = own_grades(source)
    ranks = {} if grades is None else {g.score: rank for rank, g in enumerate(grades)}
    return sorted(names, key=lambda name: ranks.get(name, len(ranks)))


# ---- the view

COST = "ablation"  # the score that says what each head costs
IN_LOSS = "ablation-loss"  # the same in loss: to look at, no order to remove heads by
LONGEST_TEXT = 1500  # characters of a text that an address carries; longer ones stay in the session
OF_DATA = ("data", "columns", "label", "groups", "separator", "thresholds")  # fields of a view that other data empty
LONG = "long"  # the query parameter that names the texts which stayed behind
_TEXTS = {"a": "first", "b": "second"}
OF_PLAN = declared(Source)  # what names a model and data there has the same help here


@dataclass(frozen=True)
class View:
    """Everything that a link restores. Each field is one query parameter; defaults are left out of the address."""

    model: str = option("demo", "what headviz.load takes")
    revision: str = option("", OF_PLAN["revision"].help)
    device: str = option("auto", OF_PLAN["device"].help)
    dtype: str = option("", "precision of the weights; float32 is also that of everything computed, on a GPU as well")
    job: str = option("", OF_PLAN["job"].help)
    classes: str = option(
        "", "what the model's outputs mean, in their order, as a,b; empty = as its configuration says"
    )
    task: str = option("demo", "the data's task")
    data: str = option("", "a local folder, or the id of an upload")
    columns: str = option("", OF_PLAN["text_columns"].help)
    label: str = option("", OF_PLAN["label_column"].help)
    groups: str = option("", "mapped slice column")
    separator: str = option("", OF_PLAN["separator"].help)
    skip_bad: bool = option(False, OF_PLAN["skip_bad"].help)
    thresholds: str = option("", OF_PLAN["thresholds"].help)
    limit: int = option(500, "size of the dev subset; 0 = all", least=0, most=1_000_000, title="Dev examples (0 = all)")
    seed: int = option(0, "which examples those are", most=2**31 - 1, title="Seed")

    score: str = option(DEFAULT, "the score of the first grid")
    beside: str = option("", "the score of the second grid, which also orders heads; empty = what each head costs")
    samples: int = option(64, "fewest examples to compute a score on", least=1, most=20_000)
    weights: str = option("fine-tuned", "whose heads are scored: fine-tuned, or pretrained")
    base: str = option("", "the pre-trained model; empty = the demo's own")
    numbers: bool = option(True, "values in the grid's cells")
    side: str = option("ranking", "Scores, below the grids: ranking, bands or board")
    grid: str = option("", "Workbench, the grid that a narrow window shows: score, or empty for cost")
    ability: str = option("", "Workbench: the ability whose heads are lit")

    head: str = option("", "the selected head, as 3.5")
    mask: str = option("", "the mask in hexadecimal, or heads that are off, as 3.5,7.0; empty = all heads on")
    ablation: str = option(
        "zero", "what stands in the place of heads that are off, with the size of its reference: mean:64"
    )
    count: int = option(14, "heads for 'lowest k' and 'random k'", least=0, most=100_000)
    slice: str = option("", "the slice whose results are shown")

    example: int = option(6, "number of the example; models other than the demo begin with 0")  # one head turns it
    a: str = option("", "the user's own text; empty = the example's")
    b: str = option("", "its pair")
    blank: bool = option(False, "the user's own text is empty; without this the example would come back")
    donor: str = option("", "Compare, Patching: the text whose heads are put into the other")
    donor_pair: str = option("", "its pair")
    positions: str = option("all", "tokens that take the donor's values")
    first: str = option("", "Compare, A: all, mask, saved:NAME, run:ID:STEP or a model; empty = all heads")
    other: str = option("", "Compare, B, in the same words; empty = the current mask and saved ones")
    target: str = option("predicted", "class to explain")
    word: int = option(-1, "of a class per token, the word that is explained, from 0; -1 = the mean over all")
    rule: str = option("richardson", "integration rule")
    steps: int = option(0, "integration steps; 0 = the library's default", least=0, most=400)
    arrows: str = option("all", "which connections: all, A→A, A→B, B→A, B→B")
    special: bool = option(True, "show [CLS] and [SEP]")
    mass: int = option(70, "share of attention that the arcs carry, in per cent", least=10, most=100)
    picture: str = option("maps", "One head: maps, arcs, or the layer")
    scale: str = option("power", "One head: colours by the square root of a value, or linear")
    places: str = option("text", "One head: tokens as in the text, or strongest first")
    writes: bool = option(False, "One head: what it reads and writes")
    tokens: bool = option(False, "Compare: token attributions")
    shift: bool = option(False, "Compare: what attention changed")

    analysis: str = option("ablation", "the analysis that is shown")
    select: str = option("other", "data that 'all but one' chooses its heads on")
    margin: float = option(MARGIN, "points that may be lost and still count as nothing", least=0, most=100)
    orders: str = option("", "pruning curves that are shown, with commas; empty = the usual ones")
    layers: str = option("", "Distil: whole layers to remove besides the mask's heads, as 3,encoder.1")
    ffn: str = option("", "Distil: feed-forward blocks to remove")
    run: str = option("", "the run that is shown")
    new: str = option("", "Runs: what the form starts or measures: sweep, faster, … ; empty = one run")
    step: int = option(0, "the step of that run")
    tab: str = option("", "the open one of a page's tabs; empty = the first")
    present: bool = option(False, "presentation: no controls, larger type")
    story: int = option(0, "the step of the demonstration that this view belongs to; 0 = none", least=0, most=4)

    @property
    def chosen_order(self) -> str | None:
        """The score to remove heads by: the user's choice, else the best of the grades; None without either."""
        if self.beside not in ("", IN_LOSS):
            return self.beside
        if self.score not in (DEFAULT, IN_LOSS):
            return self.score
        return best_score(self.source, self.on_demo)

    @property
    def order(self) -> str:
        """The score that heads are ordered by: the chosen one, else cost."""
        return self.chosen_order or COST

    @property
    def exact(self) -> bool:
        """Whether everything is computed in float32, where a GPU would take something faster that agrees with it."""
        return self.dtype == "float32"

    @property
    def loading(self) -> dict[str, Any]:
        """The keywords with which ``headviz.load`` loads the model, where they are not its defaults."""
        keywords = {
            "revision": self.revision,
            "device": "" if self.device == "auto" else self.device,
            "dtype": "" if self.exact else self.dtype,
            "job": self.job,
            "class_names": self.class_names,
        }
        return {name: value for name, value in keywords.items() if value}

    def reading(self, split: str) -> dict[str, Any]:
        """The keywords with which ``headviz.load_task`` reads the data, where they are not its defaults."""
        keywords = {
            "data": self.data,
            "limit": self.limit,
            "text_columns": self.columns,
            "label_column": self.label,
            "slice_column": self.groups,
            "separator": self.separator,
            "skip_bad": self.skip_bad,
            "thresholds": self.thresholds,
            "job": self.job if self.task == "custom" else "",
            "seed": self.seed,
        }
        return {"split": split, **{name: value for name, value in keywords.items() if value}}

    @property
    def source(self) -> tuple[object, ...]:
        """Which weights and examples are shown."""
        data = (self.task, *self.reading("dev").items())
        return (self.model, self.revision, self.dtype, self.job, self.classes, *data)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the model's outputs; None where it keeps its own."""
        return tuple(name.strip() for name in self.classes.split(",")) if self.classes else None

    def of_model(self, model: str) -> View:
        """The same of another model, which has its own revision and names for its classes."""
        return self if model == self.model else replace(self, model=model, revision="", classes="", job="")

    @property
    def on_demo(self) -> bool:
        """Whether the view shows the demo and its own data, of which much is shipped."""
        return self.model == "demo" and self.task == "demo" and not self.data and not self.revision


OPTIONS = declared(View)
FIELDS: dict[str, Any] = {name: option.default for name, option in OPTIONS.items()}
OTHER_NAMES = {"off": "mask"}  # parameters that people write by hand -> the field they mean
OTHER_VALUES = {("analysis", "harmful"): "ablation"}  # of links to what another value shows now
TASKS_OF = {"demo-translation": "demo-translation"}  # the task of a model, where it is not the default


def start() -> dict[str, str]:
    """What the plain address opens, as an address; empty for the demo."""
    values = dict(parse_qsl(os.environ.get(START, "")))
    return {} if values.items() <= {"model": FIELDS["model"], "task": FIELDS["task"]}.items() else values


def defaults(model: str) -> dict[str, Any]:
    """What a view of this model shows unless its address says otherwise."""
    example = FIELDS["example"] if model in ("", FIELDS["model"]) else 0
    return {**FIELDS, "task": TASKS_OF.get(model, FIELDS["task"]), "example": example}


_SOURCE = (
    "model revision device dtype job classes task data columns label groups separator skip_bad thresholds limit seed "
    "mask story "
)
_TEXT = "example a b blank "
_SCORE = "score beside samples weights base numbers "
# The fields that a page depends on; a link to it leaves out the others. A page that is not listed keeps all.
SHOWN_BY = {
    page: frozenset((_SOURCE + fields).split())
    for page, fields in {
        "workbench": _TEXT + "score numbers head grid ability ablation margin",
        "scores": _SCORE + "head side",
        "head": _TEXT + _SCORE + "head target word rule steps arrows special mass picture scale places writes",
        "masklab": _SCORE + "count margin ablation",
        "compare": _TEXT + "numbers first other tokens shift head tab donor donor_pair positions",
        "analyses": _TEXT + _SCORE + "analysis select margin orders head target rule steps count slice",
        "runs": _SCORE + "run step tab margin new layers ffn",
        "data": "samples base tab",
        **{page.name: page.shown_by for page in PAGES.values() if page.shown_by},
    }.items()
}


def link_path(page: str, view: View) -> str:
    """The path and query that show this page again; the first page has the bare address."""
    shown_by = SHOWN_BY.get(page, frozenset(FIELDS))
    names = shown_by | ({LONG} if "a" in shown_by else set())
    address = {name: text for name, text in to_address(view).items() if name in names}
    query = f"?{urlencode(address)}" if address else ""
    return ("/" if page == FIRST else f"/{page}") + query


def to_address(view: View) -> dict[str, str]:
    """The query parameters of a view. They name the model wherever the plain address opens another than the demo."""
    address = {}
    always = ("model",) if start() else ()
    too_long = [name for name in _TEXTS if len(getattr(view, name)) > LONGEST_TEXT]
    for name, default in defaults(view.model).items():
        value = getattr(view, name)
        if (value == default and name not in always) or name in too_long:
            continue
        if isinstance(value, bool):
            address[name] = "1" if value else "0"
        else:
            address[name] = f"{value:g}" if isinstance(value, float) else str(value)
    if too_long:
        address[LONG] = ",".join(too_long)
    return address


def from_address(address: Mapping[str, str]) -> tuple[View, list[str]]:
    """The view of these query parameters, and one line for each that is unknown or cannot be read.

    A parameter that is missing has its default. Without a model the address is about what the server was started with.
    """
    if "model" not in address:
        of_start = start()
        if "task" in address:  # the data that the server was started with are another task's
            of_start.pop("data", None)
        address = {**of_start, **address}
    usual = defaults(address.get("model", ""))
    values: dict[str, Any] = {"task": usual["task"], "example": usual["example"]}
    complaints = []
    for parameter, text in address.items():
        name = OTHER_NAMES.get(parameter, parameter)
        if name == LONG:
            complaints += [
                f"The {_TEXTS[t]} text is longer than the {LONGEST_TEXT:,} characters that a link can hold and did "
                "not come with it. Paste it again."
                for t in text.split(",")
                if t in _TEXTS
            ]
            continue
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            complaints.append(f"headviz does not know '{one_line(name[:40])}' in the address and ignores it.{hint}")
            continue
        try:
            values[name] = _read(name, OTHER_VALUES.get((name, text), text))
        except OptionError:
            complaints.append(
                f"The address has {name}={one_line(text[:40])}, which is not possible; {usual[name]!r} is shown."
            )
    return View(**values), complaints


def _read(name: str, text: str) -> str | float | bool:
    if OPTIONS[name].kind is bool and text not in ("0", "1"):
        raise OptionError(text)
    value: str | float | bool = OPTIONS[name].read(text)
    return value

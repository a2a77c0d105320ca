"""The Analyses page: any analysis of the catalogue, run in the background, shown, and as a call and a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

import headviz

from ...analyses.analysis import GROUPS, Analysis, Lines
from ...analyses.catalogue import ANALYSES, analyses_for
from ...analyses.common import ORACLE, cut_off_of
from ...demo import demo_folder
from ...display import table
from ...display.figures.style import scale_of_losses
from ...display.recipes import Code, Options, call, command
from ...display.table import Grid, Picture, Table
from ...errors import TaskError, UserError
from ...evaluation.verdict import MARGIN
from ...heads import HeadMask
from ...models import LENGTH
from ...models.stand_in import ZERO, StandIn
from ...tasks import TASKS, sample
from ..parts import abilities, measure, scoring
from ..parts.measure import key_of
from ..shell import jobs, kept, loaders, recipes, recorded, show, state
from ..shell.messages import plain
from ..shell.view import View, remember_grades
from ..widgets.grid import Look

if TYPE_CHECKING:
    from ...answers.answer import Answer
    from ...evaluation.evaluator import Evaluator
    from ...models.base import TransformerModel
    from ...models.classifier import Classifier
    from ...tasks import Dataset

# the lines drawn by default next to the view's own score: the eye separates no more
USUAL = ("gates", "attattr-max", "taylor", "ablation", "random")


def draw(view: table.View) -> None:
    show.finding(view.finding)
    if view.warning:
        st.warning(plain(view.warning), icon=":material/timer_off:")
    if view.note:
        st.caption(plain(view.note))
    if view.grid is None:
        _parts(view)
        return
    left, right = st.columns([5, 4], gap="large")
    with left:
        _grid(view.grid, view.rows)
    with right:
        _parts(view)


def _parts(view: table.View) -> None:
    for part in view.parts:
        if isinstance(part, Picture):
            show.figure(part.draw(), part.key, part.caption, formula=part.formula, source=part.source)
        else:
            _table(part, view.rows)


def _grid(grid: Grid, rows: Sequence[str]) -> None:
    stem = grid.key.removesuffix("_grid")
    scale = scale_of_losses([float(v) for v in np.ravel(grid.values)]) if grid.losses else None
    look = Look(
        name=grid.name,
        scale=scale,
        blank_zeros=grid.losses,
        numbers=state.view().numbers,
        width=34,
        digits=1,
        file=f"headviz-{stem}",
    )
    show.head_grid(
        grid.key,
        grid.base,
        grid.values,
        selected=state.head(grid.base),
        tips={**grid.tips, **abilities.tips(state.view(), grid.base)},
        marks=grid.marks,
        mark_name=grid.mark_name,
        undecided=grid.undecided,
        rows=rows or None,
        look=look,
        on_select=state.select,
    )
    show.note(grid.caption, formula=grid.formula, source=grid.source, key=f"{stem}_note")


def _table(part: Table, rows: Sequence[str]) -> None:
    """A table. Where its rows have masks, a chosen row's mask is opened in the Mask lab."""
    options: dict[str, Any] = {"on_select": "rerun", "selection_mode": "single-row"} if part.masks else {}
    event = show.table(part, rows, height=part.height or "content", **options)
    if not part.masks:
        return
    memory = f"{part.key.removesuffix('_table')}_opened"
    row = show.chosen_row(event, memory, tuple(m.hex if m else "" for m in part.masks))
    if row is not None and (mask := part.masks[row]) is not None:
        state.set_mask(mask)
        st.switch_page("pages/masklab.py")


def chosen_lines(result: Any, lines: Lines) -> Any:
    """The result with the chosen lines only. All have been computed, so another choice is shown at once."""
    names, view = lines.names(result), state.view()
    shown = shown_lines(names, view.score, view.orders)
    if not view.present and len(names) > 2:
        st.session_state["curve_orders"] = shown
        st.multiselect("Orders", names, key="curve_orders", on_change=_take_lines, placeholder="the usual ones")
    return lines.only(result, shown)


def _take_lines() -> None:
    state.update(orders=",".join(st.session_state["curve_orders"]))


def shown_lines(names: Sequence[str], score: str, chosen: str) -> list[str]:
    """The lines to draw: the chosen ones, else the usual ones and the oracle, which is last and not drawn alone."""
    drawn = chosen.split(",") if chosen else [score, *USUAL]
    shown = [n for n in names if n in drawn or (not chosen and n == names[-1])]
    return shown if (chosen and shown) or len(shown) > 1 else list(names)


def published(name: str, task: str) -> None:
    """The published figures of one analysis, folded; nothing if there are none."""
    tables = ANALYSES[name].published(task)
    if not tables:
        return
    with st.expander("Published figures", icon=":material/menu_book:"):
        st.caption("Measured on another model and other data: compare the pattern, not the numbers.")
        for i, printed in enumerate(tables):
            st.markdown(f"**{plain(printed.title)}**")
            if warning := other_points(printed.metric, task):
                st.warning(plain(warning), icon=":material/straighten:")
            key = f"published_{name.replace('-', '_')}_{i}"
            show.table(Table(key, printed.header, printed.rows, f"As printed: {printed.about}."))


def other_points(metric: str, task: str) -> str:
    """A warning where a table's points are of another metric than the task's."""
    primary = TASKS[task].primary_metric if task in TASKS else ""
    if not metric or not primary or metric == primary:
        return ""
    published, measured = (name.upper() if name == "bleu" else name for name in (metric, primary))
    return f"These are points of {published}; here {measured} is measured. The two cannot be compared point by point."


SAMPLES = 500  # training examples to choose heads and to score on
SECONDS = 20.0  # of a search that takes what it is given
OTHER = {"mnli": "mnli-mm", "mnli-mm": "mnli"}
GRADE = "grade"
SECOND = "FOLDER"  # of other data, where the task has none
UNSEEN = ("demo", "demo-translation")  # tasks that come with a second evaluation split


def offered(answer: Answer) -> tuple[list[str], list[str]]:
    """The analyses for models with this answer, and those that have another page."""
    fit = analyses_for(answer)
    return [a.name for a in fit if not a.page], [a.name for a in fit if a.page]


def choose(names: Sequence[str]) -> str:
    """The analysis to show: a group, and one of the group."""
    groups = {name: ANALYSES[name].group for name in names}
    current = state.view().analysis
    group = groups[current if current in groups else names[0]]
    st.session_state["analysis_group"] = group

    def open_group() -> None:
        chosen = st.session_state["analysis_group"]
        state.update(analysis=next(name for name in names if groups[name] == chosen))

    st.segmented_control(
        "Analyses",
        [group for group in GROUPS if group in groups.values()],
        key="analysis_group",
        required=True,
        format_func=plain,
        label_visibility="collapsed",
        on_change=open_group,
    )
    chosen: str = state.switch(
        "analysis",
        "Analysis",
        [name for name in names if groups[name] == group],
        notice=True,
        format_func=lambda name: ANALYSES[name].title,
        label_visibility="collapsed",
    )
    return chosen


@dataclass
class FromPage:
    """What an analysis works with, from the view. Made on the page, used in a job's thread."""

    analysis: Analysis
    clf: Classifier
    data: Dataset
    view: View
    chosen: HeadMask  # the Mask lab's
    scores: dict[str, Any]  # tables that exist
    orders: list[str]  # scores to prune by; they may be the user's best grade, which a thread cannot look up
    stand_in: StandIn  # in the place of heads
    progress: jobs.Progress | None = None
    cancel: jobs.Cancel | None = None
    label_order = None

    @cached_property
    def evaluator(self) -> Evaluator:
        return self.on(self.data)

    def on(self, data: Dataset, clf: TransformerModel | None = None) -> Evaluator:
        """With the view's choice in the place of heads."""
        model: Any = clf or self.clf
        stand_in = self.stand_in if self.analysis.over_draws else replace(self.stand_in, draws=1)
        choice = loaders.StandInChoice(stand_in, self.view)
        return loaders.evaluator(model, data, choice, progress=self.progress, cancel=self.cancel)

    def sample(self, clf: TransformerModel | None = None) -> Dataset:
        train = loaders.train(self.view)
        return sample(train, SAMPLES, seed=self.view.seed, lengths=(clf or self.clf).tokenizer)

    def second(self) -> Dataset:
        return second_data(self.view)

    def mask(self) -> HeadMask | None:
        """The mask, for an analysis that is about it; the others start from the full model."""
        return self.chosen if self.analysis.takes_mask_away and self.chosen.off else None

    def score(self, clf: TransformerModel, name: str, data: Dataset) -> Any:
        if clf is self.clf and name in self.scores:
            return self.scores[name]
        return headviz.score_heads(clf, data, name, cancel=self.cancel, **scoring.settings(self.view, name)).values

    def load(self, place: Any, **options: Any) -> Classifier:
        classifier: Classifier = headviz.load(place, device=self.view.device, **options)
        return classifier

    def option(self, name: str) -> Any:
        if name in (values := options(self.view, self.analysis, self.clf.max_length, self.orders)):
            return values[name]
        return next(option.default for option in self.analysis.options if option.name == name)


def options(view: View, analysis: Analysis, longest: int, orders: Sequence[str]) -> dict[str, Any]:
    """The page's own values of options; they are also the command's flags."""
    options: dict[str, Any] = {
        "samples": SAMPLES,
        "seed": view.seed,
        "select": view.select,
        "seconds": SECONDS,
        "margin": view.margin,
        "length": min(LENGTH, longest),
    }
    if analysis.name != GRADE:  # which names all scores itself
        options["scores"] = ",".join(dict.fromkeys([*orders, ORACLE]))
    if analysis.asks("checkpoints"):
        options["checkpoints"] = checkpoints(view)
    return {name: value for name, value in options.items() if analysis.asks(name)}


def orders(view: View, measured: Sequence[str]) -> list[str]:
    """Scores to prune by: those that have tables, else the one that a run would take."""
    return list(measured) or [scoring.removing(view)]


def checkpoints(view: View) -> str:
    """The folder of a training's checkpoints: the demo's own, or the view's."""
    if view.model == "demo":
        return str(demo_folder("checkpoints"))
    if not view.base:
        raise UserError("Name a folder with checkpoints of the training, one model folder per checkpoint.")
    return str(loaders.confined(view.base))


def second_task(view: View) -> str | None:
    """The task that has the second evaluation set; None without one, and for data with columns of their own."""
    return None if view.columns else OTHER.get(view.task)


def second_data(view: View) -> Dataset:
    """The task's second evaluation set."""
    if (other := second_task(view)) is not None:
        return loaders.dataset(replace(view, task=other))
    if view.task in UNSEEN:
        return loaders.part(view, "unseen")
    raise TaskError(
        f"Task '{view.task}' has one dev set only. The command below takes a second one: --other-data {SECOND}."
    )


def controls(analysis: Analysis, view: View) -> None:
    """The fields of this analysis."""
    if analysis.asks("select"):
        state.switch(
            "select",
            "Heads chosen on",
            ("other", "same"),
            format_func=lambda s: {"other": "training examples", "same": "the reported data"}[s],
        )
    if analysis.asks("margin"):
        state.margin()
    if analysis.asks("checkpoints") and view.model != "demo":
        state.text("base", "Folder with the checkpoints", placeholder="/path/to/run/checkpoints")


def section(name: str, clf: Classifier, data: Dataset) -> None:
    """One analysis: its question, its fields, *Run*, its result, and the published figures."""
    analysis = ANALYSES[name]
    st.subheader(plain(analysis.title))
    st.markdown(plain(analysis.question))
    if "slices" in analysis.needs and data.slices is None:
        st.info(
            "These data do not say what kind each example is. Name a column of kinds on Data & model, or use the "
            "demo's data.",
            icon=":material/category:",
        )
        return
    if not state.view().present:
        controls(analysis, state.view())
    view = state.view()
    request = _request(analysis, clf, data, view)
    if request.stand_in.kind != ZERO:
        message = f"In the place of a head that is off stands {request.stand_in.meaning}. The Mask lab has the choice."
        st.caption(plain(message))
    result = _result(analysis, request)
    if result is not None:
        shown = result if analysis.lines is None else chosen_lines(result, analysis.lines)
        draw(analysis.view(shown))
        show.cut_off(cut_off_of(result))
    published(name, data.task.name)
    st.caption(plain(f"Source: {analysis.source}."))


def _request(analysis: Analysis, clf: Classifier, data: Dataset, view: View) -> FromPage:
    scores = scoring.all_known(view, clf.present)
    stand_in, mask = _stand_in(analysis), state.mask(clf.present)
    return FromPage(analysis, clf, data, view, mask, scores, orders(view, list(scores)), stand_in)


def _stand_in(analysis: Analysis) -> StandIn:
    return measure.stand_in() if analysis.evaluates else StandIn()


def computed(name: str, clf: Classifier, data: Dataset) -> Any:
    """The result of an analysis that another page asks for; None while its progress is shown."""
    return _needed(_request(ANALYSES[name], clf, data, state.view()))


def _key(request: FromPage) -> tuple[Any, ...]:
    """What the result depends on."""
    analysis, view = request.analysis, request.view
    options = (
        view.select if analysis.asks("select") else "",
        view.base if analysis.asks("checkpoints") else "",
        view.mask if analysis.takes_mask_away else "",
        *((view.margin,) if analysis.asks("margin") else ()),
        *(() if request.stand_in.kind == ZERO else (request.stand_in,)),
    )
    return key_of(request.clf, request.data, "analysis", analysis.name, *options)


def _result(analysis: Analysis, request: FromPage) -> Any:
    """The result, or None while *Run* or the progress is shown."""
    view, key = request.view, _key(request)
    if jobs.find(key) is None and st.session_state.get("analysis_asked") != key:
        usual = view.select == "other" and view.margin == MARGIN and not view.base and request.stand_in.kind == ZERO
        recording = recorded.analysis(analysis.name, request.clf, request.data, view.on_demo) if usual else None
        if recording is None:
            _run_button(analysis, key, "Run")
            return None
        if not view.present:
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                st.badge("recorded", icon=":material/history:", color="gray")
                st.caption(plain(recording.sentence), width="content")
                _run_button(analysis, key, "Run it here")
            st.code(recording.command, language=None, wrap_lines=True)
        return recording.result
    return _needed(request)


def _needed(request: FromPage) -> Any:
    """The result of the job, which other pages learn of; None while its progress is shown."""
    remember = _remembers(request.analysis.tells, kept.user())

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
        result = request.analysis.run(replace(request, progress=progress, cancel=cancel))
        remember(request.view, result)  # also where nobody looks when it ends
        return result

    result = jobs.need(_key(request), request.analysis.title, work)
    if result is not None:
        remember(request.view, result)
    return result


def _remembers(tells: str, owner: str) -> Callable[[View, Any], None]:
    """Keeps what other pages show of a result, by ``Analysis.tells``; also called where no page is drawn."""
    if tells == "scores":
        return lambda view, result: remember_grades(view.source, result, owner)
    return abilities.REMEMBER.get(tells, lambda view, result: None)


def _run_button(analysis: Analysis, key: tuple[Any, ...], label: str) -> None:
    kind: Any = "primary" if label == "Run" else "tertiary"
    st.button(
        plain(label), type=kind, icon=":material/play_arrow:", key=f"run_{analysis.name}", on_click=_ask, args=(key,)
    )


def _ask(key: tuple[Any, ...]) -> None:
    st.session_state["analysis_asked"] = key


def elsewhere(names: Sequence[str]) -> None:
    """Links to analyses that have a page of their own."""
    if not names:
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        for name in names:
            analysis = ANALYSES[name]
            st.page_link(
                f"pages/{analysis.page}.py",
                label=plain(f"{analysis.title} (another page)"),
                icon=":material/arrow_forward:",
            )


def recipe(view: View, name: str, present: HeadMask, longest: int) -> tuple[str, str]:
    """The library's call and the command that give the same result."""
    analysis, mask = ANALYSES[name], state.mask(present)
    scores = orders(view, list(scoring.all_known(view, present)))
    try:
        values = options(view, analysis, longest, scores)
    except UserError:
        values = {"checkpoints": "DIR"}
    lines = () if analysis.recipe is None else tuple(_lines(view, analysis, mask, values))
    return "\n".join(lines), _command(view, analysis, mask, values)


def _lines(view: View, analysis: Analysis, mask: HeadMask, options: Mapping[str, Any]) -> Iterator[str]:
    assert analysis.recipe is not None
    uses = analysis.recipe_names(options)
    yield recipes.HEADVIZ
    if "model" in analysis.needs:
        yield recipes.load(view)
    if "data" in analysis.needs:
        yield recipes.task(view)
    if "evaluator" in uses:
        drawn, words, _ = recipes.stand_in(view, _stand_in(analysis))
        yield from drawn
        if view.exact:
            words["options"] = Code('headviz.EvaluatorOptions(precision="float32")')
        yield f"evaluator = {call('headviz.evaluator_of', Code('clf'), Code('data'), **words)}"
    if "other" in uses:
        task = second_task(view)
        other = replace(view, data=SECOND) if task is None else replace(view, task=task)
        yield recipes.task(view, "unseen", "other") if view.task in UNSEEN else recipes.task(other, name="other")
    if "some" in uses:
        lengths = {"lengths": Code("clf.tokenizer")} if "model" in analysis.needs else {}
        yield recipes.task(replace(view, limit=0), "train", "train")
        yield f"some = {call('headviz.sample', Code('train'), SAMPLES, seed=view.seed, **lengths)}"
    if "checkpoints" in uses and view.model == "demo":
        yield "checkpoints = headviz.demo_folder('checkpoints')"
    elif "checkpoints" in uses:
        yield f"checkpoints = {view.base or 'checkpoints'!r}"
    if analysis.takes_mask_away:
        yield recipes.mask_of(mask)
    yield analysis.recipe(options)
    yield "print(result.to_json())"


def _command(view: View, analysis: Analysis, mask: HeadMask, options: Mapping[str, Any]) -> str:
    shown_options: Options = tuple(options.items())
    if analysis.asks("other-task"):
        task = second_task(view)
        other = ("other-data", SECOND) if task is None else ("other-task", task)
        shown_options += (("other-split", "unseen") if view.task in UNSEEN else other,)
    return command(
        analysis.command or f"analyse {analysis.name}",
        (
            *(recipes.model_options(view) if "model" in analysis.needs else ()),
            *(recipes.data_options(view) if "data" in analysis.needs else ()),
            *shown_options,
            *recipes.stand_in(view, _stand_in(analysis))[2],
            *(recipes.mask_options(mask) if analysis.takes_mask_away else ()),
        ),
    )

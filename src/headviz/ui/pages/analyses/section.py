"""The Analyses page: any analysis of the catalogue, run in the background and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....analyses.analysis import Analysis
from ....analyses.catalogue import ANALYSES, analyses_for
from ....analyses.common import ORACLE
from ....errors import TaskError, UserError
from ....evaluation.verdict import MARGIN
from ....heads import HeadMask
from ....models.stand_in import ZERO, StandIn
from ....models.text_length import LENGTH
from ...parts import abilities, cost, published, recorded, reference, scoring
from ...parts.measure import key_of
from ...shell import graded, jobs, loaders, show, state
from ...shell.view import View
from . import drawing

if TYPE_CHECKING:
    from ....answers.answer import Answer
    from ....evaluation.evaluator import Evaluator
    from ....models.base import TransformerModel
    from ....models.classifier import Classifier
    from ....tasks import Dataset

SAMPLES = 500  # training examples to choose heads and to score on
SECONDS = 20.0  # of a search that takes what it is given
OTHER = {"mnli": "mnli-mm", "mnli-mm": "mnli"}
GRADE = "grade"
# what other pages show of a result, by ``Analysis.tells``
REMEMBER: dict[str, Callable[[View, Any], None]] = {
    **abilities.REMEMBER,
    "scores": lambda view, found: graded.remember(view.source, found),
}
UNSEEN = ("demo", "demo-translation")  # tasks that come with a second evaluation split


def offered(answer: Answer) -> tuple[list[str], list[str]]:
    """The analyses for models with this answer, and those that have another page."""
    fit = analyses_for(answer)
    return [a.name for a in fit if not a.page], [a.name for a in fit if a.page]


@dataclass
class FromPage:
    """What an analysis works with, from the view. Made on the page, used in a job's thread."""

    analysis: Analysis
    clf: Classifier
    data: Dataset
    view: View
    chosen: HeadMask  # the Mask lab's
    known: dict[str, Any]  # score tables that exist
    stand_in: StandIn  # in the place of heads
    progress: jobs.Progress | None = None
    cancel: jobs.Cancel | None = None
    label_order = None

    @cached_property
    def evaluator(self) -> Evaluator:
        return self.on(self.data)

    def on(self, data: Dataset, clf: TransformerModel | None = None) -> Evaluator:
        """With the view's choice in the place of heads."""
        own: Any = clf or self.clf
        now = self.stand_in if self.analysis.over_draws else replace(self.stand_in, draws=1)
        return loaders.evaluator(own, data, (now, self.view), progress=self.progress, cancel=self.cancel)

    def sample(self, clf: TransformerModel | None = None) -> Dataset:
        from ....tasks import sample

        train = loaders.train(self.view)
        return sample(train, SAMPLES, seed=self.view.seed, lengths=(clf or self.clf).tokenizer)

    def second(self) -> Dataset:
        return second_data(self.view)

    def mask(self) -> HeadMask | None:
        """The mask, for an analysis that is about it; the others start from the full model."""
        return self.chosen if self.analysis.takes_mask_away and self.chosen.off else None

    def score(self, clf: TransformerModel, name: str, data: Dataset) -> Any:
        import headviz

        if clf is self.clf and name in self.known:
            return self.known[name]
        return headviz.score_heads(clf, data, name, cancel=self.cancel).values

    def load(self, place: Any, **how: Any) -> Classifier:
        import headviz

        found: Classifier = headviz.load(place, device=self.view.device, **how)
        return found

    def option(self, name: str) -> Any:
        if name in (given := options(self.view, self.analysis, self.clf.max_length, list(self.known))):
            return given[name]
        return next(wanted.default for wanted in self.analysis.options if wanted.name == name)


def options(view: View, analysis: Analysis, longest: int, known: Sequence[str]) -> dict[str, Any]:
    """The page's own values of options; they are also the command's flags."""
    given: dict[str, Any] = {"samples": SAMPLES, "seed": view.seed, "select": view.select, "seconds": SECONDS}
    given["margin"] = view.margin
    given["length"] = min(LENGTH, longest)
    if analysis.name != GRADE:  # which names all scores itself
        given["scores"] = ",".join(dict.fromkeys([*orders(view, known), ORACLE]))
    if analysis.asks("checkpoints"):
        given["checkpoints"] = checkpoints(view)
    return {name: value for name, value in given.items() if analysis.asks(name)}


def orders(view: View, known: Sequence[str]) -> list[str]:
    """Scores to prune by: those that have tables, else the one that a run would take."""
    return list(known) or [cost.removing(view)]


def checkpoints(view: View) -> str:
    """The folder of a training's checkpoints: the demo's own, or the view's."""
    if view.model == "demo":
        from ....demo import demo_folder

        return str(demo_folder("checkpoints"))
    if not view.base:
        raise UserError("Name a folder with checkpoints of the training, one model folder per checkpoint.")
    return str(loaders.confined(view.base))


def second_data(view: View) -> Dataset:
    """The task's second evaluation set."""
    if view.task in OTHER and not view.columns:
        return loaders.dataset(replace(view, task=OTHER[view.task]))
    if view.task in UNSEEN:
        return loaders.part(view, "unseen")
    raise TaskError(
        f"Task '{view.task}' has one dev set only. Choose mnli (matched and mismatched), or a demo (dev and unseen)."
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
    st.subheader(show.plain(analysis.title))
    st.markdown(show.plain(analysis.question))
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
    given = _given(analysis, clf, data, view)
    if given.stand_in.kind != ZERO:
        told = f"In the place of a head that is off stands {given.stand_in.meaning}. The Mask lab has the choice."
        st.caption(show.plain(told))
    result = _result(analysis, given)
    if result is not None:
        shown = result if analysis.lines is None else drawing.chosen_lines(result, analysis.lines)
        drawing.draw(analysis.view(shown))
    published.section(name, data.task.name)
    st.caption(show.plain(f"Source: {analysis.source}."))


def _given(analysis: Analysis, clf: Classifier, data: Dataset, view: View) -> FromPage:
    known = scoring.all_known(view, clf.present)
    stand_in = reference.chosen() if analysis.evaluates else StandIn()
    return FromPage(analysis, clf, data, view, state.mask(clf.present), known, stand_in)


def computed(name: str, clf: Classifier, data: Dataset) -> Any:
    """The result of an analysis that another page asks for; None while its progress is shown."""
    given = _given(ANALYSES[name], clf, data, state.view())
    return _needed(given, _key(given))


def _key(given: FromPage) -> tuple[Any, ...]:
    """What the result depends on."""
    analysis, view = given.analysis, given.view
    depends = (
        view.select if analysis.asks("select") else "",
        view.base if analysis.asks("checkpoints") else "",
        view.mask if analysis.takes_mask_away else "",
        *((view.margin,) if analysis.asks("margin") else ()),
        *(() if given.stand_in.kind == ZERO else (given.stand_in,)),
    )
    return key_of(given.clf, given.data, "analysis", analysis.name, *depends)


def _result(analysis: Analysis, given: FromPage) -> Any:
    """The result, or None while *Run* or the progress is shown."""
    view, key = given.view, _key(given)
    if jobs.find(key) is None and st.session_state.get("analysis_asked") != key:
        usual = view.select == "other" and view.margin == MARGIN and not view.base and given.stand_in.kind == ZERO
        made = recorded.analysis(analysis.name, given.clf, given.data, view.on_demo) if usual else None
        if made is not None and not view.present:
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                st.badge("recorded", icon=":material/history:", color="gray")
                st.caption(show.plain(made.said), width="content")
                _run_button(analysis, key, "Run it here")
            st.code(made.command, language=None, wrap_lines=True)
        elif made is None:
            _run_button(analysis, key, "Run")
        return None if made is None else made.result

    return _needed(given, key)


def _needed(given: FromPage, key: tuple[Any, ...]) -> Any:
    """The result of the job, which other pages learn of; None while its progress is shown."""
    remember = REMEMBER.get(given.analysis.tells, lambda view, result: None)

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
        made = given.analysis.run(replace(given, progress=progress, cancel=cancel))
        remember(given.view, made)  # also where nobody looks when it ends
        return made

    result = jobs.need(key, given.analysis.title, work)
    if result is not None:
        remember(given.view, result)
    return result


def _run_button(analysis: Analysis, key: tuple[Any, ...], label: str) -> None:
    kind: Any = "primary" if label == "Run" else "tertiary"
    st.button(
        show.plain(label),
        type=kind,
        icon=":material/play_arrow:",
        key=f"run_{analysis.name}",
        on_click=_ask,
        args=(key,),
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
                label=show.plain(f"{analysis.title} (another page)"),
                icon=":material/arrow_forward:",
            )

"""The analyses that the dashboard offers: one line each, what it asks, how it runs, how it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from ..errors import TaskError, UserError
from ..heads import HeadMask
from . import analysis_views as views
from . import jobs, loaders, scoring, state
from .measure import key_of
from .recipes import load_call, load_options, task_call, task_options
from .view import View

if TYPE_CHECKING:
    from ..evaluator import Evaluator
    from ..models.classifier import Classifier
    from ..tasks import Dataset

MICHEL = "Michel, Levy, Neubig 2019, *Are Sixteen Heads Really Better than One?* (arXiv 1905.10650)"
THESIS = "*Integrated Gradients for Structured Pruning on BERT* (2024)"


@dataclass(frozen=True)
class Bench:
    """What an analysis works on."""

    clf: Classifier
    data: Dataset
    view: View

    @property
    def evaluator(self) -> Evaluator:
        return loaders.evaluator(self.clf, self.data)

    @property
    def mask(self) -> HeadMask:
        return state.mask(self.clf.present)


Run = Callable[[Bench, jobs.Progress, jobs.Cancel], Any]


@dataclass(frozen=True)
class Analysis:
    """One line of the table. ``depends`` names what of the view changes its result."""

    title: str
    question: str
    run: Run
    show: Callable[[Any, Bench], None]
    source: str
    command: str = ""
    depends: Callable[[View], tuple[Any, ...]] = lambda view: ()
    controls: Callable[[Bench], None] = lambda bench: None


def _ablation(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    from ..analyses.ablation import ablate

    return ablate(bench.evaluator, progress=progress, cancel=cancel)


def other_half(view: View, data: Dataset) -> Dataset:
    """Data to choose heads on that are not the reported ones: a piece of the training split."""
    train = loaders.train(view)
    from ..tasks import sample

    return sample(train, min(len(data), len(train)), seed=view.seed, length_filter=None)


def _all_but_one(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    from ..analyses.all_but_one import all_but_one

    if bench.view.select == "same":
        return all_but_one(bench.evaluator, "same", progress=progress, cancel=cancel)
    other = loaders.evaluator(bench.clf, other_half(bench.view, bench.data))
    return all_but_one(bench.evaluator, "other", other, progress=progress, cancel=cancel)


def _choose_select(bench: Bench) -> None:
    state.switch(
        "select", "Heads chosen on", ("other", "same"),
        format_func=lambda s: {"other": "training examples", "same": "the reported data"}[s],
    )  # fmt: skip


def second_data(view: View) -> Dataset:
    """The task's second evaluation set."""
    pairs = {"mnli": "mnli-mm", "mnli-mm": "mnli"}
    if view.task in pairs and not view.columns:
        return loaders.dataset(replace(view, task=pairs[view.task]))
    if view.task == "demo":
        return loaders.part(view, "unseen")
    raise TaskError(
        f"Task '{view.task}' has one dev set only. Take mnli (matched and mismatched), or the demo (dev and unseen)."
    )


def _cross(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    from ..analyses.cross_dataset import cross_dataset

    second = loaders.evaluator(bench.clf, second_data(bench.view))
    return cross_dataset(bench.evaluator, second, progress=progress, cancel=cancel)


def _curves(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    from ..analyses.ablation import ablate
    from ..analyses.pruning_curve import pruning_curves

    orders = scoring.all_known(bench.view, bench.clf.present)
    oracle = ablate(bench.evaluator, progress=lambda d, t: progress(d, 2 * t), cancel=cancel)
    orders["oracle (ablation)"] = oracle.values
    return pruning_curves(
        bench.evaluator, orders, progress=lambda d, t: progress(t + d, 2 * t), cancel=cancel
    )


def _speed(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    from ..analyses.speed import speed

    mask = bench.mask
    if not mask.off:
        raise UserError("No head is off, so nothing would get faster. Switch some off in the Mask lab first.")
    length = min(128, bench.clf.max_length)
    return speed(bench.clf, mask, length=length, progress=progress, cancel=cancel)


def _redundant(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    from ..analyses.redundant import redundant

    return redundant(bench.evaluator, seconds=20.0, progress=progress, cancel=cancel)


def _dynamics(bench: Bench, progress: jobs.Progress, cancel: jobs.Cancel) -> Any:
    import headviz

    from ..analyses.dynamics import dynamics

    if bench.view.model != "demo" and not bench.view.base:
        raise UserError("Name a folder with checkpoints of the fine-tuning, one model folder per checkpoint.")
    if bench.view.model == "demo":
        from ..demo import demo_folder

        folder = demo_folder("checkpoints")
    else:
        folder = loaders.confined(bench.view.base)
    some = scoring.sample(bench.view, bench.clf)

    def taylor(evaluator: Evaluator) -> Any:
        return headviz.score_heads(evaluator.clf, some, "taylor", cancel=cancel).values

    return dynamics(folder, bench.data, "taylor", taylor, progress=progress, cancel=cancel)


def _choose_folder(bench: Bench) -> None:
    if bench.view.model != "demo":
        state.text("base", "Folder with the checkpoints", placeholder="/path/to/run/checkpoints")


# fmt: off
ANALYSES: dict[str, Analysis] = {
    "ablation": Analysis(
        "One head off", "What does each head cost on its own, and is that more than chance?",
        _ablation, views.ablation, f"{MICHEL}, §3.2, Figure 1, Table 1", "headviz ablate"),
    "all-but-one": Analysis(
        "All but one", "How far does the best single head of each layer go?",
        _all_but_one, views.all_but_one, f"{MICHEL}, §3.3, Tables 2, 3, 5 and 6", "headviz analyse all-but-one",
        lambda view: (view.select,), _choose_select),
    "cross-dataset": Analysis(
        "Other data", "Do the heads that matter here matter on another data set too?",
        _cross, views.cross_dataset, f"{MICHEL}, §3.4, Figure 2", "headviz analyse cross-dataset"),
    "curves": Analysis(
        "Pruning curves", "How much can go, in the order of each score and in the best order there is?",
        _curves, views.curves, f"{MICHEL}, §4, Figures 3 and 6", "headviz analyse pruning-curve"),
    "speed": Analysis(
        "Speed", "How much faster is the model once the heads of the mask are gone?",
        _speed, views.speed, f"{MICHEL}, §5, Table 4", "headviz analyse speed", lambda view: (view.mask,)),
    "dynamics": Analysis(
        "Training dynamics", "From which point of training on can heads go?",
        _dynamics, views.dynamics, f"{MICHEL}, §6, Figure 5", "headviz analyse dynamics",
        lambda view: (view.base, view.samples), _choose_folder),
    "redundant": Analysis(
        "Stand-ins", "Which pairs are harmless alone, but not together?",
        _redundant, views.redundant, "A search over the most promising pairs, 20 s", "headviz analyse redundant"),
}
# fmt: on


def section(name: str, bench: Bench) -> None:
    """One analysis: its question, its controls, *run*, and its result."""
    analysis = ANALYSES[name]
    st.markdown(f"**{analysis.question}**")
    analysis.controls(bench)
    view = state.view()
    bench = replace(bench, view=view)
    key = key_of(bench.clf, bench.data, "analysis", name, *analysis.depends(view))
    if jobs.find(key) is None:
        st.button(
            "Run", type="primary", icon=":material/play_arrow:", key=f"run_{name}", on_click=_ask, args=(key,)
        )
        if st.session_state.get("analysis_asked") != key:
            st.caption(analysis.source)
            return
    result = jobs.need(key, analysis.title, lambda progress, cancel: analysis.run(bench, progress, cancel))
    if result is not None:
        analysis.show(result, bench)
        st.caption(f"After {analysis.source}.")


def _ask(key: tuple[Any, ...]) -> None:
    st.session_state["analysis_asked"] = key


CALLS = {
    "ablation": "from headviz.analyses.ablation import ablate\nprint(ablate(headviz.Evaluator(clf, data)).to_json())",
    "all-but-one": "from headviz.analyses.all_but_one import all_but_one\n"
    "print(all_but_one(headviz.Evaluator(clf, data), 'same').to_json())",
}


def recipe(view: View, name: str) -> tuple[str, str]:
    call = CALLS.get(name, f"# headviz.analyses holds '{name}'")
    python = "\n".join(["import headviz", load_call(view), task_call(view), call])
    return python, f"{ANALYSES[name].command} {load_options(view)} {task_options(view)}"
